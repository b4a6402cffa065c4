"""Prefixes of plans, many at once: one column a prefix, one row a quantity.

The rows are: the key (one row a term), the path, and what is needed to go on. The path packs the
chunks so far, (stop, unit) each in a fixed number of bits, first chunk in the highest bits of the
first word. So columns compared row by row, key first, compare exactly as plans do in canonical
order, and a prefix comes before everything it can become.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .graph import SINK, START, StateGraph
from .ordering import Flags, Ints, runs

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
