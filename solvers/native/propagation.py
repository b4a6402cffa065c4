"""Rules in the search: what they forbid outright, and which prefixes can no longer keep them.

Everything rests on interval evaluation: an expression whose largest possible value is 0 is surely
false. Conjunctions are taken apart first. Then

1. *probing* asks of every literal (a layer on a unit, a used unit, a cut) whether assuming it, or its
   opposite, makes a rule surely false; what follows shrinks the tables themselves;
2. what is left is evaluated on many prefixes at once, with intervals from what is placed already and
   from the bounds on the rest; on complete plans all intervals are points and the verdict is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from ...formulations.chain import Chain
from ...formulations.expr import (
    And,
    BoolExpr,
    BoolVar,
    Const,
    Expr,
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
from ...formulations.quantities import Quantity
from .lattice import Lattice
from .ordering import Flags, Ints
from .prefixes import Layout, complete
from .ranking import Outlook
from .tables import Restrictions

_MOST_PROBES = 40_000
"""Conjuncts with more literals than the square root of this are not probed: the search prunes with them."""
_ROUNDS = 4
_SAFE = 1 << 60
"""Expressions whose intermediate values may exceed this are left to exact checks of finished plans."""

ArrayInterval = tuple[Ints, Ints]


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


def is_safe(expr: Expr) -> bool:
    """Return whether no intermediate value of an expression can leave 64-bit integers."""
    return _magnitude(expr) < _SAFE


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


class Facts:
    """Literals whose value follows from the chain and the rules.

    Attributes
    ----------
    open
        Conjuncts that do not follow from the facts.
    contradictory
        Whether no plan can keep the rules.
    """

    def __init__(self, chain: Chain, rules: Iterable[BoolExpr]) -> None:
        self._chain = chain
        self._known: dict[VariableKey, int] = {}
        self.contradictory = False
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
        self.open = [part for part in parts if part.bounds(self._domain({}))[0] < 1]

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

    def _domain(self, assumed: dict[VariableKey, int]) -> Callable[[Variable], tuple[int, int]]:
        def of(variable: Variable) -> tuple[int, int]:
            key = variable.key
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


def interval(expr: Expr, domain: Callable[[Variable], ArrayInterval]) -> ArrayInterval:
    """Return `Expr.bounds` for many plans at once: least and largest values as arrays."""
    match expr:
        case Const():
            value = np.array([expr.value], dtype=np.int64)
            return value, value
        case BoolVar() | IntVar():
            return domain(expr)
        case Linear():
            low = high = np.array([expr.constant], dtype=np.int64)
            for factor, term in expr.terms:
                least, most = interval(term, domain)
                low = low + factor * (least if factor > 0 else most)
                high = high + factor * (most if factor > 0 else least)
            return low, high
        case LessEq():
            left, right = interval(expr.left, domain), interval(expr.right, domain)
            return (left[1] <= right[0]).astype(np.int64), (left[0] <= right[1]).astype(np.int64)
        case Not():
            low, high = interval(expr.arg, domain)
            return 1 - high, 1 - low
        case And() | Or() | Max():
            fold = np.minimum if isinstance(expr, And) else np.maximum
            low = high = np.array([int(isinstance(expr, And))], dtype=np.int64)
            for position, arg in enumerate(expr.args):
                least, most = interval(arg, domain)
                low, high = (least, most) if position == 0 else (fold(low, least), fold(high, most))
            return low, high
    raise TypeError(f"{type(expr).__name__} is not one of the nine nodes")


def forbid_ends(lattice: Lattice, facts: Facts) -> None:
    """Withdraw from the lattice the points where no plan can end because of which units it uses."""

    def domain(variable: Variable) -> ArrayInterval:
        known = facts.value(variable.key)
        low, high = (0, 1) if isinstance(variable, BoolVar) else (variable.low, variable.high)
        least = np.full(lattice.size, low if known is None else known)
        most = np.full(lattice.size, high if known is None else known)
        if variable.name in (Quantity.ON, Quantity.USES, Quantity.BUSY, Quantity.MEMORY):
            unit = variable.args[-1]
            most = most * lattice.used_high[unit]
            if variable.name == Quantity.USES:
                least = np.maximum(least, lattice.used_low[unit])
        return least, most

    for part in facts.open:
        lattice.terminal[: lattice.size] &= interval(part, domain)[1] >= 1


class RulePruner:
    """Which prefixes may still keep all rules.

    Parameters
    ----------
    chain, facts, layout, cuts
        The tables, the rules that are open, how paths are written, and the layer of each boundary.
    """

    def __init__(self, chain: Chain, facts: Facts, layout: Layout, cuts: Ints) -> None:
        self._chain, self._facts, self._layout, self._cuts = chain, facts, layout, cuts

    def __call__(self, nodes: Ints, outlook: Outlook) -> Flags | None:
        """Return the verdicts, one a prefix."""
        placed = _Placed(self._chain, self._facts, nodes, outlook, self._layout, self._cuts)
        keep = np.ones(nodes.shape[1], dtype=np.bool_)
        for part in self._facts.open:
            keep &= interval(part, placed)[1] >= 1
        return keep


class _Placed:
    """Intervals of the variables on prefixes."""

    def __init__(
        self, chain: Chain, facts: Facts, nodes: Ints, outlook: Outlook, layout: Layout, cuts: Ints
    ) -> None:
        self._chain, self._facts, self._outlook = chain, facts, outlook
        self._whole = complete(nodes)
        stops, units = layout.chunks(nodes)
        count = nodes.shape[1]
        columns = np.arange(count)
        self._start = np.zeros((chain.unit_count, count), dtype=np.int64)
        self._stop = np.zeros_like(self._start)
        self._at = np.zeros(count, dtype=np.int64)
        for stop, unit in zip(stops, units, strict=True):
            there = stop > 0
            end = np.where(there, cuts[stop], self._at)
            self._start[unit[there], columns[there]] = self._at[there]
            self._stop[unit[there], columns[there]] = end[there]
            self._at = end

    def __call__(self, variable: Variable) -> ArrayInterval:
        known = self._facts.value(variable.key)
        if known is not None:
            value = np.full(len(self._at), known)
            return value, value
        match variable.name:
            case Quantity.CUT:
                return self._cut(variable.args[0])
            case Quantity.ON | Quantity.USES | Quantity.BUSY | Quantity.MEMORY:
                return self._of_unit(variable)
            case _:
                return self._of_plan(variable)

    def _cut(self, boundary: int) -> ArrayInterval:
        there = (self._start == boundary).any(axis=0) | ((self._at == boundary) & ~self._whole)
        return there.astype(np.int64), (there | (self._at < boundary)).astype(np.int64)

    def _of_unit(self, variable: Variable) -> ArrayInterval:
        unit = variable.args[-1]
        start, stop = self._start[unit], self._stop[unit]
        used = stop > 0
        high = 1 if isinstance(variable, BoolVar) else variable.high
        later = np.where(used | self._whole, 0, high)
        match variable.name:
            case Quantity.USES:
                value = used.astype(np.int64)
            case Quantity.ON:
                layer = variable.args[0]
                value = ((start <= layer) & (layer < stop)).astype(np.int64)
                later = np.where(self._at > layer, 0, later)
            case Quantity.BUSY:
                value = self._on_used(unit, used, self._chain.busy_us)
            case _:
                value = self._on_used(unit, used, lambda a, b, _: self._chain.memory_bytes(a, b))
        return value, value + later

    def _on_used(self, unit: int, used: Flags, measure: Callable[[int, int, int], int]) -> Ints:
        """Return a measure of the unit's chunk; prefixes share few distinct chunks."""
        size = self._chain.layer_count + 1
        codes, where = np.unique(self._start[unit] * size + self._stop[unit], return_inverse=True)
        values = [measure(c // size, c % size, unit) if c % size else 0 for c in codes.tolist()]
        return np.where(used, np.array(values, dtype=np.int64)[where], 0)

    def _of_plan(self, variable: Variable) -> ArrayInterval:
        outlook = self._outlook
        gapness = np.maximum(outlook.period - outlook.least, 0)
        least = {
            Quantity.PERIOD: outlook.period,
            Quantity.GAPNESS: gapness,
            Quantity.PAPER_GAPNESS: gapness,
            Quantity.LATENCY: outlook.total,
            Quantity.BUBBLES: outlook.bubbles,
            Quantity.PEAK: outlook.memory,
        }[Quantity(variable.name)]
        high = 1 if isinstance(variable, BoolVar) else variable.high
        most = np.minimum(outlook.most_total, high) if variable.name == Quantity.LATENCY else high
        return least, np.where(self._whole, least, most)
