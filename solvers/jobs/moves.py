"""Changes of a schedule, drawn where it loses most."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from math import log
from random import Random

from .passages import Part, Passage
from .walk import Change, Walk

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
