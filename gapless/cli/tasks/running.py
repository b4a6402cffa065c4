"""Running: choices of the command line, progress, and the files that are written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...api.cluster_runs import open_on_cluster
from ...api.execution import models_for, open_pipeline
from ...api.models import opening_notes, parse_places
from ...api.samples import named_with
from ...api.tuned import Tuned
from ...executor.measurement import Measurement
from ...executor.model import Model, with_samples
from ...executor.pipeline.pipeline import Pipeline
from ...executor.runner import UNCHECKED, Budget
from ...executor.samples import Samples
from ...executor.simulated import SimulatedRunner
from ...files.plans import NamedPlan, require_valid
from ...files.run_files import save_trace
from ...formulations.deployment import Deployment
from ...formulations.errors import GaplessError, InvalidInputError
from ...formulations.history import History
from ...formulations.operation import operation_of
from ...formulations.problem import Problem
from ...formulations.simulate import simulate
from ...question.subjects import Running
from ..base.progress import StepLine
from ..options.cluster import ClusterChoice

if TYPE_CHECKING:
    from ...executor.cluster.cluster import Clock, Cluster
    from ...executor.cluster.loss import Loss
    from ...executor.cluster.pipeline import ClusterPipeline
    from ...executor.model import Arrays

TRACE_REQUESTS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A plan at work, the requests that were given for it, and what the user should know of it."""

    problem: Problem
    pipeline: Pipeline | ClusterPipeline
    models: Mapping[str, Model]
    requests: tuple[Arrays, ...]
    notes: list[str]

    @property
    def losses(self) -> tuple[Loss, ...]:
        """What was lost by now, of a cluster."""
        return getattr(self.pipeline, "losses", ())


def predicted(problem: Problem, deployment: Deployment) -> Measurement | None:
    """Return what the table of a problem says of a plan, as if it had been measured.

    None: it says nothing of such a deployment, e.g. of streams that share cores.
    """
    try:
        return SimulatedRunner(problem).measure(deployment, Budget(requests=1))
    except GaplessError:
        return None


def budget(said: Running) -> Budget:
    """Return for how long to run: five seconds when nothing is said."""
    seconds = 5.0 if said.seconds is None and said.requests is None else said.seconds
    return Budget(seconds=seconds, requests=said.requests, warm_up_requests=said.warm_up)


@contextmanager
def opened(
    problem: Problem,
    plan: NamedPlan,
    *,
    engine: str | None,
    at: Sequence[str] | None,
    samples: Samples | None = None,
    restarts: int = 0,
    task_slots: int | None = None,
    place: ClusterChoice = ClusterChoice(),
    check: bool = True,
) -> Iterator[Work]:
    """Open a plan as a running pipeline, on this device or over those of a cluster.

    Raises InvalidInputError, ExecutionError: the plan breaks the problem, or cannot be run here;
    OutputMismatchError: its numbers are not those of the uncut model.
    """
    if not place:
        operation_of(problem).check_executable(problem)
    deployment = _to_run(problem, plan, task_slots)
    models, requests = _tried_with(deployment, models_for(problem, at=parse_places(at)), samples)
    notes = opening_notes(models.values())
    how: dict[str, Any] = {"engine": engine, "check": check, "report": lambda step: notes.append(step.text)}
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
        notes.append(UNCHECKED if pipeline.verification is None else pipeline.verification.words)
        yield Work(problem=problem, pipeline=pipeline, models=models, requests=requests, notes=notes)


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


