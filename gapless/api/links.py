"""Links: measure what messages between devices cost, and plan with the traffic that the plan itself makes."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..executor.model import Model
from ..executor.progress import Report, Step, silent
from ..formulations.cluster import Pipelines
from ..formulations.errors import InvalidInputError
from ..formulations.files import load
from ..formulations.plan import Plan
from ..formulations.problem import Problem
from ..profiler.links.fitting import LinkFit
from ..profiler.links.measure import LinkOptions, measure_messages
from ..profiler.links.platform import measure_devices, shard_sizes
from ..profiler.links.samples import LINKS, Links
from ..solvers.protocol import SolveOptions
from ..solvers.result import SolveResult
from ..solvers.session import solve
from .engines import resolve_engine
from .models import open_model
from .planning import default_backend

if TYPE_CHECKING:
    from ..executor.cluster.cluster import Cluster

MOST_ROUNDS = 10
"""Most plans until their traffic repeats."""


def measure_links(
    cluster: Cluster,
    *,
    network: Model | str = "squeezenet",
    engine: str | None = None,
    name: str = "cluster",
    options: LinkOptions = LinkOptions(),
    report: Report = silent,
) -> Links:
    """Measure what messages between the devices of a cluster cost, and how fast the devices are.

    Parameters
    ----------
    cluster
        From `local_cluster` or `join_cluster`; nothing else runs on it.
    network
        What each device runs, to tell its speed: a model, or its locator as for `open_model`.
    engine
        Who runs it; None: MNN for ONNX files.
    name
        What the cluster is to be called.
    options
        How often messages are measured.
    report
        Told of each device and link.

    Returns
    -------
    Links
        `fit_link` fits each of its links, `cluster_platform` makes the platform that is planned for.

    Raises
    ------
    InvalidInputError
        There is only one device, or the network cannot be used.
    ProfilingError, ExecutionError
        It could not be measured.

    Examples
    --------
    >>> import gapless
    >>> with gapless.clusters.local_cluster("2") as cluster:  # doctest: +SKIP
    ...     links = gapless.clusters.measure_links(cluster)
    >>> gapless.clusters.fit_link(links.links[0]).predict_us(100_000)  # doctest: +SKIP
    412.7
    """
    start = time.monotonic()
    sizes = shard_sizes(options.shards, seed=options.seed) if options.shards else ()
    model = open_model(network) if isinstance(network, str) else network
    found = measure_messages(cluster, sizes, options=options, report=report)
    devices = measure_devices(cluster, model, resolve_engine(engine, model), report=report)
    machines = ", ".join(dict.fromkeys(member.device for member in cluster.devices.values()))
    return Links(
        name=name,
        devices=devices,
        links=found,
        source=f"Links measured on {machines}: {sum(len(one.samples) for one in found)} messages",
        seconds=round(time.monotonic() - start, 1),
    )


def load_links(path: str | Path) -> Links:
    """Return the messages that `gapless device links` kept in a file.

    Raises
    ------
    InvalidInputError
        It cannot be read.
    """
    return load(path, LINKS)


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledPlan:
    """A plan that was made with the traffic that it makes itself.

    Attributes
    ----------
    problem
        The problem with the latencies of its links at that traffic.
    result
        Its solution.
    rounds
        Plans that were made.
    settled
        Whether the traffic of the plan is what it was planned with. Otherwise `MOST_ROUNDS` plans were made,
        or they went round in a circle, and this is the last of them.
    """

    problem: Problem
    result: SolveResult
    rounds: int
    settled: bool


def plan_with_traffic(
    problem: Problem,
    fits: Sequence[LinkFit],
    *,
    backend: str | None = None,
    options: SolveOptions = SolveOptions(),
    report: Report = silent,
) -> SettledPlan:
    """Plan pipelines over devices with links that other messages of the same plan slow down.

    The average traffic of a plan, xa in Eq. 3 of EPipe, depends on all of the plan, which no search that
    goes device by device can know. So it is fixed, the problem is solved, and it is taken from the plan,
    until it repeats.

    Parameters
    ----------
    problem
        Of pipelines over devices; its links have the names of devices.
    fits
        What is known of links between devices, see `fit_link`; other links stay as they are.
    backend, options
        As for `plan`.
    report
        Told of each plan.

    Raises
    ------
    InvalidInputError
        The problem has no links between devices.
    """
    if not isinstance(problem.data, Pipelines) or not problem.data.links:
        raise InvalidInputError("only pipelines over devices with links have traffic; see `cluster_problem`")
    by_pair = {(fit.source, fit.target): fit for fit in fits}
    traffic, tried = 0, set[int]()
    while True:
        report(Step(text=f"planning with {traffic:,} bytes of other traffic on a link", done=len(tried)))
        tried.add(traffic)
        asked = replace(problem, data=_at_traffic(problem.data, by_pair, traffic))
        result = solve(asked, backend or default_backend(asked), options)
        made = _traffic(asked, result.plan) if result.plan else traffic
        if made in tried or len(tried) == MOST_ROUNDS:
            return SettledPlan(problem=asked, result=result, rounds=len(tried), settled=made == traffic)
        traffic = made


def _at_traffic(data: Pipelines, fits: Mapping[tuple[str, str], LinkFit], mean_bytes: int) -> Pipelines:
    """Return the links with the latencies that they have at an average traffic."""
    links = {(link.source, link.target): link for link in data.links}
    for pair, fit in fits.items():
        latency_us = fit.predict_us(0, mean_traffic_bytes=mean_bytes)
        links[pair] = replace(fit.link(), latency_us=math.ceil(latency_us))
    return replace(data, links=tuple(links.values()))


def _traffic(problem: Problem, plan: Plan) -> int:
    """Return the bytes of all messages of one item on each pipeline, averaged over all links."""
    sizes = problem.network.boundary_bytes
    devices = len(problem.platform.units)
    total = sum(sizes[chunk.start] for chunk in plan.chunks if chunk.start > 0)
    return total // max(1, devices * (devices - 1))
