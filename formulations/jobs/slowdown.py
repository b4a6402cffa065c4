"""Slowdown of single requests as rows: how long chunks take beside others, in exact integers.

A cell is the chunk of a request that begins at a border, if there is one. Its length is its work, and what it
loses to the cells that run at the same time, as the play has it (`formulations/play.py`):

    length = work + sum over others of floor(loss * overlap / 1000) - floor(spared / 1000)

The overlap of two cells is the least of their lengths and of what each has left when the other one starts, or
0. It is split over the pairs of places on which they can be: all of it is at the pair where they are, so that
no row needs a large number to switch a loss off. A place is a unit, or where the chunks of a cell differ in
what they lose and take (`Losses.mark`), a unit and a mark. What the cap spares is the time that three cells
run at once, split likewise, times what the other two take beyond it; with more than three units only an upper
bound is stated, and solutions are judged anyway.

All rows hold with equality: a chunk that starts later than it can, or takes longer, could spare others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from itertools import combinations, permutations, product

from ..expr import BoolExpr, BoolVar, Expr, IntVar, VariableKey, all_of, any_of, count, linear
from ..losses import MOST_LOSS_PERMILLE, Mark
from ..play import Part
from .quantities import PlayedPlan
from .tables import Option, ScheduleTables

Cell = tuple[int, int]
"""A request, and the border at which a chunk of it may begin."""

Triple = tuple[Cell, Cell, Cell]
"""A cell, and two that slow it down."""

_MARKED = "marked"

Place = int
"""A unit, and the number of a mark of those that the chunks of a cell have there: unit + units x number."""


class Lengths:
    """How long the chunk of each cell runs; 0 where none begins.

    `chosen`: by request, its chunks with their literals. `begin`: when the chunk that begins at a border of a
    request starts. `horizon_us`: by when all is done.
    """

    def __init__(
        self,
        tables: ScheduleTables,
        chosen: Mapping[int, Mapping[Option, BoolVar]],
        begin: Callable[[int, int], Expr],
        horizon_us: int,
    ) -> None:
        self._tables, self._begin, self._horizon_us = tables, begin, horizon_us
        self._losses = tables.losses
        self._options: dict[Cell, dict[Option, BoolVar]] = {}
        for request, own in chosen.items():
            for option, x in own.items():
                self._options.setdefault((request, option.start), {})[option] = x

    @cached_property
    def _places(self) -> dict[Cell, dict[Place, tuple[Mark, list[BoolVar]]]]:
        """At which places the chunk of a cell can be: their marks, and the chunks there."""
        found: dict[Cell, dict[Place, tuple[Mark, list[BoolVar]]]] = {}
        for cell, own in self._options.items():
            there: dict[tuple[int, Mark], list[BoolVar]] = {}
            for option in sorted(own):
                mark = self._tables.mark(cell[0], option.part)
                there.setdefault((option.unit, mark), []).append(own[option])
            places = found[cell] = {}
            for unit, mark in sorted(there):
                number = sum(self._unit(place) == unit for place in places)
                places[unit + self._tables.unit_count * number] = mark, there[unit, mark]
        return found

    def _unit(self, place: Place) -> int:
        return place % self._tables.unit_count

    def _place(self, cell: Cell, part: Part) -> Place:
        """Return where a chunk of a cell is."""
        mark, places = self._tables.mark(cell[0], part), self._places[cell]
        return next(place for place in places if (self._unit(place), places[place][0]) == (part[2], mark))

    def _there(self, cell: Cell, place: Place) -> BoolVar:
        """Return "the chunk of a cell is at a place"."""
        unit = self._unit(place)
        alone = sum(self._unit(other) == unit for other in self._places[cell]) == 1
        return at(cell, unit) if alone else BoolVar(_MARKED, (*cell, place))

    def of(self, cell: Cell) -> IntVar:
        """Return how long the chunk of a cell runs."""
        work_us = max((option.time_us for option in self._options.get(cell, ())), default=0)
        most_us = min(self._horizon_us, self._losses.slowest_us(work_us)) if work_us else 0
        return IntVar("length", cell, 0, most_us)

    def rows(self) -> Iterator[BoolExpr]:
        """Yield what the lengths are, given when chunks start."""
        for cell, own in self._options.items():
            lost = [(1, self._lost_us(cell, other)) for other in self._aggressors[cell]]
            spared = [(-1, self._spared_us(cell))] if self._over(cell) else []
            work = [(option.time_us, x) for option, x in own.items()]
            yield self.of(cell) == linear([*work, *lost, *spared])
            for place, (_, there) in self._places[cell].items():
                if (literal := self._there(cell, place)).name == _MARKED:
                    yield count(there) == literal
        for one, other in self._pairs:
            yield from self._overlap(one, other)
        yield from self._cap()

    # Two cells

    @cached_property
    def _pairs(self) -> list[tuple[Cell, Cell]]:
        """The cells of different requests that can run at the same time, and one of which minds the other."""
        return [
            (one, other)
            for one, other in combinations(self._options, 2)
            if self._meet(one, other) and (self._most(one, other) or self._most(other, one))
        ]

    @cached_property
    def _aggressors(self) -> dict[Cell, list[Cell]]:
        """By cell, those that can slow it down."""
        found: dict[Cell, list[Cell]] = {cell: [] for cell in self._options}
        for one, other in self._pairs:
            for victim, aggressor in ((one, other), (other, one)):
                if self._most(victim, aggressor):
                    found[victim].append(aggressor)
        return found

    def _meet(self, one: Cell, other: Cell) -> bool:
        (first, _), (second, _) = sorted((one, other))
        return first != second and not self._tables.behind[second] >> first & 1

    def _rates(self, victim: Cell, aggressor: Cell) -> dict[tuple[Place, Place], int]:
        """Return what a cell loses to another one, in permille, by the places at which they are."""
        own, others = self._places[victim], self._places[aggressor]
        return {
            (p, q): self._losses.loss(self._unit(p), own[p][0], self._unit(q), others[q][0])
            for p, q in self._pairs_of_places(victim, aggressor)
        }

    def _pairs_of_places(self, one: Cell, other: Cell) -> Iterator[tuple[Place, Place]]:
        pairs = product(self._places[one], self._places[other])
        return ((p, q) for p, q in pairs if self._unit(p) != self._unit(q))

    def _most(self, victim: Cell, aggressor: Cell) -> int:
        return max(self._rates(victim, aggressor).values(), default=0)

    def _overlap_us(self, one: Cell, other: Cell) -> IntVar:
        first, second = sorted((one, other))
        return IntVar("overlap", (*first, *second), 0, min(self.of(one).high, self.of(other).high))

    def _lost_us(self, victim: Cell, aggressor: Cell) -> IntVar:
        most = self._overlap_us(victim, aggressor).high * self._most(victim, aggressor) // 1000
        return IntVar("lost", (*victim, *aggressor), 0, most)

    def _left(self, one: Cell, other: Cell) -> Expr:
        """Return what a cell has left when another one starts."""
        return self._begin(*one) + self.of(one) - self._begin(*other)

    def _met_us(self, one: Cell, other: Cell, places: tuple[Place, Place]) -> IntVar:
        """Return how long two cells run at the same time at a pair of places."""
        return IntVar("met", (*one, *other, *places), 0, self._overlap_us(one, other).high)

    def _overlap(self, one: Cell, other: Cell) -> Iterator[BoolExpr]:
        overlap, lengths = self._overlap_us(one, other), (self.of(one), self.of(other))
        left = (self._left(one, other), self._left(other, one))
        yield from (overlap <= length for length in lengths)
        yield any_of((overlap <= 0, all_of(overlap <= rest for rest in left)))
        yield any_of(overlap >= most for most in (*lengths, *left))
        met = {places: self._met_us(one, other, places) for places in self._pairs_of_places(one, other)}
        yield linear((1, time) for time in met.values()) == overlap
        for (p, q), time in met.items():
            yield self._there(one, p) | (time <= 0)
            yield self._there(other, q) | (time <= 0)
        own, others = self._rates(one, other), self._rates(other, one)
        if any(own.values()):
            taken = linear((own[p, q], time) for (p, q), time in met.items())
            yield from _floor(self._lost_us(one, other), taken)
        if any(others.values()):
            taken = linear((others[q, p], time) for (p, q), time in met.items())
            yield from _floor(self._lost_us(other, one), taken)

    # The cap

    def _over(self, cell: Cell) -> int:
        """Return by how many permille others would take more from a cell than it can lose, at the worst."""
        if not self._losses.capped:
            return 0
        chain = self._tables.chain_of[cell[0]]
        most = max(self._losses.worst_permille[chain][self._unit(place)] for place in self._places[cell])
        return max(0, most - MOST_LOSS_PERMILLE)

    def _spared_us(self, cell: Cell) -> IntVar:
        return IntVar("spared", cell, 0, self.of(cell).high * self._over(cell) // 1000)

    def _cap(self) -> Iterator[BoolExpr]:
        whole = self._tables.unit_count <= 3
        for cell in filter(self._over, self._options):
            spared, over = self._spared_us(cell), self._over(cell)
            most = over + MOST_LOSS_PERMILLE
            shares = []
            for other in self._aggressors[cell]:
                rate = self._most(cell, other)
                shares.append((rate - rate * MOST_LOSS_PERMILLE // most, self._overlap_us(cell, other)))
            yield 1000 * spared <= linear(shares)
            if whole:
                triples = list(self._triples(cell))
                beyond = linear(
                    (rate, self._met_at_once_us(cells, places))
                    for cells in ((cell, *pair) for pair in triples)
                    for places, rate in self._excess(*cells).items()
                )
                yield 1000 * spared <= beyond
                # In the last microsecond more can be spared than is lost: then a chunk has ended before.
                yield 1000 * spared >= beyond - 999 - 1000 * -(-over // 1000)
                for pair in triples:
                    yield from self._at_once((cell, *pair))

    def _triples(self, cell: Cell) -> Iterator[tuple[Cell, Cell]]:
        """Yield each two cells that can run beside another one and take more from it than it can lose."""
        for one, other in combinations(self._aggressors[cell], 2):
            if self._meet(one, other) and self._excess(cell, one, other):
                yield one, other

    def _excess(self, cell: Cell, one: Cell, other: Cell) -> dict[tuple[Place, Place, Place], int]:
        """Return what two cells take from another one beyond the cap, by the places of all; without zeros."""
        first, second = self._rates(cell, one), self._rates(cell, other)
        found = {
            (p, q, r): rate + more - MOST_LOSS_PERMILLE
            for (p, q), rate in first.items()
            for (other_p, r), more in second.items()
            if other_p == p and self._unit(q) != self._unit(r)
        }
        return {places: excess for places, excess in found.items() if excess > 0}

    def _at_once_us(self, cells: Triple) -> IntVar:
        """Return how long three cells run at once."""
        high = min(self.of(cell).high for cell in cells)
        return IntVar("at_once", tuple(number for cell in cells for number in cell), 0, high)

    def _met_at_once_us(self, cells: Triple, places: tuple[Place, ...]) -> IntVar:
        """Return how long three cells run at once at some places."""
        indices = (*(number for cell in cells for number in cell), *places)
        return IntVar("met_at_once", indices, 0, self._at_once_us(cells).high)

    def _at_once(self, cells: Triple) -> Iterator[BoolExpr]:
        time = self._at_once_us(cells)
        left = [self._left(*pair) for pair in permutations(cells, 2)]
        yield from (time <= self.of(each) for each in cells)
        yield any_of((time <= 0, all_of(time <= rest for rest in left)))
        yield any_of(time >= most for most in (*map(self.of, cells), *left))
        found = []
        for places in product(*(self._places[cell] for cell in cells)):
            if len(set(map(self._unit, places))) == len(places):
                met = self._met_at_once_us(cells, places)
                found.append((1, met))
                at_places = zip(cells, places, strict=True)
                yield from (self._there(cell, place) | (met <= 0) for cell, place in at_places)
        yield linear(found) == time

    def assign(self, values: PlayedPlan) -> dict[VariableKey, int]:
        """Return the value of every variable on a plan."""
        runs = {(run.request, run.part[0]): run for run in values.runs}
        found: dict[VariableKey, int] = {}
        lost: dict[Cell, int] = {}

        def together(*cells: Cell) -> int:
            own = [runs[cell] for cell in cells if cell in runs]
            if len(own) < len(cells):
                return 0
            return max(0, min(run.end_us for run in own) - max(run.start_us for run in own))

        places = {cell: self._place(cell, run.part) for cell, run in runs.items() if cell in self._places}
        for cell in self._options:
            run = runs.get(cell)
            found["length", cell] = run.end_us - run.start_us if run else 0
            if cell in places:
                found[self._there(cell, places[cell]).key] = 1
        for one, other in self._pairs:
            overlap = found[self._overlap_us(one, other).key] = together(one, other)
            if not overlap:
                continue
            here, there = places[one], places[other]
            found[self._met_us(one, other, (here, there)).key] = overlap
            for victim, aggressor, where in ((one, other, (here, there)), (other, one, (there, here))):
                taken = self._rates(victim, aggressor)[where] * overlap // 1000
                found[self._lost_us(victim, aggressor).key] = taken
                lost[victim] = lost.get(victim, 0) + taken
        for cell in filter(self._over, self._options):
            run = runs.get(cell)
            work_us = run.work_us if run else 0
            found["spared", cell] = work_us + lost.get(cell, 0) - found["length", cell]
            for pair in self._triples(cell) if self._tables.unit_count <= 3 else ():
                cells = (cell, *pair)
                time = found[self._at_once_us(cells).key] = together(*cells)
                if time:
                    at_once = tuple(places[each] for each in cells)
                    found[self._met_at_once_us(cells, at_once).key] = time
        return found


def at(cell: Cell, unit: int) -> BoolVar:
    """Return "the chunk of a cell is on a unit"."""
    return BoolVar("at", (*cell, unit))


def _floor(part: IntVar, whole: Expr) -> Iterator[BoolExpr]:
    """Yield that `part` is a thousandth of `whole`, rounded down."""
    yield 1000 * part <= whole
    yield 1000 * part >= whole - 999
