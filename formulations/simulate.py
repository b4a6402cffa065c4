"""Deterministic event simulation of a plan: the trace that a stream of requests leaves.

Asynchronous model on an integer clock: a chunk starts when its request's previous chunk is done and
its unit is free; a unit serves requests in order; at most `task_slots` requests are on their way.
For one network the steady state is known in closed form (period, bubbles, latency); the tests hold
the simulation and the judge against each other.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

from .chunking.tables import chain_of
from .errors import InvalidInputError, InvalidPlanError
from .flow_shop.tables import shop_of
from .flow_shop.values import WorkloadValues
from .judge import MALFORMED, check
from .plan import Plan
from .problem import Problem


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class TraceEvent:
    """One chunk of one request at work, from start to end in microseconds.

    `slowdown_us` is how much longer it took because of what ran beside it.
    """

    start_us: int
    end_us: int
    request: int
    chunk: int
    unit: str
    slowdown_us: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """What happened when: events in order of their start.

    Attributes
    ----------
    plan
        The plan that was played.
    units
        Units of the platform, in order.
    arrivals_us
        When each request came in.
    events
        All chunks of all requests.
    names
        Names of the requests of a workload, by request; empty for a stream of one network.
    """

    plan: Plan
    units: tuple[str, ...]
    arrivals_us: tuple[int, ...]
    events: tuple[TraceEvent, ...]
    names: tuple[str, ...] = ()

    @property
    def makespan_us(self) -> int:
        """End of the last request."""
        return max(event.end_us for event in self.events)

    @property
    def output_us(self) -> tuple[int, ...]:
        """When each request was finished."""
        done: dict[int, int] = {}
        for event in self.events:
            done[event.request] = max(event.end_us, done.get(event.request, 0))
        return tuple(done[request] for request in range(len(self.arrivals_us)))

    @property
    def latency_us(self) -> tuple[int, ...]:
        """From arrival to exit, for each request."""
        return tuple(end - start for start, end in zip(self.arrivals_us, self.output_us, strict=True))

    @property
    def period_us(self) -> int | None:
        """Time between the last two outputs; None for a single request."""
        outputs = self.output_us
        return outputs[-1] - outputs[-2] if len(outputs) > 1 else None

    def on(self, unit: str) -> tuple[TraceEvent, ...]:
        """Return the events of one unit, in order."""
        return tuple(event for event in self.events if event.unit == unit)

    def bubble_us(self, unit: str) -> int | None:
        """Return the idle time of a unit between its first start and last end; None if not used."""
        events = self.on(unit)
        if not events:
            return None
        return events[-1].end_us - events[0].start_us - sum(e.end_us - e.start_us for e in events)


def simulate(
    problem: Problem,
    plan: Plan,
    *,
    requests: int,
    interval_us: int | None = None,
    task_slots: int | None = None,
) -> Trace:
    """Play a plan for a number of requests.

    Parameters
    ----------
    problem, plan
        The problem, and a well-formed plan for it; limits and rules need not hold.
    requests
        Number of requests, at least 1.
    interval_us
        Time between arrivals. None: one period, so that queues neither grow nor run dry.
    task_slots
        Most requests on their way at once: the next one enters when an earlier one has left.
        None: as many as there are.

    Raises
    ------
    InvalidPlanError
        The plan is not well formed.
    InvalidInputError
        A number is out of range.
    """
    slots = requests if task_slots is None else task_slots
    for name, value, least in (("requests", requests, 1), ("task_slots", slots, 1)):
        if value < least:
            raise InvalidInputError(f"{name} is {value}, must be at least {least}")
    if problem.data is not None:
        raise InvalidInputError("the problem has a workload: play it with simulate_workload")
    broken = [v for v in check(problem, plan) if v.rule in MALFORMED]
    if broken:
        raise InvalidPlanError(f"[{plan}] cannot be played:", [v.message for v in broken])
    chain = chain_of(problem.charged(plan))
    busy_us = [chain.busy_us(*part) for part in chain.parts(plan)]
    interval = max(busy_us) if interval_us is None else interval_us
    if interval < 0:
        raise InvalidInputError(f"interval_us is {interval}, must be at least 0")
    arrivals = tuple(request * interval for request in range(requests))
    return Trace(
        plan=plan,
        units=chain.units,
        arrivals_us=arrivals,
        events=_play([c.unit for c in plan.chunks], busy_us, arrivals, slots),
    )


def simulate_workload(problem: Problem, plan: Plan) -> Trace:
    """Play a plan for a workload, as the judge does; limits and rules need not hold.

    Raises
    ------
    InvalidPlanError
        The plan is not well formed.
    """
    shop = shop_of(problem)
    schedule = shop.schedule(plan)
    runs = WorkloadValues(shop, schedule).runs
    index = dict.fromkeys(range(shop.request_count), 0)
    events = []
    for run in runs:
        request = schedule.order[run.position]
        events.append(
            TraceEvent(
                start_us=run.start_us,
                end_us=run.end_us,
                request=request,
                chunk=index[request],
                unit=shop.units[run.unit],
                slowdown_us=run.end_us - run.start_us - run.work_us,
            )
        )
        index[request] += 1
    return Trace(
        plan=plan,
        units=shop.units,
        arrivals_us=tuple(request.arrival_us for request in shop.workload.requests),
        events=tuple(sorted(events)),
        names=shop.workload.names,
    )


def _play(
    units: list[str], busy_us: list[int], arrivals: tuple[int, ...], slots: int
) -> tuple[TraceEvent, ...]:
    """Serve events in order of (time, request, chunk); each chunk has its unit for itself."""
    last = len(units) - 1
    free_us = [0] * len(units)
    finished: list[int] = []
    events = []
    queue = [(arrivals[request], request, 0) for request in range(min(slots, len(arrivals)))]
    heapq.heapify(queue)
    while queue:
        ready_us, request, chunk = heapq.heappop(queue)
        start = max(ready_us, free_us[chunk])
        end = free_us[chunk] = start + busy_us[chunk]
        events.append(TraceEvent(start_us=start, end_us=end, request=request, chunk=chunk, unit=units[chunk]))
        if chunk < last:
            heapq.heappush(queue, (end, request, chunk + 1))
            continue
        finished.append(end)
        following = len(finished) - 1 + slots
        if following < len(arrivals):
            heapq.heappush(queue, (max(end, arrivals[following]), following, 0))
    return tuple(sorted(events))
