"""What a file or folder of gapless holds, read by the format that it says."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...answers.blocks import Block
from ...answers.charts import HeatMap
from ...answers.problems import problem_blocks
from ...executor.pipeline.trace_file import check_trace
from ...files import documents
from ...files.formats import file_format
from ...files.plans import PLAN_KINDS, NamedPlan, named_plan, problem_of_plan
from ...formulations.errors import InvalidInputError, SchemaVersionError
from ...formulations.files import dump_problem, load, load_problem
from ...formulations.json_files import format_of, load_foreign, load_tree
from ...formulations.judge import check
from ...formulations.problem import Problem
from ...solvers.exhaustive import count_plans
from ..base.answer import Answer, View

PROBLEM = "gapless.problem"
FOLDER = "folder"
CHROME = "Chrome trace"
"""A trace of another program: it has no format."""

_MODELS = (".onnx", ".py", ".mnn")


_MOST_COUNTED = 10**300
"""Fewer plans are told as a number in JSON: many readers take no longer ones."""


def described(
    problem: Problem,
    *,
    notes: Sequence[str],
    layers: range | None = None,
    after: Sequence[Block] = (),
    files: Mapping[str, Callable[[], str]] = {},
    **more: object,
) -> Answer:
    """Return the answer that a problem is; `layers`: which ones of its map, `after`: what is shown below."""
    plans = count_plans(problem)
    return Answer(
        document=lambda: {
            **documents.header("description"),
            "problem": documents.problem_data(problem),
            "most_plans": plans if plans < _MOST_COUNTED else None,
            "document": None if problem.opaque_rules else json.loads(dump_problem(problem)),
            **more,
        },
        view=lambda: [*problem_blocks(problem, plans, layers=layers), *after],
        notes=notes,
        files={"out": lambda: dump_problem(problem), **files},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What is in a file.

    `path`, `kind`: the file, and its format.
    """

    path: str
    kind: str
    document: Mapping[str, Any]  # all of it, for machines
    view: Callable[[], View]  # for people
    grids: tuple[HeatMap, ...] = ()  # its heat maps of layer times, for a picture
    defects: tuple[str, ...] = ()  # what is wrong with it
    notes: tuple[str, ...] = ()  # what people should know besides
    takes_layers: bool = False  # whether a range of layers can be shown


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """A file to be shown: its problem, where the user names one, and which layers."""

    path: Path
    problem: Problem | None
    layers: range | None


def kind_of(name: str) -> str:
    """Return of which kind something is: a format, a folder, or `PROBLEM` for names of problems."""
    try:
        path = Path(name)
        if path.is_dir():
            return FOLDER
        if not path.is_file():
            return PROBLEM
    except (OSError, ValueError):  # a name that no file can have
        return PROBLEM
    if path.suffix in _MODELS:
        raise InvalidInputError(
            f"{name} is a model, no result: `gapless tools inspect {name}` shows what is in it"
        )
    try:
        kind = format_of(path)
    except InvalidInputError as error:
        if path.suffix == ".json":
            raise
        raise InvalidInputError(
            f"{name} cannot be shown: the files of gapless are JSON ({error.message}); a folder of "
            "`gapless tune` can be shown as a whole"
        ) from None
    if kind is None:
        _foreign_trace(path)
        return CHROME
    return kind


def show_file(name: str, kind: str, *, problem: Problem | None, layers: range | None) -> Shown:
    """Read a file or folder for showing.

    `problem`: what plans and deployments are for. None: what the file says, or what lies beside it. `layers`:
    which layers of a heat map to show; None: all.
    """
    if not kind.startswith("gapless.") and kind not in _READERS:
        raise InvalidInputError(
            f"{name} has the format {kind!r}, which is none of gapless; `gapless list files` lists them all"
        )
    asked = _Asked(path=Path(name), problem=problem, layers=layers)
    view = _view(kind)
    if view is None:
        return _READERS.get(kind, _other)(asked)
    found = load(asked.path, file_format(kind).schema)
    return _shown(asked, kind, lambda: view(found))


