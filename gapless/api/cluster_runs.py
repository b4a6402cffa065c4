"""Plans over the devices of a cluster, at work: join or start a cluster, run, stream, go on after a loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ..executor.model import in_order_of
from ..executor.progress import Report, Step, silent
from ..formulations.cluster_platform import ClusterPlatform
from ..formulations.deployment import Deployment
from ..formulations.errors import InvalidInputError, UnitLostError
from ..formulations.operation import operation_of
from ..formulations.plan import Plan
from ..formulations.problem import Problem
from ..profiler.clusters.catalog import load_cluster
from ..profiler.clusters.measured import cluster_costs, profile_devices
from ..profiler.links.fitting import WINDOW, LinkFit
from ..profiler.links.samples import MessageSample
from ..profiler.profile import ProfileOptions
from ..solvers.protocol import SolveOptions
from ..solvers.session import solve
from .engines import measured_with, resolve_engine
from .execution import models_for, verified
from .models import open_model
from .planning import default_backend
from .problems import given_problem

if TYPE_CHECKING:
    from ..executor.cluster.cluster import Cluster
    from ..executor.cluster.loss import Loss
    from ..executor.cluster.pipeline import ClusterPipeline
    from ..executor.cluster.recording import Passed
    from ..executor.cluster.stream import RunStream
    from ..executor.model import Model

REPLAN_LIMIT_S = 5.0
"""How long a new plan may take while nothing runs."""


def profile_on_cluster(
    cluster: Cluster,
    model: Model | str,
    platform: ClusterPlatform | str | Path,
    *,
    engine: str | None = None,
    options: ProfileOptions = ProfileOptions(),
    report: Report = silent,
) -> Problem:
    """Measure every layer of a model on every device of a cluster, and return the problem of planning it.

    Parameters
    ----------
    cluster
        As for `open_on_cluster`; nothing else runs on it.
    model
        An ONNX model, or its locator.
    platform
        The cluster as it is planned for (`gapless device links` writes it): its devices and links.
    engine
        Who runs the layers; None: MNN.
    options
        How long to measure.
    report
        Told of each device.

    Raises
    ------
    InvalidInputError, ProfilingError, ExecutionError
        As for `profile_devices`.
    """
    found = open_model(model) if isinstance(model, str) else model
    known = platform if isinstance(platform, ClusterPlatform) else load_cluster(platform)
    taken = profile_devices(
        cluster, found, resolve_engine(engine, found), platform=known, options=options, report=report
    )
    return cluster_costs(taken, known)


def open_on_cluster(
    cluster: Cluster,
    problem: Problem | str | Path,
    plan: Plan | Deployment,
    *,
    model: Model | None = None,
    engine: str | None = None,
    replan: bool = True,
    fits: Sequence[LinkFit] = (),
    stall_limit_s: float | None = None,
    check: bool = True,
    report: Report = silent,
) -> ClusterPipeline:
    """Open a plan over devices as a running pipeline: a context manager with `measure`, `trace` and `map`.

    Parameters
    ----------
    cluster
        From `join_cluster` or `local_cluster`; it has the devices of the plan.
    problem
        What the plan was made for, or its file.
    plan
        The plan, or a deployment.
    model
        The model; None: opened from where the problem says it lies.
    engine
        Who runs it on the devices; None: the engine that the problem was measured with, or else MNN.
    replan
        Whether a lost device or link is made good by a new plan without it; requests that were not
        answered are run again. Otherwise the run fails.
    fits
        What is known of the links (`fit_link`): the messages of the pipeline calibrate them, and where one
        drifts, the rest is planned anew.
    stall_limit_s
        How long no result may come; None: the larger of 10 s and 20 times the longest wait so far.
    check
        Whether some requests are first compared with the uncut model, as for `open_pipeline`. A plan that
        takes over after a loss is not compared again, and its receipts say so.
    report
        Told of what was lost, and of the new plan.

    Raises
    ------
    InvalidInputError
        The plan names devices that the cluster does not have, or devices that are pipelines themselves.
    OutputMismatchError
        Numbers differ; the message names the first tile that is wrong, and its device.
    PlacementError, ExecutionError, UnitLostError
        A device cannot open its part.

    Examples
    --------
    >>> import gapless
    >>> with gapless.clusters.local_cluster("2") as cluster:  # doctest: +SKIP
    ...     with gapless.clusters.open_on_cluster(cluster, problem, plan) as pipeline:
    ...         print(pipeline.measure(gapless.Budget(seconds=5)).period_us)
    """
    from ..executor.cluster.pipeline import ClusterPipeline, verify_on_cluster

    found = given_problem(problem)
    deployment = _deployed(cluster, found, plan)
    opened = models_for(found)[found.network.name] if model is None else in_order_of(model, found.network)
    planner = _Planner(found, fits, report)
    pipeline = ClusterPipeline(
        cluster,
        deployment,
        opened,
        resolve_engine(engine or measured_with(found) or None, opened).name,
        replan=planner.without if replan else None,
        revise=planner.revised if fits else None,
        stall_limit_s=stall_limit_s,
        report=report,
    )
    if check:
        try:
            models = {found.network.name: opened}
            pipeline.verification = verified(partial(verify_on_cluster, pipeline), models)
        except BaseException:
            pipeline.close()
            raise
    return pipeline


def stream_on_cluster(
    cluster: Cluster,
    tasks: Sequence[tuple[Problem | str | Path, Plan | None, int]],
    *,
    engine: str | None = None,
    check: bool = True,
    report: Report = silent,
) -> RunStream:
    """Run networks one after the other on the same devices; the next one is placed while one runs.

    Parameters
    ----------
    cluster
        As for `open_on_cluster`.
    tasks
        Problems, each with a plan (None: the best one is sought) and its number of items.
    engine, report
        As for `open_on_cluster`.
    check
        Whether each plan is compared with its uncut model before the first one starts, as by
        `open_on_cluster`; what the stream itself computes is not looked at.

    Raises
    ------
    InvalidInputError, OutputMismatchError, PlacementError, ExecutionError, UnitLostError
        As for `open_on_cluster`.
    """
    from ..executor.cluster.stream import ClusterTask, run_stream

    found = []
    for given, plan, items in tasks:
        problem = given_problem(given)
        model = models_for(problem)[problem.network.name]
        deployment = _deployed(cluster, problem, plan or _solved(problem))
        verification = None
        if check:
            with open_on_cluster(
                cluster, problem, deployment, model=model, engine=engine, replan=False
            ) as pipeline:
                verification = pipeline.verification
        found.append(
            ClusterTask(
                model=model,
                engine=resolve_engine(engine or measured_with(problem) or None, model).name,
                deployment=deployment,
                items=items,
                replan=_Planner(problem, (), report).without,
                verification=verification,
            )
        )
    return run_stream(cluster, found, report=report)


class _Planner:
    """Plans a problem again while its plan runs: without what was lost, with links as they have become."""

    def __init__(self, problem: Problem, fits: Sequence[LinkFit], report: Report) -> None:
        self._problem = problem
        self._report = report
        self._fits = {(fit.source, fit.target): fit for fit in fits}
        self._seen: dict[tuple[str, str], list[MessageSample]] = {ends: [] for ends in self._fits}
        # What is known of the queue of a link when a message is sent: how long the one before had waited.
        self._waited_us: dict[tuple[str, str], float] = {}

    def without(self, loss: Loss) -> Deployment:
        """Return what runs without a device or a link."""
        operation = operation_of(self._problem)
        if loss.link:
            self._problem = operation.without_link(self._problem, loss.link[0], loss.link[1])
        else:
            self._problem = operation.without_device(self._problem, loss.device)
        return self._deployed(str(loss))

    def revised(self, passed: Passed) -> Deployment | None:
        """Feed the messages of a request to the fits; return a new plan where a link has drifted."""
        drifted = [ends for ends, sample in messages_of(passed) if self._noted(ends, sample)]
        if not drifted:
            return None
        links = [fit.link() for fit in self._fits.values()]
        self._problem = operation_of(self._problem).with_links(self._problem, links)
        words = "; ".join(f"the link {' -> '.join(ends)} has drifted" for ends in drifted)
        self._report(Step(text=f"{words}; planning with what its messages take now"))
        return self._deployed(words)

    def _noted(self, ends: tuple[str, str], sample: MessageSample) -> bool:
        """Keep a message; when there are enough of them, calibrate the fit. Return whether it drifted."""
        if ends not in self._fits:
            return False
        seen = self._seen[ends]
        seen.append(replace(sample, queue_us=self._waited_us.get(ends, 0.0)))
        self._waited_us[ends] = sample.queue_us
        if len(seen) < WINDOW:
            return False
        fit = self._fits[ends]
        has_drifted = fit.drifted(seen)
        self._fits[ends] = fit.update(seen)
        seen.clear()
        return has_drifted

    def _deployed(self, why: str) -> Deployment:
        return operation_of(self._problem).deploy(self._problem, _solved(self._problem, why))


def messages_of(passed: Passed) -> list[tuple[tuple[str, str], MessageSample]]:
    """Return what each message of a request took on its link, and how long it had waited itself."""
    return [
        (
            (message.source, message.target),
            MessageSample(
                size=message.size,
                latency_us=max(1, arrived_ns - sent_ns) / 1000,
                queue_us=max(0, sent_ns - queued_ns) / 1000,
            ),
        )
        for message in passed.route.messages
        for queued_ns, sent_ns, arrived_ns in [passed.sent_ns(message)]
    ]


def _solved(problem: Problem, why: str = "") -> Plan:
    options = SolveOptions(time_limit_s=REPLAN_LIMIT_S if why else None)
    result = solve(problem, default_backend(problem), options)
    if result.plan is None:
        raise UnitLostError(
            f"{why + ': ' if why else ''}no plan was found for what is left of the cluster, among "
            f"{problem.plan_class}"
        )
    return result.plan


def _deployed(cluster: Cluster, problem: Problem, plan: Plan | Deployment) -> Deployment:
    """Return what runs; a deployment whose devices are all there."""
    inner = getattr(problem.data, "inner", ())
    deployment = plan if isinstance(plan, Deployment) else operation_of(problem).deploy(problem, plan)
    missing = [name for name in deployment.units if name not in cluster.devices]
    if missing:
        raise InvalidInputError(
            f"the plan runs on {', '.join(missing)}, but the cluster has {', '.join(cluster.devices)}: "
            "give its nodes the names of the plan's devices"
        )
    if any(stream.cycle is not None for stream in deployment.streams):
        raise InvalidInputError(
            f"the plan [{deployment}] comes back to a device, and on a cluster nobody plans in which order a "
            "device serves several chunks: plan with --passage once"
        )
    if deployment.is_dataflow:
        raise InvalidInputError(
            "layers side by side run on the units of one device: for a cluster make a plan of chunks "
            "(--layer-order fixed)"
        )
    if inner:
        raise InvalidInputError(
            "devices with units of their own (inner pipelines) are planned and simulated; on a cluster each "
            "device runs its chunk on one unit"
        )
    return deployment
