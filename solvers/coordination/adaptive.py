"""A static plan that adapts: while it does not fit, a policy decides, and a new plan is made meanwhile.

BetterTogether (VII-A) asks for it: a plan is the best one for what it was made for; a unit that leaves, times
that drift and other requests make it wrong, and a policy that decides online is then better than it.

The plan is the relaxation behind the bound of schedules (`solvers/jobs/bounds.py`): for each network some
routes over the units, and which share of its requests takes each, so that the units need the least time for
the mix of requests. The requests of a network are dealt to its routes in turn.
"""

from __future__ import annotations

import logging
import threading
from bisect import bisect
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate
from math import log

from ...formulations.coordination.expected import expected_costs
from ...formulations.coordination.policy import Decision, Place, Policy, UnitState, Waiting
from ...formulations.coordination.times import Times
from ...formulations.problem import Problem
from ...formulations.schedules import Cuts, JobRequest, Jobs
from ..jobs.bounds import shares_of
from ..protocol import Deadline
from .dynamic import LeastSlack
from .paces import Paces, imbalance
from .replan import problem_now

_log = logging.getLogger(__name__)

PLANNING_US = 50_000
"""How long a plan takes in simulated time."""

_PLANNING_S = 0.5
"""After this time the relaxation is not improved any more."""

PAUSE_US = 1_000_000
"""Between two plans for the same units: where times never rest, planning would take the units' own cores."""

_SEEN, _MIXED = 100, 0.15
"""The mix of requests is that of this number of the last ones; a plan no longer fits if the share of a
network has changed by more than that."""

_WINDOW = 16
"""Requests of a plan, by their mix, and at least one of each network."""

_LEAST_SHARE = 0.02
"""Routes that fewer requests would take are left out."""

_GOLDEN = 0.6180339887498949
"""Multiples of it, without their whole part, are spread evenly."""

_PILED_US, _CLEARED_US = 200_000, 50_000
"""The plan decides from when the units need so long for what waits, until they need only the second one."""

_LEAVE, _RETURN = log(1.25), log(1.15)
"""A plan is left when one unit has become so much slower than another since it was made, and is taken again
when it is at most the second one."""

_WRONG = log(2)
"""A plan is left when one of its chunks takes so much more than another of what it was planned with."""

_MOST_PLACES = 200_000
"""Requests whose places are kept: more than may wait."""

_MOST_PLANS = 16
"""Plans that are kept, for when units are back."""

Hop = tuple[int, int]
"""Number of sections that are done behind a chunk, and its unit."""

Route = tuple[Hop, ...]


class Why(StrEnum):
    """Why a plan is left."""

    UNITS = "units"
    DRIFT = "drift"
    MIX = "mix"
    NETWORKS = "networks"


