"""The quantities of a plan: what rules speak about, backends encode and the judge computes.

Each quantity is a variable (`BoolVar` or `IntVar`) in expressions, and a number on a finished plan.
The definitions below are the only ones.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from ..chain import Chain, Part
from ..expr import BoolVar, IntVar, Variable
from ..objective import Term


class Quantity(StrEnum):
    """Names of the variables that describe a plan, with their indices."""

    ON = "on"  # (layer, unit): the unit runs the layer
    USES = "uses"  # (unit): the unit runs at least one layer
    CUT = "cut"  # (boundary): a chunk ends and the next one starts here, 0 < boundary < n
    BUSY = "busy_us"  # (unit): busy time per period, 0 when not used
    MEMORY = "memory_bytes"  # (unit): weights and live tensors, 0 when not used
    PERIOD = "period_us"
    GAPNESS = "gapness_us"
    PAPER_GAPNESS = "paper_gapness_us"
    LATENCY = "latency_us"
    BUBBLES = "bubbles_us"
    PEAK = "peak_bytes"


TERM_QUANTITY = {
    Term.PERIOD: Quantity.PERIOD,
    Term.GAPNESS: Quantity.GAPNESS,
    Term.PAPER_GAPNESS: Quantity.PAPER_GAPNESS,
    Term.LATENCY: Quantity.LATENCY,
    Term.BUBBLES: Quantity.BUBBLES,
    Term.PEAK_MEMORY: Quantity.PEAK,
}
"""The quantity that a term minimises; IDLE is a ratio and stands apart."""


class PlanValues:
    """Every quantity of one well-formed plan, in exact integers.

    Parameters
    ----------
    chain
        The tables of the problem.
    parts
        Chunks by index, in order of their layers, each unit at most once.
    """

    def __init__(self, chain: Chain, parts: tuple[Part, ...]) -> None:
        self.chain = chain
        self.parts = parts
        self.busy_us = {unit: chain.busy_us(start, stop, unit) for start, stop, unit in parts}
        self.memory_bytes = {unit: chain.memory_bytes(start, stop) for start, stop, unit in parts}
        busy = self.busy_us.values()
        self.period_us = max(busy)
        self.latency_us = sum(busy)
        self.paper_gapness_us = self.period_us - min(busy)
        lonely = len(parts) == 1 and chain.unit_count > 1
        self.gapness_us = self.period_us if lonely else self.paper_gapness_us
        self.bubbles_us = len(parts) * self.period_us - self.latency_us
        self.peak_bytes = sum(self.memory_bytes.values())

    @property
    def idle_permille(self) -> int:
        """Unused share of all units over one period, permille, rounded up."""
        whole = self.chain.unit_count * self.period_us
        return -(-1000 * (whole - self.latency_us) // whole)

    def term(self, term: Term) -> int:
        """Return the value of an objective term."""
        if term is Term.IDLE:
            return self.idle_permille
        value: int = getattr(self, TERM_QUANTITY[term].value)
        return value

    def __call__(self, variable: Variable) -> int:
        """Return the value of a variable on this plan."""
        return _READERS[Quantity(variable.name)](self, *variable.args)

    def _on(self, layer: int, unit: int) -> int:
        return int(any(start <= layer < stop and u == unit for start, stop, u in self.parts))

    def _uses(self, unit: int) -> int:
        return int(unit in self.busy_us)

    def _cut(self, boundary: int) -> int:
        return int(any(start == boundary for start, _, _ in self.parts))


_READERS: dict[Quantity, Callable[..., int]] = {
    Quantity.ON: PlanValues._on,
    Quantity.USES: PlanValues._uses,
    Quantity.CUT: PlanValues._cut,
    Quantity.BUSY: lambda values, unit: values.busy_us.get(unit, 0),
    Quantity.MEMORY: lambda values, unit: values.memory_bytes.get(unit, 0),
    Quantity.PERIOD: lambda values: values.period_us,
    Quantity.GAPNESS: lambda values: values.gapness_us,
    Quantity.PAPER_GAPNESS: lambda values: values.paper_gapness_us,
    Quantity.LATENCY: lambda values: values.latency_us,
    Quantity.BUBBLES: lambda values: values.bubbles_us,
    Quantity.PEAK: lambda values: values.peak_bytes,
}


class QuantityVariables:
    """The variables of one chain, with bounds that hold for every plan."""

    def __init__(self, chain: Chain) -> None:
        self.chain = chain
        count = chain.layer_count
        self._most_bytes = chain.weight_prefix[count] + max(chain.working_bytes, default=0)
        units = range(chain.unit_count)
        self._most_busy = [chain.most_busy_us(unit) for unit in units]
        slowest = sum(max((t or 0 for t in row), default=0) for row in chain.layer_us)
        self._most_latency = slowest + sum(chain.copies_us(unit) for unit in units)

    def on(self, layer: int, unit: int) -> BoolVar:
        """Return "the unit runs the layer"."""
        return BoolVar(Quantity.ON, (layer, unit))

    def uses(self, unit: int) -> BoolVar:
        """Return "the unit runs at least one layer"."""
        return BoolVar(Quantity.USES, (unit,))

    def cut(self, boundary: int) -> BoolVar:
        """Return "a chunk ends at this boundary"."""
        return BoolVar(Quantity.CUT, (boundary,))

    def busy_us(self, unit: int) -> IntVar:
        """Return the busy time of a unit."""
        return IntVar(Quantity.BUSY, (unit,), 0, self._most_busy[unit])

    def memory_bytes(self, unit: int) -> IntVar:
        """Return the bytes that the chunk on a unit needs."""
        return IntVar(Quantity.MEMORY, (unit,), 0, self._most_bytes)

    def total(self, quantity: Quantity) -> IntVar:
        """Return a quantity of the whole plan."""
        high = {
            Quantity.PEAK: self.chain.unit_count * self._most_bytes,
            Quantity.LATENCY: self._most_latency,
            Quantity.BUBBLES: self.chain.unit_count * max(self._most_busy),
        }.get(quantity, max(self._most_busy))
        return IntVar(quantity, (), 0, high)
