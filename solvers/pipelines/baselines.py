"""Single pipelines by the cost models of others: PipeDream, PipeEdge, PICO, AP2.

Each plans exactly, or greedily, on costs of its own, and is judged on the table of the problem (clusters,
section 3). What the papers leave open is said at each of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

import numpy as np

from ...formulations.pipelines.formulation import FORMULATION
from ...formulations.pipelines.plans import Pipes, ordered, whole_plans
from ...formulations.pipelines.tables import Cluster, cluster_of
from ...formulations.problem import Problem
from ...formulations.terms import Term
from ..protocol import Capabilities, Deadline, SolveOptions
from ..rounds import Proposing, proposing
from .arrays import NEVER, Ints, KindArrays, build_arrays
from .large import Parts
from .relaxed import Relaxation
from .solving import MOST_CELLS, MOST_STATES


def heuristic_capabilities(summary: str) -> Capabilities:
    """Return what a heuristic can do: plans that break rules are repaired or dropped."""
    return proposing(summary, FORMULATION.name)


class PipelineHeuristic(Proposing[Pipes]):
    """A planner that proposes pipelines."""

    def tidy(self, code: Pipes) -> Pipes:
        """Return pipelines in their order."""
        return ordered(code)

    def whole(self, problem: Problem) -> Iterator[Pipes]:
        """Yield the network whole on each device."""
        yield from whole_plans(cluster_of(problem))


def single(problem: Problem, arrays: KindArrays, deadline: Deadline) -> Iterator[Pipes]:
    """Yield single pipelines with the least period by some costs; by parts of too many devices."""
    one = problem.with_objective(Term.PERIOD)
    if arrays.state_count > MOST_STATES or arrays.cells > MOST_CELLS:
        yield from Parts(one, arrays, deadline, 0).plans()
        return
    relaxation = Relaxation(cluster_of(problem), arrays, deadline=deadline)
    pipes = relaxation.fastest() if relaxation.feasible else None
    if pipes is not None:
        yield pipes


class PipeEdgeBackend(PipelineHeuristic):
    """PipeEdge: the best single pipeline on profiled costs, found exactly."""

    name: ClassVar[str] = "pipeedge"
    capabilities: ClassVar[Capabilities] = heuristic_capabilities(
        "PipeEdge: the best single pipeline on the measured costs"
    )

    def propose(self, problem: Problem, options: SolveOptions, deadline: Deadline) -> Iterator[Pipes]:
        """Yield the pipeline with the least period."""
        yield from single(problem, build_arrays(cluster_of(problem)), deadline)


class PipeDreamBackend(PipelineHeuristic):
    """PipeDream: the best single pipeline as if all devices and all links were alike.

    Costs and links are means over devices; stages go to the devices in the order of the platform. PipeDream
    replicates stages, too, which no plan here can say.
    """

    name: ClassVar[str] = "pipedream"
    capabilities: ClassVar[Capabilities] = heuristic_capabilities(
        "PipeDream: the best single pipeline as if all devices were alike, by mean costs"
    )

    def propose(self, problem: Problem, options: SolveOptions, deadline: Deadline) -> Iterator[Pipes]:
        """Yield one pipeline."""
        cluster = cluster_of(problem)
        arrays = build_arrays(cluster, tuple(range(cluster.device_count)))
        alike = replace(
            arrays,
            kind_of=(0,) * cluster.device_count,
            compute_us=_mean(arrays.compute_us, (0,))[None],
            link_us=_mean(arrays.link_us, (0, 1))[None, None],
            enter_us=_mean(arrays.enter_us, (0,))[None],
            leave_us=_mean(arrays.leave_us, (0,))[None],
            power_mw=arrays.power_mw[:1],
            excluded=(frozenset(),),
        )
        yield from single(problem, alike, deadline)


def _mean(times: Ints, axes: tuple[int, ...]) -> Ints:
    """Return the mean of what is possible, NEVER where nothing is."""
    there = times < NEVER
    count = there.sum(axis=axes)
    total = np.where(there, times, 0).sum(axis=axes)
    return np.where(count > 0, total // np.maximum(count, 1), NEVER)


class PicoCostsBackend(PipelineHeuristic):
    """PICO's cost model: time proportional to FLOPs, messages by bandwidth alone; a single pipeline.

    A device has one speed: its FLOPs over its time for all layers that it can run. Only the costs are PICO's:
    the pipeline is the best one by them.
    """

    name: ClassVar[str] = "pico-costs"
    capabilities: ClassVar[Capabilities] = heuristic_capabilities(
        "the best single pipeline by FLOPs and bandwidth alone (the costs of PICO)"
    )

    def propose(self, problem: Problem, options: SolveOptions, deadline: Deadline) -> Iterator[Pipes]:
        """Yield one pipeline; none where FLOPs are not known."""
        flops = [layer.flops for layer in problem.network.layers]
        known = [each for each in flops if each is not None]
        if len(known) == len(flops) and any(known):
            estimated = _by_flops(cluster_of(problem), build_arrays(cluster_of(problem)), known)
            yield from single(problem, estimated, deadline)


def _by_flops(cluster: Cluster, arrays: KindArrays, flops: list[int]) -> KindArrays:
    """Return arrays with one speed a device, and without the latency of links."""
    chain, cuts = cluster.chain, list(arrays.cuts)
    total = np.concatenate([[0], np.cumsum(np.asarray(flops, np.float64))])[cuts]
    work = np.maximum(total[None, :] - total[:, None], 0)
    firsts = [arrays.kind_of.index(kind) for kind in range(len(arrays.counts))]
    times = arrays.compute_us.copy()
    for kind, device in enumerate(firsts):
        column = [row[device] for row in chain.layer_us]
        done = sum(size for time, size in zip(column, flops, strict=True) if time is not None)
        taken = sum(time for time in column if time is not None)
        slowness = taken / done if done else 0.0
        times[kind] = np.where(times[kind] < NEVER, np.ceil(work * slowness).astype(np.int64), NEVER)
    link_of, names = cluster.data.linker(cluster.devices), [cluster.devices[device] for device in firsts]
    found = [[link_of(one, other) for other in names] for one in names]
    empty = np.asarray([[0 if link is None else link.latency_us for link in row] for row in found])
    links = np.where(arrays.link_us < NEVER, np.maximum(arrays.link_us - empty[:, :, None], 0), NEVER)
    return replace(arrays, compute_us=times, link_us=links)


class GreedyBackend(PipelineHeuristic):
    """A greedy single pipeline in the manner of AP2: fast devices first, each filled up to one period.

    What AP2 does in detail we do not know; this is ours: for the least period with which it ends, each device
    in order of speed takes as many of the layers that are left as it can.
    """

    name: ClassVar[str] = "greedy"
    capabilities: ClassVar[Capabilities] = heuristic_capabilities(
        "a greedy single pipeline: the fastest devices first, each filled up to one period"
    )

    def propose(self, problem: Problem, options: SolveOptions, deadline: Deadline) -> Iterator[Pipes]:
        """Yield pipelines with smaller and smaller periods."""
        cluster = cluster_of(problem)
        arrays = build_arrays(cluster, tuple(range(cluster.device_count)))
        usual = np.where(arrays.compute_us >= NEVER, 0, arrays.compute_us).sum(axis=(1, 2))
        order = [int(device) for device in np.argsort(usual, kind="stable")]
        times = np.unique(arrays.compute_us[arrays.compute_us < NEVER])
        low, high = 0, len(times)
        while low < high:
            middle = (low + high) // 2
            pipe = _filled(cluster, arrays, order, int(times[middle]))
            if pipe is None:
                low = middle + 1
            else:
                yield (pipe,)
                high = middle


def _filled(
    cluster: Cluster, arrays: KindArrays, order: list[int], most_us: int
) -> tuple[tuple[int, int, int], ...] | None:
    """Return the chunks of devices that are filled one after the other, None if layers are left."""
    place, pipe, before = 0, list[tuple[int, int, int]](), -1
    for device in order:
        fitting = np.flatnonzero(arrays.compute_us[device, place] <= most_us)
        linked = before < 0 or arrays.link_us[before, device, place] <= most_us
        excluded = any(other in cluster.chain.exclusive[device] for *_, other in pipe)
        if fitting.size and linked and not excluded:
            stop = int(fitting[-1])
            pipe.append((arrays.cuts[place], arrays.cuts[stop], device))
            place, before = stop, device
        if place == arrays.last:
            return tuple(pipe)
    return None
