"""Rules in the search: which labels can no longer keep them.

The open rules are evaluated on many labels at once, with intervals from what is placed and from bounds on the
rest. On whole plans all intervals are points, and the verdict is exact.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ...formulations.chunking.quantities import Quantity
from ...formulations.expr import BoolVar, Variable
from ..chunking.facts import Facts
from ..chunking.ordering import Flags, Ints
from ..chunking.propagation import ArrayInterval, interval
from .outlook import Bounds
from .sweep import Labels
from .table import Table


class RulePruner:
    """Which labels may still keep all rules."""

    def __init__(self, table: Table, facts: Facts) -> None:
        self.table, self.facts = table, facts

    def __call__(self, at: int, labels: Labels, bounds: Bounds) -> Flags | None:
        """Return the verdicts, one per label."""
        placed = _Placed(self, at, labels, bounds)
        keep = np.ones(len(labels), dtype=np.bool_)
        for part in self.facts.open:
            keep &= interval(part, placed)[1] >= 1
        return keep

    @cached_property
    def piece(self) -> Ints:
        """The piece of each layer."""
        cuts = self.table.cuts
        return np.repeat(np.arange(len(cuts) - 1), np.diff(cuts))

    @cached_property
    def boundary(self) -> dict[int, int]:
        """The boundary at each layer where there is one."""
        return {cut: place for place, cut in enumerate(self.table.cuts.tolist())}


class _Placed:
    """Intervals of the variables on labels."""

    def __init__(self, rules: RulePruner, at: int, labels: Labels, bounds: Bounds) -> None:
        self._rules, self._at, self._labels, self._bounds = rules, at, labels, bounds
        self._whole = bounds.lonely is not None

    def __call__(self, variable: Variable) -> ArrayInterval:
        known = self._rules.facts.value(variable.key)
        if known is not None:
            value = np.full(len(self._labels), known)
            return value, value
        high = 1 if isinstance(variable, BoolVar) else variable.high
        match variable.name:
            case Quantity.CUT:
                least, most = self._cut(variable.args[0])
            case Quantity.ON:
                least, most = self._on(*variable.args)
            case Quantity.USES | Quantity.BUSY | Quantity.MEMORY | Quantity.CHUNKS:
                least = self._of_unit(variable.name, variable.args[0])
                most = least if self._whole else np.full_like(least, high)
            case _:
                return self._of_plan(variable.name, high)
        return least, most

    def _cut(self, layer: int) -> ArrayInterval:
        place, path = self._rules.boundary.get(layer), self._labels.path
        if place is None:
            return self._constant(0), self._constant(0)
        if place >= self._at:
            return self._constant(0), self._constant(1)
        there = (path[place - 1] != path[place]).astype(np.int64)
        return there, there

    def _on(self, layer: int, unit: int) -> ArrayInterval:
        piece = int(self._rules.piece[layer])
        if piece >= self._at:
            return self._constant(0), self._constant(int(self._rules.table.able[piece, unit]))
        there = (self._labels.path[piece] == unit).astype(np.int64)
        return there, there

    def _of_unit(self, name: str, unit: int) -> Ints:
        state, path = self._labels.state, self._labels.path
        found: Ints
        match name:
            case Quantity.USES:
                found = (state.mask >> unit) & 1
            case Quantity.BUSY:
                leave = self._rules.table.leave[-1][unit] if self._whole else 0
                found = state.loads[unit] + np.where(self._labels.unit == unit, leave, 0)
            case Quantity.MEMORY:
                found = state.bytes[unit]
            case _:
                own = path == unit
                found = own[0] + (own[1:] & ~own[:-1]).sum(axis=0)
        return found

    def _of_plan(self, name: str, high: int) -> ArrayInterval:
        bounds = self._bounds
        gapness = paper = np.maximum(bounds.period - bounds.least, 0)
        if bounds.lonely is not None:
            gapness = np.where(bounds.lonely, bounds.period, paper)
        least = {
            Quantity.PERIOD: bounds.period,
            Quantity.GAPNESS: gapness,
            Quantity.PAPER_GAPNESS: paper,
            Quantity.LATENCY: bounds.latency,
            Quantity.BUBBLES: bounds.bubbles,
            Quantity.PEAK: bounds.memory,
            Quantity.ENERGY: bounds.energy,
            Quantity.UNITS: bounds.units,
            Quantity.HOPS: bounds.hops,
        }[Quantity(name)]
        if self._whole:
            return least, least
        most = self._constant(high)
        return least, np.minimum(bounds.most_latency, high) if name == Quantity.LATENCY else most

    def _constant(self, value: int) -> Ints:
        return np.full(len(self._labels), value, dtype=np.int64)