def _shown(asked: _Asked, kind: str, view: Callable[[], View], **more: Any) -> Shown:
    return Shown(path=str(asked.path), kind=kind, document=load_tree(asked.path), view=view, **more)


def _plan(asked: _Asked) -> Shown:
    """Show a plan, a list of plans, or a deployment, on its problem where that is known."""
    from ...answers.layers import layer_map
    from ...answers.plans import deployment_blocks, plans_blocks

    named = named_plan(asked.path)
    problem, notes = _problem_of(named, asked)
    grids: tuple[HeatMap, ...] = ()
    broken: tuple[str, ...] = ()
    if problem is not None and named.plans:
        broken = tuple(violation.message for violation in check(problem, named.plan))
        if problem.formulation.one_network and not broken:
            title = f"{problem.network.name} on {problem.platform.name}: [{named.plan}]"
            shown = layer_map(
                problem.network, problem.costs, layers=asked.layers, plan=named.plan, title=title
            )
            grids = (shown,)
    replicas = named.deployment if not named.plans else None
    return _shown(
        asked,
        str(format_of(asked.path)),
        lambda: (
            plans_blocks(named.plans, problem, layers=asked.layers)
            if replicas is None
            else deployment_blocks(replicas)
        ),
        grids=grids,
        defects=broken,
        notes=notes,
        takes_layers=True,
    )


def _problem_of(named: NamedPlan, asked: _Asked) -> tuple[Problem | None, tuple[str, ...]]:
    """Return the problem of a plan: the given one, or its own, as far as that is known."""
    if asked.problem is not None:
        return asked.problem, ()
    try:
        return problem_of_plan(named)
    except InvalidInputError as error:
        named_one = (f"the problem that {asked.path} names cannot be read: {error}",)
        unknown = f"its problem is not known; name it: `gapless show PROBLEM {asked.path}`"
        return None, (*(named_one if named.origin.asked else ()), unknown)


def _problem_at(path: Path) -> Problem | None:
    try:
        return load_problem(path)
    except InvalidInputError:
        return None


def _profile(asked: _Asked) -> Shown:
    from ...answers.layers import layer_map
    from ...answers.measured import taken_profile_blocks
    from ...profiler.profile import PROFILE

    taken = load(asked.path, PROFILE)
    grids = tuple(
        layer_map(
            taken.network,
            table,
            layers=asked.layers,
            title=f"{taken.network.name} on {taken.platform.name}: {table.provenance.method}",
        )
        for table in taken.tables
    )
    return _shown(
        asked,
        PROFILE.format,
        lambda: taken_profile_blocks(taken, layers=asked.layers),
        grids=grids,
        takes_layers=True,
    )


def _rounds(asked: _Asked) -> Shown:
    from ...answers.tuning import loop_blocks
    from ...api.tuned import LOOP

    loop = load(asked.path, LOOP)
    beside = asked.problem or _problem_at(asked.path.parent / "problem.json")
    units = () if beside is None else beside.platform.unit_names
    return _shown(asked, LOOP.format, lambda: loop_blocks(loop, loop.answer, units))


def _executions(asked: _Asked) -> Shown:
    from ...answers.files import executions_blocks
    from ...profiler.prediction.executions import EXECUTIONS

    found = load(asked.path, EXECUTIONS)
    note = f"`gapless costs judge {asked.path}` says how well the tables predicted them"
    return _shown(asked, EXECUTIONS.format, lambda: executions_blocks(found), notes=(note,))


def _trace(asked: _Asked) -> Shown:
    from ...answers.files import defects_blocks, trace_blocks
    from ...executor.pipeline.trace_file import TRACE_FORMAT, read_trace

    try:
        found = read_trace(asked.path)
    except SchemaVersionError:
        raise
    except InvalidInputError as error:
        events = load_tree(asked.path).get("traceEvents")
        if not error.problems or not isinstance(events, list):
            raise
        defects, count = tuple(error.problems), len(events)
        return _shown(
            asked,
            TRACE_FORMAT,
            lambda: defects_blocks(str(asked.path), count, defects, ours=True),
            defects=defects,
        )
    return _shown(asked, TRACE_FORMAT, lambda: trace_blocks(found))


