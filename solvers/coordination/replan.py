"""A policy that plans: what waits is a problem of single requests, and any backend can solve it.

Hetero2Pipe plans again when requests come (V-C); BetterTogether (VII-A) and PICO (section 5) name it as what
is missing. Here the plan is kept as long as what waits, the units and the expected times are what it was made
for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...formulations.coordination.expected import costs_by_sections, expected_costs
from ...formulations.coordination.policy import Decision, Policy, UnitState, Waiting
from ...formulations.coordination.times import Times
from ...formulations.costs import CostTable, NetworkCosts
from ...formulations.hardware import Platform, ProcessingUnit
from ...formulations.network import Network
from ...formulations.plan import Plan
from ...formulations.problem import Problem
from ...formulations.schedules import JobRequest, Jobs
from ...formulations.terms import Objective
from ..protocol import SolveOptions
from ..session import solve
from .dynamic import LeastSlack

TIME_LIMIT_S = 0.02
"""For each plan: planning longer than chunks run makes everybody wait."""

DRIFT_PERMILLE = 250
"""So much longer or shorter than it was planned with makes the time of a chunk a reason to plan again."""

MOST_REQUESTS = 40
"""Those behind the first ones, by least slack, are planned when these are on their way."""

_HURRIED = ("late", "lateness", "latency")
_UNHURRIED = ("makespan", "latency")
_BUSY = ("lateness", *_UNHURRIED)  # only what keeps a unit busy at first has a deadline

_BUSY_WEIGHT = 1_000
"""Of a unit that is busy at first: nothing is worth letting it be busy later."""


@dataclass(frozen=True, slots=True)
class _Planned:
    """A chunk of a plan: whose, from which to which section, and its expected time."""

    request: int
    start: int
    stop: int
    time_us: int


@dataclass(frozen=True, slots=True)
class _Rest:
    """What is left of a request when the chunk is done that runs, and when that is expected."""

    request: Waiting
    ready_us: int


class Replan(Policy):
    """Plans what waits, follows the plan, and plans again when it no longer fits.

    A plan is made anew when a request waits that is not in it, when a unit leaves or returns, and when the
    expected time of the next chunk has changed. Where no plan is found, least slack decides.
    """

    name = "replan"
    any_chunk = True

    def __init__(self, backend: str = "native", *, time_limit_s: float = TIME_LIMIT_S) -> None:
        self.plans = 0  # how many plans have been made
        self._backend = backend
        self._options = SolveOptions(time_limit_s=time_limit_s)
        self._queues: dict[int, deque[_Planned]] = {}
        self._known: set[int] = set()
        self._running: dict[int, _Rest] = {}
        self._stale = True
        self._otherwise = LeastSlack()

    def changed(self, units: Sequence[UnitState]) -> None:
        """Plan again."""
        self._stale = True

    def next(
        self, now_us: int, queue: Sequence[Waiting], units: Sequence[UnitState], times: Times
    ) -> Decision | None:
        """Return the next chunk of the plan that can start; the plan is made first if need be."""
        idle = [unit for unit, state in enumerate(units) if state.idle]
        if not idle:
            return None
        waiting = {request.number: request for request in queue}
        if self._stale or self._is_news(waiting) or self._has_drifted(idle, waiting, times):
            self._plan(now_us, queue, units, times)
        for unit in idle:
            head = self._head(unit, waiting)
            if head is not None and head.request in waiting and waiting[head.request].done == head.start:
                self._queues[unit].popleft()
                rest = waiting[head.request]._replace(done=head.stop)
                self._running[head.request] = _Rest(rest, now_us + head.time_us)
                return Decision(head.request, head.stop, unit)
        if self._queues:
            return None
        return self._otherwise.next(now_us, queue, units, times)

    def ended(self, request: Waiting) -> None:
        """Take note that a chunk does not run any more."""
        self._running.pop(request.number, None)

    def _is_news(self, waiting: Mapping[int, Waiting]) -> bool:
        """Return whether something waits that is not in the plan, and would have room in it."""
        return len(self._known & waiting.keys()) < min(len(waiting), MOST_REQUESTS)

    def _head(self, unit: int, waiting: Mapping[int, Waiting]) -> _Planned | None:
        """Return the next chunk of a unit; those of requests that were dropped are left out."""
        planned = self._queues.get(unit)
        while planned:
            if planned[0].request in waiting or planned[0].request in self._running:
                return planned[0]
            planned.popleft()
        return None

    def _has_drifted(self, idle: Sequence[int], waiting: Mapping[int, Waiting], times: Times) -> bool:
        for unit in idle:
            head = self._head(unit, waiting)
            if head is not None and head.request in waiting:
                now = times.chunk_us(waiting[head.request].network, head.start, head.stop, unit)
                if now is None or abs(now - head.time_us) * 1000 > DRIFT_PERMILLE * head.time_us:
                    return True
        return False

    def _plan(self, now_us: int, queue: Sequence[Waiting], units: Sequence[UnitState], times: Times) -> None:
        """Make a plan for what waits; none where a request can run nowhere now."""
        self._stale = False
        self._queues, self._known = {}, set()
        asked = self._first(now_us, queue, units, times)
        rests = [_Rest(request, now_us) for request in asked]
        rests += [
            rest
            for rest in self._running.values()
            if rest.request.done < times.sections(rest.request.network)
        ]
        problem = _problem(now_us, rests, units, times)
        found = None if problem is None else solve(problem, self._backend, self._options).plan
        if found is None:
            return
        self.plans += 1
        self._known = {rest.request.number for rest in rests}
        self._queues = _queues(found, {str(rest.request.number): rest.request for rest in rests}, times)

    def _first(
        self, now_us: int, queue: Sequence[Waiting], units: Sequence[UnitState], times: Times
    ) -> Sequence[Waiting]:
        if len(queue) <= MOST_REQUESTS:
            return queue
        return self._otherwise.ranked(now_us, queue, units, times)[:MOST_REQUESTS]


def _problem(now_us: int, rests: Sequence[_Rest], units: Sequence[UnitState], times: Times) -> Problem | None:
    """Return what waits as a problem that begins now; a busy unit has a request of its own."""
    networks: dict[str, tuple[Network, NetworkCosts]] = {}
    requests = []
    there = [unit for unit, state in enumerate(units) if state.available]
    for unit, state in enumerate(units):
        if state.available and state.running and state.wait_us:
            name = f"busy {times.units[unit]}"
            row = tuple(state.wait_us if other == unit else None for other in range(len(units)))
            networks[name] = costs_by_sections(name, [row])
            due = state.wait_us
            requests.append(JobRequest(name=name, network=name, deadline_us=due, weight=_BUSY_WEIGHT))
    busy = bool(requests)
    for rest in rests:
        waiting = rest.request
        name = f"{waiting.network} from {waiting.done}"
        if name not in networks:
            made = expected_costs(name, times, waiting.network, waiting.done, there)
            if made is None:
                return None
            networks[name] = made
        release_us, due_us = max(0, rest.ready_us - now_us), waiting.deadline_us
        requests.append(
            JobRequest(
                name=str(waiting.number),
                network=name,
                release_us=release_us,
                deadline_us=None if due_us is None else max(1, due_us - now_us - release_us),
                weight=waiting.weight,
            )
        )
    hurried = any(rest.request.deadline_us is not None for rest in rests)
    terms = _HURRIED if hurried else _BUSY if busy else _UNHURRIED
    return problem_now(times, networks.values(), Jobs(requests=tuple(requests)), terms)


def problem_now(
    times: Times, networks: Iterable[tuple[Network, NetworkCosts]], jobs: Jobs, terms: tuple[str, ...]
) -> Problem:
    """Return requests of networks as a problem of the units that times are known of."""
    known = tuple(networks)
    return Problem(
        platform=Platform(name="now", units=tuple(ProcessingUnit(name=name) for name in times.units)),
        networks=tuple(network for network, _ in known),
        costs=CostTable(units=times.units, networks=tuple(costs for _, costs in known)),
        objective=Objective(terms=terms),
        data=jobs,
    )


def _queues(plan: Plan, waiting: Mapping[str, Waiting], times: Times) -> dict[int, deque[_Planned]]:
    """Return the chunks of each unit in the order of a plan."""
    found: dict[int, deque[_Planned]] = {unit: deque() for unit in range(len(times.units))}
    for planned, unit in _chunks(plan, waiting, times):
        found[unit].append(planned)
    return found


def _chunks(plan: Plan, waiting: Mapping[str, Waiting], times: Times) -> Iterator[tuple[_Planned, int]]:
    chunks = {name: iter(plan.of(name)) for name in waiting}
    for name in plan.order:
        if name in waiting:
            chunk, request = next(chunks[name]), waiting[name]
            unit = times.units.index(chunk.unit)
            start, stop = request.done + chunk.start, request.done + chunk.stop
            time_us = times.chunk_us(request.network, start, stop, unit)
            assert time_us is not None  # the costs of the problem come from there
            yield _Planned(request.number, start, stop, time_us), unit
