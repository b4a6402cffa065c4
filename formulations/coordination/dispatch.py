"""The dispatcher: holds what waits, asks the policy, and knows which unit does what.

The event simulation and the coordinator of real workers are both built on it, so that a policy cannot tell
them apart. It has no clock, and starts nothing itself: it says what to start.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from time import perf_counter_ns

from ..errors import InvalidInputError
from .latency import shortest_latency_us
from .policy import Conduct, Decision, Place, Policy, UnitState, Waiting
from .times import Times


class Late(StrEnum):
    """What becomes of a request that cannot meet its deadline any more, by expected times.

    DROP
        It is answered with nothing. The released code of Band does that; its paper is silent.
    KEEP
        It runs all the same.
    """

    DROP = "drop"
    KEEP = "keep"


@dataclass(frozen=True, slots=True)
class Start:
    """A chunk that is to start now.

    `stop`, `unit`: see `Decision`.
    """

    number: int  # of the start; unique
    request: Waiting  # the request as it waited: `done` is the first section of the chunk
    stop: int
    unit: int
    at_us: int
    expected_us: int  # how long it is expected to take


class Dispatcher:
    """What waits, what runs, and who decides. Times are microseconds of whoever owns it.

    `demand`: see `Policy.begin`; empty: as many requests of each network. `exclusive`: by unit, the units
    that share a core with it: only one of them runs at a time. Empty: none do. `late`: what becomes of
    requests that cannot meet their deadline any more. `remembered`: how many of the last decisions have
    their time in `decisions_ns`.
    """

    def __init__(
        self,
        policy: Policy,
        times: Times,
        *,
        demand: Sequence[float] = (),
        exclusive: Sequence[frozenset[int]] = (),
        late: Late = Late.KEEP,
        remembered: int = 100_000,
    ) -> None:
        self.policy = policy
        self.times = times
        self.late = late
        # how long each call of the policy took that decided something, most recent last
        self.decisions_ns: deque[int] = deque(maxlen=remembered)
        self._queue: list[Waiting] = []
        self._running: list[dict[int, Start]] = [{} for _ in times.units]
        self._available = [True] * len(times.units)
        self._rivals = [tuple(exclusive[u]) if exclusive else () for u in range(len(times.units))]
        self._starts = 0
        self.prepare(demand)

    def prepare(self, demand: Sequence[float] = ()) -> None:
        """Let the policy know the networks: at the start, and when `times` has more of them."""
        self.policy.begin(self.times, demand or (1.0,) * self.times.network_count)

    @property
    def queue(self) -> Sequence[Waiting]:
        """What waits, in order."""
        return self._queue

    def running(self, unit: int) -> tuple[Start, ...]:
        """Return what a unit runs."""
        return tuple(self._running[unit].values())

    def available(self, unit: int) -> bool:
        """Return whether a unit may be used."""
        return self._available[unit]

    def submit(self, request: Waiting) -> None:
        """Take a request: it waits behind all others."""
        self._queue.append(request)

    def cancel(self, number: int) -> bool:
        """Take a request out that waits; return whether it did."""
        before = len(self._queue)
        self._queue = [waiting for waiting in self._queue if waiting.number != number]
        return len(self._queue) < before

    def drop_late(self, now_us: int) -> list[Waiting]:
        """Take out and return the requests that are to be dropped at this time."""
        if not any(map(self.may_drop, self._queue)):
            return []
        kept: list[Waiting] = []
        dropped: list[Waiting] = []
        for waiting in self._queue:
            late = self.may_drop(waiting) and self._too_late(waiting, now_us)
            (dropped if late else kept).append(waiting)
        self._queue = kept
        return dropped

    def may_drop(self, waiting: Waiting) -> bool:
        """Return whether a request is dropped when it cannot meet its deadline."""
        return waiting.deadline_us is not None and (waiting.expires or self.late is Late.DROP)

    def decide(self, now_us: int) -> Iterator[Start]:
        """Yield what to start now: the units count as busy from then on.

        The policy is first shown the requests of the smallest priority number; while it starts none of them,
        those of the next number as well.

        Raises InvalidInputError: the policy wants what cannot be; the message says what.
        """
        while self._queue:
            states = self.states(now_us)
            before_ns = perf_counter_ns()
            decision = self._decision(now_us, states)
            took_ns = perf_counter_ns() - before_ns
            if decision is None:
                return
            self.decisions_ns.append(took_ns)
            yield self._start(decision, states, now_us)

    def _decision(self, now_us: int, states: Sequence[UnitState]) -> Decision | None:
        levels = {waiting.priority for waiting in self._queue}
        if len(levels) == 1:
            return self.policy.next(now_us, self._queue, states, self.times)
        for level in sorted(levels):
            urgent = [waiting for waiting in self._queue if waiting.priority <= level]
            if (decision := self.policy.next(now_us, urgent, states, self.times)) is not None:
                return decision
        return None

    def states(self, now_us: int) -> list[UnitState]:
        """Return the units as policies see them."""
        return [
            self._state(unit, now_us) if self._running[unit] or self._rivals[unit] else UnitState(available)
            for unit, available in enumerate(self._available)
        ]

    def finished(self, start: Start, took_us: float) -> Waiting | None:
        """Take note that a chunk is done; return what is left of its request, which waits again, or None."""
        del self._running[start.unit][start.number]
        request = start.request
        self.policy.ended(request)
        self.times.observe(request.network, request.done, start.stop, start.unit, took_us)
        if start.stop == self.times.sections(request.network):
            return None
        rest = request._replace(done=start.stop)
        self._put(rest, self.policy.requeue(rest))
        return rest

    def put_back(self, start: Start) -> None:
        """Take note that a chunk did not end: its request waits again, ahead of all others (Band, 4.3.1)."""
        del self._running[start.unit][start.number]
        self.policy.ended(start.request)
        self._put(start.request, Place.HEAD)

    def withdraw(self, unit: int) -> tuple[Start, ...]:
        """Take a unit away; return what it runs, for whoever owns this to end it and put it back."""
        self._available[unit] = False
        self.policy.changed(self.states(0))
        return self.running(unit)

    def restore(self, unit: int) -> None:
        """Give a unit back."""
        self._available[unit] = True
        self.policy.changed(self.states(0))

    def _state(self, unit: int, now_us: int) -> UnitState:
        """Return the state of a unit; it waits for those that share a core with it, too."""
        starts = [start for each in (unit, *self._rivals[unit]) for start in self._running[each].values()]
        last_us = max((start.at_us + start.expected_us for start in starts), default=now_us)
        return UnitState(self._available[unit], len(starts), max(0, last_us - now_us))

    def _put(self, request: Waiting, place: Place) -> None:
        if place is Place.HEAD:
            self._queue.insert(0, request)
        else:
            self._queue.append(request)

    def _too_late(self, waiting: Waiting, now_us: int) -> bool:
        if waiting.deadline_us is None:
            return False
        least_us = shortest_latency_us(self.times, waiting.network, waiting.done)
        return least_us is not None and now_us + least_us > waiting.deadline_us

    def _start(self, decision: Decision, states: Sequence[UnitState], now_us: int) -> Start:
        number, stop, unit = decision
        index = next((i for i, waiting in enumerate(self._queue) if waiting.number == number), None)
        if index is None:
            raise self._refused(decision, "no such request waits")
        request = self._queue[index]
        if not 0 <= unit < len(states) or not states[unit].available:
            raise self._refused(decision, "the unit is not there, or was taken away")
        if states[unit].running and self.policy.conduct is not Conduct.ALONE:
            raise self._refused(decision, "the unit is busy")
        expected_us = self.times.chunk_us(request.network, request.done, stop, unit)
        if expected_us is None:
            raise self._refused(decision, f"the unit cannot run the sections from {request.done} on to there")
        if not self.times.may_start(request.network, request.done, stop, unit):
            raise self._refused(decision, f"sections {request.done} to {stop - 1} are not loaded on the unit")
        del self._queue[index]
        self._starts += 1
        start = Start(self._starts, request, stop, unit, now_us, expected_us)
        self._running[unit][start.number] = start
        return start

    def _refused(self, decision: Decision, why: str) -> InvalidInputError:
        return InvalidInputError(
            f"policy {self.policy.name!r} decided {decision}, which cannot be: {why}; waiting: "
            f"requests {', '.join(str(waiting.number) for waiting in self._queue[:20])}"
        )
