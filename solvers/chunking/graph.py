"""The state graph: where prefixes of plans can be, and how they go on inside a window.

A state is (lattice point, boundary): the units used so far and the layers covered. An arc is one
more chunk. State 0 is the sink (all layers covered), state 1 the start. Only states that the start
reaches and that reach the sink are kept, ordered by the number of chunks before them, so that every
table over completions is one backward sweep of vectorised folds:

    X[s] = reduce over arcs s -> t of combine(weight, X[t]),       X[sink] = neutral,

e.g. (max, min) for the least period of the rest, (min, max) for its largest least load, (+, min) for
its least total. A sweep costs O(arcs).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from .lattice import Lattice
from .ranking import Flags, Ints, runs
from .tables import Arcs, Tables, TooLargeError, Window

Number = TypeVar("Number", np.int64, np.float64)

SINK, START = 0, 1


@dataclass(frozen=True, slots=True, kw_only=True)
class StateGraph:
    """States and arcs of one window.

    `source`, `target`, `chunk`: by arc: states, and position in `chunks`.
    """

    chunks: Arcs  # the chunks of the window
    first: Ints  # position of the first arc from each state, by [state + 1]; the sink has none
    source: Ints
    target: Ints
    chunk: Ints
    levels: tuple[int, ...]  # first state of each number of chunks; the last entry is the number of states
    exact: bool  # whether walks from the start to the sink never use a unit twice or two conflicting ones

    def __len__(self) -> int:
        return len(self.chunk)

    @property
    def busy(self) -> Ints:
        """Busy time by arc."""
        return self.chunks.busy[self.chunk]

    @property
    def memory(self) -> Ints:
        """Bytes by arc."""
        return self.chunks.memory[self.chunk]

    @property
    def drain(self) -> Ints:
        """Energy above the idle power by arc."""
        return self.chunks.drain[self.chunk]

    def completions(
        self, combine: np.ufunc, reduce: np.ufunc, weights: NDArray[Number], neutral: int
    ) -> NDArray[Number]:
        """Return, by state, the best over all completions of the combined weights."""
        found = np.empty(self.levels[-1], dtype=weights.dtype)
        found[SINK] = neutral
        for low, high in zip(self.levels[-2::-1], self.levels[:0:-1], strict=True):
            begin, end = self.first[low], self.first[high]
            values = combine(weights[begin:end], found[self.target[begin:end]])
            found[low:high] = reduce.reduceat(values, self.first[low:high] - begin)
        return found

    def walks(self) -> float:
        """Return the number of walks from the start to the sink: at least the number of plans."""
        if not len(self):
            return 0.0
        ones = np.ones(len(self))
        return float(self.completions(np.multiply, np.add, ones, 1)[START])

    def least_before(self, weights: Ints) -> Ints:
        """Return, by state, the least sum of weights from the start."""
        found = np.full(self.levels[-1], np.iinfo(np.int64).max // 4)
        found[START] = 0
        for low, high in pairwise(self.levels):
            arcs = slice(self.first[low], self.first[high])
            np.minimum.at(found, self.target[arcs], found[self.source[arcs]] + weights[arcs])
        return found

    def within(self, weights: Ints, most: int) -> StateGraph:
        """Return the graph without arcs that no walk of at most `most` total weight can use."""
        if not len(self):
            return self
        after = self.completions(np.add, np.minimum, weights, 0)
        before = self.least_before(weights)
        inside = before[self.source] + weights + after[self.target] <= most
        return self if inside.all() else self.keep(inside)

    def narrowed(self, window: Window) -> StateGraph:
        """Return the graph without the chunks that a narrower window excludes."""
        graph = self
        inside = (self.busy >= window.low) & (self.busy <= window.high)
        if not inside.all():
            graph = self.keep(inside)
        if window.most_total is not None:
            graph = graph.within(graph.busy, window.most_total)
        if window.least_total > 0:
            graph = graph.within(-graph.busy, -window.least_total)
        if window.most_memory is not None:
            graph = graph.within(graph.memory, window.most_memory)
        if window.most_drain is not None:
            graph = graph.within(graph.drain, window.most_drain)
        return graph

    def keep(self, arcs: Flags) -> StateGraph:
        """Return the graph with only these arcs, without the states that then lead nowhere."""
        arcs = arcs.copy()
        reached = np.zeros(self.levels[-1], dtype=np.bool_)
        reached[START] = True
        for begin, end in self._spans():
            arcs[begin:end] &= reached[self.source[begin:end]]
            reached[self.target[begin:end][arcs[begin:end]]] = True
        alive = np.zeros(self.levels[-1], dtype=np.bool_)
        alive[SINK] = True
        for begin, end in reversed(self._spans()):
            arcs[begin:end] &= alive[self.target[begin:end]]
            alive[self.source[begin:end][arcs[begin:end]]] = True
        number = np.cumsum(alive) - 1
        source = number[self.source[arcs]]
        starts = [START, *(int(number[level - 1]) + 1 for level in self.levels[1:])]
        levels = (START, *(high for low, high in pairwise(starts) if high > low))
        return replace(
            self,
            first=np.searchsorted(source, np.arange(levels[-1] + 1)),
            source=source,
            target=number[self.target[arcs]],
            chunk=self.chunk[arcs],
            levels=levels,
        )

    def _spans(self) -> list[tuple[int, int]]:
        """Return the arcs that leave each level."""
        return [(int(self.first[low]), int(self.first[high])) for low, high in pairwise(self.levels)]


def build_graph(
    tables: Tables,
    lattice: Lattice,
    window: Window,
    totals: CompletionTotals,
    drains: Callable[[], Ints],
    *,
    most: int,
    pause: Callable[[], None],
) -> StateGraph:
    """Return the graph of all plans of at least two chunks whose chunks lie in the window.

    Forward expansion, level by level, of the states that neither `Lattice.reach` nor bounds on the
    total rule out; then a backward sweep drops what does not reach the sink.

    `most`: most arcs, and most chunks.
    Raises TooLargeError: it would have more arcs, or chunks.
    """
    chunks = tables.arcs(window, most)
    reach = lattice.reach(tables.reach_back(window.high))
    budget = _Budget(window, totals, drains)
    pause()
    graph = _Expansion(chunks, lattice, reach, budget, most).run(tables.last, pause)
    return graph.narrowed(window)


class CompletionTotals(Protocol):
    """Least or largest totals of the rest, by [point][boundary], computed when first asked for."""

    def __call__(self, *, largest: bool) -> Ints:
        """Return them."""
        ...


class _Budget:
    """Which arcs keep the total of a plan within a window.

    The least and the largest total of a way to each state, plus the arc, plus the least or largest
    total of the rest: a further chunk is never busier than the window allows. The same for the least drain.
    """

    def __init__(self, window: Window, totals: CompletionTotals, drains: Callable[[], Ints]) -> None:
        self._window = window
        self._most_total = 0 if window.most_total is None else window.most_total
        self._least_after = None if window.most_total is None else totals(largest=False).ravel()
        self._most_after = totals(largest=True).ravel() if window.least_total > 0 else None
        self._most_drain = 0 if window.most_drain is None else window.most_drain
        self._drain_after = None if window.most_drain is None else drains().ravel()
        self._drain = np.zeros(1, dtype=np.int64)
        self._least = np.zeros(1, dtype=np.int64)
        self._most = np.zeros(1, dtype=np.int64)

    def allows(self, source: Ints, busy: Ints, drain: Ints, code: Ints, chunks_left: int) -> Flags | None:
        """Return which arcs from the states of the current level are within; None when all are."""
        keep: Flags | None = None
        if self._least_after is not None:
            keep = self._least[source] + busy + self._least_after[code] <= self._most_total
        if self._most_after is not None:
            rest = np.minimum(self._most_after[code], chunks_left * self._window.high)
            enough: Flags = self._most[source] + busy + rest >= self._window.least_total
            keep = enough if keep is None else keep & enough
        if self._drain_after is not None:
            cheap: Flags = self._drain[source] + drain + self._drain_after[code] <= self._most_drain
            keep = cheap if keep is None else keep & cheap
        return keep

    def advance(self, source: Ints, busy: Ints, drain: Ints, target: Ints, count: int) -> None:
        """Go to the next level, whose states `target` counts from 0."""
        if self._drain_after is not None:
            spent = np.full(count, np.iinfo(np.int64).max)
            np.minimum.at(spent, target, self._drain[source] + drain)
            self._drain = spent
        if self._least_after is not None:
            least = np.full(count, np.iinfo(np.int64).max)
            np.minimum.at(least, target, self._least[source] + busy)
            self._least = least
        if self._most_after is not None:
            most = np.full(count, np.iinfo(np.int64).min)
            np.maximum.at(most, target, self._most[source] + busy)
            self._most = most


def _distinct(codes: Ints) -> Ints:
    """Return each code once, in order; `np.unique` would load masked arrays, which takes 50 ms."""
    ordered = np.sort(codes)
    first = np.ones(len(ordered), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    once: Ints = ordered[first]
    return once


class _Expansion:
    """Level by level from the start."""

    def __init__(self, chunks: Arcs, lattice: Lattice, reach: Ints, budget: _Budget, most: int) -> None:
        self.chunks, self.lattice, self.reach, self.budget, self.most = chunks, lattice, reach, budget, most
        self.after = lattice.after.ravel()

    def run(self, last: int, pause: Callable[[], None]) -> StateGraph:
        """Return the graph; `last` is the boundary that ends the network."""
        sources: list[Ints] = []
        targets: list[Ints] = []
        taken: list[Ints] = []
        levels, arcs, width = [START, START + 1], 0, last + 1
        number = np.zeros((self.lattice.size + 1) * width, dtype=np.int64)
        states = np.zeros(1, dtype=np.int64)
        while len(states):
            source, chunk, code = self._step(states, width, len(sources))
            ahead = code % width != last
            fresh = _distinct(code[ahead])
            number[fresh] = np.arange(len(fresh))
            target = number[code[ahead]]
            used = chunk[ahead]
            self.budget.advance(
                source[ahead], self.chunks.busy[used], self.chunks.drain[used], target, len(fresh)
            )
            targets.append(np.full(len(code), SINK))
            targets[-1][ahead] = target + levels[-1]
            sources.append(source + levels[-2])
            taken.append(chunk)
            arcs += len(chunk)
            if arcs > self.most:
                raise TooLargeError(f"more than {self.most} arcs")
            pause()
            levels.append(levels[-1] + len(fresh))
            states = fresh
        source = np.concatenate(sources)
        graph = StateGraph(
            chunks=self.chunks,
            first=np.searchsorted(source, np.arange(levels[-1] + 1)),
            source=source,
            target=np.concatenate(targets),
            chunk=np.concatenate(taken),
            levels=tuple(levels[:-1]),
            exact=self.lattice.exact,
        )
        return graph.keep(np.ones(len(graph), dtype=np.bool_))

    def _step(self, states: Ints, width: int, depth: int) -> tuple[Ints, Ints, Ints]:
        """Return source (by position), chunk, and new state of everything that can follow."""
        boundaries = states % width
        begin = self.chunks.first[boundaries]
        counts = self.chunks.first[boundaries + 1] - begin
        if counts.sum() > 4 * self.most:
            raise TooLargeError(f"more than {4 * self.most} candidates")
        source, chunk = runs(begin, counts)
        units = self.lattice.unit_count
        point = self.after[(states // width * units)[source] + self.chunks.unit[chunk]]
        stop = self.chunks.stop[chunk]
        keep = stop >= self.reach[point]
        ends = stop == width - 1
        keep &= ~ends if depth == 0 else ~ends | self.lattice.terminal[point]
        source, chunk, code = source[keep], chunk[keep], (point * width + stop)[keep]
        busy, drain = self.chunks.busy[chunk], self.chunks.drain[chunk]
        within = self.budget.allows(source, busy, drain, code, units - depth - 1)
        if within is None:
            return source, chunk, code
        return source[within], chunk[within], code[within]
