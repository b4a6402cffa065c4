"""A walk over schedules: changes drawn where it loses most, and the best schedules so far."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, log
from random import Random

from ..contention import Floats
from .passages import Fine, Instance, Part, Passage
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


_DIRECTED = 0.8
"""Share of the changes at a moment that is drawn by its slack."""

_BEFORE, _BEHIND = 0.2, 0.15
"""Share of the directed changes that take the chunk before the one at the moment, or the one behind."""

_IDLE = 0.6
"""Share of the other units that are drawn among those that are idle at the moment."""

_NEAR, _STEP = 0.6, 1.5
"""Share of the borders that are moved a little, and by how many more places than one in the mean."""

_THERE = 0.5
"""Share of the splits at the layer that runs at the moment."""

_JOINED = 0.7
"""Share of the stretches that are joined with neighbours on the same unit."""

_STRETCH = 2.0
"""Mean number of chunks that a stretch has beside its first."""

_AHEAD, _STAYS = 0.4, 0.8
"""Share of the interrupted chunks that end before the request comes, for which the unit is held then; the
others go on when it has come, up to the second share on the same unit."""


class Moves:
    """Draws changes of the schedule of a walk.

    `pool`: passages by network, to take stretches from.
    """

    def __init__(self, walk: Walk, random: Random, pool: Sequence[Sequence[Passage]]) -> None:
        self._walk, self._random = walk, random.random
        self.pool = pool
        network_of = walk.instance.network_of
        self._twins = [
            [other for other in walk.requests if other != request and network_of[other] == network]
            for request, network in enumerate(network_of)
        ]
        self._units = range(walk.instance.unit_count)
        shares: list[tuple[float, Callable[[int, int, int], tuple[Change, ...]]]] = [
            (0.22, self._border),
            (0.12, self._split),
            (0.10, self._island),
            (0.12, self._merge),
            (0.07, self._other_unit),
            (0.09, self._interrupt),
            (0.02, self._key),
            (0.10, self._hold),
            (0.16, self._splice),
        ]
        self._until, self._kinds, total = [], [], 0.0
        for share, kind in shares:
            total += share
            self._until.append(total)
            self._kinds.append(kind)
        self._until[-1] = 1.0

    def draw(self) -> tuple[Change, ...]:
        """Return changes to make together; none: what was drawn is none."""
        request, place, event = self._place()
        return self._kinds[bisect_right(self._until, self._random())](request, place, event)

    def _place(self) -> tuple[int, int, int]:
        """Return a request, one of its chunks, and an event with whose interval it was chosen; 0: none."""
        random, walk = self._random, self._walk
        count = len(walk.chunks)
        total = walk.slack_until[-1]
        if total <= 0 or random() >= _DIRECTED:
            request = int(random() * count)
            return request, int(random() * len(walk.chunks[request])), 0
        event = bisect_left(walk.slack_until, random() * total) or 1
        while True:
            request = int(random() * count)
            ends = walk.ends[request]
            place = bisect_right(ends, event - 1)
            if place < len(ends):
                break
        draw = random()
        if draw < _BEFORE:
            place = max(0, place - 1)
        elif draw < _BEFORE + _BEHIND:
            place = min(len(ends) - 1, place + 1)
        return request, place, event

    def _unit(self, event: int, but: int) -> int:
        """Return a unit other than one, idle at the moment if there is such a one."""
        random = self._random
        if event and random() < _IDLE:
            run, ended = self._walk.events[event][2], self._walk.events[event][5]
            idle = [unit for unit in self._units if run[unit] < 0 and unit not in (ended, but)]
            if idle:
                return idle[int(random() * len(idle))]
        unit = int(random() * (len(self._units) - 1))
        return unit + (unit >= but)

    def _steps(self, mean: float) -> int:
        return int(-mean * log(1.0 - self._random()))

    def _border(self, request: int, place: int, event: int) -> tuple[Change, ...]:
        random, parts = self._random, self._walk.parts[request]
        if len(parts) < 2:
            return ()
        place = min(place, len(parts) - 2)
        (start, border, unit), (_, stop, other) = parts[place : place + 2]
        if random() < _NEAR:
            step = 1 + self._steps(_STEP)
            middle = border + step if random() < 0.5 else border - step
        else:
            middle = start + 1 + int(random() * (stop - start - 1))
        if not start < middle < stop or middle == border:
            return ()
        reach = self._walk.networks[request].reach
        if middle > reach[unit][start] or stop > reach[other][middle]:
            return ()
        return (Change(request, place, place + 2, [(start, middle, unit), (middle, stop, other)]),)

    def _middle(self, request: int, place: int, event: int) -> int:
        """Return a border inside a chunk; it has one."""
        walk, random = self._walk, self._random
        start, stop, unit = walk.parts[request][place]
        if event and random() < _THERE:
            run, left = walk.events[event - 1][2], walk.events[event - 1][3]
            if run[unit] == request:
                return min(max(self._reached(request, place, left[unit]), start + 1), stop - 1)
        return start + 1 + int(random() * (stop - start - 1))

    def _reached(self, request: int, place: int, left: float) -> int:
        """Return the next border of a chunk that runs when so much of it is left."""
        walk, (start, stop, unit) = self._walk, self._walk.parts[request][place]
        network = walk.networks[request]
        done = network.time_us((start, stop, unit)) - left
        return bisect_right(network.until[unit], network.since[unit][start] + done)

    def _split(self, request: int, place: int, event: int) -> tuple[Change, ...]:
        random = self._random
        start, stop, unit = self._walk.parts[request][place]
        if stop - start < 2:
            return ()
        middle, draw = self._middle(request, place, event), random()
        first = second = unit
        if draw >= 0.3 and len(self._units) > 1:
            other = self._unit(event, unit)
            first, second = (other, unit) if draw < 0.65 else (unit, other)
        return self._checked(request, place, place + 1, [(start, middle, first), (middle, stop, second)])

    def _island(self, request: int, place: int, event: int) -> tuple[Change, ...]:
        start, stop, unit = self._walk.parts[request][place]
        if stop - start < 3 or len(self._units) < 2:
            return ()
        first = self._middle(request, place, event)
        second = start + 1 + int(self._random() * (stop - start - 1))
        if first == second:
            return ()
        low, high = min(first, second), max(first, second)
        island = (low, high, self._unit(event, unit))
        return self._checked(request, place, place + 1, [(start, low, unit), island, (high, stop, unit)])

    def _merge(self, request: int, place: int, event: int) -> tuple[Change, ...]:
        parts = self._walk.parts[request]
        if len(parts) < 2:
            return ()
        place = min(place, len(parts) - 2)
        unit = parts[place + (self._random() < 0.5)][2]
        merged = (parts[place][0], parts[place + 1][1], unit)
        return self._checked(request, place, place + 2, [merged])

    def _other_unit(self, request: int, place: int, event: int) -> tuple[Change, ...]:
        start, stop, unit = self._walk.parts[request][place]
        if len(self._units) < 2:
            return ()
        return self._checked(request, place, place + 1, [(start, stop, self._unit(event, unit))])

    def _interrupt(self, request: int, place: int, event: int) -> tuple[Change, ...]:
        """Break the chunk that has the unit which a request wants whose chunk before has just ended."""
        walk = self._walk
        _, _, run, left, _, _, waiting = walk.events[max(event - 1, 0)]
        if event < 2 or (behind := bisect_right(walk.ends[waiting], event - 1)) >= len(walk.ends[waiting]):
            return ()
        unit = walk.parts[waiting][behind][2]
        request = run[unit]
        if request < 0:
            return ()
        place = bisect_right(walk.ends[request], event - 1)
        middle = self._reached(request, place, left[unit])
        start, stop, _ = walk.parts[request][place]
        if not start < middle < stop:
            return ()
        draw = self._random()
        hold: tuple[Change, ...] = ()
        if draw < _AHEAD and middle - 1 > start:
            middle -= 1
            part = walk.parts[waiting][behind]
            if part[0] not in walk.holds[waiting]:
                hold = (Change(waiting, behind, behind + 1, [part], held=True),)
        other = self._unit(event, unit) if draw > _STAYS and len(self._units) > 1 else unit
        parts = [(start, middle, unit), (middle, stop, other)]
        return (*self._checked(request, place, place + 1, parts), *hold)

    def _key(self, request: int, place: int, event: int) -> tuple[Change, ...]:
        random, walk = self._random, self._walk
        own = walk.chunks[request]
        last = place + 1 if random() < 0.3 else len(own)
        shift = (0.05 if random() < 0.5 else 0.3) * walk.events[walk.ends[request][-1]][0]
        shift *= 2 * random() - 1
        keys = [chunk[2][0] + shift for chunk in own[place:last]]
        return (Change(request, place, last, walk.parts[request][place:last], keys),)

    def _hold(self, request: int, place: int, event: int) -> tuple[Change, ...]:
        if not place:
            return ()
        return (Change(request, place, place + 1, self._walk.parts[request][place : place + 1], held=True),)

    def _splice(self, request: int, place: int, event: int) -> tuple[Change, ...]:
        random, walk = self._random, self._walk
        donor = self._donor(request)
        parts, draw = walk.parts[request], random()
        first, last = place, len(parts)
        if draw < 0.15:
            first = 0
        elif draw < 0.35:
            first, last = 0, place + 1
        elif draw >= 0.6:
            last = min(last, place + 1 + self._steps(_STRETCH))
        low, high = parts[first][0], parts[last - 1][1]
        new = [(max(i, low), min(j, high), u) for i, j, u in donor if j > low and i < high]
        reach = walk.networks[request].reach
        if random() < _JOINED:
            start, _, unit = parts[first - 1]
            if first and unit == new[0][2] and new[0][1] <= reach[unit][start]:
                first -= 1
                new[0] = (start, new[0][1], unit)
            if last < len(parts) and parts[last][2] == new[-1][2]:
                start, unit, stop = new[-1][0], new[-1][2], parts[last][1]
                if stop <= reach[unit][start]:
                    new[-1] = (start, stop, unit)
                    last += 1
        return () if new == parts[first:last] else (Change(request, first, last, new),)

    def _donor(self, request: int) -> Sequence[Part]:
        random, twins = self._random, self._twins[request]
        pool = self.pool[self._walk.instance.network_of[request]]
        if twins and (not pool or random() < 0.5):
            return self._walk.parts[twins[int(random() * len(twins))]]
        return pool[int(random() * len(pool))]

    def _checked(self, request: int, first: int, last: int, parts: list[Part]) -> tuple[Change, ...]:
        reach = self._walk.networks[request].reach
        if any(stop > reach[unit][start] for start, stop, unit in parts):
            return ()
        return (Change(request, first, last, parts),)
