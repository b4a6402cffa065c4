"""A plan for one network at work: requests of one stream, each through all chunks.

A chunk starts when its request's previous chunk is done and its unit is free (`serving.py`). The steady
state is known in closed form (period, bubbles, latency); the tests hold the simulation and the judge against
each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..deployment import Deployment
from ..errors import InvalidInputError
from ..history import History, Interval, SteadyState, executed, simulated
from ..plan import Plan
from ..problem import Problem
from ..serving import Visit, checked_slots, saturated, served, steady_visits
from ..streams import Stream
from .judge import well_formed
from .tables import chain_of


def history(
    problem: Problem,
    plan: Plan,
    *,
    requests: int | None,
    interval_us: int | None = None,
    task_slots: int | None = None,
) -> History:
    """Play a plan for a number of requests; see `simulate`."""
    requests, slots = checked_slots(requests, interval_us, task_slots)
    chain = chain_of(problem.charged(plan))
    busy_us = [chain.busy_us(*part) for part in well_formed(chain, plan)]
    interval = max(busy_us) if interval_us is None else interval_us
    arrivals = tuple(request * interval for request in range(requests))
    events = (
        Interval(
            start_ns=1000 * run.start_us,
            end_ns=1000 * run.end_us,
            stream=0,
            request=run.request,
            chunk=run.station,
            unit=plan.chunks[run.station].unit,
        )
        for run in served(busy_us, arrivals, slots)
    )
    return simulated(plan, events, units=chain.units, arrivals_us=arrivals)


def check_device(problem: Problem) -> None:
    """Do nothing for a problem that can be played on a simulated device."""
    if len(problem.networks) != 1:
        raise InvalidInputError(
            f"a simulated device plays one network, the problem has {len(problem.networks)}"
        )


def play(problem: Problem, deployment: Deployment, rounds: int) -> History:
    """Play a number of requests of each stream, which wait for task slots; streams share no unit."""
    events: list[Interval] = []
    for index, stream in enumerate(deployment.streams):
        visits = saturated(_busy_us(problem, stream), stream.slots, rounds)
        events += _with_parts(problem, stream, index, visits)
    return executed(deployment, events)


def steady(problem: Problem, deployment: Deployment) -> tuple[SteadyState, ...]:
    """Return the steady state of each stream: what it does over and over, every `slots` requests."""
    return tuple(_steady(problem, stream, index) for index, stream in enumerate(deployment.streams))


def _steady(problem: Problem, stream: Stream, index: int) -> SteadyState:
    period_us, visits = steady_visits(_busy_us(problem, stream), stream.slots)
    return SteadyState(period_us=period_us, events=tuple(_with_parts(problem, stream, index, visits)))


def _busy_us(problem: Problem, stream: Stream) -> list[int]:
    """Return how long each chunk of a stream takes."""
    plan = Plan(chunks=stream.chunks)
    chain = chain_of(problem.charged(plan))
    return [chain.busy_us(*part) for part in chain.parts(plan)]


def _with_parts(problem: Problem, stream: Stream, index: int, runs: Sequence[Visit]) -> Iterator[Interval]:
    """Yield what has run of a stream, and when its copies ended and began."""
    plan = Plan(chunks=stream.chunks)
    chain = chain_of(problem.charged(plan))
    copies = [
        (chain.transfer_in_us[start][unit], chain.transfer_out_us[stop][unit])
        for start, stop, unit in chain.parts(plan)
    ]
    for run in runs:
        copy_in, copy_out = copies[run.station]
        yield Interval(
            start_ns=1000 * run.start_us,
            end_ns=1000 * run.end_us,
            stream=index,
            request=run.request,
            chunk=run.station,
            unit=stream.chunks[run.station].unit,
            engine_ns=(1000 * (run.start_us + copy_in), 1000 * (run.end_us - copy_out)),
        )
