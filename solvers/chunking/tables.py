"""The cost tables of one chain as arrays, and the chunks whose busy time lies in a window.

Boundaries are numbered by legal cuts: boundary 0 starts the network, `last` ends it, and every
boundary between them is a cut where a chunk may end. With P the prefix times of a unit, a chunk
from boundary i to j costs

    (P[j] + transfer_out[j]) - (P[i] - transfer_in[i])  =  paid[j] - gain[i],

so that running extrema of `paid` and `gain` bound it monotonically from both sides, whatever the
transfers are. Candidates come from binary searches on these bounds and are then checked exactly:
the work is proportional to the chunks found, never to the square of the layers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ...formulations.chain import Chain
from ..weights import bytes_between
from .ranking import Flags, Ints, runs

_GROUP = 1_500_000
"""Most candidate chunks that are examined at once."""

_CANDIDATES = 16
"""Candidates for each allowed chunk; without transfers nearly every candidate is a chunk."""


class TooLargeError(Exception):
    """A table would be larger than allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restrictions:
    """What rules forbid or demand outright.

    `uncut`, `cut`: boundaries where no chunk may end, and where one must; `most_busy`, `most_bytes`: by unit,
    where there is a cap: busy time and bytes of its chunk.
    """

    blocked: frozenset[tuple[int, int]] = frozenset()  # (layer, unit) pairs that cannot be
    uncut: frozenset[int] = frozenset()
    cut: frozenset[int] = frozenset()
    most_busy: Mapping[int, int] = field(default_factory=dict)
    most_bytes: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arcs:
    """Chunks, ordered by (start, unit, stop).

    `unit`, `stop`, `busy`, `memory`: by arc: unit, boundary where it ends, busy time in microseconds, bytes
    (0 when memory does not matter).
    """

    first: Ints  # position of the first arc from each boundary, by [boundary 0..last + 1]
    unit: Ints
    stop: Ints
    busy: Ints
    memory: Ints
    drain: Ints
    """By arc: energy of its busy time above the idle power, nanojoules (0 when energy does not matter)."""

    def __len__(self) -> int:
        return len(self.unit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Which chunks may matter.

    `low`, `high`: least and largest busy time of a chunk, microseconds; `most_total`, `most_memory`,
    `most_drain`: largest sum of busy times, of bytes and of drains over the chunks of a plan, or None.
    """

    low: int = 0
    high: int
    most_total: int | None = None
    most_memory: int | None = None
    most_drain: int | None = None
    least_total: int = 0  # smallest sum of busy times over the chunks of a plan


class Tables:
    """Arrays of one chain, restricted by what rules forbid outright.

    `weigh_memory`: whether the bytes of chunks are wanted; they cost a table of boundaries x boundaries.
    `extra_mw`: power at work above the idle power, by unit; None: energy does not matter.
    """

    def __init__(
        self,
        chain: Chain,
        restrictions: Restrictions,
        *,
        weigh_memory: bool,
        extra_mw: Sequence[int] | None = None,
    ) -> None:
        # as given; zeros where energy does not matter
        self.extra_mw: Ints = np.array(extra_mw or [0] * chain.unit_count, dtype=np.int64)
        self._chain, self._restrictions, self._weigh_memory = chain, restrictions, weigh_memory
        # first layer after each boundary, by [boundary 0..last]
        self.cuts: Ints = np.array([c for c in chain.cuts if c not in restrictions.uncut], dtype=np.int64)
        self._prefix: Ints = np.array(chain.prefix_us, dtype=np.int64)[:, self.cuts]
        self._paid: Ints = self._prefix + np.array(chain.transfer_out_us, dtype=np.int64)[self.cuts].T
        self._gain: Ints = self._prefix - np.array(chain.transfer_in_us, dtype=np.int64)[self.cuts].T
        capacities = self._capacities()
        self._bytes = bytes_between(chain, self.cuts) if weigh_memory or capacities else None
        self._limit = self._limits(capacities)
        self._least_before = self._least_sums()
        self._later_paid: Ints = np.minimum.accumulate(self._paid[:, ::-1], axis=1)[:, ::-1]
        self._earlier_paid: Ints = np.maximum.accumulate(self._paid, axis=1)
        self._earlier_gain: Ints = np.maximum.accumulate(self._gain, axis=1)

    @property
    def last(self) -> int:
        """The boundary that ends the network."""
        return len(self.cuts) - 1

    @property
    def unit_count(self) -> int:
        """Number of units."""
        return len(self._paid)

    @property
    def most_busy(self) -> int:
        """A busy time that no chunk exceeds."""
        return int((self._paid.max(axis=1) - self._gain.min(axis=1)).max())

    @property
    def least_total(self) -> int:
        """A sum of busy times that no plan undercuts: every layer on its fastest unit."""
        return int(self._least_before[-1])

    @property
    def least_drain(self) -> int:
        """Energy above the idle power that no plan undercuts: every layer on its cheapest unit."""
        rates = self.extra_mw.tolist()
        rows = self._chain.layer_us
        costs = ([t * r for t, r in zip(row, rates, strict=True) if t is not None] for row in rows)
        return sum(min(row, default=0) for row in costs)

    @property
    def bytes_of_whole(self) -> int:
        """Bytes of the whole network as one chunk, which no plan undercuts."""
        return 0 if self._bytes is None else int(self._bytes[0, -1])

    def busy_us(self, unit: Ints, start: Ints, stop: Ints) -> Ints:
        """Return the busy times of chunks given by boundaries."""
        return self._paid[unit, stop] - self._gain[unit, start]

    def steps(self, never: int, rates: Ints | None = None) -> tuple[Ints, Ints, Ints]:
        """Return what it costs to start at, to run on from, and to stop at a boundary, by [boundary][unit].

        Steps over layers that the unit cannot run cost `never`, others their time, or `rates` (by unit) a
        microsecond.
        """
        prefix, each = self._prefix, np.ones(self.unit_count, np.int64) if rates is None else rates
        able = self._limit[:, :-1] > np.arange(self.last)
        steps = np.where(able, each[:, None] * np.diff(prefix, axis=1), never)
        return (prefix - self._gain).T * each, steps.T, (self._paid - prefix).T * each

    def _limits(self, capacities: dict[int, int]) -> Ints:
        """Return the last boundary that a chunk may reach, by [unit][start]; the start itself if none.

        Unsupported layers, unit memory and demanded cuts are all closed under shrinking a chunk, so
        one bound for each start says everything.
        """
        chain, last = self._chain, self.last
        blocked = np.array(chain.blocked, dtype=np.int64)
        for layer, unit in self._restrictions.blocked:
            blocked[unit, layer + 1 :] += 1
        blocked = blocked[:, self.cuts]
        limit = np.array([np.searchsorted(row, row, side="right") - 1 for row in blocked], dtype=np.int64)
        for unit, capacity in capacities.items():
            if self._bytes is not None:
                fits = np.triu(self._bytes <= capacity, 1).sum(axis=1)
                limit[unit] = np.minimum(limit[unit], np.arange(last + 1) + fits)
        demanded = [int(np.searchsorted(self.cuts, cut)) for cut in sorted(self._restrictions.cut)]
        if demanded:
            stops = np.array([*demanded, last])
            nearest = stops[np.searchsorted(stops, np.arange(last), side="right")]
            limit[:, :last] = np.minimum(limit[:, :last], nearest)
        return limit

    def _capacities(self) -> dict[int, int]:
        """Return the bytes that chunks may need, by unit that has a limit."""
        own = {unit: size for unit, size in enumerate(self._chain.unit_memory) if size is not None}
        caps = self._restrictions.most_bytes
        return own | {unit: min(cap, own.get(unit, cap)) for unit, cap in caps.items()}

    def _least_sums(self) -> Ints:
        never = 1 << 40
        times = [min((t for t in row if t is not None), default=never) for row in self._chain.layer_us]
        return np.concatenate(([0], np.cumsum(times, dtype=np.int64)))[self.cuts]

    def reach_back(self, high: int) -> Ints:
        """Return the earliest start of a chunk that may cover up to a boundary, by [unit][boundary].

        A chunk [i, j') with j' >= j of at most `high` microseconds has i >= the answer for j; without
        transfers the answer is such a chunk. The last column (beyond the end) stands for "not covered".
        """
        units, size = self._paid.shape
        found = np.empty((units, size + 1), dtype=np.int64)
        found[:, size] = size
        boundaries = np.arange(size)
        for unit in range(units):
            most = min(high, self._restrictions.most_busy.get(unit, high))
            cheap = np.searchsorted(self._earlier_gain[unit], self._later_paid[unit] - most)
            allowed = np.searchsorted(self._limit[unit], boundaries)
            found[unit, :size] = np.minimum(np.maximum(cheap, allowed), boundaries)
        return found

    def arcs(self, window: Window, most: int) -> Arcs:
        """Return all chunks in a window."""
        lows, highs = self._ranges(window)
        counts = np.maximum(highs - lows + 1, 0)
        if counts.sum() > _CANDIDATES * most:
            raise TooLargeError(f"too many candidates for {most} chunks in {window}")
        pieces = []
        found = 0
        for begin, end in _groups(counts.sum(axis=1)):
            piece = self._expand(begin, lows[begin:end], counts[begin:end], window)
            pieces.append(piece)
            found += piece.shape[1]
            if found > most:
                raise TooLargeError(f"more than {most} chunks in {window}")
        start, unit, stop, busy, memory = np.concatenate(pieces, axis=1)
        first = np.searchsorted(start, np.arange(self.last + 2))
        drain = busy * self.extra_mw[unit]
        return Arcs(first=first, unit=unit, stop=stop, busy=busy, memory=memory, drain=drain)

    def _ranges(self, window: Window) -> tuple[Ints, Ints]:
        """Return the first and last candidate stop, each by [start][unit]."""
        units, size = self._paid.shape
        lows, highs = np.empty((size, units), np.int64), np.empty((size, units), np.int64)
        for unit in range(units):
            gain = self._gain[unit]
            most = min(window.high, self._restrictions.most_busy.get(unit, window.high))
            highs[:, unit] = np.searchsorted(self._later_paid[unit], gain + most, side="right") - 1
            lows[:, unit] = np.searchsorted(self._earlier_paid[unit], gain + window.low)
        np.minimum(highs, self._limit.T, out=highs)
        np.maximum(lows, np.arange(1, size + 1)[:, None], out=lows)
        return lows, highs

    def _expand(self, begin: int, lows: Ints, counts: Ints, window: Window) -> Ints:
        pair, stop = runs(lows.ravel(), counts.ravel())
        unit = pair % counts.shape[1]
        start = begin + pair // counts.shape[1]
        busy = self.busy_us(unit, start, stop)
        keep: Flags = (busy >= window.low) & (busy <= window.high)
        for capped, most in self._restrictions.most_busy.items():
            keep &= (busy <= most) | (unit != capped)
        if window.most_total is not None:
            least = self._least_before
            keep &= busy + least[start] + (least[-1] - least[stop]) <= window.most_total
        memory = np.zeros_like(busy)
        if self._weigh_memory and self._bytes is not None:
            table = self._bytes
            memory = table[start, stop]
            if window.most_memory is not None:
                keep &= memory + table[0, start] + table[stop, -1] <= window.most_memory
        found = np.array((start, unit, stop, busy, memory))
        return found if keep.all() else found[:, keep]


def _groups(sizes: Ints) -> Iterable[tuple[int, int]]:
    """Split rows into runs of at most about `_GROUP` candidates."""
    begin, total = 0, 0
    for row, size in enumerate(sizes.tolist() if sizes.sum() > _GROUP else []):
        if total + size > _GROUP and row > begin:
            yield begin, row
            begin, total = row, 0
        total += size
    yield begin, len(sizes)
