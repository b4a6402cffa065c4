"""Plans of pipelines at work: items that pass devices and links, each pipeline at a pace of its own."""

from __future__ import annotations

from collections.abc import Sequence

from ..deployment import Deployment
from ..history import History, Interval, SteadyState, executed, simulated
from ..plan import Plan
from ..problem import Problem
from ..serving import checked_slots, saturated, served, slots_in_line, steady_visits
from ..stations import Station, intervals
from .judge import well_formed
from .plans import plan_of
from .tables import Cluster, cluster_of
from .timing import pipe_of, stations_of


def history(
    problem: Problem,
    plan: Plan,
    *,
    requests: int | None,
    interval_us: int | None = None,
    task_slots: int | None = None,
) -> History:
    """Play a plan for a number of items; see `simulate`.

    With an interval, items are dealt to the pipelines as if all were there (`deal`). Without one, each
    pipeline gets items at its own period, from the beginning on.
    """
    requests, slots = checked_slots(requests, interval_us, task_slots)
    cluster = cluster_of(problem.charged(plan))
    pipes = well_formed(cluster, plan)
    lines = [stations_of(cluster, pipe) for pipe in pipes]
    arrivals: dict[tuple[int, int], int] = {}
    events: list[Interval] = []
    dealt = deal(lines, requests, from_start=interval_us is None)
    for stream, line in enumerate(lines):
        own = [number for number, taken in enumerate(dealt) if taken == stream]
        pace = _period_us(line)
        times = [
            count * pace if interval_us is None else number * interval_us for count, number in enumerate(own)
        ]
        arrivals |= {(count, stream): time for count, time in enumerate(times)}
        visits = served([station.time_us for station in line], times, slots)
        events += intervals(line, visits, stream, engines=False)
    return simulated(
        plan_of(cluster, pipes),
        events,
        units=cluster.devices,
        arrivals_us=tuple(arrivals[key] for key in sorted(arrivals)),
    )


def deal(lines: Sequence[tuple[Station, ...]], count: int, *, from_start: bool = False) -> list[int]:
    """Return which pipeline takes each of some items that are all there: the one that is done with it first.

    That is the least time for all of them: pipeline p is done with its n-th item at latency + (n - 1) period,
    and no other choice has fewer items behind the largest of these times (clusters, section 3).

    `from_start`: give them to the pipeline that can begin first instead: none of them waits for its first
    item.
    """
    latency = [0 if from_start else sum(station.time_us for station in line) for line in lines]
    taken = [0] * len(lines)
    found = []
    for _ in range(count):
        ends = [latency[p] + taken[p] * _period_us(line) for p, line in enumerate(lines)]
        chosen = ends.index(min(ends))
        taken[chosen] += 1
        found.append(chosen)
    return found


def play(problem: Problem, deployment: Deployment, rounds: int) -> History:
    """Play a number of items of each pipeline, which wait for task slots."""
    events: list[Interval] = []
    for index, (line, slots) in enumerate(_lines(cluster_of(problem), deployment)):
        visits = saturated([station.time_us for station in line], slots, rounds)
        events += intervals(line, visits, index, engines=True)
    return executed(deployment, events)


def steady(problem: Problem, deployment: Deployment) -> tuple[SteadyState, ...]:
    """Return what each pipeline does over and over."""
    found = []
    for index, (line, slots) in enumerate(_lines(cluster_of(problem), deployment)):
        period_us, visits = steady_visits([station.time_us for station in line], slots)
        events = intervals(line, visits, index, engines=True)
        found.append(SteadyState(period_us=period_us, events=tuple(events)))
    return tuple(found)


def _lines(cluster: Cluster, deployment: Deployment) -> list[tuple[tuple[Station, ...], int]]:
    """Return the stations of each stream, and its task slots."""
    lines = (stations_of(cluster, pipe_of(cluster, stream)) for stream in deployment.streams)
    return [
        (line, stream.task_slots or slots_in_line(len(stream.chunks), len(line)))
        for line, stream in zip(lines, deployment.streams, strict=True)
    ]


def _period_us(line: tuple[Station, ...]) -> int:
    return max(station.time_us for station in line)
