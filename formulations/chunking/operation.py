"""How plans for one network run: as one stream of requests."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise

from ..chain import Chain
from ..cluster import Pipelines
from ..deployment import Deployment, replicas
from ..errors import InvalidProblemError
from ..flight import Flight
from ..history import History, Interval, SteadyState
from ..objective import Objective
from ..operation import Line, Server, ServerKind, StreamOperation
from ..passages import Passage
from ..plan import Chunk, Plan, comes_back
from ..problem import Problem
from ..rules import named
from ..usage import Usage, usage_of
from . import history
from .tables import chain_of


def stream_usage(problem: Problem, trace: History) -> Usage:
    """Return the bytes in use over time; see `trace_usage`."""
    assert trace.plan is not None
    parts = chain_of(problem.charged(trace.plan)).parts(trace.plan)
    return usage_of(
        _changes(problem, trace, trace.plan),
        ((event.request, *event.span_us) for event in trace.events),
        base=sum(_weights(problem, start, stop) for start, stop, _ in parts),
        requests=len(trace.output_us),
    )


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


class ChunkingOperation(StreamOperation):
    """One endless stream; several of them side by side are replicas of the network."""

    def deploy(self, problem: Problem, plan: Plan, *, task_slots: int | None = None) -> Deployment:
        """Return one stream, of one request at a time where the latency counts first."""
        alone = task_slots is None and self.pace(problem) == "latency"
        return Deployment(streams=(history.arranged(problem, plan, task_slots=1 if alone else task_slots),))

    def arrange(self, problem: Problem, plan: Plan) -> Deployment:
        """Return one stream."""
        return Deployment(streams=(history.arranged(problem, plan),))

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
            elif self.pace(problem) != "latency":
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
        return history.history(
            problem, plan, requests=requests, interval_us=interval_us, task_slots=task_slots
        )

    def usage(self, problem: Problem, history: History) -> Usage:
        """Return the bytes in use over time."""
        return stream_usage(problem, history)

    def check_device(self, problem: Problem) -> None:
        """Refuse several networks."""
        history.check_device(problem)

    def play(self, problem: Problem, deployment: Deployment, rounds: int) -> History:
        """Play requests that wait for task slots."""
        return history.play(problem, deployment, rounds)

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
        return None if self.pace(problem) == "latency" else history.flight(problem, plan)

    def steady(self, problem: Problem, deployment: Deployment) -> tuple[SteadyState, ...]:
        """Return what each stream does over and over."""
        return history.steady(problem, deployment)
