"""Slowdown: how long chunks take beside others, in exact integers.

Chunk a of work T that runs beside chunks b takes D = T + sum over b of X[a,b] - R[a], X[a,b] being
floor(loss * overlap / 1000): the least integer with 1000 X >= loss * overlap - 999. The simulation
(`formulations/play.py`) ends chunks by the same condition, so that its times are the least solution of
these rows.

R[a] is what the cap spares a: with e(S) = max(0, losses to S - cap) for the chunks S that run beside it at
an instant, 1000 R is at most the time integral of e. As e is a sum over the subsets of S (its Moebius
transform, 0 where no cap can be at work), the integral is a sum over sets of chunks of a factor times the
time W that all of them run together with a, and chunks run together while each two of them do.

Where layers of a network differ in what they lose and take, the loss depends on where both are cut: literals
say which mark (`Losses.mark`) each chunk has, and for each two of them which loss follows. Where they are too
many, the rows know only the least and the most of it, as they do for what the cap spares: they allow more
than there is, and what the search finds is judged.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from itertools import combinations, combinations_with_replacement, product

from ..expr import TRUE, BoolExpr, BoolVar, Expr, IntVar, VariableKey, all_of, any_of, linear
from ..losses import MOST_LOSS_PERMILLE, LossTable, Mark
from .clocks import Cell, Clocks, cells_of, runs_of
from .slicing import Slicing
from .values import WorkloadValues

_MOST_COMPANIES = 2_000
"""Where more sets of chunks can run together, what the cap spares is bounded by each two of them only."""

_MOST_MARKED = 4_000
"""Where more pairs of marks can meet, losses are stated between the least and the most only."""

Company = tuple[Cell, ...]
"""Chunks of different requests on different units; the first one is slowed down."""


class Lengths:
    """How long each chunk runs: its work, and with slowdown what it loses to the others."""

    def __init__(self, slicing: Slicing, *, exact: bool, horizon_us: int) -> None:
        self._shop = slicing.shop
        self._slicing = slicing
        self._exact, self._horizon_us = exact, horizon_us

    def length_us(self, cell: Cell) -> IntVar:
        """Return how long a chunk runs; 0 for a cell that is not used."""
        work = self._slicing.work_us(*cell)
        if not self._shop.losses.contended:
            return work
        return IntVar("D", cell, 0, min(self._horizon_us, self._shop.losses.slowest_us(work.high)))

    def constraints(self, clocks: Clocks) -> Iterator[BoolExpr]:
        """Yield what the lengths are, given when chunks run."""
        if not self._shop.losses.contended:
            return
        pairs = list(self._pairs())
        for cell in cells_of(self._shop):
            lost = [self._lost_us(cell, b) for a, b in pairs if a == cell and self._most(a, b)]
            lost += [self._lost_us(cell, a) for a, b in pairs if b == cell and self._most(b, a)]
            spared = [(-1, self._spared_us(cell))] if self._over(cell) else []
            whole = linear([(1, self._slicing.work_us(*cell)), *((1, x) for x in lost), *spared])
            length = self.length_us(cell)
            yield (length == whole) if self._exact else (length >= whole)
        for one, other in pairs:
            yield from self._overlap(clocks, one, other)
        yield from self._marked(pairs)
        yield from self._shared_time(clocks, pairs)
        yield from self._cap(clocks)

    def _pairs(self) -> Iterator[tuple[Cell, Cell]]:
        """Yield the pairs of cells whose chunks can slow each other down, all of two units or none."""
        lossy = ((a, b) for a, b in self._strangers() if self._most(a, b) or self._most(b, a))
        met = {frozenset((a[1], b[1])) for a, b in lossy}
        return ((a, b) for a, b in self._strangers() if {a[1], b[1]} in met)

    def _strangers(self) -> Iterator[tuple[Cell, Cell]]:
        """Yield the pairs of cells of different requests on different units."""
        pairs = combinations(cells_of(self._shop), 2)
        return ((one, other) for one, other in pairs if one[0] != other[0] and one[1] != other[1])

    def _shared_time(self, clocks: Clocks, pairs: list[tuple[Cell, Cell]]) -> Iterator[BoolExpr]:
        """Yield what follows for all overlaps of two units together.

        Two units that are busy for A and B out of C microseconds run at the same time for at least
        A + B - C of them; and a chunk shares its time with one chunk of another unit at a time. Without
        these rows the relaxation would place chunks side by side and let none of them meet.
        """
        shared: dict[tuple[int, int], list[tuple[int, Expr]]] = defaultdict(list)
        beside: dict[tuple[Cell, int], list[tuple[int, Expr]]] = defaultdict(list)
        for one, other in pairs:
            overlap = self._overlap_us(one, other)
            shared[min(one[1], other[1]), max(one[1], other[1])].append((1, overlap))
            beside[one, other[1]].append((1, overlap))
            beside[other, one[1]].append((1, overlap))
        for units, overlaps in shared.items():
            busy = linear((1, self.length_us((i, k))) for i, k in cells_of(self._shop) if k in units)
            yield linear(overlaps) >= busy - clocks.makespan_us()
        for (cell, _), overlaps in beside.items():
            yield linear(overlaps) <= self.length_us(cell)

    def _least(self, victim: Cell, aggressor: Cell) -> int:
        """Return what a chunk loses at least to another one, in permille, wherever the two are cut."""
        return self._lost(self._shop.losses.least_permille, victim, aggressor)

    def _most(self, victim: Cell, aggressor: Cell) -> int:
        """Return what it loses at most: the same where the layers of a network are alike."""
        return self._lost(self._shop.losses.most_permille, victim, aggressor)

    def _lost(self, table: LossTable, victim: Cell, aggressor: Cell) -> int:
        chain_of = self._shop.chain_of
        return table[chain_of[victim[0]]][victim[1]][chain_of[aggressor[0]]][aggressor[1]]

    def _lost_us(self, victim: Cell, aggressor: Cell) -> IntVar:
        most = self.length_us(aggressor).high * self._most(victim, aggressor) // 1000
        return IntVar("X", (*victim, *aggressor), 0, most)

    def _over(self, cell: Cell) -> int:
        """Return by how many permille the worst company would take more from a chunk than it can lose."""
        most = self._shop.losses.worst_permille[self._shop.chain_of[cell[0]]][cell[1]]
        return max(0, most - MOST_LOSS_PERMILLE)

    def _spared_us(self, cell: Cell) -> IntVar:
        most = self.length_us(cell).high * self._over(cell) // 1000
        return IntVar("R", cell, 0, most)

    def _while_us(self, company: Company) -> IntVar:
        """Return how long all these chunks run at the same time."""
        most = min(self.length_us(cell).high for cell in company)
        return IntVar("W", tuple(index for cell in company for index in cell), 0, most)

    @cached_property
    def _companies(self) -> dict[Company, int] | None:
        """By how many permille the cap spares the first chunk more while all run; None: they are too many."""
        found: dict[Company, int] = {}
        looked = 0
        for cell in filter(self._over, cells_of(self._shop)):
            front: list[Company] = [(cell,)]
            for unit, request in product(range(self._shop.unit_count), range(self._shop.request_count)):
                joined = [own for own in front if self._joins((request, unit), own)]
                front += [(*own, (request, unit)) for own in joined]
                looked += len(joined)
                if looked > _MOST_COMPANIES:
                    return None
            factors = {company: self._factor(company) for company in front}
            found |= {company: factor for company, factor in factors.items() if factor}
        return found

    def _joins(self, cell: Cell, company: Company) -> bool:
        """Return whether a chunk can run beside others and slows the first of them down."""
        (request, unit), exclusive = cell, self._shop.chains[0].exclusive
        return self._most(company[0], cell) > 0 and not any(
            request == other or unit == beside or unit in exclusive[beside] for other, beside in company
        )

    def _factor(self, company: Company) -> int:
        """Return the excess over the cap that only all of a company together have."""
        losses = [self._most(company[0], other) for other in company[1:]]
        return sum(
            (-1) ** (len(losses) - size) * max(0, sum(some) - MOST_LOSS_PERMILLE)
            for size in range(2, len(losses) + 1)
            for some in combinations(losses, size)
        )

    def _cap(self, clocks: Clocks) -> Iterator[BoolExpr]:
        """Yield what the cap spares each chunk, as far as that can be."""
        companies = self._companies
        for company, factor in (companies or {}).items():
            yield from self._together(clocks, company, factor)
        for cell in filter(self._over, cells_of(self._shop)):
            spared = self._spared_us(cell)
            yield 1000 * spared <= linear(self._shares(cell))
            if companies is not None:
                own = linear(
                    (factor, self._while_us(company))
                    for company, factor in companies.items()
                    if company[0] == cell
                )
                yield 1000 * spared <= own
                if self._exact and not any(self._shop.losses.sliced):
                    # In the last microsecond more can be spared than is lost: then a chunk has ended before.
                    yield 1000 * spared >= own - 999 - 1000 * -(-self._over(cell) // 1000)

    def _shares(self, cell: Cell) -> Iterator[tuple[int, Expr]]:
        """Yield what the cap spares at most, by chunk beside: losses scaled down to it are not spared."""
        most = self._over(cell) + MOST_LOSS_PERMILLE
        for one, other in self._pairs():
            if cell in (one, other):
                loss = self._most(cell, other if cell == one else one)
                yield loss - loss * MOST_LOSS_PERMILLE // most, self._overlap_us(one, other)

    def _together(self, clocks: Clocks, company: Company, factor: int) -> Iterator[BoolExpr]:
        """Yield that all run together for so long at most, or at least, as it matters."""
        time, pairs = self._while_us(company), list(combinations(company, 2))
        if factor > 0 or self._exact:
            yield from (time <= self.length_us(cell) for cell in company)
            yield any_of((time <= 0, all_of(clocks.together(*pair, time) for pair in pairs)))
        if factor < 0 or self._exact:
            shortest = [time >= self.length_us(cell) for cell in company]
            yield any_of((*shortest, *(~clocks.together(*pair, time + 1) for pair in pairs)))

    def _overlap_us(self, one: Cell, other: Cell) -> IntVar:
        shorter = min(self.length_us(one).high, self.length_us(other).high)
        return IntVar("O", (*one, *other), 0, shorter)

    def _overlap(self, clocks: Clocks, one: Cell, other: Cell) -> Iterator[BoolExpr]:
        overlap = self._overlap_us(one, other)
        whole = (overlap >= self.length_us(one), overlap >= self.length_us(other))
        for ways in clocks.meetings(one, other, overlap):
            yield any_of((*whole, *ways))
        for victim, aggressor in ((one, other), (other, one)):
            if most := self._most(victim, aggressor):
                lost = self._lost_us(victim, aggressor)
                yield 1000 * lost >= self._least(victim, aggressor) * overlap - 999
                if self._exact:
                    yield 1000 * lost <= most * overlap
        if self._exact:
            yield overlap <= self.length_us(one)
            yield overlap <= self.length_us(other)
            yield (overlap <= 0) | clocks.together(one, other, overlap)

    @cached_property
    def _marks(self) -> dict[Cell, dict[Mark, list[tuple[int, int]]]]:
        """By cell of networks whose layers differ, the marks of its chunks: those by first and last piece."""
        found: dict[Cell, dict[Mark, list[tuple[int, int]]]] = {}
        for request, unit in cells_of(self._shop):
            chain, pieces = self._shop.chain(request), self._slicing.pieces(request)
            if not self._shop.losses.sliced[self._shop.chain_of[request]]:
                continue
            own = found[request, unit] = {}
            for first, last in combinations_with_replacement(pieces, 2):
                start, stop = chain.cuts[first], chain.cuts[last + 1]
                if chain.runs(start, stop, unit):
                    own.setdefault(self._shop.mark(request, (start, stop, unit)), []).append((first, last))
        return found

    def _known(self, cell: Cell) -> list[tuple[Mark, BoolExpr]]:
        """Return the marks that the chunk of a cell may have, with their literals."""
        if cell not in self._marks:
            return [(self._shop.losses.marks[self._shop.chain_of[cell[0]]], TRUE)]
        return [(mark, BoolVar("M", (*cell, number))) for number, mark in enumerate(self._marks[cell])]

    def _states_marks(self, pairs: list[tuple[Cell, Cell]]) -> bool:
        """Return whether rows say which loss follows from which marks."""
        count = sum(len(self._known(one)) * len(self._known(other)) for one, other in pairs)
        return bool(self._marks) and count <= _MOST_MARKED

    def _marked(self, pairs: list[tuple[Cell, Cell]]) -> Iterator[BoolExpr]:
        """Yield which marks chunks have, and which loss follows from them."""
        if not self._states_marks(pairs):
            return
        for cell, own in self._marks.items():
            for (_, literal), places in zip(self._known(cell), own.values(), strict=True):
                yield from (literal | ~self._is(cell, *place) for place in places)
        for victim, aggressor in (pair for one, other in pairs for pair in ((one, other), (other, one))):
            overlap, lost = self._overlap_us(*sorted((victim, aggressor))), self._lost_us(victim, aggressor)
            least, most = self._least(victim, aggressor), self._most(victim, aggressor)
            for (mine, here), (theirs, there) in product(self._known(victim), self._known(aggressor)):
                loss = self._shop.losses.loss(victim[1], mine, aggressor[1], theirs)
                if loss > least:
                    yield any_of((~here, ~there, 1000 * lost >= loss * overlap - 999))
                if self._exact and loss < most:
                    yield any_of((~here, ~there, 1000 * lost <= loss * overlap))

    def _is(self, cell: Cell, first: int, last: int) -> BoolExpr:
        """Return "the chunk of a cell goes from a piece to another one"."""
        (request, unit), beyond = cell, self._slicing.beyond
        ways = [beyond(request, unit, first), ~beyond(request, unit + 1, last)]
        if first:
            ways.append(~beyond(request, unit, first - 1))
        if last + 1 in self._slicing.pieces(request):
            ways.append(beyond(request, unit + 1, last + 1))
        return all_of(ways)

    def _paid(self, values: WorkloadValues, victim: Cell, aggressor: Cell) -> int:
        """Return what a chunk of a schedule loses to another one, in permille."""
        marks = []
        for request, unit in (victim, aggressor):
            start, stop = values.schedule.cuts[request][unit : unit + 2]
            marks.append(self._shop.mark(request, (start, stop, unit)))
        return self._shop.losses.loss(victim[1], marks[0], aggressor[1], marks[1])

    def assign(self, values: WorkloadValues) -> dict[VariableKey, int]:
        """Return the value of every variable on a schedule."""
        found: dict[VariableKey, int] = {}
        if not self._shop.losses.contended:
            return found
        runs = runs_of(values)
        for cell in cells_of(self._shop):
            start, end = runs.get(cell, (0, 0))
            found["D", cell] = end - start
        lost_us: dict[Cell, int] = defaultdict(int)
        for one, other in self._pairs():
            (s, e), (t, f) = runs.get(one, (0, 0)), runs.get(other, (0, 0))
            overlap = max(0, min(e, f) - max(s, t))
            found["O", (*one, *other)] = overlap
            for victim, aggressor in ((one, other), (other, one)):
                lost = self._paid(values, victim, aggressor) * overlap // 1000
                found["X", (*victim, *aggressor)] = lost
                lost_us[victim] += lost
        for request, unit in self._marks:
            start, stop = values.schedule.cuts[request][unit : unit + 2]
            mine = self._shop.mark(request, (start, stop, unit)) if start < stop else None
            for number, mark in enumerate(self._marks[request, unit]):
                found["M", (request, unit, number)] = int(mark == mine)
        for cell in filter(self._over, cells_of(self._shop)):
            request, unit = cell
            found["R", cell] = values.times_us[request][unit] + lost_us[cell] - found["D", cell]
        for company in self._companies or ():
            own = [runs.get(cell, (0, 0)) for cell in company]
            together = min(end for _, end in own) - max(start for start, _ in own)
            found[self._while_us(company).key] = max(0, together)
        return found