def _foreign_trace(path: Path) -> Mapping[str, Any]:
    """Return a Chrome trace of another program; refuse what is none."""
    found: Mapping[str, Any] = load_foreign(path, dict[str, Any], called="a JSON document")
    if not isinstance(found.get("traceEvents"), list):
        raise InvalidInputError(
            f"{path} does not say what it is: every file of gapless has a format, e.g. "
            '"format": "gapless.problem"; `gapless list files` lists them'
        )
    return found


def _chrome(asked: _Asked) -> Shown:
    from ...answers.files import defects_blocks

    found = _foreign_trace(asked.path)
    defects, events = tuple(check_trace(found)), len(found["traceEvents"])
    return Shown(
        path=str(asked.path),
        kind=CHROME,
        document=found,
        view=lambda: defects_blocks(str(asked.path), events, defects, ours=False),
        defects=defects,
    )


def _folder(asked: _Asked) -> Shown:
    from ...answers.files import folder_blocks
    from ...files.documents import plain_data
    from ...files.run_folder import read_folder

    found = read_folder(asked.path)
    return Shown(
        path=str(asked.path),
        kind=FOLDER,
        document={
            "files": plain_data(found.entries),
            "run": None if found.run is None else plain_data(found.run),
            "winner": None if found.tuning is None else plain_data(found.tuning.winner),
            "notes": list(found.notes),
            "next": [line for line, _ in found.following],
        },
        view=lambda: folder_blocks(found),
    )


def _other(asked: _Asked) -> Shown:
    from ...answers.files import other_blocks
    from ...files.run_folder import what_is

    tree = load_tree(asked.path)
    kind = str(tree["format"])
    return _shown(asked, kind, lambda: other_blocks(str(asked.path), kind, what_is(kind), tree))


def _view(kind: str) -> Callable[[Any], View] | None:
    """Return the view of what a file of a format holds, if it needs nothing else."""
    view: Callable[[Any], View]
    match kind:
        case "gapless.sweep":
            from ...answers.sweeps import spec_blocks as view
        case "gapless.instances":
            from ...answers.standings import instances_blocks as view
        case "gapless.scenario":
            from ...answers.scenarios import scenario_blocks as view
        case "gapless.behaviour":
            from ...answers.scenarios import behaviour_blocks as view
        case "gapless.measurement":
            from ...answers.measured import measurement_blocks as view
        case "gapless.tuning":
            from ...answers.tuning import tuning_blocks as view
        case "gapless.run":
            from ...answers.files import run_blocks as view
        case "gapless.platform":
            from ...answers.problems import platform_blocks as view
        case "gapless.cluster":
            from ...answers.clusters import cluster_blocks as view
        case "gapless.links":
            from ...answers.clusters import link_blocks as view
        case "gapless.device":
            from ...answers.prediction import device_blocks as view
        case "gapless.predictor":
            from ...answers.prediction import card_blocks as view
        case "gapless.network":
            from ...answers.files import network_blocks as view
        case "gapless.contention":
            from ...answers.contention import contention_blocks as view
        case "gapless.comparison":
            from ...answers.comparing import written_blocks as view
        case "gapless.interference":
            from ...answers.interference import interference_blocks as view
        case _:
            return None
    return view


_READERS: dict[str, Callable[[_Asked], Shown]] = {
    FOLDER: _folder,
    CHROME: _chrome,
    **dict.fromkeys(PLAN_KINDS, _plan),
    "gapless.profile": _profile,
    "gapless.rounds": _rounds,
    "gapless.executions": _executions,
    "gapless.chrome_trace": _trace,
}
"""Readers of other formats; those of gapless that have no view either get a list of their keys."""
