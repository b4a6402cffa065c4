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
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

from ..chain import Chain, Part
from ..expr import FALSE, BoolExpr, BoolVar, Const, Expr, VariableKey, any_of, count, linear, max_of
from ..expr import variables as find_variables
from ..limits import Limits, limit_rows
from ..loads import gapness, negated
from ..model import Constraint, Digits, Encoded, Model, Values
from ..problem import Problem
from ..scores import clashes
from ..terms import Quantities, Quantity, Term
from .tables import chain_of

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
    spoken = {name for rule in problem.expression_rules for name, _ in find_variables(rule.expr)}
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


# Definitions that both encodings share: each says what `on`, `uses`, `cut`, `busy_us` and `memory_bytes`
# are; the totals of a plan, filters and objective terms follow. They are written so that a small value never
# needs more than "at least" conditions: each `Max` stands where smaller is better, which keeps the linear
# relaxations of the solvers tight and free of choices.


def total_definitions(
    chain: Chain, variables: Quantities, hops: Expr, peak_bytes: Expr | None = None, *, once: bool = True
) -> dict[VariableKey, Expr]:
    """Return the definitions of the totals of a plan over `uses`, `busy_us` and `memory_bytes`.

    `hops`: the number of borders between chunks; `peak_bytes`: a definition of the peak that is tighter than
    the sum of the units' memory, or None; `once`: no unit has several chunks, so that nobody waits.
    """
    units = range(chain.unit_count)
    busy = [variables.number(Quantity.BUSY, unit) for unit in units]
    used = [variables.truth(Quantity.USES, unit) for unit in units]
    pools = chain.pools.values()
    loads = [busy[own[0]] if len(own) == 1 else linear((1, busy[unit]) for unit in own) for own in pools]
    uses = [used[own[0]] if len(own) == 1 else any_of(used[unit] for unit in own) for own in pools]
    most = [sum(busy[unit].high for unit in own) for own in pools]
    period = variables.number(Quantity.PERIOD)
    latency = linear((1, load) for load in busy)
    defined = {
        Quantity.PERIOD: max_of(loads),
        Quantity.LATENCY: latency,
        Quantity.BUBBLES: _bubbles(period, variables.number(Quantity.LATENCY), uses, max(most)),
        Quantity.PAPER_GAPNESS: period + max_of(negated(loads, uses, most)),
        Quantity.GAPNESS: gapness(period, loads, uses, most),
        Quantity.PEAK: linear((1, variables.number(Quantity.MEMORY, unit)) for unit in units),
        Quantity.UNITS: count(used),
        Quantity.HOPS: hops,
    }
    if chain.powers is not None:
        drawn = [*zip(chain.powers.extra_mw, busy, strict=True), (chain.powers.idle_mw, period)]
        defined[Quantity.ENERGY] = linear(drawn)
    if once:
        defined[Quantity.STREAM_LATENCY] = latency
        defined[Quantity.IN_FLIGHT] = _fewest_in_flight(chain, variables)
    if peak_bytes is not None:
        defined[Quantity.PEAK] = peak_bytes
    return {(quantity, ()): expr for quantity, expr in defined.items()}


def _bubbles(period: Expr, latency: Expr, uses: Sequence[BoolExpr], most: int) -> Expr:
    """Return resources in use * period - latency without a product of variables.

    With c of them, c P is the largest of k P - k B [c < k] over k = 1..M, for any B that is at least P.
    """
    used = count(uses)
    whole = max_of(linear([(k, period), (k * most, used >= k)], -k * most) for k in range(1, len(uses) + 1))
    return whole - latency


def _within_periods(chain: Chain, variables: Quantities, periods: int) -> BoolExpr:
    """Return "a request that never waits takes at most this number of periods"."""
    latency = variables.number(Quantity.LATENCY)
    busy = [variables.number(Quantity.BUSY, unit) for unit in range(chain.unit_count)]
    loads = (linear((1, busy[unit]) for unit in own) for own in chain.pools.values())
    return any_of(latency <= periods * load for load in loads)


def _fewest_in_flight(chain: Chain, variables: Quantities) -> Expr:
    """Return how many requests are on their way where none waits: 1 + sum over k of [latency > k periods].

    The loads of M units, or resources, are together at most M periods.
    """
    most = len(chain.pools)
    return most - count(_within_periods(chain, variables, periods) for periods in range(1, most))


def _least_waits(problem: Problem, chain: Chain, variables: Quantities) -> Iterator[Constraint]:
    """Yield lower bounds on what the model does not define, where it is asked for."""
    asked = {problem.formulation.terms[term].field for term in problem.ranking}
    asked |= {name for rule in problem.expression_rules for name, _ in find_variables(rule.expr)}
    least = {
        Quantity.STREAM_LATENCY: variables.number(Quantity.LATENCY),
        Quantity.IN_FLIGHT: _fewest_in_flight(chain, variables),
    }
    for quantity, bound in least.items():
        if quantity in problem.formulation.unmodelled & asked:
            yield Constraint(name=str(quantity), expr=bound <= variables.number(quantity))


def demands(problem: Problem) -> tuple[Constraint, ...]:
    """Return the limits, the capacity of the device and the user's rules, over the quantities of a plan."""
    chain = chain_of(problem)
    variables = problem.formulation.variables(problem)
    excess = problem.formulation.terms[Term.IDLE].excess
    assert excess is not None
    limited = _limits(chain, variables, problem.limits, excess)
    found = [Constraint(name=name, expr=expr) for name, expr in limited]
    found += _least_waits(problem, chain, variables)
    if chain.device_memory is not None:
        peak = variables.number(Quantity.PEAK)
        found.append(Constraint(name="device_memory", expr=peak <= chain.device_memory))
    found += (Constraint(name=rule.name, expr=rule.expr) for rule in problem.expression_rules)
    return tuple(found)


def _limits(
    chain: Chain, variables: Quantities, limits: Limits, idle_excess: Callable[[Chain, int], Expr]
) -> Iterator[tuple[str, BoolExpr]]:
    """Yield the filters in use as conditions.

    Where requests wait, those on latencies in the stream let too much pass: that is what finished plans are
    asked for (`Formulation.unmodelled`).
    """
    period, gapness = variables.number(Quantity.PERIOD), variables.number(Quantity.GAPNESS)
    latency = variables.number(Quantity.LATENCY)
    used = count(variables.truth(Quantity.USES, unit) for unit in range(chain.unit_count))
    others: dict[str, Callable[[int], BoolExpr | None]] = {
        "min_balance_permille": lambda least: 1000 * gapness <= (1000 - least) * period,
        "min_utilisation_permille": lambda least: idle_excess(chain, 1000 - least) <= Const(0),
        "max_stream_latency_us": lambda most: latency <= most,
        "max_in_flight": lambda most: (
            _within_periods(chain, variables, most) if most < chain.unit_count else None
        ),
    }
    return limit_rows(limits, variables.number, used, others)


def conflicts(chain: Chain, uses: Sequence[Expr]) -> list[Constraint]:
    """Return "not both" for each pair of units that exclude each other."""
    return [
        Constraint(name="conflict", expr=uses[unit] + uses[other] <= 1)
        for unit, other in clashes(chain.exclusive)
    ]
