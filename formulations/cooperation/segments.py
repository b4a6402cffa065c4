"""What tiles of a chunk compute and read, by where they begin and end.

The rows of every operator that a tile [a, b) of the chunk's rows needs begin where `a` says and end where `b`
says: start and end go backward through the graph one by one. So whatever a tile computes or reads is E(b) -
S(a) with two lists a quantity, and the halos of neighbours meet at one border (cooperation, section 1).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import add

from ..groups import Cooperation
from ..spatial import SpatialNetwork
from ..tiles import sources_of


@dataclass(frozen=True, kw_only=True)
class Amount:
    """An amount of a tile [a, b): `ends[b] - starts[a]`.

    `starts`, `ends`: by border 0..H; `starts[H]` and `ends[0]` are of no tile.
    """

    starts: Sequence[int]
    ends: Sequence[int]

    def of(self, start: int, stop: int) -> int:
        """Return the amount of a tile."""
        return self.ends[stop] - self.starts[start]

    @cached_property
    def rows(self) -> int:
        """Number of rows H."""
        return len(self.ends) - 1

    @cached_property
    def one_border(self) -> tuple[int, ...]:
        """The most of a tile of r rows at the first or the last border, by r; 0 for no rows."""
        first, last = self.starts[0], self.ends[self.rows]
        top = [end - first for end in self.ends[1:]]
        bottom = [last - start for start in self.starts[self.rows - 1 :: -1]]
        return (0, *map(max, top, bottom))

    @cached_property
    def two_borders(self) -> tuple[int, ...]:
        """The most of a tile of r rows at a border or in the middle, by r."""
        rows, starts, ends = self.rows, self.starts, self.ends
        middles = [ends[(rows + r) // 2] - starts[(rows - r) // 2] for r in range(1, rows + 1)]
        return (0, *map(max, self.one_border[1:], middles))

    def by_rows(self, group: int) -> tuple[int, ...]:
        """Return by r the most of a tile of r rows in a group of so many, all of the map for one alone.

        Of two tiles each has one neighbour; of more, all but two have two.
        """
        return self.one_border if group <= 2 else self.two_borders


@dataclass(frozen=True, kw_only=True)
class Segment:
    """Consecutive pieces as one chunk that may be computed in tiles."""

    rows: int
    """Rows of the chunk's result that are dealt out (the least of all its results); 1: it does not split."""
    work: tuple[Amount, ...]
    """By piece, from the first on, the operations of a tile; at least one an operator."""
    received: Amount  # bytes that it reads
    sent: Amount  # bytes of its part of the results


class Segments:
    """All segments of a network; each is computed when it is asked for."""

    def __init__(self, data: Cooperation) -> None:
        self._network: SpatialNetwork = data.spatial
        self._pieces, self._side = data.pieces, int(data.side)
        count = max(data.pieces) + 1
        self._members: list[list[int]] = [[] for _ in range(count)]
        for node, piece in enumerate(data.pieces):
            if piece >= 0:
                self._members[piece].append(node)
        self._sweeps: dict[tuple[int, tuple[int, ...]], _Sweep] = {}
        self._known: dict[tuple[int, int], Segment] = {}

    def of(self, start: int, stop: int) -> Segment:
        """Return the segment of the pieces [start, stop)."""
        # From the last piece on: a sweep has then gone through the pieces of the segment and no others.
        for first in range(stop - 1, start - 1, -1):
            if (first, stop) not in self._known:
                self._known[first, stop] = self._segment(first, stop)
        return self._known[start, stop]

    def _segment(self, start: int, stop: int) -> Segment:
        nodes, side = self._network.nodes, self._side
        members = [node for piece in range(start, stop) for node in self._members[piece]]
        sinks = self._network.sinks(members)
        splits = all(nodes[node].splits[side] for node in members)
        rows = min(nodes[node].size[side] for node in sinks) if splits else 1
        new = (rows, sinks) not in self._sweeps
        if new:
            self._sweeps[rows, sinks] = _Sweep(self._network, side, rows, sinks)
        sweep = self._sweeps[rows, sinks]
        known = () if new else self._known[start + 1, stop].work
        for piece in reversed(range(start, stop - len(known))):
            sweep.add(self._members[piece])
            known = (self._work(sweep, piece), *known)
        return Segment(
            rows=rows,
            work=known,
            received=sweep.total([(nodes[node].bytes, node) for node in sources_of(self._network, members)]),
            sent=sweep.total([(nodes[node].bytes, node) for node in sinks], shares=True),
        )

    def _work(self, sweep: _Sweep, piece: int) -> Amount:
        nodes, members = self._network.nodes, self._members[piece]
        return sweep.total([(max(1, nodes[node].flops), node) for node in members])


class _Sweep:
    """Where what tiles need of each node begins and ends, from given results backward."""

    def __init__(self, network: SpatialNetwork, side: int, rows: int, sinks: Iterable[int]) -> None:
        self._network, self._side, self._rows = network, side, rows
        self._first: dict[int, list[int]] = {}
        self._last: dict[int, list[int]] = {}
        self._done: set[int] = set()
        borders = range(rows + 1)
        self._shares = {
            node: [border * network.nodes[node].size[side] // rows for border in borders] for node in sinks
        }
        for node, shares in self._shares.items():
            self._need(node, shares, shares)

    def add(self, members: Iterable[int]) -> None:
        """Go backward through the operators of a piece; all that read them have been gone through."""
        side, nodes = self._side, self._network.nodes
        for reader in sorted(set(members) - self._done, reverse=True):
            self._done.add(reader)
            for source, windows in zip(nodes[reader].sources, nodes[reader].windows, strict=True):
                window, size = windows[side], nodes[source].size[side]
                if window is None:
                    self._need(source, [0] * (self._rows + 1), [size] * (self._rows + 1))
                    continue
                first = [window.first(start, size) for start in self._first[reader]]
                last = [window.last(stop, size) for stop in self._last[reader]]
                self._need(source, first, last)

    def _need(self, node: int, first: list[int], last: list[int]) -> None:
        known = self._first.get(node)
        self._first[node] = first if known is None else list(map(min, known, first))
        self._last[node] = last if known is None else list(map(max, self._last[node], last))

    def total(self, amounts: Iterable[tuple[int, int]], *, shares: bool = False) -> Amount:
        """Return the amount of tiles, given the whole amount of each node; `shares`: of results, no halo."""
        starts = ends = [0] * (self._rows + 1)
        for amount, node in amounts:
            a_row = -(-amount // self._network.nodes[node].size[self._side])
            first, last = (self._shares[node],) * 2 if shares else (self._first[node], self._last[node])
            starts = list(map(add, starts, [a_row * position for position in first]))
            ends = list(map(add, ends, [a_row * position for position in last]))
        return Amount(starts=starts, ends=ends)
