"""Slicing: where each request is cut (P1), as monotone literals.

y[k,j] says "piece j of the request lies on unit k or a later one", a piece being the layers between
two neighbouring legal cuts. With y[k,j] <= y[k,j+1] and y[k+1,j] <= y[k,j] the pieces of a unit are
y[k,j] - y[k+1,j], contiguous and in the order of the units; the rows are differences of two literals,
so that the relaxation has integral corners. Copies come in by start and end literals. In MILP and CP-SAT
this block beats intervals, positions and element tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from ..expr import FALSE, TRUE, BoolExpr, BoolVar, Const, Expr, IntVar, VariableKey, linear
from ..model import Constraint, Values
from ..terms import Quantity
from ..weights import Weights
from .tables import Cuts, FlowShop
from .values import WorkloadValues

_Definition = tuple[tuple[int, ...], Expr]
"""The indices of a quantity, and what it means."""


class Slicing:
    """The cuts of all requests.

    `exact`: whether start, end and use literals are tied from both sides. `block_of`: for each request the
    request whose cuts it shares; usually itself.
    """

    def __init__(self, shop: FlowShop, *, exact: bool, block_of: Sequence[int]) -> None:
        self.shop = shop
        # the rows so far: those of a variable are added when it is first asked for
        self.constraints: list[Constraint] = []
        self._exact = exact
        self._block_of = block_of
        self._edges: dict[tuple[str, int, int, int], Expr] = {}
        self._stated: set[VariableKey] = set()
        self._cells = [(i, k) for i in sorted(set(block_of)) for k in range(shop.unit_count)]
        for request in sorted(set(block_of)):
            self._add(*self._shape(request))
        for cell in self._cells:
            self._add(*self._memory(*cell))
        self._add(*self._conflicts())

    def _add(self, *rows: BoolExpr) -> None:
        self.constraints += (Constraint(name="slicing", expr=row) for row in rows)

    def _is_new(self, key: VariableKey) -> bool:
        """Return whether it is the first time that a variable is asked for, whose rows are then due."""
        if key in self._stated:
            return False
        self._stated.add(key)
        return True

    def pieces(self, request: int) -> range:
        """Return the pieces of a request."""
        return range(len(self.shop.chain(request).cuts) - 1)

    def beyond(self, request: int, unit: int, piece: int) -> BoolExpr:
        """Return "the piece lies on this unit or a later one"."""
        if not 0 < unit < self.shop.unit_count:
            return TRUE if unit <= 0 else FALSE
        return BoolVar("y", (self._block_of[request], unit, piece))

    def on(self, request: int, unit: int, piece: int) -> Expr:
        """Return "the unit runs the piece" as a number."""
        later = self.beyond(request, unit + 1, piece)
        return linear([(1, self.beyond(request, unit, piece)), (-1, later)])

    def used(self, request: int, unit: int) -> BoolVar:
        """Return "the unit runs at least one piece"."""
        literal = BoolVar("u", (self._block_of[request], unit))
        if self._is_new(literal.key):
            self._add(*self._uses(request, unit))
        return literal

    def work_us(self, request: int, unit: int) -> IntVar:
        """Return the time of the request on the unit, without slowdown."""
        most = self.shop.chain(request).most_busy_us(unit)
        work = IntVar("T", (self._block_of[request], unit), 0, most)
        if self._is_new(work.key):
            self._add(work == self._time_us(request, unit))
        return work

    def starts(self, request: int, unit: int, piece: int) -> Expr:
        """Return "the chunk on the unit starts with this piece" as a number."""
        return self._edge("s", request, unit, piece, piece - 1)

    def _ends(self, request: int, unit: int, piece: int) -> Expr:
        return self._edge("e", request, unit, piece, piece + 1)

    def _edge(self, name: str, request: int, unit: int, piece: int, neighbour: int) -> Expr:
        """Return "the unit runs the piece and not its neighbour"."""
        here = self.on(request, unit, piece)
        if neighbour not in self.pieces(request):
            return here
        if unit == (0 if name == "s" else self.shop.unit_count - 1):
            return Const(0)  # the first unit starts with the first piece, the last one ends with the last
        key = (name, self._block_of[request], unit, piece)
        if key not in self._edges:
            literal, there = BoolVar(name, key[1:]), self.on(request, unit, neighbour)
            self._edges[key] = literal
            self._add(literal >= here - there)
            if self._exact:
                self._add(literal <= here, literal + there <= 1)
        return self._edges[key]

    def _shape(self, request: int) -> Iterator[BoolExpr]:
        chain = self.shop.chain(request)
        for unit in range(self.shop.unit_count):
            for piece in self.pieces(request):
                here, later = self.beyond(request, unit, piece), self.beyond(request, unit + 1, piece)
                if not chain.runs(chain.cuts[piece], chain.cuts[piece + 1], unit):
                    yield here <= later
                if 0 < unit < self.shop.unit_count - 1:
                    yield later <= here
                if piece:
                    yield self.beyond(request, unit, piece - 1) <= here

    def _uses(self, request: int, unit: int) -> Iterator[BoolExpr]:
        parts = [self.on(request, unit, piece) for piece in self.pieces(request)]
        used = self.used(request, unit)
        yield from (used >= part for part in parts)
        if self._exact:
            yield used <= linear((1, part) for part in parts)

    def _memory(self, request: int, unit: int) -> Iterator[BoolExpr]:
        capacity = self.shop.chain(request).unit_memory[unit]
        if capacity is not None:
            weights = self.weights(request, unit)
            for piece in self.pieces(request):
                working = self.working_bytes(request, piece)
                yield weights + working * self.on(request, unit, piece) <= capacity

    def weights(self, request: int, unit: int) -> Expr:
        """Return the weight bytes of the chunk of a request on a unit."""
        return self.piece_weights(request).expr(
            lambda piece: self.on(request, unit, piece), lambda piece: self.on(request, unit, piece) >= 1
        )

    def piece_weights(self, request: int) -> Weights:
        """Return the weights of the pieces of a request."""
        cuts = self.shop.chain(request).cuts
        of = [piece for piece, (start, stop) in enumerate(pairwise(cuts)) for _ in range(start, stop)]
        return self.shop.chain(request).weights.grouped(of, len(cuts) - 1)

    def working_bytes(self, request: int, piece: int) -> int:
        """Return the most live tensors of any layer of a piece."""
        chain = self.shop.chain(request)
        return max(chain.working_bytes[chain.cuts[piece] : chain.cuts[piece + 1]])

    def _time_us(self, request: int, unit: int) -> Expr:
        chain = self.shop.chain(request)
        terms: list[tuple[int, Expr]] = []
        for piece, (start, stop) in enumerate(pairwise(chain.cuts)):
            layers_us = chain.prefix_us[unit][stop] - chain.prefix_us[unit][start]
            copy_in_us, copy_out_us = chain.transfer_in_us[start][unit], chain.transfer_out_us[stop][unit]
            terms.append((layers_us, self.on(request, unit, piece)))
            if copy_in_us:
                terms.append((copy_in_us, self.starts(request, unit, piece)))
            if copy_out_us:
                terms.append((copy_out_us, self._ends(request, unit, piece)))
        return linear(terms)

    def _conflicts(self) -> Iterator[BoolExpr]:
        for unit, others in enumerate(self.shop.chains[0].exclusive):
            for other in sorted(others):
                if unit < other:
                    yield self.unit_used(unit) + self.unit_used(other) <= 1

    def unit_used(self, unit: int) -> BoolVar:
        """Return "some request uses the unit"."""
        literal = BoolVar("U", (unit,))
        if self._is_new(literal.key):
            parts = [self.used(i, k) for i, k in self._cells if k == unit]
            self._add(*(literal >= part for part in parts))
            if self._exact:
                self._add(literal <= linear((1, part) for part in parts))
        return literal

    def definitions(self, quantities: frozenset[Quantity]) -> dict[VariableKey, Expr]:
        """Return the definitions of those quantities of the cuts that are asked for."""
        makers = {
            Quantity.USES: self._use_definitions,
            Quantity.CHUNK_US: self._work_definitions,
            Quantity.ON: self._on_definitions,
            Quantity.CUT: self._cut_definitions,
        }
        return {
            (quantity, args): expr
            for quantity in quantities & set(makers)
            for args, expr in makers[quantity]()
        }

    def _use_definitions(self) -> Iterator[_Definition]:
        return ((cell, self.used(*cell)) for cell in self._cells)

    def _work_definitions(self) -> Iterator[_Definition]:
        return ((cell, self.work_us(*cell)) for cell in self._cells)

    def _on_definitions(self) -> Iterator[_Definition]:
        for request, unit in self._cells:
            for piece, (start, stop) in enumerate(pairwise(self.shop.chain(request).cuts)):
                on = self.on(request, unit, piece)
                yield from (((request, layer, unit), on) for layer in range(start, stop))

    def _cut_definitions(self) -> Iterator[_Definition]:
        for request in range(self.shop.request_count):
            for boundary in range(1, self.shop.chain(request).layer_count):
                yield (request, boundary), self._cut(request, boundary)

    def _cut(self, request: int, boundary: int) -> BoolExpr:
        """Return "the layers on both sides of the boundary are on different units"."""
        cuts = self.shop.chain(request).cuts
        if boundary not in cuts:
            return FALSE
        piece = cuts.index(boundary)
        units = range(1, self.shop.unit_count)
        after = ((1, self.beyond(request, unit, piece)) for unit in units)
        before = ((-1, self.beyond(request, unit, piece - 1)) for unit in units)
        return linear([*after, *before]) >= 1

    def decode(self, values: Values) -> tuple[Cuts, ...]:
        """Return the cuts of a solution."""
        return tuple(self._decode(request, values) for request in range(self.shop.request_count))

    def _decode(self, request: int, values: Values) -> Cuts:
        pieces = self.pieces(request)
        inner = range(1, self.shop.unit_count)
        places = [
            len(pieces) - sum(self.beyond(request, unit, piece).evaluate(values) for piece in pieces)
            for unit in inner
        ]
        cuts = self.shop.chain(request).cuts
        return (0, *(cuts[place] for place in places), cuts[-1])

    def differs(self, cuts: Sequence[Cuts]) -> Iterator[BoolExpr]:
        """Yield conditions of which one holds in every solution with other cuts."""
        for request in sorted(set(self._block_of)):
            legal = self.shop.chain(request).cuts
            for unit in range(1, self.shop.unit_count):
                place = legal.index(cuts[request][unit])
                if place < len(legal) - 1:
                    yield ~self.beyond(request, unit, place)
                if place:
                    yield self.beyond(request, unit, place - 1)

    def assign(self, values: WorkloadValues) -> dict[VariableKey, int]:
        """Return the value of every variable on a schedule."""
        found: dict[VariableKey, int] = {}
        for request, unit in self._cells:
            ends = values.schedule.cuts[request]
            found["u", (request, unit)] = int(ends[unit] < ends[unit + 1])
            found["T", (request, unit)] = values.times_us[request][unit]
            for piece, (start, _) in enumerate(pairwise(self.shop.chain(request).cuts)):
                found["y", (request, unit, piece)] = int(start >= ends[unit])
        for name, request, unit, piece in self._edges:
            cuts, ends = self.shop.chain(request).cuts, values.schedule.cuts[request]
            met = ends[unit] == cuts[piece] if name == "s" else ends[unit + 1] == cuts[piece + 1]
            found[name, (request, unit, piece)] = int(met and ends[unit] < ends[unit + 1])
        for unit in range(self.shop.unit_count):
            found["U", (unit,)] = int(unit in values.busy_us)
        return found