@dataclass(frozen=True, slots=True)
class Change:
    """A plan comes into force, or is left."""

    at_us: int  # when
    why: Why | None  # why it is left; None: it is in force from then on
    work_us: float = 0.0
    """How long the units need at least for the requests of its window, divided by their number; of a plan
    that comes into force."""

    def __str__(self) -> str:
        if self.why is not None:
            return f"the plan is left ({self.why}); a policy decides"
        needs = f": units need {self.work_us / 1000:.3g} ms per request" if self.work_us else ""
        return f"a plan is in force{needs}"


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a plan is made for: the units that are there, and the mix of requests."""

    units: tuple[int, ...]
    mix: tuple[float, ...]  # share of each network

    def differs(self, other: _Asked) -> bool:
        """Return whether other requests come than another plan was made for."""
        pairs = zip(self.mix, other.mix, strict=True)
        return any(abs(mine - theirs) > _MIXED for mine, theirs in pairs)


def _with_starts(route: Route) -> Iterator[tuple[int, Hop]]:
    """Yield how many sections are done before each chunk, and the chunk."""
    yield from zip((0, *(stop for stop, _ in route)), route, strict=False)


@dataclass(frozen=True, slots=True)
class StreamPlan:
    """Routes for the requests of each network, and which share of them takes each."""

    routes: tuple[tuple[Route, ...], ...]  # by network; none: it is not planned
    until: tuple[tuple[float, ...], ...]
    """By network and route: up to which share of the requests this and those before it take."""
    times_us: Mapping[tuple[int, int, int, int], int]
    """What chunks were expected to take, by network, first section, one past the last, and unit."""
    paces: tuple[float, ...]  # of the units when it was made (`Paces.now`)
    work_us: float = 0.0  # how long the units need at least per request; 0: not known

    @property
    def units(self) -> frozenset[int]:
        """The units that it uses."""
        return frozenset(unit for *_, unit in self.times_us)

    def next(self, request: Waiting, place: float) -> Hop | None:
        """Return the next chunk of a request; None: it is not where its route has a border.

        `place`: among all requests of its network, from 0 to 1: those up to a share take its route.
        """
        routes = self.routes[request.network]
        if not routes:
            return None
        number = bisect(self.until[request.network], place)
        route = routes[min(number, len(routes) - 1)]  # shares add up to 1 but for rounding
        return next((hop for start, hop in _with_starts(route) if start == request.done), None)

    def has_drifted(self, paces: Paces, most: float, there: Sequence[int]) -> bool:
        """Return whether units that are there have come apart since it was made, or it was wrong at once.

        Units that are slower by the same factor leave it the best plan. `most`: of `_LEAVE`, `_RETURN`.
        """
        now = paces.now(len(self.paces))
        offs = [paces.off(chunk, time_us) for chunk, time_us in self.times_us.items()]
        return (
            imbalance([now[unit] - self.paces[unit] for unit in there]) > most
            or imbalance([off for off in offs if off is not None]) > _WRONG
        )


class Adaptive(Policy):
    """Follows a static plan of the stream, and lets another policy decide while there is none that fits.

    A plan no longer fits when a unit leaves or returns, when units have become slower or faster against each
    other (`Paces`), or when other requests come than it was made for. Then the other policy decides at once,
    and a plan is made meanwhile; one that was made for the same units and fits is taken again, and the plan
    that was given (`follow`) before any other. The other policy also ends requests that are where the plan
    has no border.

    A plan of the stream makes the most of the units, a policy the best of few requests. So a plan decides
    only while requests pile up, unless it was given.

    `otherwise`: who decides while no plan fits; None: `lst`.
    `changes`: when plans came into force and were left: the last ones; `plans`: how many plans were made.
    """

    name, adapts, any_chunk = "adaptive", True, True

    def __init__(self, otherwise: Policy | None = None) -> None:
        self.changes: deque[Change] = deque(maxlen=1000)
        self.plans = 0
        self._otherwise = LeastSlack() if otherwise is None else otherwise
        self._piled = False
        self._given: StreamPlan | None = None
        self._left: StreamPlan | None = None  # the last one that was left because units drifted
        self._paces = Paces()
        self._planning = _Planning()
        self._in_force: tuple[_Asked, StreamPlan] | None = None
        self._known: dict[tuple[int, ...], tuple[_Asked, StreamPlan]] = {}
        self._hopeless: dict[tuple[int, ...], _Asked] = {}  # what left some network without a route
        self._demand: tuple[float, ...] = ()
        self._seen: deque[int] = deque(maxlen=_SEEN)  # networks of the last requests that began
        self._counted: deque[int] = deque(maxlen=_SEEN)  # the same by number: a lost chunk runs again
        self._places: dict[int, float] = {}  # of requests, among those of their network (`StreamPlan.next`)
        self._dealt = Counter[int]()  # how many requests of each network have a place
        self._version = -1  # of the paces when it was looked whether the plan fits
        self._why: Why | None = None  # the plan in force is to be left

    def live(self) -> None:
        """Make plans in a thread: time passes by itself from now on."""
        self._planning = _Planning(threaded=True)

    def follow(self, routes: Mapping[int, Sequence[Route]], times: Times) -> None:
        """Follow a plan that was made before, whenever its units are there and its times have not changed.

        `routes`: by index of the network, the routes that its requests take in turn; `times`: what chunks are
        expected to take.
        """
        chunks = [
            (n, start, *hop)
            for n, own in routes.items()
            for route in own
            for start, hop in _with_starts(route)
        ]
        networks = range(times.network_count)
        self._why = Why.NETWORKS
        self._given = StreamPlan(
            routes=tuple(tuple(routes.get(n, ())) for n in networks),
            until=tuple(
                tuple((at + 1) / len(routes[n]) for at in range(len(routes.get(n, ())))) for n in networks
            ),
            times_us={chunk: times.chunk_us(*chunk) or 1 for chunk in chunks},
            paces=self._paces.now(len(times.units)),
        )

    def begin(self, times: Times, demand: Sequence[float]) -> None:
        """Forget all plans: there are other networks, or requests."""
        self._otherwise.begin(times, demand)
        self._demand = tuple(demand)
        self._given, self._paces = None, Paces()
        self._planning.forget()
        self._known.clear()
        self._hopeless.clear()
        self._seen.clear()
        self._why = Why.NETWORKS

    def changed(self, units: Sequence[UnitState]) -> None:
        """Leave the plan: it is for other units."""
        self._otherwise.changed(units)
        self._why = Why.UNITS

    def requeue(self, request: Waiting) -> Place:
        """Return what the other policy says; in a plan numbers decide."""
        return self._otherwise.requeue(request)

    def took(self, request: Waiting, decision: Decision, took_us: float, expected_us: float) -> None:
        """Look whether the unit has become slower or faster; tell the other policy."""
        chunk = (request.network, request.done, decision.stop, decision.unit)
        self._paces.took(chunk, took_us, expected_us)
        self._otherwise.took(request, decision, took_us, expected_us)

    def ended(self, request: Waiting) -> None:
        """Count the requests of each network, once each; tell the other policy."""
        if not request.done and request.number not in self._counted:
            self._counted.append(request.number)
            self._seen.append(request.network)
        self._otherwise.ended(request)

    def next(
        self, now_us: int, queue: Sequence[Waiting], units: Sequence[UnitState], times: Times
    ) -> Decision | None:
        """Return the next chunk of the earliest request that can go on; of strays as the other one says."""
        plan = self._fitting(now_us, units, times)
        if plan is None or not (plan is self._given or self._has_piled(len(queue) * plan.work_us)):
            return self._otherwise.next(now_us, queue, units, times)
        for request in sorted(queue, key=lambda waiting: waiting.number):
            hop = plan.next(request, self._place(request))
            if hop is None:
                decision = self._otherwise.next(now_us, [request], units, times)
                if decision is not None:
                    return decision
            elif units[hop[1]].idle:
                return Decision(request.number, *hop)
        return None

    def _note(self, change: Change) -> None:
        self.changes.append(change)
        _log.info("%s", change)

    def _has_piled(self, work_us: float) -> bool:
        """Return whether the plan decides, by how long the units need for what waits."""
        self._piled = work_us > (_CLEARED_US if self._piled else _PILED_US)
        return self._piled

    def _place(self, request: Waiting) -> float:
        """Return the place of a request among those of its network: any few in a row are spread evenly."""
        place = self._places.get(request.number)
        if place is None:
            place = self._places[request.number] = self._dealt[request.network] * _GOLDEN % 1.0
            self._dealt[request.network] += 1
            if len(self._places) > _MOST_PLACES:  # one that is still there gets another place: no harm
                del self._places[next(iter(self._places))]
        return place

    def _fitting(self, now_us: int, units: Sequence[UnitState], times: Times) -> StreamPlan | None:
        """Return the plan in force if it fits; else have one made."""
        asked = _Asked(
            tuple(unit for unit, state in enumerate(units) if state.available), self._mix(times.network_count)
        )
        if self._in_force is not None:
            made_for, plan = self._in_force
            if self._why is None and asked.differs(made_for):
                self._why = Why.MIX
            if self._why is None and self._paces.version != self._version:
                self._watch(plan, asked)
            if self._why is None and self._in_force is not None:
                return plan
            if self._why is not None:
                self._note(Change(now_us, self._why))
            self._in_force = None
        self._why = None
        self._take(now_us)
        for known in self._candidates(asked):
            if not asked.differs(known[0]) and self._fits(known[1], asked):
                self._in_force, self._version = known, self._paces.version
                self._note(Change(now_us, None, known[1].work_us))
                return known[1]
        hopeless = self._hopeless.get(asked.units)
        if (hopeless is None or asked.differs(hopeless)) and self._planning.may_begin(now_us, asked.units):
            self._planning.begin(now_us, asked, self._paces.charged(times), self._paces.now(len(units)))
        return None

    def _candidates(self, asked: _Asked) -> Iterator[tuple[_Asked, StreamPlan]]:
        """Yield the plans that there are for some units: the one that was given, and one that was made."""
        if self._given is not None:
            yield asked, self._given
        if asked.units in self._known:
            yield self._known[asked.units]

    def _watch(self, plan: StreamPlan, asked: _Asked) -> None:
        """Look whether the plan in force has drifted, or the one that was given fits again."""
        self._version = self._paces.version
        if plan.has_drifted(self._paces, _LEAVE, asked.units):
            self._why, self._left = Why.DRIFT, plan
        elif plan is not self._given and self._given is not None and self._fits(self._given, asked):
            self._in_force = None

    def _fits(self, plan: StreamPlan, asked: _Asked) -> bool:
        """Return whether a plan fits the units: one that was left, or given, with something to spare."""
        most = _RETURN if plan is self._given or plan is self._left else _LEAVE
        return plan.units <= set(asked.units) and not plan.has_drifted(self._paces, most, asked.units)

    def _take(self, now_us: int) -> None:
        """Keep the plan that was made meanwhile, if one is ready."""
        made = self._planning.take(now_us)
        if made is None:
            return
        asked, plan = made
        self._known.pop(asked.units, None)
        if plan is None:
            self._hopeless[asked.units] = asked
            return
        self.plans += 1
        self._known[asked.units] = asked, plan
        if len(self._known) > _MOST_PLANS:
            del self._known[next(iter(self._known))]

    def _mix(self, networks: int) -> tuple[float, ...]:
        """Return the share of each network among the last requests; before there are enough, as was told."""
        counts = list(self._demand)
        if len(self._seen) == _SEEN or len(counts) != networks or not sum(counts):
            counts = [float(self._seen.count(network)) for network in range(networks)]
        whole = sum(counts)
        return tuple(count / whole for count in counts) if whole else (1 / networks,) * networks


class _Planning:
    """Makes one plan at a time: in a thread, or else at once, to be ready after `PLANNING_US`."""

    def __init__(self, *, threaded: bool = False) -> None:
        self._threaded = threaded
        self._asked: _Asked | None = None
        self._rests: tuple[tuple[int, ...], int] = ((), 0)
        """For which units the last plan was made, and until when no other one is."""
        self._made: Future[StreamPlan | None] = Future()
        self._ready_us = 0

    def forget(self) -> None:
        """Leave the plan that is being made, if any."""
        self._asked, self._rests = None, ((), 0)

    def may_begin(self, now_us: int, units: tuple[int, ...]) -> bool:
        """Return whether no plan is being made, and the last one for these units was a while ago."""
        return self._asked is None and (units != self._rests[0] or now_us >= self._rests[1])

    def begin(self, now_us: int, asked: _Asked, times: Times, paces: tuple[float, ...]) -> None:
        """Have a plan made for what times and paces are now."""
        problem, made = _stream_problem(asked, times), Future[StreamPlan | None]()

        def plan() -> None:
            try:
                made.set_result(_planned(problem, times, paces))
            except Exception as error:  # requests go on being served without a plan
                made.set_exception(error)

        self._asked, self._made = asked, made
        self._rests = asked.units, now_us + PAUSE_US
        if self._threaded:
            self._ready_us = now_us
            threading.Thread(target=plan, name="gapless plan", daemon=True).start()
        else:
            self._ready_us = now_us + PLANNING_US
            plan()

    def take(self, now_us: int) -> tuple[_Asked, StreamPlan | None] | None:
        """Return what is ready, and for what it was made; None: nothing."""
        if self._asked is None or not self._made.done() or now_us < self._ready_us:
            return None
        asked, self._asked = self._asked, None
        error = self._made.exception()
        if error is not None:
            _log.error("no plan could be made; a policy decides", exc_info=error)
            return asked, None
        return asked, self._made.result()


def _stream_problem(asked: _Asked, times: Times) -> Problem | None:
    """Return requests by their mix, as they are expected to be now; None: one can run nowhere."""
    found = [
        (network, share, expected_costs(str(network), times, network, 0, asked.units))
        for network, share in enumerate(asked.mix)
        if share > 0
    ]
    requests, tables = [], []
    for network, share, table in found:
        if table is None:
            return None
        tables.append(table)
        count = max(1, round(_WINDOW * share))
        requests += [JobRequest(name=f"{network}.{n}", network=str(network)) for n in range(count)]
    return problem_now(times, tables, Jobs(requests=tuple(requests), cuts=Cuts.ALL), ("makespan",))


def _planned(problem: Problem | None, times: Times, paces: tuple[float, ...]) -> StreamPlan | None:
    """Return the routes of the relaxation; None: some request has none, or a chunk of it is not held."""
    if problem is None:
        return None
    found = shares_of(problem, Deadline(_PLANNING_S))
    if found is None:
        return None
    bound_us, shares = found
    assert isinstance(problem.data, Jobs)
    routes: list[tuple[Route, ...]] = [()] * times.network_count
    until: list[tuple[float, ...]] = [()] * times.network_count
    times_us: dict[tuple[int, int, int, int], int] = {}
    for name, own in shares.items():
        network, taken = int(name), [pair for pair in own.items() if pair[1] > _LEAST_SHARE]
        routes[network] = tuple(tuple((stop, unit) for _, stop, unit in passage) for passage, _ in taken)
        whole = sum(share for _, share in taken)
        until[network] = tuple(accumulate(share / whole for _, share in taken))
        for start, stop, unit in {part for passage, _ in taken for part in passage}:
            time_us = times.chunk_us(network, start, stop, unit)
            if time_us is None:
                return None
            times_us[network, start, stop, unit] = time_us
    return StreamPlan(
        routes=tuple(routes),
        until=tuple(until),
        times_us=times_us,
        paces=paces,
        work_us=bound_us / len(problem.data.requests),
    )
