"""A walk over schedules: what is there now, what a change makes of it, and the best one so far."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf

from ..simplex import Floats
from .fines import Fine
from .instance import Instance
from .passages import Part, Passage
from .replay import Chunk, Event, Rates, Replay

_RANK_US = 10**9
"""More than any request takes: so far apart are the keys of requests of different ranks."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A schedule that can be gone back to."""

    value: float  # makespan, and what is broken
    order: tuple[int, ...]  # a request for each chunk, in the order in which units serve them
    parts: tuple[tuple[Part, ...], ...]  # by request
    chunks: tuple[tuple[Chunk, ...], ...]
    holds: tuple[frozenset[int], ...]


@dataclass(frozen=True, slots=True)
class Change:
    """Chunks [first, last) of a request are replaced, or chunk `first` holds its unit where it did not.

    `keys`: of the new chunks; None: they follow from the first one.
    """

    request: int
    first: int
    last: int
    parts: list[Part]
    keys: list[float] | None = None
    held: bool = False  # whether the hold of the first chunk is toggled


class Walk(Replay):
    """Schedules one after the other, each a change away from the one before.

    `fine`: what a schedule breaks, as a time that is added to its makespan, from its order and its chunks;
    None: nothing can be broken. `scalar`: what stands for the makespan where more is asked, never less than
    it, from the ends of the requests and the time of all chunks.
    """

    def __init__(
        self,
        instance: Instance,
        prices: Floats | None = None,
        *,
        fine: Fine | None = None,
        scalar: Callable[[Sequence[float], float], float] | None = None,
    ) -> None:
        super().__init__(instance, prices)
        self.networks = [instance.networks[network] for network in instance.network_of]
        self.parts: list[list[Part]] = [[] for _ in self.requests]
        self.holds: list[set[int]] = [set() for _ in self.requests]
        self.makespan = self.value = inf
        self._fine, self._scalar, self._once = fine, scalar, instance.visits.once
        self.slack_until: list[float] = []  # by event
        self.work = 0.0  # priced
        self._prices = [[0.0] * instance.unit_count for _ in instance.networks]
        self.replays = 0
        self._ranks: Sequence[int] = ()
        self.price(prices)

    def price(self, prices: Floats | None) -> None:
        """Take other prices; the schedule stays."""
        size, units = len(self.instance.networks), self.instance.unit_count
        self._prices = [[0.0] * units] * size if prices is None else prices.tolist()
        self.rates = Rates(self.instance, self.kinds, prices)
        if self.events:
            self._all()

    def _worth(self, request: int, parts: Sequence[Part]) -> float:
        price, times = self._prices[self.instance.network_of[request]], self.networks[request].time_us
        return sum([price[part[2]] * times(part) for part in parts])

    def start(self, passages: Sequence[Passage], ranks: Sequence[int] | None = None) -> float:
        """Begin with a passage for each request; return the value.

        `ranks`: who goes first, by request; None: the longest rest.
        """
        self._ranks = [0] * len(passages) if ranks is None else ranks
        for request, passage in enumerate(passages):
            self._list(request, passage)
        return self._all()

    def follow(self, order: Sequence[int], parts: Sequence[Passage], *, hold: bool) -> float:
        """Begin with passages whose chunks are served in a given order; return the value.

        `hold`: units wait for the next one of the order whose predecessor runs, also where another one could
        begin. For others of the order they do not wait, so that a schedule may be a little different.
        """
        places: list[list[float]] = [[] for _ in self.requests]
        for place, request in enumerate(order):
            places[request].append(float(place))
        for request, passage in enumerate(parts):
            self.parts[request] = list(passage)
            self.holds[request] = {part[0] for part in passage[1:]} if hold else set()
            self.chunks[request] = self._made(request, passage, places[request])
        return self._all()

    def _list(self, request: int, passage: Passage) -> None:
        """Give a request chunks whose keys are its rank, and what is left to do; the longest goes first."""
        times = [self.networks[request].time_us(part) for part in passage]
        left, found = sum(times) - _RANK_US * self._ranks[request], list[Chunk]()
        network = self.instance.network_of[request]
        for part, time in zip(passage, times, strict=True):
            bits = self.kinds.bits(network, part)
            found.append((part[2], float(time), (-float(left), request), False, bits))
            left -= time
        self.parts[request], self.holds[request], self.chunks[request] = list(passage), set(), found

    def _all(self) -> float:
        """Play everything."""
        self.events, self.slack_until = [self.begin()], [0.0]
        self._again(inf)
        return self.value

    def _again(self, most: float) -> bool:
        """Play everything; take it in and return True if the makespan is at most so large."""
        work = sum(self._worth(request, self.parts[request]) for request in self.requests)
        if work > most:
            return False
        ends, self.ends = self.ends, [[] for _ in self.requests]
        makespan, found = self.play(0, most - work)
        self.replays += 1
        if makespan > most or not self._take(0, makespan, found, most):
            self.ends = ends
            return False
        self.work = work
        return True

    def reroute(self, request: int, passage: Passage, most: float) -> bool:
        """Give a request another passage if the value is at most so large then."""
        old = self.parts[request], self.chunks[request], self.holds[request]
        self._list(request, passage)
        if self._again(most):
            return True
        self.parts[request], self.chunks[request], self.holds[request] = old
        return False

    def order(self) -> tuple[int, ...]:
        """Return a request for each chunk, in the order of their ends, which is that of each unit."""
        return tuple(event[6] for event in self.events[1:])

    def keep(self) -> Kept:
        """Return the schedule to go back to."""
        return Kept(
            self.value,
            self.order(),
            tuple(map(tuple, self.parts)),
            tuple(map(tuple, self.chunks)),
            tuple(map(frozenset, self.holds)),
        )

    def go_back(self, kept: Kept) -> None:
        """Go on from a schedule that was kept."""
        self.parts = [list(own) for own in kept.parts]
        bits, network_of = self.kinds.bits, self.instance.network_of
        self.chunks = [
            [(*chunk[:4], bits(network_of[request], part)) for chunk, part in zip(own, parts, strict=True)]
            for request, (own, parts) in enumerate(zip(kept.chunks, kept.parts, strict=True))
        ]
        self.holds = [set(own) for own in kept.holds]
        self._all()

    def _take(self, at: int, makespan: float, found: Sequence[Event], most: float) -> bool:
        """Take in what was played from an event on, if it is at most so bad with what it breaks."""
        before = self.ends, self.events, self.slack_until
        if self._fine is not None or self._scalar is not None:
            self.ends = [own.copy() for own in self.ends]
            self.events, self.slack_until = self.events.copy(), self.slack_until.copy()
        ends = self.ends
        for own in ends:
            if own and own[-1] > at:
                del own[bisect_right(own, at) :]
        del self.events[at + 1 :]
        del self.slack_until[at + 1 :]
        self.events += found
        self.slack_until += [event[1] for event in found]
        for number, event in enumerate(found, at + 1):
            ends[event[6]].append(number)
        value = makespan if self._scalar is None else self._scalar(self._done_at(), self._alone())
        value += 0.0 if self._fine is None else self._fine(self.order(), self.parts)
        if value > most:
            self.ends, self.events, self.slack_until = before
            return False
        self.makespan, self.value = makespan, value
        return True

    def _done_at(self) -> list[float]:
        """Return when each request is done."""
        return [self.events[own[-1]][0] for own in self.ends]

    def _alone(self) -> float:
        """Return what all chunks take alone."""
        return sum(chunk[1] for own in self.chunks for chunk in own)

    def attempt(self, changes: Sequence[Change], most: float) -> bool:
        """Make changes of different requests if the value is at most so large then; return whether."""
        at, work, made = len(self.events), self.work, []
        for change in changes:
            request, first, last, parts = change.request, change.first, change.last, change.parts
            old = self.parts[request]
            new = old[:first] + parts + old[last:]
            if self._once and not self.instance.visits.allows(part[2] for part in new):
                return False
            work += self._worth(request, parts) - self._worth(request, old[first:last])
            early = parts[0][0] in self.holds[request] or change.held
            at = min(at, self._event_before(request, first, early=early))
            made.append((change, new, old, self.chunks[request]))
        if work > most:
            return False
        for change, new, _, chunks in made:
            request, first, last = change.request, change.first, change.last
            if change.held:
                self.holds[request].symmetric_difference_update((change.parts[0][0],))
            keys = change.keys or self._keys(request, first, last, change.parts)
            middle = self._made(request, change.parts, keys)
            self.chunks[request] = chunks[:first] + middle + chunks[last:]
            self.parts[request] = new
        makespan, found = self.play(at, most - work)
        self.replays += 1
        if makespan <= most and self._take(at, makespan, found, most):
            self.work = work
            return True
        for change, _, old, chunks in made:
            self.chunks[change.request], self.parts[change.request] = chunks, old
            if change.held:
                self.holds[change.request].symmetric_difference_update((change.parts[0][0],))
        return False

    def _event_before(self, request: int, first: int, *, early: bool) -> int:
        """Return the last event that a change from a chunk on leaves as it is."""
        before = first - 1 - early
        return self.ends[request][before] if before >= 0 else 0

    def _keys(self, request: int, first: int, last: int, parts: Sequence[Part]) -> list[float]:
        own = self.chunks[request]
        if len(parts) == last - first:
            return [own[place][2][0] for place in range(first, last)]
        key, times, found = own[first][2][0], self.networks[request].time_us, []
        for part in parts:
            found.append(key)
            key += times(part)
        return found

    def _made(self, request: int, parts: Sequence[Part], keys: Sequence[float]) -> list[Chunk]:
        times, holds = self.networks[request].time_us, self.holds[request]
        network, bits = self.instance.network_of[request], self.kinds.bits
        return [
            (part[2], float(times(part)), (key, request), part[0] in holds, bits(network, part))
            for part, key in zip(parts, keys, strict=True)
        ]
