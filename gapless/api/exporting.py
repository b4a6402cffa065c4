"""Plans for other runtimes: model files, a manifest and a runner that need only the engine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ..executor.export.comparison import compared
from ..executor.export.folder import ENGINES, Exported, Order, draw, require_free, write_export
from ..executor.export.kinds import ExportKind
from ..executor.export.manifest import Predicted
from ..executor.model import Model
from ..executor.simulated import charged_for
from ..formulations.deployment import Deployment
from ..formulations.errors import InvalidInputError
from ..formulations.judge import score
from ..formulations.operation import operation_of
from ..formulations.plan import Plan
from ..formulations.problem import Problem
from ..formulations.terms import PERIOD
from ..version import __version__
from .engines import measured_with
from .execution import models_for

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

    Parameters
    ----------
    problem, plan
        The problem, and a plan for it or a deployment of one.
    to
        "onnx", "onnxruntime", "mnn" or "taskset" (see `ExportKind`).
    out
        The folder; it must be new, empty, or hold an older export, which is replaced.
    models
        The networks by name; None: opened from where the problem says they lie.
    engine
        Who runs what is exported to taskset: "onnxruntime" or "mnn"; None: who ran the layers when the costs
        were measured.
    check
        Whether each chunk is first run here, if its engine can, and compared with the uncut model.

    Raises
    ------
    OutputMismatchError
        Numbers differ; nothing is written.
    InvalidInputError
        The folder holds something else, a network has no ONNX form, or the kind does not suit the plan.
    ExecutionError
        A chunk cannot be converted.

    Examples
    --------
    >>> import gapless
    >>> gapless.export(problem, plan, to="onnxruntime", out="board")  # doctest: +SKIP
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
