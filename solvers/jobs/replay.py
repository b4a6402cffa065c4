"""Schedules of requests played on a floating clock, from any event on, some thousand times a second.

For prices of units that keep to the condition of `solvers.contention`, every schedule has

    makespan = sum over the requests of their priced work + integral over time of the slack,

slack being 1 - sum over what runs of price x rate, never negative. So the priced work and the slack so far
bound a schedule that is only played in part, and the slack says where it can be better.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from math import inf
from operator import mul

from ...formulations.losses import MOST_LOSS_PERMILLE, Mark
from ..contention import Floats
from .passages import Instance, Part

Chunk = tuple[int, float, tuple[float, int], bool, int]
"""Unit, time alone, key and request (a unit serves the smallest first), whether it holds its unit: it stands
in the queue as soon as the chunk before it starts; and what it adds to the code of those that run."""

_MOST_KNOWN = 200_000
"""Sets whose speeds are remembered."""

Queue = list[tuple[float, int]]
"""Keys and requests, as a heap."""

Speeds = tuple[list[float], list[float], float]
"""By unit: microseconds for one of work, work in one microsecond; and the slack."""

Event = tuple[float, float, list[int], list[float], int, int, int]
"""After a chunk has ended and before another one starts: time, slack so far, request on each unit (-1:
none), work left on each, code of who runs; unit and request of the chunk that has ended."""


class Kinds:
    """What can run on a unit: chunks of a network that lose and take the same.

    A set of those that run is a number: the sum over units of (number of the kind + 1) x `weights[unit]`.
    """

    def __init__(self, instance: Instance) -> None:
        self._instance, self._sliced = instance, instance.losses is not None and any(instance.losses.sliced)
        self.found: list[tuple[int, Mark]] = [
            (network, (0, 0) if instance.losses is None else instance.mark(network, (0, 1, 0)))
            for network in range(0 if self._sliced else len(instance.networks))
        ]
        """Network and mark of each kind."""
        self._numbers: dict[tuple[int, Mark], int] = {}
        chunks = sum(len(borders) * (len(borders) - 1) // 2 for borders in instance.borders)
        # One more than there are kinds: where layers differ, each chunk may be one on each unit.
        self.base = 1 + (chunks * instance.unit_count if self._sliced else len(instance.networks))
        self.weights = [self.base**unit for unit in range(instance.unit_count)]

    def bits(self, network: int, part: Part) -> int:
        """Return what a chunk of a network adds to the number of a set."""
        number = network
        if self._sliced:
            kind = network, self._instance.mark(network, part)
            number = self._numbers.setdefault(kind, len(self.found))
            if number == len(self.found):
                self.found.append(kind)
        weight: int = self.weights[part[2]]
        return (number + 1) * weight


class Rates:
    """How fast each request runs on each unit, and what is lost, by what runs (`Kinds`)."""

    def __init__(self, instance: Instance, kinds: Kinds, prices: Floats | None) -> None:
        self._losses, self._kinds = instance.losses, kinds
        self._prices = None if prices is None else prices.tolist()
        self.known: dict[int, Speeds] = {}

    def of(self, code: int) -> Speeds:
        """Return the speeds of a set."""
        kinds = self._kinds
        numbers = [code // weight % kinds.base - 1 for weight in kinds.weights]
        running = [(unit, *kinds.found[number]) for unit, number in enumerate(numbers) if number >= 0]
        inverse, speed, worth = [1.0] * len(numbers), [0.0] * len(numbers), 0.0
        for unit, network, mark in running:
            rate = 1.0
            if self._losses is not None:
                loss = self._losses.loss
                lost = sum(loss(unit, mark, v, theirs) for v, _, theirs in running if v != unit)
                rate -= min(lost, MOST_LOSS_PERMILLE) / 1000
            inverse[unit], speed[unit] = 1 / rate, rate
            worth += 0.0 if self._prices is None else self._prices[network][unit] * rate
        if len(self.known) >= _MOST_KNOWN:
            self.known.clear()
        found = self.known[code] = inverse, speed, max(0.0, 1.0 - worth)
        return found


class Replay:
    """The chunks of all requests, and what happened when they were played last.

    `chunks`: by request. `events`: one for each chunk that ended, after the first one, which is the start.
    `ends`: by request and chunk, the number of the event with which it ended.
    """

    def __init__(self, instance: Instance, prices: Floats | None) -> None:
        self.instance, self.kinds = instance, Kinds(instance)
        self.rates = Rates(instance, self.kinds, prices)
        self.requests = range(len(instance.network_of))
        self.chunks: list[list[Chunk]] = [[] for _ in self.requests]
        self.events: list[Event] = []
        self.played = 0  # events
        self.ends: list[list[int]] = [[] for _ in self.requests]
        self._later = sorted((us, r) for r, us in enumerate(instance.release_us) if us)
        self._followers: list[list[int]] = [[] for _ in self.requests]
        for request, before in enumerate(instance.after):
            for other in before:
                self._followers[other].append(request)

    def begin(self) -> Event:
        """Return the event before everything."""
        units = self.instance.unit_count
        return 0.0, 0.0, [-1] * units, [inf] * units, 0, -1, -1

    def _queues(
        self, at: int, run: Sequence[int], now: float
    ) -> tuple[list[int], list[list[tuple[float, int]]]]:
        """Return how many chunks of each request have started at an event, and who waits for each unit."""
        begun: list[int] = []
        queues: list[list[tuple[float, int]]] = [[] for _ in run]
        ends = self.ends
        for request, own in enumerate(self.chunks):
            runs = request in run
            place = bisect_right(ends[request], at) + runs
            begun.append(place)
            if place < len(own):
                unit, _, entry, holds, _ = own[place]
                if holds if runs else place or self._here(request, at, now):
                    queues[unit].append(entry)
        for queue in queues:
            heapify(queue)
        return begun, queues

    def _here(self, request: int, at: int, now: float) -> bool:
        """Return whether the first chunk of a request may start at an event."""
        if self.instance.release_us[request] > now:
            return False
        return all(self.ends[other] and self.ends[other][-1] <= at for other in self.instance.after[request])

    def play(self, at: int, most: float) -> tuple[float, list[Event]]:
        """Return the makespan when everything is played from an event on, and the events behind it.

        `most`: the slack at which playing ends: the makespan is infinite then.
        """
        chunks, known = self.chunks, self.rates.known
        now, slack, run, left, code, unit, request = self.events[at] if at else self.begin()
        run, left, found = run.copy(), left.copy(), []
        begun, queues = self._queues(at, run, now)
        arrivals = [each for each in reversed(self._later) if each[0] > now]
        freed = self._touched(unit, request, begun) if at else range(len(run) - 1, -1, -1)
        remaining = sum(map(len, chunks)) - sum(begun) + len(run) - run.count(-1)
        while True:
            for unit in freed:
                queue = queues[unit]
                if run[unit] < 0 and queue:
                    if (request := queue[0][1]) not in run:
                        heappop(queue)
                    elif (request := self._before(queue, begun, left[run.index(request)], run)) < 0:
                        continue
                    run[unit] = request
                    own, place = chunks[request], begun[request] + 1
                    code += own[place - 1][4]
                    left[unit], begun[request] = own[place - 1][1], place
                    if place < len(own) and own[place][3]:
                        heappush(queues[own[place][0]], own[place][2])
            inverse, speed, loss = known.get(code) or self.rates.of(code)
            span = min(spans := list(map(mul, left, inverse)))
            arrives = bool(arrivals) and arrivals[-1][0] - now <= span
            if arrives:
                span = arrivals[-1][0] - now
            now, slack = now + span, slack + span * loss
            left = [work - span * pace for work, pace in zip(left, speed, strict=True)]
            if arrives:
                now, request = arrivals.pop()
                freed = self._enter([request], now, begun, run, queues)
                continue
            if slack > most:
                break
            unit = spans.index(span)
            request = run[unit]
            run[unit], left[unit] = -1, inf
            own, place = chunks[request], begun[request]
            code -= own[place - 1][4]
            found.append((now, slack, run.copy(), left.copy(), code, unit, request))
            if len(found) == remaining:
                self.played += remaining
                return now, found
            if place == len(own):
                freed = (unit, *self._enter(self._followers[request], now, begun, run, queues))
                continue
            other, _, entry, holds, _ = own[place]
            if not holds:
                heappush(queues[other], entry)
            freed = (other, unit) if other > unit else (unit, other)
        self.played += len(found)
        return inf, found

    def _before(self, queue: Queue, begun: Sequence[int], left: float, run: Sequence[int]) -> int:
        """Take out the next request whose chunk fits into what is left before one that holds the unit.

        -1: there is none.
        """
        for entry in sorted(queue):
            request = entry[1]
            if request not in run and self.chunks[request][begun[request]][1] <= left:
                queue.remove(entry)
                heapify(queue)
                return request
        return -1

    def _touched(self, unit: int, request: int, begun: Sequence[int]) -> tuple[int, ...]:
        """Return the units on which something may start when a chunk has ended, last unit first."""
        own, place = self.chunks[request], begun[request]
        if place < len(own):
            return tuple(sorted((unit, own[place][0]), reverse=True))
        firsts = {self.chunks[other][0][0] for other in self._followers[request]}
        return (unit, *sorted(firsts, reverse=True))

    def _enter(
        self,
        requests: Sequence[int],
        now: float,
        begun: Sequence[int],
        run: Sequence[int],
        queues: Sequence[Queue],
    ) -> tuple[int, ...]:
        """Put the first chunks of those requests that may start into queues; return their units."""
        units = []
        for request in requests:
            before = self.instance.after[request]
            if self.instance.release_us[request] <= now and all(
                begun[other] == len(self.chunks[other]) and other not in run for other in before
            ):
                unit, _, entry, _, _ = self.chunks[request][0]
                heappush(queues[unit], entry)
                units.append(unit)
        return tuple(sorted(units, reverse=True))
