"""How plans for one network run, and what a run leaves: one stream of requests, each through all chunks.

A chunk starts when its request's previous chunk is done and its unit is free (`flight.py`). The steady
state is known in closed form (period, bubbles, latency); the tests hold the simulation and the judge against
each other. Units with several chunks serve them in the order of the stream's cycle.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise

from ..chain import Chain
from ..cluster import Pipelines
from ..deployment import Deployment, replicas
from ..errors import InvalidInputError, InvalidPlanError, InvalidProblemError
from ..flight import (
    Flight,
    Turns,
    Visit,
    checked_slots,
    cycle_for,
    flight_of,
    saturated,
    steady_visits,
    visited,
)
from ..history import History, Interval, SteadyState, Usage, executed, simulated, usage_of
from ..operation import Line, Server, ServerKind, StreamOperation
from ..passages import Passage
from ..plan import Chunk, Plan, comes_back
from ..problem import Problem
from ..rules import named
from ..streams import Stream
from ..terms import Objective
from .tables import chain_of


class ChunkingOperation(StreamOperation):
    """One endless stream; several of them side by side are replicas of the network."""

    def deploy(self, problem: Problem, plan: Plan, *, task_slots: int | None = None) -> Deployment:
        """Return one stream, of one request at a time where the latency counts first."""
        alone = task_slots is None and self.pace(problem) == "latency"
        return Deployment(streams=(arranged(problem, plan, task_slots=1 if alone else task_slots),))

    def arrange(self, problem: Problem, plan: Plan) -> Deployment:
        """Return one stream."""
        return Deployment(streams=(arranged(problem, plan),))

    def rivals(self, problem: Problem) -> Iterator[Problem]:
        """Yield the problem whose units may come again, and that with pipelines side by side."""
        yield problem.with_data(Passage()).with_rules(
            named("again", "a unit has several chunks", lambda view: view.hops() >= view.resources_used())
        )
        yield from self.several(problem)

    def several(self, problem: Problem) -> Iterator[Problem]:
        """Yield the problem with two pipelines or more side by side; rules are about a single one."""
        if problem.rules or self.pace(problem) == "latency":
            return
        with suppress(InvalidProblemError):  # limits that mean nothing for several
            many = replace(problem, data=Pipelines(), objective=Objective(terms=("throughput",)))
            yield many.with_rules(
                named("several", "there are at least two pipelines", lambda view: view.pipelines() >= 2)
            )

    def baselines(
        self, problem: Problem, sets: Sequence[tuple[str, ...]]
    ) -> Iterator[tuple[str, Deployment]]:
        """Yield the network on each unit alone, and its replicas on several; those make no request faster."""
        network, layers = problem.network.name, len(problem.network.layers)
        for names in sets:
            if len(names) == 1:
                whole = Plan(chunks=(Chunk(network=network, start=0, stop=layers, unit=names[0]),))
                yield f"serial on {names[0]}", self.deploy(problem, whole)
            elif self.pace(problem) != "latency" and not problem.network.states:
                yield f"replicas on {'+'.join(names)}", replicas(network, layers, names)

    def matching(self, problem: Problem, plans: Iterable[Plan]) -> Problem:
        """Return the problem whose units may come again if a plan comes back to one."""
        back = problem.data is None and any(comes_back(plan.chunks, problem.platform) for plan in plans)
        return problem.with_data(Passage()) if back else problem

    def chains(self, problem: Problem, deployment: Deployment) -> tuple[Chain, ...]:
        """Return the table of the network for each stream."""
        return (chain_of(problem),) * len(deployment.streams)

    def history(
        self,
        problem: Problem,
        plan: Plan,
        *,
        requests: int | None = None,
        interval_us: int | None = None,
        task_slots: int | None = None,
    ) -> History:
        """Play a number of requests."""
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

    def usage(self, problem: Problem, history: History) -> Usage:
        """Return the bytes in use over time."""
        assert history.plan is not None
        parts = chain_of(problem.charged(history.plan)).parts(history.plan)
        return usage_of(
            _changes(problem, history, history.plan),
            ((event.request, *event.span_us) for event in history.events),
            base=sum(_weights(problem, start, stop) for start, stop, _ in parts),
            requests=len(history.output_us),
        )

    def check_device(self, problem: Problem) -> None:
        """Refuse several networks."""
        if len(problem.networks) != 1:
            raise InvalidInputError(
                f"a simulated device plays one network, the problem has {len(problem.networks)}"
            )

    def play(self, problem: Problem, deployment: Deployment, rounds: int) -> History:
        """Play requests of each stream, which wait for task slots; streams share no unit."""
        events: list[Interval] = []
        for index, stream in enumerate(deployment.streams):
            visits = saturated(_busy_us(problem, stream), stream.slots, rounds, turns_of(problem, stream))
            events += _with_parts(problem, stream, index, visits)
        return executed(deployment, events)

    def lines(self, problem: Problem, plan: Plan) -> tuple[Line, ...]:
        """Return the chunks of the plan, in order."""
        chain = chain_of(problem)
        servers = (
            Server(kind=ServerKind.COMPUTES, unit=chain.units[unit], time_us=chain.busy_us(start, stop, unit))
            for start, stop, unit in problem.formulation.code(problem, plan)
        )
        return (Line(name="", servers=tuple(servers)),)

    def flight(self, problem: Problem, plan: Plan) -> Flight | None:
        """Return what requests in flight do; None where one at a time is asked for."""
        if self.pace(problem) == "latency":
            return None
        (stream,) = deploy(plan).streams
        return flight_of(_busy_us(problem, stream), _turns(problem, stream))

    def steady(self, problem: Problem, deployment: Deployment) -> tuple[SteadyState, ...]:
        """Return what each stream does over and over, every `slots` requests."""
        return tuple(_steady(problem, stream, index) for index, stream in enumerate(deployment.streams))


def _changes(problem: Problem, trace: History, plan: Plan) -> Iterator[tuple[int, int]]:
    """Yield (time, bytes taken or given back) of tensors."""
    chain, alive = chain_of(problem.charged(plan)), problem.network.boundary_bytes
    chunks = plan.chunks
    running = [
        chain.memory_bytes(chunk.start, chunk.stop) - _weights(problem, chunk.start, chunk.stop)
        for chunk in chunks
    ]
    for events in _by_request(trace):
        for event in events:
            start_us, end_us = event.span_us
            yield start_us, running[event.chunk]
            yield end_us, -running[event.chunk]
        for event, following in pairwise(events):
            waiting = alive[chunks[event.chunk].stop]
            yield event.span_us[1], waiting
            yield following.span_us[0], -waiting


def _weights(problem: Problem, start: int, stop: int) -> int:
    return chain_of(problem).weights.between(start, stop)


def _by_request(trace: History) -> list[list[Interval]]:
    """Return the events of each request in order of their chunks."""
    found = defaultdict(list)
    for event in sorted(trace.events, key=lambda event: event.chunk):
        found[event.request].append(event)
    return list(found.values())


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


def arranged(problem: Problem, plan: Plan, *, task_slots: int | None = None) -> Stream:
    """Return a plan as a stream; with a cycle where a unit has several chunks and requests overlap."""
    (stream,) = deploy(plan, task_slots=task_slots).streams
    stream = replace(stream, states=problem.network.states)
    if not comes_back(plan.chunks, problem.platform) or task_slots == 1:
        return stream
    cycle = cycle_for(_busy_us(problem, stream), _turns(problem, stream), task_slots)
    return replace(stream, cycle=cycle)


def _turns(problem: Problem, stream: Stream) -> tuple[str, ...]:
    """Return for each chunk the unit, or the resource, that takes turns."""
    return problem.platform.turns(chunk.unit for chunk in stream.chunks)


def turns_of(problem: Problem, stream: Stream) -> Turns | None:
    """Return how the chunks of a stream share units, or resources; None: each has one of its own."""
    if stream.cycle is None:
        return None
    return Turns(units=_turns(problem, stream), cycle=stream.cycle)


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
