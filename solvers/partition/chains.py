"""The optimum, proved: all chains of down-sets that could be better than a known plan.

Where a graph has few down-sets, the best chain of them is a shortest path with the largest load as length
(Tarnawski et al., section 5.1). Only down-sets that a better plan could have after so many parts are kept:
they hold no more work than so many parts can (`bounds`), and what is behind them fits into the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ...formulations.bit_sets import members
from ...formulations.partition.bounds import PartBounds
from ..protocol import Deadline, TimeIsUpError
from ..topological_orders import TooManySetsError, down_sets
from .line import NEVER, Arrays, Counts, Ints, Line

MOST_SETS = 100_000
"""Most down-sets of a graph all of whose chains are compared."""

_MOST_BITS, _MOST_ENTRIES, _ROWS = 400_000_000, 40_000_000, 2_048
"""Bits of all down-sets; entries of a matrix over those kept and the tensors; rows of it made at a time."""


def best_chain(
    arrays: Arrays, bounds: PartBounds, most_us: int, deadline: Deadline, most_sets: int = MOST_SETS
) -> Line | None:
    """Return the best partition with a load of at most a value; None: there is none, which is a proof.

    Raises TooManySetsError: the graph has more down-sets, or their tables would be too large; TimeIsUpError:
    the deadline has passed.
    """
    if bounds.ahead(most_us)[-1] < bounds.work.total:
        return None
    blocks = arrays.graph.blocks
    most_sets = min(most_sets, _MOST_BITS // max(1, blocks.count))
    sets = down_sets([sum(1 << other for other in others) for others in blocks.before], most_sets)
    table = _Table.of(arrays, bounds, sets, most_us, deadline)
    return _Chains(arrays, bounds, table, most_us, deadline).best()


@dataclass(frozen=True, kw_only=True, eq=False)
class _Table:
    """Down-sets by work, and what is in each of them.

    `open` says of which tensors a down-set holds some pins but not all, and `open_us` what these cost by kind
    of units; `bytes` are those that one block alone has, `readers` how many blocks read each of the shared
    weights. A part from a down-set D to E pays for the tensors that are open in E, but of those that are
    open in D only for the ones of which E holds more pins.
    """

    sets: tuple[int, ...]
    words: npt.NDArray[np.uint64]
    work: Ints
    time: Ints
    barred: Ints
    bytes: Ints
    readers: Ints
    pins: npt.NDArray[np.int32]
    open: npt.NDArray[np.bool_]
    open_us: Ints

    @classmethod
    def of(
        cls, arrays: Arrays, bounds: PartBounds, sets: Sequence[int], most_us: int, deadline: Deadline
    ) -> _Table:
        """Return the table of the down-sets that count; `TimeIsUpError` where that takes too long."""
        count, width = arrays.block_count, -(-arrays.block_count // 64) * 8
        raw = np.frombuffer(b"".join(one.to_bytes(width, "little") for one in sets), dtype=np.uint8)
        raw = raw.reshape(len(sets), width)
        amounts = np.vstack(
            [
                bounds.work.block,
                np.ones(count),
                arrays.weights.own,
                *arrays.time,
                *arrays.barred,
                *_readers(arrays),
            ]
        ).T.astype(np.float64)
        # Sums of whole numbers below 2**53 are exact in floats, which are multiplied much faster.
        whole = np.concatenate(
            [(inside @ amounts).astype(np.int64) for inside in _unpacked(raw, count, deadline)]
        )
        order = np.lexsort((whole[:, 1], whole[:, 0]))
        order = order[_possible(whole[order, 0], bounds, most_us)]
        if len(order) * arrays.tensor_count > _MOST_ENTRIES:
            raise TooManySetsError
        raw = np.ascontiguousarray(raw[order])
        done, _, held_bytes, *others = whole[order].T
        ends = np.cumsum(np.bincount(arrays.pin_tensor, minlength=arrays.tensor_count))
        pins, divided, divided_us = [], [], []
        for inside in _unpacked(raw, count, deadline):
            held = np.cumsum(inside[:, arrays.pin_block], axis=1, dtype=np.int32)
            pins.append(np.diff(held[:, ends - 1], axis=1, prepend=0))
            size = np.diff(ends, prepend=0)
            divided.append((pins[-1] > 0) & ((pins[-1] < size) | arrays.outside))
            divided_us.append((divided[-1].astype(np.float64) @ arrays.cost.T).astype(np.int64))
        kinds = len(arrays.kinds)
        return cls(
            sets=tuple(sets[index] for index in order),
            words=raw.view(np.uint64),
            work=done,
            time=np.array(others[:kinds]),
            barred=np.array(others[kinds : 2 * kinds]),
            bytes=held_bytes,
            readers=np.array(others[2 * kinds :]),
            pins=np.concatenate(pins),
            open=np.concatenate(divided),
            open_us=np.concatenate(divided_us).T,
        )


def _readers(arrays: Arrays) -> list[list[int]]:
    """Return which blocks read each of the shared weights."""
    return [
        [int(block in blocks) for block in range(arrays.block_count)] for _, blocks in arrays.weights.shared
    ]


def _unpacked(raw: npt.NDArray[np.uint8], count: int, deadline: Deadline) -> Iterator[npt.NDArray[np.uint8]]:
    """Yield sets as rows of 0 and 1, some at a time."""
    for start in range(0, len(raw), _ROWS):
        if deadline.passed:
            raise TimeIsUpError
        yield np.unpackbits(raw[start : start + _ROWS], axis=1, count=count, bitorder="little")


def _possible(work: Ints, bounds: PartBounds, most_us: int) -> npt.NDArray[np.bool_]:
    """Return which sets, by their work, some number of first parts can hold, and the other parts the rest."""
    ahead, behind = bounds.ahead(most_us), bounds.behind(most_us)
    ranges = zip(bounds.work.total - np.array(behind[::-1]), ahead, strict=True)
    found: npt.NDArray[np.bool_] = np.any([(low <= work) & (work <= high) for low, high in ranges], axis=0)
    return found


@dataclass(kw_only=True, eq=False)
class _Reached:
    """For each down-set the least largest load of parts that end there, and where the last one began."""

    value: Ints
    source: Ints
    kind: Ints


@dataclass(eq=False)
class _Chains:
    """One search."""

    arrays: Arrays
    bounds: PartBounds
    table: _Table
    most_us: int
    deadline: Deadline
    found: dict[Counts, _Reached] = field(default_factory=dict)
    behind: tuple[int, ...] = ()
    ends: Counts | None = None

    def best(self) -> Line | None:
        """Return the best partition within the limit, or None."""
        zero, *states = self.arrays.states
        self.behind = self.bounds.behind(self.most_us)
        self.found = {state: self._nothing() for state in self.arrays.states}
        self.found[zero].value[0] = 0
        for state in (zero, *states):
            for kind, units in enumerate(self.arrays.kinds):
                following = (*state[:kind], state[kind] + 1, *state[kind + 1 :])
                if state[kind] < len(units) and following in self.found:
                    self._extend(state, following, kind)
        return None if self.ends is None else self._line(self.ends)

    def _nothing(self) -> _Reached:
        count = len(self.table.sets)
        return _Reached(
            value=np.full(count, NEVER),
            source=np.zeros(count, dtype=np.int64),
            kind=np.zeros(count, dtype=np.int64),
        )

    def _extend(self, state: Counts, following: Counts, kind: int) -> None:
        """Add a part on a kind of units behind all down-sets that some parts reach."""
        reached, target = self.found[state], self.found[following]
        most_left = self.arrays.most_parts - sum(following)
        least = self.bounds.work.total - self.behind[most_left]
        price = self.bounds.work.prices[kind]
        last = len(self.table.sets) - 1
        for index in map(int, np.flatnonzero(reached.value <= self.most_us)):
            if self.deadline.passed:
                raise TimeIsUpError
            done = self.table.work[index]
            begin = np.searchsorted(self.table.work, max(done, least), side="left")
            end = np.searchsorted(self.table.work, done + price * self.most_us, side="right")
            if not most_left:
                begin = last
            stops = np.arange(max(begin, index + 1), end)
            stops = self._beyond(stops, index, kind)
            if not len(stops):
                continue
            loads = self._loads(stops, index, kind)
            value = np.maximum(loads, reached.value[index])
            better = (value <= self.most_us) & (value < target.value[stops])
            chosen = stops[better]
            target.value[chosen], target.source[chosen], target.kind[chosen] = value[better], index, kind
            if len(chosen) and chosen[-1] == last and sum(following) >= self.arrays.least_parts:
                self.most_us, self.ends = int(target.value[last]) - 1, following

    def _beyond(self, stops: Ints, index: int, kind: int) -> Ints:
        """Return which down-sets hold another one, and only what a unit of a kind can run beside it."""
        table, capacity = self.table, self.arrays.capacity[kind]
        time = table.time[kind]
        able = time[stops] - time[index] <= self.most_us
        able &= table.barred[kind][stops] == table.barred[kind][index]
        if capacity is not None:
            needs = table.bytes[stops] - table.bytes[index]
            for (size, _), readers in zip(self.arrays.weights.shared, table.readers, strict=True):
                needs = needs + size * (readers[stops] > readers[index])
            able &= needs <= capacity
        stops = stops[able]
        own = table.words[index]
        held: Ints = stops[((table.words[stops] & own) == own).all(axis=1)]
        return held

    def _loads(self, stops: Ints, index: int, kind: int) -> Ints:
        table = self.table
        known = np.flatnonzero(table.open[index])
        among = np.ix_(stops, known)
        grown = table.pins[among] > table.pins[index, known]
        again = np.subtract(grown, table.open[among], dtype=np.int64) @ self.arrays.cost[kind, known]
        loads: Ints = table.time[kind, stops] - table.time[kind, index] + table.open_us[kind, stops] + again
        return loads

    def _line(self, state: Counts) -> Line:
        """Return the chain that ends with some numbers of units."""
        index, chain, kinds = len(self.table.sets) - 1, [], []
        value = int(self.found[state].value[index])
        while index:
            reached = self.found[state]
            kind, source = int(reached.kind[index]), int(reached.source[index])
            chain.append(sorted(members(self.table.sets[index] & ~self.table.sets[source])))
            kinds.append(kind)
            index, state = source, (*state[:kind], state[kind] - 1, *state[kind + 1 :])
        parts = chain[::-1]
        cuts = tuple(int(cut) for cut in np.cumsum([0, *map(len, parts)]))
        order = [block for part in parts for block in part]
        return Line(value=value, order=order, cuts=cuts, kinds=tuple(kinds[::-1]))
