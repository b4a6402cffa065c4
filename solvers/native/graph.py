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

from dataclasses import dataclass, replace

import numpy as np

from .lattice import Lattice
from .ordering import Flags, Ints
from .tables import Arcs, Tables, TooLargeError, Window

SINK, START = 0, 1


@dataclass(frozen=True, slots=True, kw_only=True)
class StateGraph:
    """States and arcs of one window.

    Attributes
    ----------
    chunks
        The chunks of the window.
    first
        Position of the first arc from each state, by [state + 1]; the sink has none.
    source, target, chunk
        By arc: states, and position in `chunks`.
    levels
        First state of each number of chunks; the last entry is the number of states.
    exact
        Whether walks from the start to the sink never use a unit twice or two conflicting ones.
    """

    chunks: Arcs
    first: Ints
    source: Ints
    target: Ints
    chunk: Ints
    levels: tuple[int, ...]
    exact: bool

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

    def completions(self, combine: np.ufunc, reduce: np.ufunc, weights: Ints, neutral: int) -> Ints:
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
        for low, high in zip(self.levels, self.levels[1:], strict=False):
            arcs = slice(self.first[low], self.first[high])
            np.minimum.at(found, self.target[arcs], found[self.source[arcs]] + weights[arcs])
        return found

    def within(self, weights: Ints, most: int) -> StateGraph:
        """Return the graph without arcs that no walk of at most `most` total weight can use."""
        if not len(self):
            return self
        after = self.completions(np.add, np.minimum, weights, 0)
        before = self.least_before(weights)
        return self.keep(before[self.source] + weights + after[self.target] <= most)

    def narrowed(self, window: Window) -> StateGraph:
        """Return the graph without the chunks that a narrower window excludes."""
        graph = self.keep((self.busy >= window.low) & (self.busy <= window.high))
        if window.most_total is not None:
            graph = graph.within(graph.busy, window.most_total)
        if window.least_total > 0:
            graph = graph.within(-graph.busy, -window.least_total)
        if window.most_memory is not None:
            graph = graph.within(graph.memory, window.most_memory)
        return graph

    def keep(self, arcs: Flags) -> StateGraph:
        """Return the graph with only these arcs, without the states that then lead nowhere."""
        if arcs.all():
            return self
        arcs = arcs.copy()
        spans = [(self.first[a], self.first[b]) for a, b in zip(self.levels, self.levels[1:], strict=False)]
        reached = np.zeros(self.levels[-1], dtype=np.bool_)
        reached[START] = True
        for begin, end in spans:
            arcs[begin:end] &= reached[self.source[begin:end]]
            reached[self.target[begin:end][arcs[begin:end]]] = True
        return replace(self, **_pruned(self.source, self.target, self.chunk, arcs, spans, self.levels))


def _pruned(
    source: Ints, target: Ints, chunk: Ints, arcs: Flags, spans: list[tuple[int, int]], levels: tuple[int, ...]
) -> dict[str, Ints | tuple[int, ...]]:
    """Return the fields of a graph after dropping arcs and, backwards, all that do not reach the sink."""
    alive = np.zeros(levels[-1], dtype=np.bool_)
    alive[SINK] = True
    for begin, end in reversed(spans):
        arcs[begin:end] &= alive[target[begin:end]]
        alive[source[begin:end][arcs[begin:end]]] = True
    number = np.cumsum(alive) - 1
    source, target = number[source[arcs]], number[target[arcs]]
    bounds = [1, *(int(number[level - 1]) + 1 for level in levels[1:])]
    kept = [bounds[0]] + [high for low, high in zip(bounds, bounds[1:], strict=False) if high > low]
    first = np.searchsorted(source, np.arange(kept[-1] + 1))
    return {
        "source": source,
        "target": target,
        "chunk": chunk[arcs],
        "first": first,
        "levels": tuple(kept),
    }


def build_graph(tables: Tables, lattice: Lattice, window: Window, most: int) -> StateGraph:
    """Return the graph of all plans of at least two chunks whose chunks lie in the window.

    Forward expansion, level by level, of the states that `Lattice.reach` does not rule out; then a
    backward sweep drops what does not reach the sink.

    Raises
    ------
    TooLargeError
        It would have more than `most` arcs, or chunks.
    """
    chunks = tables.arcs(window, most)
    reach = lattice.reach(tables.reach_back(window.high))
    return _Expansion(chunks, lattice, reach, tables.last, most).run().narrowed(window)


class _Expansion:
    """Level by level from the start."""

    def __init__(self, chunks: Arcs, lattice: Lattice, reach: Ints, last: int, most: int) -> None:
        self.chunks, self.lattice, self.reach, self.last, self.most = chunks, lattice, reach, last, most
        # One look-up says whether a chunk may end at (point, boundary): at the end of the network
        # only in terminal points.
        self.after = lattice.after.ravel()
        self.number = np.zeros((lattice.size + 1) * (last + 1), dtype=np.int64)

    def run(self) -> StateGraph:
        sources, targets, taken = [], [], []
        levels, spans, arcs = [START, START + 1], [], 0
        points, boundaries = np.zeros(1, np.int64), np.zeros(1, np.int64)
        allowed = self.most
        while len(points):
            source, chunk, point, stop = self._step(points, boundaries, first=len(spans) == 0)
            done = stop == self.last
            code = point * (self.last + 1) + stop
            code[done] = -1
            fresh = np.unique(code[~done])
            target = np.zeros_like(code)
            self.number[fresh] = np.arange(levels[-1], levels[-1] + len(fresh))
            target[~done] = self.number[code[~done]]
            sources.append(source + levels[-2])
            targets.append(target)
            taken.append(chunk)
            spans.append((arcs, arcs + len(chunk)))
            arcs += len(chunk)
            if arcs > allowed:
                raise TooLargeError(f"more than {allowed} arcs")
            levels.append(levels[-1] + len(fresh))
            points, boundaries = fresh // (self.last + 1), fresh % (self.last + 1)
        source, target, chunk = map(np.concatenate, (sources, targets, taken))
        everything = np.ones(arcs, dtype=np.bool_)
        fields = _pruned(source, target, chunk, everything, spans, tuple(levels[:-1]))
        return StateGraph(chunks=self.chunks, exact=self.lattice.exact, **fields)  # type: ignore[arg-type]

    def _step(self, points: Ints, boundaries: Ints, *, first: bool) -> tuple[Ints, Ints, Ints, Ints]:
        """Return source (by position), chunk, new point and stop of everything that can follow."""
        begin = self.chunks.first[boundaries]
        counts = self.chunks.first[boundaries + 1] - begin
        total = int(counts.sum())
        if total > 4 * self.most:
            raise TooLargeError(f"more than {4 * self.most} candidates")
        source = np.repeat(np.arange(len(points)), counts)
        chunk = np.arange(total) + np.repeat(begin - np.cumsum(counts) + counts, counts)
        point = self.after[points[source] * self.lattice.unit_count + self.chunks.unit[chunk]]
        stop = self.chunks.stop[chunk]
        keep = stop >= self.reach[point]
        ends = stop == self.last
        keep &= ~ends if first else ~ends | self.lattice.terminal[point]
        return source[keep], chunk[keep], point[keep], stop[keep]
