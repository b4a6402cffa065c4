"""Tuning: profile, plan, measure, keep the fastest."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ...files import documents
from ...formulations.errors import InvalidInputError
from ...formulations.limits import LIMITS
from ...question.fields import Only, said
from ...question.question import Question
from ...question.subjects import CHAIN, Folder, Inputs, Machine, Opening, Race, Search
from ...question.values import YES
from ..base.answer import Answer, View, command
from ..base.exits import ExitCode
from ..options.boards import on_boards
from ..options.models import SIMULATED, SubjectsArgument, is_chain
from ..options.problem import RulesOption

if TYPE_CHECKING:
    from ...api.tuned import Tuned
    from ...boards.running import Ran
    from ...files.run import Entry
    from ..tasks.measuring import Target, Tuning

DetailsOption = Annotated[
    bool,
    said(
        "Show all tables, latencies and what trust is based on, not a line a candidate.",
        YES,
        heading="How to tune",
        flag=True,
        rare=True,
    ),
]


def _of_board(ran: Ran, given: Mapping[str, Any]) -> View:
    from ...boards.board import load_tuned

    return _view(load_tuned(given["folder"].out), details=given["details"])


@command(
    "gapless tune squeezenet --top 5 --budget 60s --out squeezenet",
    "gapless tune pixel7a/alexnet-sparse --engine simulated --top 5",
    "gapless tune pixel7a/alexnet-sparse --engine simulated --noise 5% --out noisy",
)
@on_boards(_of_board)
def tune(
    subjects: SubjectsArgument,
    *,
    chain: Annotated[bool, CHAIN] = False,
    opening: Opening,
    inputs: Inputs,
    machine: Machine,
    question: Annotated[
        Question, Only.of("workload", "state", "pipelines", "layer_order", "objective", *LIMITS)
    ],
    rules: RulesOption = None,
    search: Annotated[Search, Only.of("pareto", "top", "distance", "time_limit_s", "seed")] = Search(top=10),
    race: Race,
    folder: Folder,
    details: DetailsOption = False,
) -> Answer:
    """Profile, plan, run the best plans and the baselines on this device, and keep the fastest."""
    from ...files.run import Entry, refuse_occupied
    from ..tasks import measuring

    place = (folder.out, folder.made(Entry))
    asked = measuring.Tuning(question=question, search=search, race=race, rules=rules)
    if _is_simulated(machine, race, inputs):
        return _answer(*_tuned_there(subjects, asked, *place), details=details)
    refuse_occupied(*place)
    chained = is_chain(subjects, chain=chain, shared="" if question.workload is None else "--workload")
    subject = asked.subject(subjects, opening, chained=chained)
    target = measuring.Target.of(subject, machine, inputs.samples, competing=race.groups is None)
    return _answer(*_tuned_here(target, asked, *place), details=details)


def _tuned_there(subjects: list[str], asked: Tuning, out: Path, entry: Entry) -> tuple[Tuned, list[str]]:
    """Tune on a simulated device."""
    from ...files import run_files
    from ..tasks import measuring

    planned, obeyed = measuring.simulated_problems(subjects, asked)
    with measuring.begun("tune", planned, out, entry, simulated=True) as run:
        measured = measuring.simulated_tables(subjects, asked)
        tuned = measuring.tune_simulated_watched(planned, obeyed, asked, run, measured=measured)
        return tuned, run_files.write_found(tuned, run)


def _tuned_here(target: Target, asked: Tuning, out: Path, entry: Entry) -> tuple[Tuned, list[str]]:
    from ...files import run_files
    from ..tasks import measuring, running

    with measuring.begun("tune", target.networks, out, entry) as run:
        tuned, notes = measuring.tune_watched(target, asked, run)
        notes = [*run_files.write_found(tuned, run), *notes]
        trace = run.place / "trace.json"
        notes += running.trace_winner(tuned, trace, engine=target.engine, samples=target.samples)
    return tuned, notes


def _view(tuned: Tuned, *, details: bool) -> View:
    from ...answers.tuning import tuned_blocks
    from ...view.presenter import presenter_of
    from ...view.terminal.blocks import blocks_view

    return blocks_view(tuned_blocks(tuned, presenter_of(tuned.problem)), details=details)


def _answer(tuned: Tuned, notes: list[str], *, details: bool) -> Answer:
    return Answer(
        document=lambda: documents.tuning_document(tuned.problem, tuned.result, tuned.loop, tuned.front),
        view=lambda: _view(tuned, details=details),
        code=_code(tuned),
        notes=notes,
    )


def _code(tuned: Tuned) -> ExitCode:
    if tuned.interrupted:
        return ExitCode.INTERRUPTED
    if tuned.result.winner is not None:
        return ExitCode.OK
    wrong = any(row.failure is not None and row.failure.wrong for row in tuned.result.rows)
    return ExitCode.VERIFICATION if wrong else ExitCode.FAILURE


def _is_simulated(machine: Machine, race: Race, inputs: Inputs) -> bool:
    """Return whether the device is a simulated one; refuse options that would say nothing."""
    stray = race.options("truth", "noise_permille")
    if stray and machine.engine != SIMULATED:
        raise InvalidInputError(f"{' and '.join(stray)} is about --engine {SIMULATED}: give that, too")
    if inputs and machine.engine == SIMULATED:
        raise InvalidInputError("--input and --input-range cannot be used with --engine simulated")
    return machine.engine == SIMULATED
