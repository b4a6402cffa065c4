"""Plans for other runtimes: what `gapless export` does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ...api.engines import measured_with
from ...api.execution import models_for
from ...api.models import opening_notes, parse_places
from ...executor.export.comparison import compared
from ...executor.export.drawing import Order, draw
from ...executor.export.folder import Exported, require_free, write_export
from ...executor.export.kinds import ExportKind
from ...executor.export.manifest import Predicted
from ...executor.export.settings import ENGINES
from ...executor.model import Model
from ...executor.simulation import charged_for
from ...files.plans import NamedPlan
from ...formulations.deployment import Deployment
from ...formulations.errors import InvalidInputError
from ...formulations.judge import score
from ...formulations.objective import PERIOD
from ...formulations.operation import operation_of
from ...formulations.plan import Plan
from ...formulations.problem import Problem
from ...version import __version__
from ...view.words import listed

_ENGINE_OF = {
    ExportKind.ONNX: "onnxruntime",
    ExportKind.ONNXRUNTIME: "onnxruntime",
    ExportKind.MNN: "mnn",
}
"""Whose files they are; a taskset script is for any engine."""


def export(
    problem: Problem,
    plan: Plan | Deployment,
    *,
    to: str | ExportKind,
    out: str | Path,
    models: Mapping[str, Model] | None = None,
    engine: str | None = None,
    check: bool = True,
) -> Exported:
    """Write the chunks of a plan as model files that run without gapless, and a runner for them.

    `to`: "onnx", "onnxruntime", "mnn" or "taskset" (see `ExportKind`). `out`: the folder; it must be new,
    empty, or hold an older export, which is replaced. `models`: the networks by name; None: opened from where
    the problem says they lie. `engine`: who runs what is exported to taskset: "onnxruntime" or "mnn"; None:
    who ran the layers when the costs were measured. `check`: whether each chunk is first run here, if its
    engine can, and compared with the uncut model.
    Raises OutputMismatchError: numbers differ; nothing is written. InvalidInputError: the folder holds
    something else, a network has no ONNX form, or the kind does not suit the plan. ExecutionError: a chunk
    cannot be converted.

    >>> from gapless.cli.tasks.exporting import export
    >>> export(problem, plan, to="onnxruntime", out="board")  # doctest: +SKIP
    """
    kind, place = _kind(to), Path(out)
    deployment = operation_of(problem).deploy(problem, plan) if isinstance(plan, Plan) else plan
    chosen = _engine(measured_with(problem, deployment.units), kind, engine)
    require_free(place)
    operation_of(problem).check_executable(problem)
    order = Order(
        kind=kind,
        engine=chosen,
        deployment=deployment,
        models=models_for(problem) if models is None else models,
        platform=problem.platform,
        gapless=__version__,
        plan_id=None if deployment.plan is None else deployment.plan.plan_id,
        problem=problem.fingerprint,
        predicted=_predicted(problem, deployment),
        chunk_us=_chunk_us(problem, deployment),
    )
    numbers = (lambda folder, manifest: compared(folder, manifest, order.models)) if check else None
    return write_export(draw(order), place, numbers)


def export_plan(
    problem: Problem,
    plan: NamedPlan,
    *,
    to: ExportKind,
    out: Path,
    at: Sequence[str] | None = None,
    engine: str | None = None,
    check: bool = True,
) -> Exported:
    """Export what the user named as a plan.

    `at`: where models lie now, as "OLD=NEW".
    """
    operation_of(problem).check_executable(problem)
    deployment = plan.deployed(problem)
    _require_models(problem, deployment)
    models = models_for(problem, at=parse_places(at))
    exported = export(problem, deployment, to=to, out=out, models=models, engine=engine, check=check)
    notes = *opening_notes(models.values()), *_turns_not_taken(problem, deployment), *exported.notes
    return replace(exported, notes=notes)


def _turns_not_taken(problem: Problem, deployment: Deployment) -> Iterator[str]:
    """Yield which units take turns, which an exported plan does not know."""
    turns = dict(zip(deployment.units, problem.platform.turns(deployment.units), strict=True))
    for first in dict.fromkeys(turns.values()):
        own = [unit for unit in turns if turns[unit] == first]
        if len(own) > 1:
            yield f"{listed(own)} take turns in gapless; what is exported runs them at once"


def _require_models(problem: Problem, deployment: Deployment) -> None:
    for network in problem.networks:
        if network.name in deployment.networks and not network.models:
            raise InvalidInputError(
                f"network {network.name!r} is a table without a model, so there is nothing to export; "
                "profile a model first (`gapless profile model.onnx`), and plan for that"
            )


def _kind(text: str | ExportKind) -> ExportKind:
    try:
        return ExportKind(text)
    except ValueError:
        raise InvalidInputError(f"to is {text!r}, must be one of {', '.join(ExportKind)}") from None


def _engine(measured: str, kind: ExportKind, asked: str | None) -> str:
    if asked is not None and asked not in ENGINES:
        raise InvalidInputError(f"engine is {asked!r}, must be one of {', '.join(ENGINES)}")
    own = _ENGINE_OF.get(kind)
    if own is None:
        return asked or (measured if measured in ENGINES else ENGINES[0])
    if asked not in (None, own):
        raise InvalidInputError(f"files for {kind} are run by {own}; to choose an engine, export to taskset")
    return own


def _predicted(problem: Problem, deployment: Deployment) -> Predicted:
    """Return what the judge says; nothing for replicas, which are not one plan."""
    judged = None if deployment.plan is None else score(problem, deployment.plan)
    batch = operation_of(problem).pace(problem) == "makespan"
    provenance = problem.costs.provenance
    return Predicted(
        period_us=None if judged is None or batch else _period_us(problem, deployment),
        latency_us=None if judged is None or not problem.formulation.one_network else judged.latency_us,
        makespan_us=judged.makespan_us if judged is not None and batch else None,
        engine=provenance.engine,
        device=provenance.device,
    )


def _period_us(problem: Problem, deployment: Deployment) -> int:
    """Return the time from one result to the next; the rates of streams side by side add up."""
    charged = charged_for(problem, deployment)
    return round(1 / sum(1 / score(charged, part).value(PERIOD) for part in deployment.parts))


def _chunk_us(problem: Problem, deployment: Deployment) -> tuple[tuple[int, ...], ...]:
    """Return what the problem charges for each chunk of each stream, without slowdown."""
    charged = charged_for(problem, deployment)
    times = operation_of(charged).chunk_us(charged, deployment)
    return tuple(tuple(time or 0 for time in own) for own in times)


def notes_of(exported: Exported) -> Iterator[str]:
    """Yield what a user should know of an export."""
    manifest = exported.manifest
    yield from exported.notes
    yield manifest.numbers
    measured = manifest.predicted.engine
    if measured and measured.partition(" ")[0] != manifest.engine:
        yield f"the times were measured with {measured}; {manifest.engine} will take others"
    for unit in manifest.units:
        if unit.session is None:
            yield (
                f"{unit.name} asks for the backend {unit.backend!r}, which {manifest.engine} does not have: "
                "run.py cannot run its chunks, another runtime may"
            )
        if unit.quota_permille is not None:
            yield (
                f"{unit.name} is emulated with {unit.quota_permille / 10:g} % of the time of its cores; "
                "run.py sets no quotas"
            )
