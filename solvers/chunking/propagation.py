"""Prefixes of plans, many at once, and which of them can no longer keep the rules.

Prefixes of plans, many at once: one column a prefix, one row a quantity. The rows are: the key (one row a
term), the path, and what is needed to go on. The path packs the chunks so far, (stop, unit) each in a fixed
number of bits, first chunk in the highest bits of the first word. So columns compared row by row, key first,
compare exactly as plans do in canonical order, and a prefix comes before everything it can become.

Rules in the search: which prefixes, and which sets of used units, can no longer keep them. The open rules are
evaluated on many prefixes at once, with intervals from what is placed already and from the bounds on the
rest. An expression whose largest possible value is 0 is surely false. On complete plans all intervals are
points, and the verdict is exact.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...formulations.chain import Chain
from ...formulations.expr import And, BoolVar, Const, Expr, IntVar, LessEq, Linear, Max, Not, Or, Variable
from ...formulations.terms import Quantity
from .facts import Facts
from .graph import SINK, START, StateGraph
from .lattice import Lattice
from .ranking import CompletionBounds, Flags, Ints, PlanBounds, runs

FIELDS = 8
STATE, MASK, MOST, LEAST, TOTAL, MEMORY, DRAIN, DEPTH = range(-FIELDS, 0)
"""Rows from the end: graph state, set of used units, largest and least busy time, sum of busy times,
bytes, energy above the idle power, number of chunks."""

_WORD_BITS = 62
NO_LEAST = 1 << 60
"""The least busy time of no chunks at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where the rows are.

    `terms`, `words`: number of rows for the key and for the path.
    """

    terms: int
    words: int
    bits: int  # bits of one chunk in the path
    unit_count: int

    @classmethod
    def fitting(cls, terms: int, last: int, unit_count: int) -> Layout:
        """Return the layout for plans on boundaries up to `last`."""
        bits = ((last + 1) * unit_count).bit_length()
        words = -(-min(last, unit_count) // (_WORD_BITS // bits))
        return cls(terms=terms, words=words, bits=bits, unit_count=unit_count)

    @property
    def rank(self) -> slice:
        """Rows that order the columns: key and path."""
        return slice(0, self.terms + self.words)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.terms + self.words + FIELDS

    def start(self) -> Ints:
        """Return the one prefix without chunks."""
        nodes = np.zeros((self.rows, 1), dtype=np.int64)
        nodes[STATE] = START
        nodes[LEAST] = NO_LEAST
        return nodes

    def append(self, nodes: Ints, depth: Ints, code: Ints) -> None:
        """Write one more chunk into the paths, in place."""
        per_word = _WORD_BITS // self.bits
        shifted = code << (_WORD_BITS - self.bits * (depth % per_word + 1))
        if self.words == 1:
            nodes[self.terms] |= shifted
            return
        word = depth // per_word
        for index in range(self.words):
            nodes[self.terms + index] |= np.where(word == index, shifted, 0)

    def chunks(self, ranks: Ints) -> tuple[Ints, Ints]:
        """Return stop boundary and unit of the chunks by [depth][column]; stop 0 where there is none."""
        per_word = _WORD_BITS // self.bits
        codes = np.array(
            [
                (ranks[self.terms + word] >> (_WORD_BITS - self.bits * (place + 1))) & ((1 << self.bits) - 1)
                for word in range(self.words)
                for place in range(per_word)
            ]
        )
        return codes // self.unit_count, codes % self.unit_count

    def parts(self, ranks: Ints, cuts: Ints) -> list[tuple[tuple[int, int, int], ...]]:
        """Return plans as chunks by layer: (start, stop, unit)."""
        stops, units = self.chunks(ranks)
        plans = []
        for ends, names in zip(cuts[stops].T.tolist(), units.T.tolist(), strict=True):
            chunks = zip([0, *ends], ends, names, strict=False)
            plans.append(tuple(chunk for chunk in chunks if chunk[1]))
        return plans


class Growth:
    """How prefixes grow by one chunk."""

    def __init__(self, graph: StateGraph, layout: Layout, exclusive: tuple[frozenset[int], ...]) -> None:
        self.graph, self.layout = graph, layout
        units = np.arange(layout.unit_count, dtype=np.int64)
        bits: Ints = np.left_shift(np.ones_like(units), units)
        blocks = bits.copy()
        for own, others in enumerate(exclusive):
            for other in others:
                blocks[own] |= bits[other]
        chunks, taken = graph.chunks, graph.chunk
        unit = chunks.unit[taken]
        self._unit_bit, self._unit_blocks = bits, blocks
        self._unit, self._busy, self._memory = unit, graph.busy, graph.memory
        self._drain = graph.drain
        self._code = chunks.stop[taken] * layout.unit_count + unit

    def degrees(self, nodes: Ints) -> Ints:
        """Return an upper bound on the number of children of each prefix."""
        state = nodes[STATE]
        degrees: Ints = self.graph.first[state + 1] - self.graph.first[state]
        return degrees

    def grow(self, nodes: Ints) -> Ints:
        """Return all prefixes with one chunk more, their keys not yet set; ordered by parent."""
        graph = self.graph
        state = nodes[STATE]
        begin = graph.first[state]
        counts = graph.first[state + 1] - begin
        parent, arc = runs(begin, counts)
        if not graph.exact:
            keep: Flags = nodes[MASK, parent] & self._unit_blocks[self._unit[arc]] == 0
            parent, arc = parent[keep], arc[keep]
        children = nodes[:, parent]
        busy = self._busy[arc]
        self.layout.append(children, children[DEPTH], self._code[arc])
        children[STATE] = graph.target[arc]
        children[MASK] |= self._unit_bit[self._unit[arc]]
        np.maximum(children[MOST], busy, out=children[MOST])
        np.minimum(children[LEAST], busy, out=children[LEAST])
        children[TOTAL] += busy
        children[MEMORY] += self._memory[arc]
        children[DRAIN] += self._drain[arc]
        children[DEPTH] += 1
        return children


def complete(nodes: Ints) -> Flags:
    """Return which prefixes are whole plans."""
    whole: Flags = nodes[STATE] == SINK
    return whole


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


def keeping(facts: Facts, placed: Callable[[Variable], ArrayInterval], count: int) -> Flags:
    """Return which of some plans that have begun may still keep all rules."""
    keep = np.ones(count, dtype=np.bool_)
    for part in facts.open:
        keep &= interval(part, placed)[1] >= 1
    return keep


class Placed(ABC):
    """Intervals of the variables on plans that have begun: from what is placed, and from bounds on the rest.

    `whole`: which of them are whole plans, where all intervals are points.
    """

    latencies: ClassVar[tuple[str, ...]] = (Quantity.LATENCY,)
    """Quantities that are at most the largest latency."""

    def __init__(self, facts: Facts, bounds: PlanBounds, whole: Flags, count: int) -> None:
        self._facts, self._bounds, self._whole, self._count = facts, bounds, whole, count

    def __call__(self, variable: Variable) -> ArrayInterval:
        """Return the interval of a quantity."""
        known = self._facts.value(variable.key)
        if known is not None:
            value = np.full(self._count, known)
            return value, value
        high = 1 if isinstance(variable, BoolVar) else variable.high
        match variable.name:
            case Quantity.CUT:
                return self._cut(variable.args[0])
            case Quantity.ON:
                return self._on(*variable.args)
            case Quantity.USES | Quantity.BUSY | Quantity.MEMORY | Quantity.CHUNKS:
                return self._of_unit(variable.name, variable.args[0], high)
        least: Ints = getattr(self._bounds, variable.name)
        latency = variable.name in self.latencies
        most = np.minimum(self._bounds.most_latency_us, high) if latency else high
        return least, np.where(self._whole, least, most)

    @abstractmethod
    def _cut(self, boundary: int) -> ArrayInterval:
        """Return whether a chunk ends at a layer."""

    @abstractmethod
    def _on(self, layer: int, unit: int) -> ArrayInterval:
        """Return whether a unit runs a layer."""

    @abstractmethod
    def _of_unit(self, name: str, unit: int, high: int) -> ArrayInterval:
        """Return another quantity of a unit, which is at most `high`."""


class RulePruner:
    """Which prefixes may still keep all rules.

    `chain`, `facts`, `layout`, `cuts`: the tables, the rules that are open, how paths are written, and the
    layer of each boundary.
    """

    def __init__(self, chain: Chain, facts: Facts, layout: Layout, cuts: Ints) -> None:
        self.chain, self.facts, self.layout, self.cuts = chain, facts, layout, cuts

    def __call__(self, nodes: Ints, outlook: CompletionBounds) -> Flags | None:
        """Return the verdicts, one a prefix."""
        return keeping(self.facts, _Prefixes(self, nodes, outlook), nodes.shape[1])


class _Prefixes(Placed):
    """Intervals of the variables on prefixes."""

    latencies: ClassVar[tuple[str, ...]] = (Quantity.LATENCY, Quantity.STREAM_LATENCY)

    def __init__(self, rules: RulePruner, nodes: Ints, outlook: CompletionBounds) -> None:
        chain, cuts, count = rules.chain, rules.cuts, nodes.shape[1]
        super().__init__(rules.facts, outlook, complete(nodes), count)
        self._chain = chain
        stops, units = rules.layout.chunks(nodes)
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

    def _cut(self, boundary: int) -> ArrayInterval:
        there = (self._start == boundary).any(axis=0) | ((self._at == boundary) & ~self._whole)
        return there.astype(np.int64), (there | (self._at < boundary)).astype(np.int64)

    def _on(self, layer: int, unit: int) -> ArrayInterval:
        start, stop = self._start[unit], self._stop[unit]
        value = ((start <= layer) & (layer < stop)).astype(np.int64)
        placed = (stop > 0) | self._whole | (self._at > layer)
        return value, value + np.where(placed, 0, 1)

    def _of_unit(self, name: str, unit: int, high: int) -> ArrayInterval:
        used = self._stop[unit] > 0
        match name:
            case Quantity.USES:
                value = used.astype(np.int64)
            case Quantity.BUSY:
                value = self._on_used(unit, used, self._chain.busy_us)
            case Quantity.MEMORY:
                value = self._on_used(unit, used, lambda a, b, _: self._chain.memory_bytes(a, b))
            case _:
                raise ValueError(f"no interval is known for {name}")
        return value, value + np.where(used | self._whole, 0, high)

    def _on_used(self, unit: int, used: Flags, measure: Callable[[int, int, int], int]) -> Ints:
        """Return a measure of the unit's chunk; prefixes share few distinct chunks."""
        size = self._chain.layer_count + 1
        codes, where = np.unique(self._start[unit] * size + self._stop[unit], return_inverse=True)
        values = [measure(c // size, c % size, unit) if c % size else 0 for c in codes.tolist()]
        return np.where(used, np.array(values, dtype=np.int64)[where], 0)
