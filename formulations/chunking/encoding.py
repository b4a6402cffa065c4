"""Chunks of one network on one platform (formulations, section 3): each unit at most one, or several.

Two encodings of BetterTogether III-D, (C1) exactly one unit a layer and (C2) contiguity; both are
linear in *maximal* chunks, where the paper writes O(n^2) implications for every sub-segment.

boundary
    x[l,u] "layer l on unit u", s[l,u] and e[l,u] "the chunk of u starts (ends) at layer l", with
    x[l,u] - x[l-1,u] = s[l,u] - e[l-1,u] and at most one start per unit. About 3 N M literals.
arcs
    One literal for each interval [i, j) on unit u that the tables allow; they form a path from
    boundary 0 to N that takes at most one arc of each unit. About N^2 M / 2 literals, and the
    tightest linear relaxation.

Where a unit may come back (passage `any`) the rows "at most one" go, and a unit does not go on with itself: a
chunk that ends is followed by one on another unit. The live tensors of each chunk stay with it, so the bytes
of a unit are a sum over chunks, which only arcs can say; the boundary encoding is for problems without them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from itertools import pairwise

from ..chain import Chain, Part
from ..expr import FALSE, BoolExpr, BoolVar, Const, Expr, VariableKey, any_of, count, linear, variables
from ..model import Constraint, Digits, Encoded, Model, Values
from ..problem import Problem
from ..terms import Quantities, Quantity, Term
from .tables import chain_of
from .totals import conflicts, demands, total_definitions

Parts = tuple[Part, ...]
"""A plan by index: its chunks in order of their layers."""

Literals = dict[tuple[int, int], BoolVar]
"""Literals by (layer, unit); absent ones are false."""


_MOST_ARCS = 5000
"""Up to this number of intervals the arcs encoding is used: larger, but with the tighter relaxation."""


def encode_boundary(problem: Problem, *, once: bool = True) -> Encoded[Parts]:
    """Return the encoding by start and end literals; `once`: at most one chunk per unit."""
    return _Boundary(chain_of(problem), once=once).encoded(problem)


def encode_arcs(problem: Problem, *, once: bool = True) -> Encoded[Parts]:
    """Return the encoding by one literal per interval; `once`: at most one chunk per unit."""
    return _Arcs(chain_of(problem), once=once).encoded(problem)


def count_arcs(chain: Chain) -> int:
    """Return the number of intervals that the arcs encoding has literals for."""
    return len(_intervals(chain))


def encode_chunks(problem: Problem, *, relaxation: bool, once: bool = True) -> Encoded[Parts]:
    """Return the encoding that suits a solver: arcs for one that lives from its relaxation, when small.

    Where units come back and somebody asks for bytes, it is arcs in any case.
    """
    small = relaxation and count_arcs(chain_of(problem)) <= _MOST_ARCS
    return (encode_arcs if small or not (once or _no_bytes(problem)) else encode_boundary)(problem, once=once)


def _no_bytes(problem: Problem) -> bool:
    """Return whether neither capacities, terms nor rules ask for bytes of chunks."""
    chain, bytewise = chain_of(problem), {Quantity.MEMORY, Quantity.PEAK}
    spoken = {name for rule in problem.expression_rules for name, _ in variables(rule.expr)}
    limited = chain.device_memory is not None or any(size is not None for size in chain.unit_memory)
    return not (limited or spoken & bytewise or Term.PEAK_MEMORY in problem.ranking)


def chunk_digits(chain: Chain, symbols: tuple[Expr, ...]) -> Digits[Parts]:
    """Return the canonical order: plans compare like the (stop, unit index) of their chunks, first one first.

    The digit of a layer is the index of the unit whose chunk ends at it, or the number of units when none
    does.
    """

    def digits(parts: Parts) -> list[int]:
        ends = {stop - 1: unit for _, stop, unit in parts}
        return [ends.get(layer, chain.unit_count) for layer in range(chain.layer_count)]

    return Digits(symbols=symbols, base=chain.unit_count + 1, of=digits)


def _intervals(chain: Chain) -> list[Part]:
    cuts = chain.cuts
    return [
        (start, stop, unit)
        for unit in range(chain.unit_count)
        for index, start in enumerate(cuts)
        for stop in cuts[index + 1 :]
        if chain.runs(start, stop, unit) and chain.fits(start, stop, unit)
    ]


def _exactly(value: int, terms: list[tuple[int, Expr]]) -> BoolExpr:
    return linear(terms) == Const(value)


class _Boundary:
    """The boundary encoding of one chain."""

    def __init__(self, chain: Chain, *, once: bool) -> None:
        self.chain, self.once = chain, once
        able = [
            (layer, unit)
            for layer, row in enumerate(chain.layer_us)
            for unit, time_us in enumerate(row)
            if time_us is not None
        ]
        cuts = set(chain.cuts)
        self.on: Literals = {(layer, unit): BoolVar("x", (layer, unit)) for layer, unit in able}
        self.start: Literals = {(la, u): BoolVar("s", (la, u)) for la, u in able if la in cuts}
        self.end: Literals = {(la, u): BoolVar("e", (la, u)) for la, u in able if la + 1 in cuts}

    def encoded(self, problem: Problem) -> Encoded[Parts]:
        """Return the whole encoding."""
        chain = self.chain
        uses = [self._uses(unit) for unit in range(chain.unit_count)]
        constraints = (*self._structure(), *self._memory_limits(), *conflicts(chain, uses), *demands(problem))
        variables = problem.formulation.variables(problem)
        model = Model(constraints=constraints, definitions=self._definitions(uses, variables))
        symbols = tuple(
            linear(
                ((u - chain.unit_count, literal) for u, literal in self._at(self.end, layer)),
                chain.unit_count,
            )
            for layer in range(chain.layer_count)
        )
        return Encoded(
            name="boundary",
            model=model,
            digits=chunk_digits(chain, symbols),
            decode=self._decode,
            exclude=self._exclude,
        )

    def _at(self, literals: Literals, layer: int) -> list[tuple[int, BoolVar]]:
        units = range(self.chain.unit_count)
        return [(unit, literals[layer, unit]) for unit in units if (layer, unit) in literals]

    def _of(self, literals: Literals, unit: int) -> list[tuple[int, BoolVar]]:
        layers = range(self.chain.layer_count)
        return [(layer, literals[layer, unit]) for layer in layers if (layer, unit) in literals]

    def _chunks(self, unit: int) -> Expr:
        return linear((1, literal) for _, literal in self._of(self.start, unit))

    def _uses(self, unit: int) -> Expr:
        return self._chunks(unit) if self.once else any_of(x for _, x in self._of(self.start, unit))

    def _structure(self) -> list[Constraint]:
        layers, units = range(self.chain.layer_count), range(self.chain.unit_count)
        rows = [_exactly(1, [(1, x) for _, x in self._at(self.on, layer)]) for layer in layers]
        if self.once:
            rows += [self._uses(unit) <= 1 for unit in units]
        else:
            again = ((self.end.get((layer - 1, unit)), x) for (layer, unit), x in self.start.items())
            rows += [linear([(1, end), (1, start)]) <= 1 for end, start in again if end is not None]
        for unit in units:
            for layer in range(self.chain.layer_count + 1):
                here, before = (layer, unit), (layer - 1, unit)
                signed = [(1, self.on.get(here)), (-1, self.on.get(before))]
                signed += [(-1, self.start.get(here)), (1, self.end.get(before))]
                terms: list[tuple[int, Expr]] = [(sign, x) for sign, x in signed if x is not None]
                if terms:
                    rows.append(_exactly(0, terms))
        # Otherwise a chunk of no layers could start and end between two layers that run elsewhere.
        for literals in (self.start, self.end):
            rows += [literal <= self.on[key] for key, literal in literals.items()]
        return [Constraint(name="structure", expr=row) for row in rows]

    def _memory_limits(self) -> list[Constraint]:
        chain = self.chain
        return [
            Constraint(
                name="unit_memory",
                expr=self._weights(unit) + chain.working_bytes[layer] * literal <= capacity,
            )
            for unit, capacity in enumerate(chain.unit_memory)
            if capacity is not None
            for layer, literal in self._of(self.on, unit)
        ]

    def _weights(self, unit: int) -> Expr:
        on = dict(self._of(self.on, unit))
        return self.chain.weights.expr(lambda at: on.get(at, Const(0)), lambda at: on.get(at, FALSE))

    def _working(self, unit: int) -> Expr:
        """Return the most live tensors of any layer on a unit; 0 when it is not used.

        A sum of steps, each taken if a layer at or above it is on the unit: no choice of a largest.
        """
        layers = defaultdict(list)
        for layer, literal in self._of(self.on, unit):
            layers[self.chain.working_bytes[layer]].append(literal)
        sizes = sorted(layers)
        steps: list[tuple[int, Expr]] = []
        above: list[BoolVar] = []
        for below, size in reversed(list(pairwise([0, *sizes]))):
            above = above + layers[size]
            steps.append((size - below, any_of(above)))
        return linear(steps)

    def _definitions(self, uses: list[Expr], variables: Quantities) -> dict[VariableKey, Expr]:
        chain = self.chain
        found: dict[VariableKey, Expr] = {}
        working = [self._working(unit) for unit in range(chain.unit_count)]
        for unit in range(chain.unit_count):
            for layer in range(chain.layer_count):
                found[Quantity.ON, (layer, unit)] = self.on.get((layer, unit), Const(0))
            found[Quantity.USES, (unit,)] = uses[unit]
            found[Quantity.BUSY, (unit,)] = self._busy_us(unit)
            found[Quantity.MEMORY, (unit,)] = self._weights(unit) + working[unit]
            if not self.once:
                found[Quantity.CHUNKS, (unit,)] = self._chunks(unit)
        for cut in range(1, chain.layer_count):
            found[Quantity.CUT, (cut,)] = linear((1, literal) for _, literal in self._at(self.start, cut))
        # Every layer is somewhere, so the weights of the whole network are: unless units share some.
        weights = map(self._weights, range(chain.unit_count)) if chain.weights.shared else ()
        held = 0 if chain.weights.shared else chain.weights.whole
        peak = linear(((1, part) for part in (*working, *weights)), held)
        hops = linear((1, literal) for (layer, _), literal in self.start.items() if layer)
        return found | total_definitions(chain, variables, hops, peak, once=self.once)

    def _busy_us(self, unit: int) -> Expr:
        chain = self.chain
        return linear(
            [(chain.layer_us[layer][unit] or 0, x) for layer, x in self._of(self.on, unit)]
            + [(chain.transfer_in_us[layer][unit], s) for layer, s in self._of(self.start, unit)]
            + [(chain.transfer_out_us[layer + 1][unit], e) for layer, e in self._of(self.end, unit)]
        )

    def _decode(self, values: Values) -> Parts:
        starts = sorted(key for key, literal in self.start.items() if values(literal))
        ends = sorted(key for key, literal in self.end.items() if values(literal))
        return tuple((at, last + 1, unit) for (at, unit), (last, _) in zip(starts, ends, strict=True))

    def _exclude(self, parts: Parts) -> BoolExpr:
        # Start and end literals suffice: a plan with all of these and others has more chunks.
        chosen = [self.start[start, unit] for start, _, unit in parts]
        chosen += [self.end[stop - 1, unit] for _, stop, unit in parts]
        if self.once:
            return count(chosen) <= len(chosen) - 1
        starts = [(-1, literal) for literal in self.start.values()]
        return linear([*((1, literal) for literal in chosen), *starts]) <= len(parts) - 1


class _Arcs:
    """The arcs encoding of one chain."""

    def __init__(self, chain: Chain, *, once: bool) -> None:
        self.chain, self.once = chain, once
        self.arcs = {part: BoolVar("a", part) for part in _intervals(chain)}
        self.of_unit: dict[int, list[Part]] = defaultdict(list)
        self.into: dict[int, list[Part]] = defaultdict(list)
        self.out: dict[int, list[Part]] = defaultdict(list)
        for part in self.arcs:
            self.out[part[0]].append(part)
            self.into[part[1]].append(part)
            self.of_unit[part[2]].append(part)

    def encoded(self, problem: Problem) -> Encoded[Parts]:
        """Return the whole encoding."""
        chain = self.chain
        sums = self._sum if self.once else lambda parts: any_of(self.arcs[part] for part in parts)
        uses = [sums(self.of_unit[unit]) for unit in range(chain.unit_count)]
        constraints = (
            *self._structure(uses),
            *self.unit_limits(problem),
            *conflicts(chain, uses),
            *demands(problem),
        )
        symbols = tuple(
            linear(
                ((part[2] - chain.unit_count, self.arcs[part]) for part in self.into[layer + 1]),
                chain.unit_count,
            )
            for layer in range(chain.layer_count)
        )
        return Encoded(
            name="arcs",
            model=Model(
                constraints=constraints,
                definitions=self._definitions(uses, problem.formulation.variables(problem)),
            ),
            digits=chunk_digits(chain, symbols),
            decode=self._decode,
            exclude=self._exclude,
        )

    def _sum(self, parts: list[Part]) -> Expr:
        return linear((1, self.arcs[part]) for part in parts)

    def _structure(self, uses: list[Expr]) -> list[Constraint]:
        # A path from boundary 0 to the last one; what flows in flows out.
        rows = [_exactly(1, [(1, self._sum(self.out[0]))])]
        rows += [self._sum(self.into[cut]) == self._sum(self.out[cut]) for cut in self.chain.cuts[1:-1]]
        if self.once:
            rows += [used <= 1 for used in uses]
        else:
            rows += [
                self._sum([part for part in (*self.into[cut], *self.out[cut]) if part[2] == unit]) <= 1
                for cut in self.chain.cuts[1:-1]
                for unit in range(self.chain.unit_count)
            ]
        return [Constraint(name="structure", expr=row) for row in rows]

    def _definitions(self, uses: list[Expr], variables: Quantities) -> dict[VariableKey, Expr]:
        chain = self.chain
        found: dict[VariableKey, Expr] = {}
        for unit in range(chain.unit_count):
            parts = self.of_unit[unit]
            for layer in range(chain.layer_count):
                covering = [part for part in parts if part[0] <= layer < part[1]]
                found[Quantity.ON, (layer, unit)] = self._sum(covering)
            found[Quantity.USES, (unit,)] = uses[unit]
            found[Quantity.BUSY, (unit,)] = linear((chain.busy_us(*part), self.arcs[part]) for part in parts)
            found[Quantity.MEMORY, (unit,)] = self._memory(unit, found)
            if not self.once:
                found[Quantity.CHUNKS, (unit,)] = self._sum(parts)
        for cut in range(1, chain.layer_count):
            found[Quantity.CUT, (cut,)] = self._sum(self.out[cut])
        hops = self._sum([part for part in self.arcs if part[0]])
        return found | total_definitions(chain, variables, hops, once=self.once)

    def _memory(self, unit: int, found: Mapping[VariableKey, Expr]) -> Expr:
        chain, parts = self.chain, self.of_unit[unit]
        if self.once:
            return linear((chain.memory_bytes(part[0], part[1]), self.arcs[part]) for part in parts)
        on = [found[Quantity.ON, (layer, unit)] for layer in range(chain.layer_count)]
        weights = chain.weights.expr(lambda at: on[at], lambda at: on[at] >= 1)
        live = ((max(chain.working_bytes[start:stop]), (start, stop)) for start, stop, _ in parts)
        return weights + linear((size, self.arcs[start, stop, unit]) for size, (start, stop) in live)

    def unit_limits(self, problem: Problem) -> list[Constraint]:
        """Return the capacities of units with several chunks; a single one is too large or no arc."""
        variables = problem.formulation.variables(problem)
        return [
            Constraint(name="unit_memory", expr=variables.number(Quantity.MEMORY, unit) <= capacity)
            for unit, capacity in enumerate(self.chain.unit_memory)
            if capacity is not None and not self.once
        ]

    def _decode(self, values: Values) -> Parts:
        return tuple(sorted(part for part, literal in self.arcs.items() if values(literal)))

    def _exclude(self, parts: Parts) -> BoolExpr:
        return count(self.arcs[part] for part in parts) <= len(parts) - 1
