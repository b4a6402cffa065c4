"""Chunks that any two down-sets of a graph of operators bound, as places and spans of the program.

A chain of chunks over a graph is a chain of down-sets D0 < D1 < ...; results may pass by chunks that do not
read them. What tiles of a chunk (D, E) compute follows from its results backward, D says what of it counts;
so one sweep serves all chunks that end at E with the same results (cooperation, section 3).
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...formulations.bit_sets import members
from ...formulations.cooperation.segments import Amount, Segment
from ...formulations.spatial import SpatialNetwork
from ..down_sets import Set, down_sets
from ..pipelines.arrays import Ints
from ..protocol import Deadline, TimeIsUpError


def operator_sets(network: SpatialNetwork, most: int) -> tuple[Set, ...]:
    """Return all down-sets of the operators of a network, small ones first; inputs are not in them.

    Raises TooManySetsError: there are more than `most`.
    """
    place = {node: index for index, node in enumerate(network.operators)}
    before = [
        sum(1 << place[source] for source in set(network.nodes[node].sources) if source in place)
        for node in network.operators
    ]
    nodes = list(place)
    return tuple(sum(1 << nodes[index] for index in members(one)) for one in down_sets(before, most))


@dataclass(frozen=True, eq=False)
class Lattice:
    """Down-sets as places, and the chunks between them.

    `network`, `side`: the graph, and along which axis maps are split.
    """

    network: SpatialNetwork
    side: int
    sets: tuple[Set, ...]  # down-sets, small ones first; the first is empty, the last has all operators
    deadline: Deadline  # when to give up, with `TimeIsUpError`

    @cached_property
    def _readers(self) -> list[Set]:
        return [sum(1 << reader for reader in readers) for readers in self.network.readers]

    @cached_property
    def spans(self) -> tuple[tuple[int, int], ...]:
        """The chunks: (place where it begins, place where it ends)."""
        return tuple(
            (start, stop)
            for start, done in enumerate(self.sets)
            for stop in range(start + 1, len(self.sets))
            if done & ~self.sets[stop] == 0
        )

    @cached_property
    def boundary_bytes(self) -> tuple[int, ...]:
        """Bytes that are made before each place and used behind it, inputs and results of the network too."""
        nodes = self.network.nodes
        inputs = [node for node, about in enumerate(nodes) if about.is_input]
        return tuple(
            sum(nodes[node].bytes for node in inputs if self._readers[node] & ~done)
            + sum(nodes[node].bytes for node in sinks)
            for done, sinks in zip(self.sets, self._sinks, strict=True)
        )

    def amounts(self, by_node: Sequence[int]) -> tuple[int, ...]:
        """Return the sum of some amounts of nodes over each down-set."""
        return tuple(sum(by_node[node] for node in members(done)) for done in self.sets)

    def of(self, start: int, stop: int) -> Segment:
        """Return the chunk between two places, as one piece."""
        return self._segments[start, stop]

    @cached_property
    def _segments(self) -> Mapping[tuple[int, int], Segment]:
        sweeps: dict[tuple[int, tuple[int, ...]], _Sweep] = {}
        found = {}
        for start, stop in self.spans:
            if self.deadline.passed:
                raise TimeIsUpError
            sinks = tuple(node for node in self._sinks[stop] if not self.sets[start] >> node & 1)
            if (stop, sinks) not in sweeps:
                sweeps[stop, sinks] = _Sweep(self, self.sets[stop], sinks)
            found[start, stop] = sweeps[stop, sinks].segment(self.sets[start])
        return found

    @cached_property
    def _sinks(self) -> list[list[int]]:
        """By place the nodes before it whose results are used behind it, or are those of the network."""
        results = set(self.network.outputs)
        return [
            [node for node in members(done) if self._readers[node] & ~done or node in results]
            for done in self.sets
        ]


class _Sweep:
    """What tiles of the results of a down-set need of every node before them."""

    def __init__(self, lattice: Lattice, end: Set, sinks: tuple[int, ...]) -> None:
        self._lattice, self._end, self._sinks = lattice, end, sinks
        network, side = lattice.network, lattice.side
        self._rows = min((network.nodes[node].size[side] for node in sinks), default=1)
        borders = np.arange(self._rows + 1)
        self._shares = {n: borders * network.nodes[n].size[side] // self._rows for n in sinks}
        self._needs: dict[int, tuple[Ints, Ints]] = {n: (own, own) for n, own in self._shares.items()}
        self._reads: dict[int, list[tuple[int, tuple[Ints, Ints]]]] = {}
        for reader in sorted(members(end), reverse=True):
            if reader in self._needs:
                self._reads[reader] = list(self._read(reader))
                for source, need in self._reads[reader]:
                    self._join(self._needs, source, need)

    def segment(self, start: Set) -> Segment:
        """Return the chunk from a down-set on, whose results are all its own."""
        nodes, side = self._lattice.network.nodes, self._lattice.side
        inside = list(members(self._end & ~start))
        if not all(nodes[node].splits[side] for node in inside):
            return self._whole(inside)
        received: dict[int, tuple[Ints, Ints]] = {}
        for reader in inside:
            for source, need in self._reads[reader]:
                if nodes[source].is_input or start >> source & 1:
                    self._join(received, source, need)
        work = self._total([(max(1, nodes[node].flops), node) for node in inside], self._needs)
        shares = {node: (own, own) for node, own in self._shares.items()}
        return Segment(
            rows=self._rows,
            work=(work,),
            received=self._total([(nodes[node].bytes, node) for node in received], received),
            sent=self._total([(nodes[node].bytes, node) for node in self._sinks], shares),
        )

    def _whole(self, inside: Sequence[int]) -> Segment:
        work = sum(max(1, self._lattice.network.nodes[node].flops) for node in inside)
        nothing = Amount(starts=(0, 0), ends=(0, 0))
        return Segment(rows=1, work=(Amount(starts=(0, 0), ends=(0, work)),), received=nothing, sent=nothing)

    def _read(self, reader: int) -> Iterator[tuple[int, tuple[Ints, Ints]]]:
        """Yield what a node reads of each of its sources."""
        nodes, side = self._lattice.network.nodes, self._lattice.side
        first, last = self._needs[reader]
        for source, windows in zip(nodes[reader].sources, nodes[reader].windows, strict=True):
            window, size = windows[side], nodes[source].size[side]
            if window is None:
                yield source, (np.zeros_like(first), np.full_like(last, size))
                continue
            above = (first * window.stride - window.before) // window.up
            reach = (last - 1) * window.stride - window.before + window.extent - 1
            below = reach // window.up + 1
            # `np.clip` takes five times as long.
            yield source, (np.minimum(np.maximum(above, 0), size - 1), np.minimum(np.maximum(below, 1), size))

    @staticmethod
    def _join(needs: dict[int, tuple[Ints, Ints]], node: int, need: tuple[Ints, Ints]) -> None:
        before = needs.get(node, need)
        needs[node] = (np.minimum(before[0], need[0]), np.maximum(before[1], need[1]))

    def _total(self, amounts: Sequence[tuple[int, int]], needs: Mapping[int, tuple[Ints, Ints]]) -> Amount:
        nodes, side = self._lattice.network.nodes, self._lattice.side
        starts, ends = (np.zeros(self._rows + 1, np.int64) for _ in range(2))
        for amount, node in amounts:
            a_row = -(-amount // nodes[node].size[side])
            starts += a_row * needs[node][0]
            ends += a_row * needs[node][1]
        # Arrays: lists of numbers would take five times as much memory, and there are thousands of chunks.
        return Amount(starts=array("q", starts.tolist()), ends=array("q", ends.tolist()))
