"""Policies that look at what waits and at what is expected: Band's, and the classics beside them.

All of them weigh a request by `soonest`: how soon it can be done, with the waiting for units. None of them
interrupts a chunk.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf

from ...formulations.coordination.policy import Conduct, Decision, Place, Policy, UnitState, Waiting
from ...formulations.coordination.sections import Fallback
from ...formulations.coordination.times import Option, Times, Way, shortest_latency_us, soonest


class _Ranked(Policy):
    """Takes requests in some order, and starts the first whose best way begins on an idle unit.

    Those before it keep their unit: what they are going to take is added to its waiting time.
    """

    def __init__(
        self, *, conduct: Conduct = Conduct.CHUNKS, fallback: Fallback = Fallback.BACK_AND_FORTH
    ) -> None:
        self.conduct = conduct
        self.fallback = fallback
        if conduct is Conduct.WHOLE:
            self.name = f"{self.name}-whole"

    def order(self, now_us: int, queue: Sequence[Waiting], waits: Waits, times: Times) -> Iterable[Waiting]:
        """Return what waits, in the order in which it is considered."""
        raise NotImplementedError

    def next(
        self, now_us: int, queue: Sequence[Waiting], units: Sequence[UnitState], times: Times
    ) -> Decision | None:
        """Return the first decision that an idle unit can carry out."""
        if not any(state.available and not state.running for state in units):
            return None
        waits = Waits(units, times)
        for request in self.order(now_us, queue, waits, times):
            found = waits.soonest(request)
            if found is None:
                continue
            stop, unit, time_us = found.first
            if not units[unit].running:
                return Decision(request.number, stop, unit)
            waits.add(unit, time_us)
        return None


class Waits:
    """How long each unit is taken, and with it the shortest way of each request; for one decision."""

    def __init__(self, units: Sequence[UnitState], times: Times) -> None:
        self._wait_us = [state.wait_us if state.available else None for state in units]
        self._times = times
        self._memo: dict[tuple[int, int], Way | None] = {}

    def soonest(self, request: Waiting) -> Way | None:
        """Return how a request is done soonest from now; None: no unit can run it."""
        key = request.network, request.done
        if key not in self._memo:
            self._memo[key] = soonest(self._times, *key, self._wait_us)
        return self._memo[key]

    def add(self, unit: int, time_us: int) -> None:
        """Count what is going to run on a unit."""
        before = self._wait_us[unit]
        assert before is not None
        self._wait_us[unit] = before + time_us
        # A way that avoids the unit is as quick as before, and no other has become quicker.
        for key in [key for key, way in self._memo.items() if way is not None and way.units >> unit & 1]:
            del self._memo[key]


class LeastSlack(_Ranked):
    """Band's default, LST: who has least time to lose comes first.

    slack = enqueued + deadline - now - expected latency (Fig. 12 forgets how long a request has waited; the
    released code has it). Requests without a deadline come last, in their order.
    """

    name = "lst"

    def ranked(
        self, now_us: int, queue: Sequence[Waiting], units: Sequence[UnitState], times: Times
    ) -> list[Waiting]:
        """Return what waits by slack, for other policies."""
        return list(self.order(now_us, queue, Waits(units, times), times))

    def order(self, now_us: int, queue: Sequence[Waiting], waits: Waits, times: Times) -> Iterable[Waiting]:
        """Return what waits by slack."""
        slack: dict[tuple[int, int], float] = {}

        def key(request: Waiting) -> tuple[float, int]:
            if request.deadline_us is None:
                return inf, request.number
            left = request.network, request.done
            if left not in slack:
                found = waits.soonest(request)
                slack[left] = inf if found is None else found.latency_us
            return request.deadline_us - slack[left], request.number

        return sorted(queue, key=key)


class EarliestDeadline(_Ranked):
    """Who has to be done first comes first; those without a deadline last."""

    name = "edf"

    def order(self, now_us: int, queue: Sequence[Waiting], waits: Waits, times: Times) -> Iterable[Waiting]:
        """Return what waits by deadline."""
        return sorted(queue, key=lambda r: (inf if r.deadline_us is None else r.deadline_us, r.number))


class _ByLength(_Ranked):
    """Takes requests by how long they are expected to take; equal ones in the order of their numbers."""

    sign: int

    def order(self, now_us: int, queue: Sequence[Waiting], waits: Waits, times: Times) -> Iterable[Waiting]:
        """Return what waits by its expected latency."""

        def key(request: Waiting) -> tuple[float, int]:
            found = waits.soonest(request)
            return (self.sign * found.latency_us if found else inf), request.number

        return sorted(queue, key=key)


class ShortestFirst(_ByLength):
    """What is expected to be done soonest comes first: least mean latency, long requests may starve."""

    name = "shortest"
    sign = 1


class LongestFirst(_ByLength):
    """SEL: of the shortest expected latencies the largest comes first, which keeps frames short.

    It is in the released code of Band ("shortest expected latency") and not named in the paper.
    """

    name = "sel"
    sign = -1


class RoundRobin(_Ranked):
    """Requests in their order, each on the idle unit that is quickest with a chunk of it."""

    name = "round-robin"

    def next(
        self, now_us: int, queue: Sequence[Waiting], units: Sequence[UnitState], times: Times
    ) -> Decision | None:
        """Return the quickest idle unit for the first request that has one; the longest chunk on it."""
        for request in queue:
            best: tuple[int, int, Option] | None = None
            for option in times.options(request.network, request.done):
                if units[option.unit].idle and (best is None or (-option.stop, option.time_us) < best[:2]):
                    best = -option.stop, option.time_us, option
            if best is not None:
                return Decision(request.number, best[2].stop, best[2].unit)
        return None

    def requeue(self, request: Waiting) -> Place:
        """Return the tail: others come first."""
        return Place.TAIL


class EarliestFinish(_Ranked):
    """HEFT with reservation: by upward rank, each request keeps the unit that finishes it soonest.

    The rank is the time of what is left, as the mean over the units; larger ranks come first (Topcuoglu et
    al., 2002). A request waits for its unit although another is idle, if it is done sooner that way.
    """

    name = "heft"

    def order(self, now_us: int, queue: Sequence[Waiting], waits: Waits, times: Times) -> Iterable[Waiting]:
        """Return what waits by the time that it takes alone."""
        ranks: dict[tuple[int, int], float] = {}

        def key(request: Waiting) -> tuple[float, int]:
            left = request.network, request.done
            if left not in ranks:
                ranks[left] = shortest_latency_us(times, *left) or inf
            return -ranks[left], request.number

        return sorted(queue, key=key)
