"""Tuning: profile, plan, measure, keep the fastest."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ...executor.graph.choices import Simplification
from ...files import documents
from ...formulations.errors import InvalidInputError
from ...formulations.hardware import Precision
from ...formulations.limits import LIMITS
from ...question.question import Question
from ..base.answer import Answer, command
from ..base.exits import ExitCode
from ..base.general_options import JsonOption, heading
from ..options.boards import on_boards
from ..options.models import (
    SIMULATED,
    ChainOption,
    DeviceOption,
    EmulateOption,
    EngineOption,
    GranularityOption,
    InputOption,
    InputRangeOption,
    MaterializeOption,
    OutDirOption,
    OverwriteOption,
    PrecisionOption,
    ShapeOption,
    SimplifyOption,
    SubjectsArgument,
    UnitsOption,
    is_chain,
    parse_names,
    parse_samples,
)
from ..options.problem import RulesOption, with_question
from ..options.solving import DistanceOption, ParetoOption, SeedOption, TimeLimitOption, TopOption

if TYPE_CHECKING:
    from ...api.tuned import Tuned
    from ...executor.samples import Samples
    from ...files.run import Entry
    from ..tasks.measuring import Target, TuneChoice

_tuning_option = heading("How to tune")
_NOISE = "2%"

BackendsOption = Annotated[
    str, _tuning_option(help="Who plans, comma-separated; their plans are merged.", show_default=True)
]
PlannedCostsOption = Annotated[
    str | None,
    _tuning_option(
        help="Co-run cost model that plans are made from: learned (the default where plans of this network, "
        "or of any on three units or more, were executed on this device before), heavy (the default "
        "otherwise), isolated (the default where latency comes first: one request is run at a time), "
        "interpolated, or a registered one."
    ),
]
RoundsOption = Annotated[
    int,
    _tuning_option(
        min=1,
        help="Most rounds of measuring, learning from what was measured, and planning again; ends "
        "earlier when the best plan stands and none is predicted to be faster.",
        show_default=True,
    ),
]
GroupsOption = Annotated[
    str | None,
    _tuning_option(
        metavar="all|N",
        help="Groups of at most N units compute a chunk together, each some of its rows; plans of one and "
        "of several pipelines race beside them. For one ONNX model, which is cut into pieces.",
    ),
]
ModeOption = Annotated[
    str,
    _tuning_option(
        help="race: the clearly slower leave after each rung; fixed: 10 s for everybody, as in "
        "BetterTogether.",
        show_default=True,
    ),
]
BudgetOption = Annotated[
    float | None,
    _tuning_option(
        min=1.0,
        help="Seconds of racing after which no further visit begins, the strongest candidates first; "
        "profiling and planning do not count. Otherwise none: each candidate is measured at least twice.",
    ),
]
SustainOption = Annotated[
    float | None,
    _tuning_option(
        min=0.01,
        max=1440.0,
        metavar="MINUTES",
        help="Afterwards run the finalists in turns for so many minutes: whether they slow down (heat, "
        "throttling), and whether the order of the first minute holds.",
    ),
]
TruthOption = Annotated[
    str | None,
    _tuning_option(
        help="With --engine simulated and a shipped problem: the table that the device obeys; otherwise "
        "the default of --costs."
    ),
]
NoiseOption = Annotated[
    str, _tuning_option(help="With --engine simulated: random variation.", show_default=True)
]
StoreOption = Annotated[Path | None, _tuning_option(help="File of measurements; otherwise OUT/store.sqlite.")]
ResumeOption = Annotated[
    bool,
    _tuning_option("--resume", help="Go on with the run that is in the folder: nothing is measured twice."),
]
DetailsOption = Annotated[
    bool,
    _tuning_option(
        "--details", help="Show all tables, latencies and what trust is based on, not a line a candidate."
    ),
]


@command
@on_boards()
@with_question("workload", "pipelines", "layer_order", "objective", *LIMITS)
def tune(
    subjects: SubjectsArgument,
    *,
    chain: ChainOption = False,
    shape: ShapeOption = None,
    granularity: GranularityOption = "auto",  # type: ignore[assignment] # typer reads the text
    materialize: MaterializeOption = False,
    simplify: SimplifyOption = Simplification.AUTO,
    feed: InputOption = None,
    input_range: InputRangeOption = None,
    engine: EngineOption = None,
    device: DeviceOption = None,
    units: UnitsOption = None,
    emulate: EmulateOption = None,
    precision: PrecisionOption = Precision.HIGH,
    question: Question,
    groups: GroupsOption = None,
    rules: RulesOption = None,
    pareto: ParetoOption = None,
    backends: BackendsOption = "native",
    top: TopOption = 10,
    distance: DistanceOption = 1,
    costs: PlannedCostsOption = None,
    rounds: RoundsOption = 1,
    time_limit: TimeLimitOption = None,
    mode: ModeOption = "race",
    budget: BudgetOption = None,
    sustain: SustainOption = None,
    seed: SeedOption = 0,
    truth: TruthOption = None,
    noise: NoiseOption = _NOISE,
    store: StoreOption = None,
    resume: ResumeOption = False,
    overwrite: OverwriteOption = False,
    out: OutDirOption = Path("gapless-out"),
    details: DetailsOption = False,
    json: JsonOption = False,
) -> Answer:
    """Profile, plan, run the best plans and the baselines on this device, and keep the fastest."""
    from ...files.run import refuse_occupied
    from ..tasks import measuring

    place = (out, _entry(resume=resume, overwrite=overwrite))
    choice = measuring.TuneChoice(
        question=question,
        groups=groups,
        pareto=pareto,
        rules=rules,
        backends=parse_names(backends),
        top=top,
        distance=distance,
        costs=costs,
        rounds=rounds,
        time_limit_s=time_limit,
        sustain_s=None if sustain is None else 60 * sustain,
        options=measuring.tuning_options(mode, budget_s=budget, seed=seed),
        store=store,
    )
    here = measuring.DeviceChoice.of(engine, units=units, emulate=emulate, precision=precision, file=device)
    if _is_simulated(engine, truth, noise, samples := parse_samples(feed, input_range)):
        tuned, notes = _tuned_there(subjects, choice, *place, truth=truth, noise=noise)
        return _answer(tuned, notes, details=details)
    refuse_occupied(*place)
    chained = is_chain(subjects, chain=chain, shared="" if question.workload is None else "--workload")
    subject = choice.subject(
        subjects, shape, granularity, chained=chained, materialize=materialize, simplify=simplify
    )
    target = measuring.Target.of(subject, here, samples, competing=groups is None)
    return _answer(*_tuned_here(target, choice, *place), details=details)


def _entry(*, resume: bool, overwrite: bool) -> Entry:
    from ...files.run import Entry

    return Entry(resume=resume, overwrite=overwrite)


def _tuned_there(
    subjects: list[str], choice: TuneChoice, out: Path, entry: Entry, *, truth: str | None, noise: str
) -> tuple[Tuned, list[str]]:
    """Tune on a simulated device."""
    from ...files import run_files
    from ..tasks import measuring

    planned, obeyed = measuring.simulated_problems(subjects, choice, truth=truth)
    with measuring.begun("tune", planned, out, entry, simulated=True) as run:
        measured = measuring.simulated_tables(subjects, choice)
        tuned = measuring.tune_simulated_watched(planned, obeyed, choice, run, noise=noise, measured=measured)
        return tuned, run_files.write_found(tuned, run)


def _tuned_here(target: Target, choice: TuneChoice, out: Path, entry: Entry) -> tuple[Tuned, list[str]]:
    from ...files import run_files
    from ..tasks import measuring, running

    with measuring.begun("tune", target.networks, out, entry) as run:
        tuned, notes = measuring.tune_watched(target, choice, run)
        notes = [*run_files.write_found(tuned, run), *notes]
        trace = run.place / "trace.json"
        notes += running.trace_winner(tuned, trace, engine=target.engine, samples=target.samples)
    return tuned, notes


def _answer(tuned: Tuned, notes: list[str], *, details: bool) -> Answer:
    from ...answers.tuning import tuned_blocks
    from ...view.presenter import presenter_of
    from ...view.terminal.blocks import blocks_view

    return Answer(
        document=lambda: documents.tuning_document(tuned.problem, tuned.result, tuned.loop, tuned.front),
        view=lambda: blocks_view(tuned_blocks(tuned, presenter_of(tuned.problem)), details=details),
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


def _is_simulated(engine: str | None, truth: str | None, noise: str, samples: Samples | None) -> bool:
    """Return whether the device is a simulated one; refuse options that would say nothing."""
    given = {"--truth": truth is not None, "--noise": noise != _NOISE}
    stray = [option for option, is_given in given.items() if is_given]
    if stray and engine != SIMULATED:
        raise InvalidInputError(f"{' and '.join(stray)} is about --engine {SIMULATED}: give that, too")
    if samples is not None and engine == SIMULATED:
        raise InvalidInputError("--input and --input-range cannot be used with --engine simulated")
    return engine == SIMULATED
