"""A plan for one network at work: requests of one stream, each through all chunks.

Asynchronous model on an integer clock: a chunk starts when its request's previous chunk is done and
its unit is free; a unit serves requests in order; at most `task_slots` requests are on their way.
The steady state is known in closed form (period, bubbles, latency); the tests hold the simulation and
the judge against each other.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..deployment import Deployment, Stream
from ..errors import InvalidInputError, InvalidPlanError
from ..history import History, Interval, SteadyState, executed, simulated
from ..plan import Plan
from ..problem import Problem
from .judge import well_formed
from .tables import chain_of

_STEADY, _CYCLES = 8, 4
"""Requests a task slot that are played until a stream is steady, and those of them that tell its period."""


def history(
    problem: Problem,
    plan: Plan,
    *,
    requests: int | None,
    interval_us: int | None = None,
    task_slots: int | None = None,
) -> History:
    """Play a plan for a number of requests; see `simulate`."""
    if requests is None:
        raise InvalidInputError("the stream is endless: say how many requests are played")
    slots = requests if task_slots is None else task_slots
    for name, value, least in (("requests", requests, 1), ("task_slots", slots, 1)):
        if value < least:
            raise InvalidInputError(f"{name} is {value}, must be at least {least}")
    chain = chain_of(problem.charged(plan))
    busy_us = [chain.busy_us(*part) for part in well_formed(chain, plan)]
    interval = max(busy_us) if interval_us is None else interval_us
    if interval < 0:
        raise InvalidInputError(f"interval_us is {interval}, must be at least 0")
    arrivals = tuple(request * interval for request in range(requests))
    events = (
        Interval(
            start_ns=1000 * run.start_us,
            end_ns=1000 * run.end_us,
            stream=0,
            request=run.request,
            chunk=run.chunk,
            unit=plan.chunks[run.chunk].unit,
        )
        for run in _served(busy_us, arrivals, slots)
    )
    return simulated(plan, events, units=chain.units, arrivals_us=arrivals)


def check_device(problem: Problem) -> None:
    """Do nothing for a problem that can be played on a simulated device.

    Raises
    ------
    InvalidInputError
        It has several networks.
    """
    if len(problem.networks) != 1:
        raise InvalidInputError(
            f"a simulated device plays one network, the problem has {len(problem.networks)}"
        )


def check_deployment(deployment: Deployment) -> None:
    """Do nothing for streams that may be of one network.

    Raises
    ------
    InvalidPlanError
        They are the requests of a workload.
    """
    if deployment.rounds is not None:
        raise InvalidPlanError("it serves a workload, the problem has none")


def play(problem: Problem, deployment: Deployment, rounds: int) -> History:
    """Play a number of requests of each stream, which wait for task slots; streams share no unit."""
    events: list[Interval] = []
    for index, stream in enumerate(deployment.streams):
        events += _with_parts(problem, stream, index, _saturated(problem, stream, rounds))
    return executed(deployment, events)


def steady(problem: Problem, deployment: Deployment) -> tuple[SteadyState, ...]:
    """Return the steady state of each stream: what it does over and over, every `slots` requests."""
    return tuple(_steady(problem, stream, index) for index, stream in enumerate(deployment.streams))


class _Run(NamedTuple):
    """One chunk of one request that has run."""

    start_us: int
    end_us: int
    request: int
    chunk: int


def _steady(problem: Problem, stream: Stream, index: int) -> SteadyState:
    runs = _saturated(problem, stream, _STEADY * stream.slots)
    outputs = [run.end_us for run in runs if run.chunk == len(stream.chunks) - 1]
    last, cycle = len(outputs) - 1, _CYCLES * stream.slots
    return SteadyState(
        period_us=(outputs[-1] - outputs[-1 - cycle]) / cycle,
        events=tuple(_with_parts(problem, stream, index, [run for run in runs if run.request == last])),
    )


def _saturated(problem: Problem, stream: Stream, requests: int) -> list[_Run]:
    """Play a stream whose requests are all there from the beginning."""
    plan = Plan(chunks=stream.chunks)
    chain = chain_of(problem.charged(plan))
    busy_us = [chain.busy_us(*part) for part in chain.parts(plan)]
    return _served(busy_us, (0,) * requests, stream.slots)


def _with_parts(problem: Problem, stream: Stream, index: int, runs: Sequence[_Run]) -> Iterator[Interval]:
    """Yield what has run of a stream, and when its copies ended and began."""
    plan = Plan(chunks=stream.chunks)
    chain = chain_of(problem.charged(plan))
    copies = [
        (chain.transfer_in_us[start][unit], chain.transfer_out_us[stop][unit])
        for start, stop, unit in chain.parts(plan)
    ]
    for run in runs:
        copy_in, copy_out = copies[run.chunk]
        yield Interval(
            start_ns=1000 * run.start_us,
            end_ns=1000 * run.end_us,
            stream=index,
            request=run.request,
            chunk=run.chunk,
            unit=stream.chunks[run.chunk].unit,
            engine_ns=(1000 * (run.start_us + copy_in), 1000 * (run.end_us - copy_out)),
        )


def _served(busy_us: Sequence[int], arrivals_us: Sequence[int], slots: int) -> list[_Run]:
    """Serve chunks in order of (time, request, chunk); each has its unit for itself."""
    last = len(busy_us) - 1
    free_us = [0] * len(busy_us)
    finished: list[int] = []
    runs = []
    queue = [(arrivals_us[request], request, 0) for request in range(min(slots, len(arrivals_us)))]
    heapq.heapify(queue)
    while queue:
        ready_us, request, chunk = heapq.heappop(queue)
        start = max(ready_us, free_us[chunk])
        end = free_us[chunk] = start + busy_us[chunk]
        runs.append(_Run(start, end, request, chunk))
        if chunk < last:
            heapq.heappush(queue, (end, request, chunk + 1))
            continue
        finished.append(end)
        following = len(finished) - 1 + slots
        if following < len(arrivals_us):
            heapq.heappush(queue, (max(end, arrivals_us[following]), following, 0))
    return runs
