"""Rules in the search: which prefixes, and which sets of used units, can no longer keep them.

The open rules are evaluated on many prefixes at once, with intervals from what is placed already and
from the bounds on the rest. An expression whose largest possible value is 0 is surely false. On
complete plans all intervals are points, and the verdict is exact.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...formulations.chain import Chain
from ...formulations.expr import And, BoolVar, Const, Expr, IntVar, LessEq, Linear, Max, Not, Or, Variable
from ...formulations.terms import Quantity
from .facts import Facts
from .lattice import Lattice
from .ordering import Flags, Ints
from .prefixes import Layout, complete
from .ranking import CompletionBounds

ArrayInterval = tuple[Ints, Ints]


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

    `chain`, `facts`, `layout`, `cuts`: the tables, the rules that are open, how paths are written, and the
    layer of each boundary.
    """

    def __init__(self, chain: Chain, facts: Facts, layout: Layout, cuts: Ints) -> None:
        self.chain, self.facts, self.layout, self.cuts = chain, facts, layout, cuts

    def __call__(self, nodes: Ints, outlook: CompletionBounds) -> Flags | None:
        """Return the verdicts, one a prefix."""
        placed = _Placed(self, nodes, outlook)
        keep = np.ones(nodes.shape[1], dtype=np.bool_)
        for part in self.facts.open:
            keep &= interval(part, placed)[1] >= 1
        return keep


class _Placed:
    """Intervals of the variables on prefixes."""

    def __init__(self, rules: RulePruner, nodes: Ints, outlook: CompletionBounds) -> None:
        chain, cuts = rules.chain, rules.cuts
        self._chain, self._facts, self._outlook = chain, rules.facts, outlook
        self._whole = complete(nodes)
        stops, units = rules.layout.chunks(nodes)
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
            case Quantity.MEMORY:
                value = self._on_used(unit, used, lambda a, b, _: self._chain.memory_bytes(a, b))
            case _:
                raise ValueError(f"no interval is known for {variable.name}")
        return value, value + later

    def _on_used(self, unit: int, used: Flags, measure: Callable[[int, int, int], int]) -> Ints:
        """Return a measure of the unit's chunk; prefixes share few distinct chunks."""
        size = self._chain.layer_count + 1
        codes, where = np.unique(self._start[unit] * size + self._stop[unit], return_inverse=True)
        values = [measure(c // size, c % size, unit) if c % size else 0 for c in codes.tolist()]
        return np.where(used, np.array(values, dtype=np.int64)[where], 0)

    def _of_plan(self, variable: Variable) -> ArrayInterval:
        outlook = self._outlook
        least: Ints = getattr(outlook, variable.name)
        high = 1 if isinstance(variable, BoolVar) else variable.high
        latency = variable.name in (Quantity.LATENCY, Quantity.STREAM_LATENCY)
        most = np.minimum(outlook.most_latency_us, high) if latency else high
        return least, np.where(self._whole, least, most)
