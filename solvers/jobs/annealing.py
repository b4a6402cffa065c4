"""List schedules, and simulated annealing from them: chunks move, requests go other ways."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import exp
from random import Random

from ...formulations.jobs.space import Route
from ..protocol import NEVER, Deadline
from .playing import Play, Sequenced, Step

STEPS = 700
"""Moves of one round for each chunk."""

_WARM, _COLD = 0.03, 0.0003
"""Temperatures at the beginning and at the end of a round, as shares of the value it begins with."""

_REROUTED = 0.2
"""Share of the moves that give a request another way."""

_ALTERED = 0.3
"""Share of the moves that change one chunk: its unit, or where it ends."""

_FINE = 3.0
"""What each broken rule counts, times the value that a round begins with."""

_ASK_EVERY = 64
"""Moves between two looks at the clock."""


def list_schedules(play: Play) -> Iterator[Sequenced]:
    """Yield what requests in some orders give, each on the way on which it is done first (Band, 4.3.1).

    In the order of the problem, the longest first, the shortest first, and by deadlines; none stands before
    what it waits for.
    """
    requests = range(len(play.release_us))
    alone = [sum(s.time_us for s in play.steps(r, play.routes_of(r)[0])) for r in requests]
    behind = alone.copy()
    for request in reversed(requests):
        behind[request] += max((behind[each] for each in play.tables.followers[request]), default=0)
    never = play.tables.horizon_us
    due = [never if time is None else time for time in play.tables.due_us]
    keys: list[Callable[[int], int]] = [
        lambda request: request,
        lambda request: -behind[request],
        lambda request: alone[request],
        lambda request: due[request] - behind[request],
    ]
    for key in keys:
        yield _listed(play, sorted(requests, key=key))


def _listed(play: Play, order: Sequence[int]) -> Sequenced:
    """Return the requests one after the other, each on the way on which it ends first by then."""
    left, found = list(order), Sequenced()
    free, ready = [0] * play.unit_count, play.release_us.copy()
    done: set[int] = set()
    while left:
        request = next(each for each in left if done.issuperset(play.tables.after[each]))
        left.remove(request)
        done.add(request)
        begin = max([ready[request], *(ready[other] for other in play.tables.after[request])])
        best: tuple[int, Route] | None = None
        for route in play.routes_of(request):
            at = begin
            used: dict[int, int] = {}
            for step in play.steps(request, route):
                at = max(at, used.get(step.unit, free[step.unit])) + step.time_us
                used[step.unit] = at
            if best is None or at < best[0]:
                best = at, route
        assert best is not None
        for step in play.steps(request, best[1]):
            begin = free[step.unit] = max(begin, free[step.unit]) + step.time_us
            found.append(step)
        ready[request] = begin
    return found


class Annealing:
    """Rounds of simulated annealing over sequences.

    `broken`: how much a sequence breaks; None: nothing can be broken.
    """

    def __init__(self, play: Play, seed: int, *, broken: Callable[[Sequenced], int] | None = None) -> None:
        self._play, self._broken = play, broken
        self._random = Random(seed).random
        self.steps = 0

    def round(
        self, start: Sequenced, *, warmth: float = 1.0, deadline: Deadline = NEVER
    ) -> Iterator[Sequenced]:
        """Yield sequences, each better than those before in the number that is descended on."""
        random, scalar, broken = self._random, self._play.scalar, self._broken
        now, steps = start, STEPS * len(start)
        least = value = scalar(start)
        fine = _FINE * value
        if broken is not None:
            least = value = value + fine * broken(start)
        warm, cold = warmth * _WARM * value, _COLD * value
        cooling = (cold / warm) ** (_ASK_EVERY / steps)
        for number in range(steps):
            if number % _ASK_EVERY == 0:
                warm *= cooling
            if (number % _ASK_EVERY == 0 or broken is not None) and deadline.passed:
                return
            self.steps += 1
            kind = random()
            if kind < _REROUTED:
                other = self._rerouted(now)
            else:
                other = self._altered(now) if kind < _REROUTED + _ALTERED else self._moved(now)
            if other is None:
                continue
            found = scalar(other)
            if broken is not None and found < value + warm:
                found += fine * broken(other)
            if found <= value or random() < exp((value - found) / warm):
                now, value = other, found
                if found < least:
                    least = found
                    yield other

    def _moved(self, sequence: Sequenced) -> Sequenced | None:
        """Return the sequence with one chunk at another place; None: it can stand nowhere else."""
        random, count = self._random, len(sequence)
        place = int(random() * count)
        step = sequence[place]
        beside = self._play.beside[step.request]
        first = place
        while first and sequence[first - 1][0] not in beside:
            first -= 1
        last = place
        while last + 1 < count and sequence[last + 1][0] not in beside:
            last += 1
        if first == last:
            return None
        target = first + int(random() * (last - first))
        target += target >= place
        found = sequence.copy()
        del found[place]
        found.insert(target, step)
        return found

    def _altered(self, sequence: Sequenced) -> Sequenced | None:
        """Return the sequence with one chunk on another unit, in two parts, or together with the next one."""
        place = int(self._random() * len(sequence))
        found = self._changed(sequence, place)
        return found if found is not None and self._play.allows(found, sequence[place].request) else None

    def _changed(self, sequence: Sequenced, place: int) -> Sequenced | None:
        random, step = self._random, sequence[place]
        start, stop, _ = step.part
        kind = random()
        if kind < 1 / 3 and stop - start > 1:
            middle = start + 1 + int(random() * (stop - start - 1))
            made = [self._drawn(step, start, middle), self._drawn(step, middle, stop)]
            return _replaced(sequence, place, made)
        if kind < 2 / 3:
            after = next((at for at in range(place + 1, len(sequence)) if sequence[at][0] == step[0]), None)
            if after is None:
                return None
            joined = self._drawn(step, start, sequence[after].part[1])
            found = None if joined is None else _replaced(sequence, place, [joined])
            if found is not None:
                del found[after]
            return found
        return _replaced(sequence, place, [self._drawn(step, start, stop)])

    def _drawn(self, step: Step, start: int, stop: int) -> Step | None:
        """Return a chunk of the same request on a unit that is drawn; None: none can run it."""
        play = self._play
        able = play.able(step.request, start, stop)
        if not able:
            return None
        chosen = able[int(self._random() * len(able))]
        first = play.tables.after[step.request] if start == 0 else ()
        return play.step(step.request, (start, stop, chosen), first)

    def _rerouted(self, sequence: Sequenced) -> Sequenced | None:
        """Return the sequence with one request on another way, at places that are drawn."""
        random, play = self._random, self._play
        request = sequence[int(random() * len(sequence))][0]
        routes = play.routes_of(request)
        steps = play.steps(request, routes[int(len(routes) * random() ** 2)])
        before, behind = play.tables.after[request], play.tables.followers[request]
        found = [step for step in sequence if step[0] != request]
        first, last = 0, len(found)
        if before or behind:
            for place, step in enumerate(found):
                if step[0] in before:
                    first = place + 1
                elif step[0] in behind:
                    last = place
                    break
        places = sorted(first + int(random() * (last - first + 1)) for _ in steps)
        for shift, (place, step) in enumerate(zip(places, steps, strict=True)):
            found.insert(place + shift, step)
        return found


def _replaced(sequence: Sequenced, place: int, made: Sequence[Step | None]) -> Sequenced | None:
    """Return a sequence with other chunks in the place of one; None: one of them cannot be."""
    steps = [step for step in made if step is not None]
    return [*sequence[:place], *steps, *sequence[place + 1 :]] if len(steps) == len(made) else None
