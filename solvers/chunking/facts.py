"""What follows from rules and bounds before any search: literals, caps, and which chunks remain.

Everything rests on interval evaluation: an expression whose largest possible value is 0 is surely
false. Conjunctions are taken apart first. Then *probing* asks

- of every literal (a layer on a unit, a used unit, a cut) whether assuming it, or its opposite, makes
  a rule surely false: what follows shrinks the tables themselves;
- of every quantity for the largest value at which no rule is surely false, by bisection: the interval
  [x, high] only shrinks as x grows, so "surely false" is monotone in x.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from ...formulations.chain import Chain
from ...formulations.chunking.quantities import TERMS
from ...formulations.expr import (
    And,
    BoolExpr,
    BoolVar,
    Const,
    Expr,
    Interval,
    IntVar,
    LessEq,
    Linear,
    Max,
    Not,
    Or,
    Variable,
    VariableKey,
    variables,
)
from ...formulations.limits import Limits
from ...formulations.terms import Quantity, Term
from .tables import Restrictions, Window

_MOST_PROBES = 40_000
"""Conjuncts with more literals than the square root of this are not probed: the search prunes with them."""
_ROUNDS = 4
_KNOWN = frozenset(
    {
        Quantity.ON,
        Quantity.USES,
        Quantity.CUT,
        Quantity.BUSY,
        Quantity.MEMORY,
        Quantity.PERIOD,
        Quantity.GAPNESS,
        Quantity.PAPER_GAPNESS,
        Quantity.LATENCY,
        Quantity.BUBBLES,
        Quantity.PEAK,
        Quantity.ENERGY,
        Quantity.UNITS,
        Quantity.HOPS,
        Quantity.STREAM_LATENCY,
        Quantity.IN_FLIGHT,
        Quantity.CHUNKS,
    }
)
"""Quantities that `propagation.py` has intervals for."""

_SAFE = 1 << 60
"""Expressions whose intermediate values may exceed this are left to exact checks of finished plans."""


def conjuncts(expr: BoolExpr) -> Iterator[BoolExpr]:
    """Return expressions that are all true exactly if the given one is."""
    match expr:
        case And():
            for arg in expr.args:
                yield from conjuncts(arg)
        case Not(Or() as inner):
            for arg in inner.args:
                yield from conjuncts(Not(arg))
        case Not(Not() as inner):
            yield from conjuncts(inner.arg)
        case _:
            yield expr


def is_known(expr: Expr) -> bool:
    """Return whether the search can reason about an expression.

    It cannot where an intermediate value may leave 64-bit integers, and where a quantity is one that it has
    no intervals for: such rules are checked on finished plans.
    """
    return _magnitude(expr) < _SAFE and all(name in _KNOWN for name, _ in variables(expr))


def _magnitude(expr: Expr) -> int:
    match expr:
        case Const():
            return abs(expr.value)
        case BoolVar():
            return 1
        case IntVar():
            return max(abs(expr.low), abs(expr.high))
        case Linear():
            return abs(expr.constant) + sum(abs(factor) * _magnitude(term) for factor, term in expr.terms)
        case LessEq():
            return max(_magnitude(expr.left), _magnitude(expr.right))
        case Not():
            return _magnitude(expr.arg)
        case And() | Or() | Max():
            return max((_magnitude(arg) for arg in expr.args), default=1)
    raise TypeError(f"{type(expr).__name__} is not one of the nine nodes")


_TERMS = {info.field: name for name, info in TERMS.items() if info.excess is None}

Given = dict[VariableKey, Interval]
"""Intervals of quantities that are known from elsewhere."""


class Facts:
    """Literals whose value follows from the chain and the rules."""

    def __init__(self, chain: Chain, rules: Iterable[BoolExpr]) -> None:
        self._chain = chain
        self._known: dict[VariableKey, int] = {}
        self.contradictory = False  # whether no plan can keep the rules
        for layer, row in enumerate(chain.layer_us):
            self._known.update({(Quantity.ON, (layer, u)): 0 for u, t in enumerate(row) if t is None})
        illegal = set(range(1, chain.layer_count)) - set(chain.cuts)
        self._known.update({(Quantity.CUT, (cut,)): 0 for cut in illegal})
        parts = [part for rule in rules for part in conjuncts(rule)]
        literals = [
            [key for key, var in variables(part).items() if isinstance(var, BoolVar)] for part in parts
        ]
        for _ in range(_ROUNDS):
            before = len(self._known)
            for part, keys in zip(parts, literals, strict=True):
                self._probe(part, keys if len(keys) ** 2 <= _MOST_PROBES else [])
            if len(self._known) == before or self.contradictory:
                break
        # The tables enforce every fact but "this unit is used": what rests on that stays open.
        self._known = {
            key: value for key, value in self._known.items() if not (key[0] == Quantity.USES and value)
        }
        # conjuncts that do not follow from the facts
        self.open = [part for part in parts if part.bounds(self._domain({}))[0] < 1]
        self._quantities = [
            (part, [var for var in variables(part).values() if isinstance(var, IntVar)]) for part in self.open
        ]

    @property
    def bound_plans(self) -> bool:
        """Whether an open rule speaks of the period, the latency or another quantity of whole plans."""
        return any(not var.args for _, found in self._quantities for var in found)

    def plan_caps(self, least_period: int, most_period: int) -> Iterator[tuple[str, int]]:
        """Return what the terms of plans with a period in a range cannot exceed, where rules say so."""
        given: Given = {(Quantity.PERIOD, ()): (least_period, most_period)}
        for part, found in self._quantities:
            for var in found:
                term = _TERMS.get(var.name)
                if term is not None:
                    span = given.get(var.key, (var.low, var.high))
                    yield term, self._cap(part, var.key, span, given)

    def unit_caps(self, quantity: Quantity) -> dict[int, int]:
        """Return what the busy time (or the bytes) of units cannot exceed, where rules say so."""
        caps: dict[int, int] = {}
        for part, found in self._quantities:
            for var in found:
                if var.name == quantity:
                    unit, cap = var.args[0], self._cap(part, var.key, (var.low, var.high), {})
                    caps[unit] = min(cap, caps.get(unit, cap))
        return caps

    @property
    def restrictions(self) -> Restrictions:
        """What the tables need to know."""
        layers = range(self._chain.layer_count)
        on = {args for (name, args), value in self._known.items() if name == Quantity.ON and not value}
        unused = {
            args[0] for (name, args), value in self._known.items() if name == Quantity.USES and not value
        }
        cuts = {(args[0], value) for (name, args), value in self._known.items() if name == Quantity.CUT}
        return Restrictions(
            blocked=frozenset((layer, unit) for layer, unit in on)
            | frozenset((layer, unit) for layer in layers for unit in unused),
            uncut=frozenset(cut for cut, value in cuts if not value),
            cut=frozenset(cut for cut, value in cuts if value),
            most_busy=self.unit_caps(Quantity.BUSY),
            most_bytes=self.unit_caps(Quantity.MEMORY),
        )

    def value(self, key: VariableKey) -> int | None:
        """Return the value of a literal if it is known."""
        return self._known.get(key)

    def _probe(self, part: BoolExpr, keys: list[VariableKey]) -> None:
        if part.bounds(self._domain({}))[1] < 1:
            self.contradictory = True
            return
        for key in keys:
            if key in self._known:
                continue
            possible = [
                value for value in (0, 1) if part.bounds(self._domain(self._implied(key, value)))[1] >= 1
            ]
            if not possible:
                self.contradictory = True
            elif len(possible) == 1:
                self._known.update(self._implied(key, possible[0]))

    def _implied(self, key: VariableKey, value: int) -> dict[VariableKey, int]:
        """Return a literal with what follows from it at once."""
        implied = {key: value}
        name, args = key
        if name == Quantity.ON and value:
            layer, unit = args
            implied |= {(Quantity.ON, (layer, u)): int(u == unit) for u in range(self._chain.unit_count)}
            implied[Quantity.USES, (unit,)] = 1
        return implied

    def _cap(self, part: BoolExpr, key: VariableKey, span: Interval, given: Given) -> int:
        """Return the largest value in `span` at which a rule is possible; one below it if there is none."""
        low, high = span
        implied: dict[VariableKey, int] = {(Quantity.USES, key[1]): 1} if key[1] else {}

        def possible(value: int) -> bool:
            domain = self._domain(implied if value else {}, {**given, key: (value, high)})
            return part.bounds(domain)[1] >= 1

        if possible(high):
            return high
        low -= 1
        while high - low > 1:
            middle = (low + high) // 2
            if possible(middle):
                low = middle
            else:
                high = middle
        return low

    def _domain(
        self, assumed: dict[VariableKey, int], given: Given | None = None
    ) -> Callable[[Variable], Interval]:
        def of(variable: Variable) -> Interval:
            key = variable.key
            if given and key in given:
                return given[key]
            value = assumed.get(key, self._known.get(key))
            if value is None and self._idle(variable, assumed):
                value = 0
            if value is not None:
                return value, value
            return (0, 1) if isinstance(variable, BoolVar) else (variable.low, variable.high)

        return of

    def _idle(self, variable: Variable, assumed: dict[VariableKey, int]) -> bool:
        """Return whether a variable is 0 because its unit is not used."""
        if variable.name not in (Quantity.ON, Quantity.BUSY, Quantity.MEMORY):
            return False
        key = (Quantity.USES, (variable.args[-1],))
        return assumed.get(key, self._known.get(key)) == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A window of chunks, and what is proven about the plans that are looked for in it.

    `floor`, `most_period`: lower and upper bound on the period of these plans.
    """

    window: Window  # chunks outside of it belong to no plan that is looked for
    floor: int
    most_period: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrowing:
    """How bounds on plans become bounds on chunks.

    `idle_mw`, `least_drain`: idle power of all units, and energy above it that no plan undercuts; 0 where
    energy does not matter.
    """

    limits: Limits  # the filters
    unit_count: int  # number of units of the platform
    most_chunks: int  # most chunks of a plan
    facts: Facts  # what follows from the rules
    idle_mw: int = 0
    least_drain: int = 0

    @property
    def filters_least(self) -> bool:
        """Whether a filter or a rule bounds the least busy time or the total from below."""
        limits = self.limits
        filters = (limits.min_balance_permille, limits.max_gapness_us, limits.min_utilisation_permille)
        return self.facts.bound_plans or any(limit is not None for limit in filters)

    def filtered(self, box: Box) -> Box:
        """Return the box that the filters and the rules leave.

        A plan of period T >= floor needs least busy times of at least rho T and T - g, and a total of
        at least (utilisation x units x T).
        """
        limits, floor = self.limits, box.floor
        low = box.window.low
        if limits.min_balance_permille is not None:
            low = max(low, -(-limits.min_balance_permille * floor // 1000))
        if limits.max_gapness_us is not None:
            low = max(low, floor - limits.max_gapness_us)
        least = -(-(limits.min_utilisation_permille or 0) * self.unit_count * floor // 1000)
        box = self._with_total(replace(box, window=replace(box.window, low=low)), least)
        if limits.max_latency_us is not None:
            box = self.capped(box, Term.LATENCY, limits.max_latency_us)
        if limits.max_stream_latency_us is not None:
            box = self.capped(box, Term.STREAM_LATENCY, limits.max_stream_latency_us)
        if limits.max_in_flight is not None:
            box = self.capped(box, Term.LATENCY, min(limits.max_in_flight, self.unit_count) * box.most_period)
        if limits.max_energy_nj is not None:
            box = self.capped(box, Term.ENERGY, limits.max_energy_nj)
        if self.facts.bound_plans:
            for term, value in self.facts.plan_caps(floor, max(floor, box.most_period)):
                box = self.capped(box, term, value)
        return box

    def capped(self, box: Box, term: str, value: int) -> Box:
        """Return the box of the plans whose term is at most `value`."""
        window = box.window
        match term:
            case Term.PERIOD:
                window = replace(window, high=min(window.high, value))
                box = replace(box, most_period=min(box.most_period, value))
            case Term.LATENCY | Term.STREAM_LATENCY:
                total = value if window.most_total is None else min(value, window.most_total)
                window = replace(window, most_total=total, high=min(window.high, value))
            case Term.PEAK_MEMORY:
                memory = value if window.most_memory is None else min(value, window.most_memory)
                window = replace(window, most_memory=memory)
            case Term.ENERGY:
                drain = value - self.idle_mw * box.floor
                drain = drain if window.most_drain is None else min(drain, window.most_drain)
                window = replace(window, most_drain=drain)
                if self.idle_mw:
                    box = self.capped(box, Term.PERIOD, (value - self.least_drain) // self.idle_mw)
                    window = replace(window, high=box.window.high)
            case Term.UNITS | Term.HOPS | Term.IN_FLIGHT:  # say nothing about single chunks
                pass
            case Term.IDLE:
                least = -(-(1000 - value) * self.unit_count * box.floor // 1000)
                return self._with_total(box, least)
            case _:  # every used unit idles at most the gapness, and at most all bubbles
                window = replace(window, low=max(window.low, box.floor - value))
        return replace(box, window=window)

    def _with_total(self, box: Box, least_total: int) -> Box:
        window = box.window
        if least_total <= window.least_total:
            return box
        low = max(window.low, least_total - (self.most_chunks - 1) * window.high)
        return replace(box, window=replace(window, least_total=least_total, low=low))
