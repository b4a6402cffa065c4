"""Running: choices of the command line, progress, and the files that are written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...api.cluster_runs import open_on_cluster
from ...api.execution import models_for, open_pipeline
from ...api.models import parse_places
from ...api.tuning import Tuned
from ...executor.measurement import Measurement
from ...executor.model import Model
from ...executor.pipeline.pipeline import Pipeline
from ...executor.pipeline.verify import References, verify
from ...executor.runner import Budget
from ...executor.simulated import SimulatedRunner
from ...files.plans import NamedPlan, require_valid
from ...files.run_files import save_trace
from ...formulations.deployment import Deployment
from ...formulations.errors import GaplessError, InvalidInputError
from ...formulations.history import History
from ...formulations.operation import operation_of
from ...formulations.problem import Problem
from ...formulations.simulate import simulate
from ..base.progress import StepLine
from ..options.cluster import ClusterChoice

if TYPE_CHECKING:
    from ...executor.cluster.cluster import Clock, Cluster
    from ...executor.cluster.pipeline import ClusterPipeline

TRACE_REQUESTS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A plan at work, and what the user should know of it."""

    problem: Problem
    pipeline: Pipeline | ClusterPipeline
    models: Mapping[str, Model]
    notes: list[str]

    def predicted(self) -> Measurement | None:
        """Return what the table of the problem says of the plan, as if it had been measured.

        None: it says nothing of such a deployment, e.g. of streams that share cores.
        """
        try:
            return SimulatedRunner(self.problem).measure(self.pipeline.deployment, Budget(requests=1))
        except GaplessError:
            return None

    def verify(self) -> list[str]:
        """Compare the numbers with those of the uncut model; return the note that says so.

        Raises
        ------
        OutputMismatchError
            They differ.
        """
        references = References(self.models)
        if isinstance(self.pipeline, Pipeline):
            found = verify(self.pipeline, references)
        else:
            from ...executor.cluster.verify import verify_on_cluster

            found = verify_on_cluster(self.pipeline, references)
        return [
            f"numbers agree with the uncut model: largest relative error {found.worst_error:.1e} "
            f"(at most {found.tolerance:g} is allowed)"
        ]


def budget(seconds: float | None, requests: int | None, warm_up: int) -> Budget:
    """Return for how long to run: five seconds when nothing is said."""
    if seconds is None and requests is None:
        seconds = 5.0
    return Budget(seconds=seconds, requests=requests, warm_up_requests=warm_up)


@contextmanager
def opened(
    problem: Problem,
    plan: NamedPlan,
    *,
    engine: str | None,
    at: Sequence[str] | None,
    restarts: int = 0,
    task_slots: int | None = None,
    place: ClusterChoice = ClusterChoice(),
) -> Iterator[Work]:
    """Open a plan as a running pipeline, on this device or over those of a cluster.

    Raises
    ------
    InvalidInputError, ExecutionError
        The plan breaks the problem, or cannot be run here.
    """
    if not place:
        operation_of(problem).check_executable(problem)
    deployment = _to_run(problem, plan, task_slots)
    models = models_for(problem, at=parse_places(at))
    notes: list[str] = []
    how: dict[str, Any] = {"engine": engine, "report": lambda step: notes.append(step.text)}
    with ExitStack() as stack:
        pipeline: Pipeline | ClusterPipeline
        if place:
            cluster = stack.enter_context(_joined(place))
            notes += [f"clock of {name}: {clock_words(one.clock)}" for name, one in cluster.devices.items()]
            model = models[problem.network.name]
            pipeline = open_on_cluster(cluster, problem, deployment, model=model, **how)
        else:
            pipeline = open_pipeline(problem, deployment, model=models, restarts=restarts, **how)
        stack.enter_context(pipeline)
        yield Work(problem=problem, pipeline=pipeline, models=models, notes=notes)


@contextmanager
def _joined(place: ClusterChoice) -> Iterator[Cluster]:
    """Start or join a cluster, with progress."""
    with StepLine() as line:
        cluster = place.joined(line.report)
    with cluster:
        yield cluster


def clock_words(clock: Clock) -> str:
    """Return how a clock differs from ours."""
    return (
        f"{clock.offset_ns / 1e3:+.0f} us against this process, at most {clock.error_ns / 1e3:.0f} us wrong"
    )


def _to_run(problem: Problem, plan: NamedPlan, task_slots: int | None) -> Deployment:
    """Return what runs, with as many task slots as are asked for."""
    deployment = plan.deployed(problem)
    if task_slots is None:
        return deployment
    streams = tuple(replace(stream, task_slots=task_slots) for stream in deployment.streams)
    return replace(deployment, streams=streams)


