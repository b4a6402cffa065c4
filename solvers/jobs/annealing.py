"""List schedules, requests as lists of numbers for search, and simulated annealing over them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import exp
from random import Random
from typing import NamedTuple

from ...formulations.jobs.reach import Reach
from ...formulations.jobs.space import Route
from ...formulations.jobs.tables import JobPlan, JobTables, Visits
from ...formulations.play import Part
from ...formulations.problem import Problem
from ...formulations.terms import Term
from ..protocol import NEVER, Deadline

MOST_ROUTES, _MOST_STEPS = 200, 100_000
"""Most ways through the sections of a network that a search looks at: the shortest ones. Where networks have
many chunks, fewer are carried from border to border, in about the second number of steps."""

_GUIDE = 0.02
"""How much of what comes second counts beside the first term."""

_MORE = 0.5
"""The same of the makespan behind lateness, which is often none at all."""


class Step(NamedTuple):
    """A chunk in a sequence: who, where, how long, for whom it has to wait (first chunks), and which one."""

    request: int
    unit: int
    time_us: int
    waits: tuple[int, ...]
    part: Part


Sequenced = list[Step]
"""A plan: every unit serves its chunks in this order."""

Value = tuple[int, ...]
"""The terms of the objective."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """What is minimised."""

    terms: Callable[[Sequence[int], int], Value]
    """From the ends of all requests and the time of all chunks to the values of the terms."""
    scalar: Callable[[Sequence[int], int], float]
    """From the same to one number that follows them, mostly the first term: what a search descends on."""


class Play:
    """The requests of a problem on some of its units."""

    def __init__(self, problem: Problem, tables: JobTables, units: frozenset[int]) -> None:
        self.tables, self.units = tables, units
        self.unit_count = tables.unit_count
        self.release_us = [request.release_us for request in tables.jobs.requests]
        reach = Reach(tables=tables)
        self._times = tables.time_us
        self._able: list[dict[tuple[int, int], tuple[int, ...]]] = [{} for _ in tables.chains]
        for chain, able in enumerate(self._able):
            for start, stop, unit in (option.part for option in reach.options[chain]):
                if unit in units:
                    able[start, stop] = (*able.get((start, stop), ()), unit)
        self.routes = [
            _routes(
                [option.part for option in reach.options[chain] if option.unit in units],
                len(tables.sections[chain]),
                tables.time_us[chain],
                tables.visits,
            )
            for chain in range(len(tables.chains))
        ]
        self.beside = [
            frozenset((request, *before, *behind))
            for request, (before, behind) in enumerate(zip(tables.after, tables.followers, strict=True))
        ]
        self.measure = measure_of(problem, tables)

    def able(self, request: int, start: int, stop: int) -> tuple[int, ...]:
        """Return the units that can run sections [start, stop) of a request."""
        return self._able[self.tables.chain_of[request]].get((start, stop), ())

    def step(self, request: int, part: Part, waits: tuple[int, ...]) -> Step:
        """Return a chunk of a request; `waits`: for whom, if it is the first one."""
        return Step(request, part[2], self._times[self.tables.chain_of[request]][part], waits, part)

    def steps(self, request: int, route: Route) -> Sequenced:
        """Return the chunks of a request."""
        times = self._times[self.tables.chain_of[request]]
        first = self.tables.after[request]
        return [
            Step(request, part[2], times[part], () if place else first, part)
            for place, part in enumerate(route)
        ]

    def routes_of(self, request: int) -> list[Route]:
        """Return the ways through the sections of a request, shortest first."""
        return self.routes[self.tables.chain_of[request]]

    def allows(self, sequence: Sequence[Step], request: int) -> bool:
        """Return whether the units of a request are those that it may pass."""
        visits = self.tables.visits
        return not visits.once or visits.allows(step.unit for step in sequence if step[0] == request)

    def fits(self, code: JobPlan) -> bool:
        """Return whether all requests of a plan pass units as they may."""
        return all(self.tables.visits.allows(part[2] for part in parts) for parts in code.parts)

    def ends(self, sequence: Sequence[Step]) -> list[int]:
        """Return when each request is done."""
        free, ready = [0] * self.unit_count, self.release_us.copy()
        for request, unit, time_us, waits, _ in sequence:
            at = ready[request]
            for other in waits:
                at = ready[other] if ready[other] > at else at
            at = (free[unit] if free[unit] > at else at) + time_us  # `max` takes three times as long
            free[unit] = ready[request] = at
        return ready

    def value(self, sequence: Sequence[Step]) -> Value:
        """Return the terms of a sequence."""
        return self.measure.terms(self.ends(sequence), sum(step.time_us for step in sequence))

    def scalar(self, sequence: Sequence[Step]) -> float:
        """Return the one number that a sequence is compared by."""
        return self.measure.scalar(self.ends(sequence), sum([step[2] for step in sequence]))

    def code(self, sequence: Sequence[Step]) -> JobPlan:
        """Return a sequence as a plan."""
        parts: list[list[Part]] = [[] for _ in self.release_us]
        for step in sequence:
            parts[step.request].append(step.part)
        order = tuple(step.request for step in sequence)
        return self.tables.ordered(order, tuple(map(tuple, parts)))

    def sequence(self, code: JobPlan) -> Sequenced:
        """Return a plan as a sequence: the way back from `code`."""
        left = [iter(self.steps(request, route)) for request, route in enumerate(code.parts)]
        return [next(left[request]) for request in code.order]


def _routes(parts: Sequence[Part], count: int, time_us: dict[Part, int], visits: Visits) -> list[Route]:
    """Return the shortest ways through `count` sections, at most `MOST_ROUTES`."""
    most = max(4, min(MOST_ROUTES, _MOST_STEPS // max(1, len(parts))))
    starting: list[list[Part]] = [[] for _ in range(count)]
    for part in parts:
        starting[part[0]].append(part)
    # At each border the shortest ways for each state of the passage: one may go on where another may not.
    ways: list[dict[int, list[tuple[int, Route]]]] = [{} for _ in range(count + 1)]
    ways[0][0] = [(0, ())]
    for border in range(count):
        for state, own in ways[border].items():
            shortest = sorted(own)[:most]
            for part in starting[border]:
                after = visits.after(state, part[2])
                if after is not None:
                    reached = ways[part[1]].setdefault(after, [])
                    reached += [(sofar + time_us[part], (*route, part)) for sofar, route in shortest]
        ways[border] = {}
    found = (way for own in ways[count].values() for way in own)
    return [route for _, route in sorted(found)[:MOST_ROUTES]]


def measure_of(problem: Problem, tables: JobTables) -> Measure:
    """Return what a problem minimises."""
    weights = [request.weight for request in tables.jobs.requests]
    releases = sum(request.weight * request.release_us for request in tables.jobs.requests)
    due = [(i, w, d) for i, (w, d) in enumerate(zip(weights, tables.due_us, strict=True)) if d is not None]
    known: dict[str, Callable[[Sequence[int], int], int]] = {
        Term.MAKESPAN: lambda ends, work: max(ends),
        Term.LATE: lambda ends, work: sum(w for i, w, d in due if ends[i] > d),
        Term.LATENESS: lambda ends, work: sum(w * (ends[i] - d) for i, w, d in due if ends[i] > d),
        Term.LATENCY: lambda ends, work: sum(map(int.__mul__, weights, ends)) - releases,
        Term.WORK: lambda ends, work: work,
    }
    names = problem.objective.terms
    asked = [known[term] for term in names]
    # A late request counts like a delay of all by a share of the time that everything takes.
    scale = [tables.horizon_us / len(weights) if term == Term.LATE else 1.0 for term in names[:2]]
    guide = known[Term.LATENESS] if names[0] in (Term.LATE, Term.LATENESS) else None

    second = _MORE if names[:2] == (Term.LATENESS, Term.MAKESPAN) else _GUIDE

    def scalar(ends: Sequence[int], work: int) -> float:
        """Return the first term, a little of the second, and of how late or when all requests end."""
        found = scale[0] * asked[0](ends, work) + _GUIDE * sum(ends) / len(ends)
        if len(scale) > 1:
            found += second * scale[1] * asked[1](ends, work)
        return found if guide is None else found + _GUIDE * guide(ends, work)

    return Measure(terms=lambda ends, work: tuple(term(ends, work) for term in asked), scalar=scalar)


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