def run_simulated(
    problem: Problem,
    plan: NamedPlan,
    limits: Budget,
    *,
    task_slots: int | None,
    trace: Path | None,
    stray: Sequence[str] = (),
) -> tuple[Measurement, list[str]]:
    """Play a plan on the costs of its problem; return what that gives, and notes.

    `stray`: options that were given and need a device.
    Raises InvalidInputError, ExecutionError: a simulated device cannot run the plan, or replicas are to be
    traced.
    """
    if stray:
        raise InvalidInputError(
            f"{' and '.join(stray)} cannot be used with --engine simulated: it plays a cost table, and "
            "computes nothing"
        )
    found = SimulatedRunner(problem).measure(_to_run(problem, plan, task_slots), limits)
    if trace is None:
        return found, []
    played, _ = traced(problem, plan, requests=TRACE_REQUESTS, simulated=True, engine=None, at=None)
    save_trace(played, trace, problem=problem)
    return found, [f"wrote {trace}: open it at ui.perfetto.dev"]


def run_requests(work: Work, target: Path | None) -> int:
    """Run all requests that were given, write the outputs to an .npz file, return their number.

    The arrays of a workload of several requests are called "REQUEST/OUTPUT".
    """
    import numpy as np

    results: list[Any]
    if _is_workload(work.pipeline.deployment):
        requests: Iterator[Any] = map(_by_request, work.requests)
        results = [_flat(result) for result in work.pipeline.map(requests)]
    else:
        results = list(work.pipeline.map(iter(work.requests)))
    if target is not None and results:
        stacked = {name: np.stack([result[name] for result in results]) for name in results[0]}
        try:
            with target.open("wb") as file:
                np.savez(file, allow_pickle=False, **stacked)
        except OSError as error:
            raise InvalidInputError(f"cannot write {target}: {error.strerror}") from error
    return len(results)


def _is_workload(deployment: Deployment) -> bool:
    return deployment.rounds is not None and len(deployment.streams) > 1


def _tried_with(
    deployment: Deployment, models: Mapping[str, Model], samples: Samples | None
) -> tuple[dict[str, Model], tuple[Arrays, ...]]:
    """Return the models, tried with what was given, and the requests that were given.

    Of a workload of several requests, arrays are called "REQUEST/INPUT"; what several requests of one
    network are given is used in turn.
    """
    if samples is None or not samples.given:
        return named_with(models, samples), ()
    idle = {name: getattr(model, "idle_inputs", ()) for name, model in models.items()}
    if not _is_workload(deployment):
        (name,) = deployment.networks
        model = models[name]
        fitted = samples.fitted(model.inputs, ignored=idle[name])
        return {**models, name: with_samples(model, fitted)}, fitted.given
    specs, ignored = [], []
    for stream in deployment.streams:
        own = f"{stream.name}/"
        specs += [replace(spec, name=own + spec.name) for spec in models[stream.network].inputs]
        ignored += [own + name for name in idle[stream.network]]
    fitted = samples.fitted(specs, ignored=ignored)
    given: dict[str, list[Arrays]] = {}
    for stream in deployment.streams:
        given.setdefault(stream.network, []).extend(fitted.of(f"{stream.name}/").given)
    tried = {name: with_samples(models[name], Samples(given=tuple(found))) for name, found in given.items()}
    return {**models, **tried}, fitted.given


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
    check: bool = True,
) -> tuple[History, list[str]]:
    """Return the trace of a plan, and notes; errors as for `opened`."""
    if simulated:
        require_valid(problem, plan.plan, plan.path)
        one = problem.formulation.one_network
        return simulate(problem, plan.plan, requests=requests if one else None), []
    with opened(problem, plan, engine=engine, at=at, place=place, check=check) as work:
        return work.pipeline.trace(requests=requests), work.notes


def trace_winner(tuned: Tuned, out: Path, *, engine: str | None, samples: Samples | None = None) -> list[str]:
    """Run what tuning chose once more and write its trace; return the note that says so."""
    deployment = tuned.deployment
    if deployment is None or tuned.interrupted:
        return []
    try:
        with open_pipeline(tuned.problem, deployment, engine=engine, samples=samples) as pipeline:
            return write_trace(pipeline, out)
    except GaplessError as error:  # the result of tuning is more than its picture
        return [f"{out} is not written: {error}"]