def refuse_without_device(given: Mapping[str, object]) -> None:
    """Refuse options that need a device, where one is only simulated.

    Raises
    ------
    InvalidInputError
        One of them is given.
    """
    stray = [option for option, value in given.items() if value]
    if stray:
        raise InvalidInputError(
            f"{' and '.join(stray)} cannot be used with --engine simulated: it plays a cost table, and "
            "computes nothing"
        )


def run_simulated(
    problem: Problem, plan: NamedPlan, limits: Budget, *, task_slots: int | None, trace: Path | None
) -> tuple[Measurement, list[str]]:
    """Play a plan on the costs of its problem; return what that gives, and notes.

    Raises
    ------
    InvalidInputError, ExecutionError
        A simulated device cannot run the plan, or replicas are to be traced.
    """
    found = SimulatedRunner(problem).measure(_to_run(problem, plan, task_slots), limits)
    if trace is None:
        return found, []
    played = traced(problem, plan, requests=TRACE_REQUESTS, simulated=True, engine=None, at=None)
    save_trace(played, trace, problem=problem)
    return found, [f"wrote {trace}: open it at ui.perfetto.dev"]


def run_file(pipeline: Pipeline | ClusterPipeline, source: Path, target: Path | None) -> int:
    """Run all requests of an .npz file, write the outputs to another one, return their number.

    The arrays of a workload of several requests are called "REQUEST/INPUT" and "REQUEST/OUTPUT".

    Raises
    ------
    InvalidInputError
        A file cannot be read or written, or its arrays have different lengths.
    """
    import numpy as np

    try:
        with np.load(source, allow_pickle=False) as found:
            arrays = {name: found[name] for name in found.files}
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"cannot read {source} as .npz arrays: {error}") from error
    counts = {name: array.shape[0] if array.ndim else None for name, array in arrays.items()}
    if len(set(counts.values())) != 1 or None in counts.values():
        raise InvalidInputError(f"{source}: the first dimensions must count the same requests, got {counts}")
    (count,) = set(counts.values())
    frames = ({name: array[index] for name, array in arrays.items()} for index in range(count or 0))
    if pipeline.deployment.rounds is None or len(pipeline.deployment.streams) == 1:
        results: list[Any] = list(pipeline.map(frames))
    else:
        requests: Iterator[Any] = map(_by_request, frames)
        results = [_flat(result) for result in pipeline.map(requests)]
    if target is not None and results:
        stacked = {name: np.stack([result[name] for result in results]) for name in results[0]}
        try:
            with target.open("wb") as file:
                np.savez(file, allow_pickle=False, **stacked)
        except OSError as error:
            raise InvalidInputError(f"cannot write {target}: {error.strerror}") from error
    return len(results)


def _by_request(arrays: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for name, array in arrays.items():
        request, _, own = name.partition("/")
        found.setdefault(request, {})[own] = array
    return found


def _flat(results: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{request}/{name}": array for request, own in results.items() for name, array in own.items()}


def write_trace(pipeline: Pipeline | ClusterPipeline, out: Path | None) -> list[str]:
    """Run some requests and write their trace where `--trace` says."""
    if out is None:
        return []
    save_trace(pipeline.trace(requests=TRACE_REQUESTS), out)
    return [f"wrote {out}: open it at ui.perfetto.dev"]


def traced(
    problem: Problem,
    plan: NamedPlan,
    *,
    requests: int,
    simulated: bool,
    engine: str | None,
    at: Sequence[str] | None,
    place: ClusterChoice = ClusterChoice(),
) -> History:
    """Return the trace of a plan; errors as for `opened`."""
    if simulated:
        require_valid(problem, plan.plan, plan.path)
        return simulate(problem, plan.plan, requests=requests if problem.formulation.one_network else None)
    with opened(problem, plan, engine=engine, at=at, place=place) as work:
        return work.pipeline.trace(requests=requests)


def trace_winner(tuned: Tuned, out: Path, *, engine: str | None) -> list[str]:
    """Run what tuning chose once more and write its trace; return the note that says so."""
    deployment = tuned.deployment
    if deployment is None or tuned.interrupted:
        return []
    try:
        with open_pipeline(tuned.problem, deployment, engine=engine) as pipeline:
            return write_trace(pipeline, out)
    except GaplessError as error:  # the result of tuning is more than its picture
        return [f"{out} is not written: {error}"]
