"""A plan for one network at work: requests of one stream, each through all chunks.

A chunk starts when its request's previous chunk is done and its unit is free (`serving.py`). The steady
state is known in closed form (period, bubbles, latency); the tests hold the simulation and the judge against
each other. Units with several chunks serve them in the order of the stream's cycle.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..deployment import Deployment
from ..errors import InvalidInputError, InvalidPlanError
from ..flight import Flight, cycle_for, flight_of
from ..history import History, Interval, SteadyState, executed, simulated
from ..plan import Plan, comes_back
from ..problem import Problem
from ..serving import Turns, Visit, checked_slots, saturated, steady_visits, visited
from ..streams import Stream
from .tables import chain_of


def deploy(plan: Plan, *, task_slots: int | None = None) -> Deployment:
    """Return a plan as a deployment: one stream for each network that it names.

    `task_slots`: of each stream; None: as `Stream` says.
    """
    if plan.order:
        raise InvalidPlanError(f"[{plan}] is a plan for a workload; say which one")
    names = dict.fromkeys(chunk.network for chunk in plan.chunks)
    return Deployment(
        streams=tuple(
            Stream(
                name=name,
                chunks=tuple(chunk for chunk in plan.chunks if chunk.network == name),
                task_slots=task_slots,
            )
            for name in names
        )
    )


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
    charged = problem.charged(plan)
    chain, parts = chain_of(charged), problem.formulation.code(charged, plan)
    busy_us = [chain.busy_us(*part) for part in parts]
    interval = (
        problem.formulation.numbers(charged, parts).term("period") if interval_us is None else interval_us
    )
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
        for run in visited(
            busy_us, arrivals, slots, turns_of(problem, arranged(problem, plan, task_slots=task_slots))
        )
    )
    return simulated(plan, events, units=chain.units, arrivals_us=arrivals)


def arranged(problem: Problem, plan: Plan, *, task_slots: int | None = None) -> Stream:
    """Return a plan as a stream; with a cycle where a unit has several chunks and requests overlap."""
    (stream,) = deploy(plan, task_slots=task_slots).streams
    if not comes_back(plan.chunks, problem.platform) or task_slots == 1:
        return stream
    cycle = cycle_for(_busy_us(problem, stream), _turns(problem, stream), task_slots)
    return replace(stream, cycle=cycle)


def flight(problem: Problem, plan: Plan) -> Flight:
    """Return what requests in flight do for a plan."""
    (stream,) = deploy(plan).streams
    return flight_of(_busy_us(problem, stream), _turns(problem, stream))


def _turns(problem: Problem, stream: Stream) -> tuple[str, ...]:
    """Return for each chunk the unit, or the resource, that takes turns."""
    return problem.platform.turns(chunk.unit for chunk in stream.chunks)


def turns_of(problem: Problem, stream: Stream) -> Turns | None:
    """Return how the chunks of a stream share units, or resources; None: each has one of its own."""
    if stream.cycle is None:
        return None
    return Turns(units=_turns(problem, stream), cycle=stream.cycle)


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
        visits = saturated(_busy_us(problem, stream), stream.slots, rounds, turns_of(problem, stream))
        events += _with_parts(problem, stream, index, visits)
    return executed(deployment, events)


def steady(problem: Problem, deployment: Deployment) -> tuple[SteadyState, ...]:
    """Return the steady state of each stream: what it does over and over, every `slots` requests."""
    return tuple(_steady(problem, stream, index) for index, stream in enumerate(deployment.streams))


def _steady(problem: Problem, stream: Stream, index: int) -> SteadyState:
    period_us, visits = steady_visits(_busy_us(problem, stream), stream.slots, turns_of(problem, stream))
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
