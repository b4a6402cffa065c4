"""Looking at what a file holds: problems, plans, profiles, traces, run folders."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ...formulations.errors import InvalidInputError
from ...formulations.files import NETWORK, PROBLEM, format_of
from ...question.fields import Only
from ...question.question import Question
from ..base.answer import Answer, command
from ..base.exits import ExitCode
from ..base.general_options import argument, heading
from ..options.problem import (
    ASKED_OF_FILES,
    OutOption,
    ProblemOptions,
    RulesOption,
    ask,
    ask_plan,
    result_option,
)

if TYPE_CHECKING:
    from ...api.asked import Asked

_shown_option = heading("What is shown")

ShownArgument = Annotated[
    list[str] | None,
    argument(
        "PROBLEM|FILE",
        "A problem (file, or shipped name), or any file that gapless writes: a plan, profile, "
        "deployment, measurement, trace, result of tuning, ..., or a folder of `gapless tune`. PROBLEM FILE "
        "shows the plan of a file on that problem.",
    ),
]
LayersOption = Annotated[
    str | None, _shown_option(metavar="FIRST-LAST", help="Show the times of these layers only, e.g. 0-20.")
]
SvgOption = Annotated[Path | None, result_option("Also draw the heat map of layer times into this file.")]

_RANGE = re.compile(r"(\d{1,6})(?:-(\d{1,6}))?", re.ASCII)


def _of_problem(asked: Asked, *, layers: str | None, svg: Path | None) -> Answer:
    from ..tasks.showing import described

    problem, shown = asked.problem, _layers(layers)
    if not problem.formulation.one_network and (layers is not None or svg is not None):
        raise InvalidInputError("--layers and --svg are for one network; show its problem without --workload")
    files = {"svg": lambda: _problem_svg(asked, shown)}
    return described(problem, notes=asked.notes, layers=shown, files=files)


@command(
    "gapless show pixel7a/alexnet-sparse --out problem.json",
    'gapless show --workload "yolov4,bert" --platform kirin990',
)
def show(
    files: ShownArgument = None,
    *,
    question: Annotated[Question, Only(ASKED_OF_FILES)],
    rules: RulesOption = None,
    layers: LayersOption = None,
    svg: SvgOption = None,
    out: OutOption = None,
) -> Answer:
    """Show a problem, or what is in any file or folder that gapless wrote.

    A problem: units, heat map of layer times, objective, limits, rules; --out writes it as a file to edit.
    """
    from ...files.plans import PLAN_KINDS
    from ..tasks import showing

    files = files or []
    if len(files) > 2:
        raise InvalidInputError(f"give a problem, a file, or a problem and a file; got {' '.join(files)}")
    kind = showing.PROBLEM if not files or _is_over_devices(files, question) else showing.kind_of(files[-1])
    options = ProblemOptions(question=question, rules=rules)
    if kind == showing.PROBLEM:
        if len(files) == 2:
            raise InvalidInputError(
                f"{files[1]} is a problem, too: give one problem, or a problem and a plan, in this order"
            )
        named = replace(question, problem=files[0] if files else None)
        asked = ask(replace(options, question=named))
        if asked.task_slots is not None:
            raise InvalidInputError("--task-slots is about a workload: give --workload, or use simulate")
        return _of_problem(asked, layers=layers, svg=svg)
    chosen, problem = options.names, None
    if len(files) == 2 or question.workload is not None:
        named = replace(question, problem=files[0] if len(files) == 2 else None)
        options = replace(options, question=named)
        problem = (ask_plan(files[-1:], options)[0] if kind in PLAN_KINDS else ask(options)).problem
    elif chosen:
        raise InvalidInputError(
            f"{chosen[0]} is about a problem, and {files[0]} is none: name the problem before it"
        )
    if out is not None:
        raise InvalidInputError(f"--out writes problems; {files[-1]} is a file already")
    return _of_file(files[-1], kind, problem, layers=layers, svg=svg)


def _is_over_devices(files: list[str], question: Question) -> bool:
    """Return whether a model is named, to be shown as the problem of running it over a cluster."""
    if len(files) > 1 or not question.platform or question.workload:
        return False
    path = Path(files[0])
    return path.suffix == ".onnx" or (path.is_file() and format_of(path) in (NETWORK.format, PROBLEM.format))


def _of_file(name: str, kind: str, problem: Any, *, layers: str | None, svg: Path | None) -> Answer:
    from ...view.terminal.heat_map import layer_svg
    from ..tasks import showing

    found = showing.show_file(name, kind, problem=problem, layers=_layers(layers))
    if layers is not None and not found.takes_layers:
        raise InvalidInputError(f"--layers is for layer times; {name} ({found.kind}) has none")
    if svg is not None and not found.grids:
        raise InvalidInputError(f"--svg draws layer times; {name} ({found.kind}) has none")
    return Answer.of(
        "description",
        {"path": found.path, "kind": found.kind, "defects": found.defects, "document": found.document},
        found.view,
        code=ExitCode.VERIFICATION if found.defects else ExitCode.OK,
        notes=found.notes,
        files={"svg": lambda: layer_svg(found.grids, ())},
    )


def _problem_svg(asked: Asked, layers: range | None) -> str:
    from ...answers.layers import layer_map
    from ...view.terminal.heat_map import layer_svg

    problem = asked.problem
    title = f"{problem.network.name} on {problem.platform.name}"
    grid = layer_map(problem.network, problem.costs, layers=layers, title=title)
    return layer_svg([grid], [problem.costs.provenance.source] if problem.costs.provenance.source else [])


def _layers(text: str | None) -> range | None:
    """Return the layers FIRST-LAST, both included, as chunks are printed."""
    if text is None:
        return None
    found = _RANGE.fullmatch(text.strip())
    if found is None or int(found[2] or found[1]) < int(found[1]):
        raise InvalidInputError(f"--layers is {text!r}, must be the first and the last layer, e.g. 0-20")
    return range(int(found[1]), int(found[2] or found[1]) + 1)
