"""The best plans among the walks of one state graph.

Three ways, all exact, and all fed by the same vectorised expansion:

- *Enumerate*: when there are few walks, make all plans level by level.
- *Dive*: keep the best few prefixes of each level. With completion tables that are exact for the
  first r terms, the dive finds the r leading numbers of the K-th best plan: each kept prefix has a
  completion that is as good as its bound. The window of chunks can then shrink to these numbers,
  which makes the tables exact for one term more. It only ever yields plans, so it needs no proof.
- *Best first*: expand prefixes in the order of (bound, path) until the K-th best plan found is no
  worse than every open prefix. The bounds are admissible, so this is exact whatever the dives did;
  with exact tables only prefixes of the best K plans are expanded, plateaus included, because the
  path decides among equal bounds exactly as the canonical order of plans does.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...formulations.terms import Term
from ..protocol import StopReason
from .graph import StateGraph
from .propagation import DEPTH, DRAIN, LEAST, MEMORY, MOST, NO_LEAST, STATE, TOTAL, Growth, Layout, complete
from .ranking import CompletionBounds, Flags, Ints, Pool, Ranking, ascending, less, smallest
from .tables import TooLargeError

Prune = Callable[[Ints, CompletionBounds], Flags | None]
"""Which prefixes (with their outlook) may still keep all rules; None when all may."""

_FIRST_BATCH, _LARGEST_BATCH = 16, 2048
_MOST_CHILDREN = 150_000
_PATIENCE = 16
"""Columns taken from a block at once, even if another block has the next best one."""


class StopSearch(Exception):
    """A limit was hit; `reason` says which, and `open_key` bounds everything that was not examined."""

    def __init__(self, reason: StopReason, open_key: tuple[int, ...] = ()) -> None:
        super().__init__(reason)
        self.reason, self.open_key = reason, open_key


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What all searches of one solve share.

    `ranking`, `layout`: what orders plans, and how prefixes are written.
    """

    ranking: Ranking
    layout: Layout
    exclusive: tuple[frozenset[int], ...]  # for each unit the set of the units that it excludes
    pool: Pool  # takes the best plans
    prune: Prune | None  # the rules
    pause: Callable[[], None]  # called between batches; raises `StopSearch` at the deadline
    most_open: int  # most prefixes that wait at once
    at_least: int = 0  # what no plan has less of, of the first term (`SolveOptions.at_least`)


class GraphSearch:
    """Searches in one graph.

    `graph`: where the plans are; not empty. `floor`: a proven lower bound on the period of the plans looked
    for.
    """

    def __init__(self, setting: Setting, graph: StateGraph, floor: int) -> None:
        self.setting, self.graph, self.floor = setting, graph, floor
        self.idle_mw = setting.ranking.idle_mw
        self._growth = Growth(graph, setting.layout, setting.exclusive)
        self._completions: tuple[Ints | None, ...] = ()
        self._longest_us = int(graph.busy.max(initial=1))

    def enumerate(self) -> None:
        """Offer all plans to the pool."""
        found = []
        level = self.setting.layout.start()
        while level.shape[1]:
            level = self._growth.grow(level)
            done = complete(level)
            found.append(level[:, done])
            level = level[:, ~done]
        plans = np.concatenate(found, axis=1)
        self._offer(self._judged(plans, self._exact(plans)))

    def dive(self, width: int) -> None:
        """Offer the plans that a beam of the given width finds."""
        level = self._start()
        while level.shape[1]:
            children = self._children(level)
            done = complete(children)
            self._offer(children[:, done])
            level = children[:, ~done]
            level = level[:, smallest(level[self.setting.layout.rank], width)]

    def best_first(self, effort: int | None) -> None:
        """Offer plans until the pool holds the best of this graph.

        `effort`: most prefixes to expand, or None for no limit.
        """
        heap = _Blocks(self.setting.layout)
        heap.push(self._start())
        width, expanded = _FIRST_BATCH, 0
        while heap:
            worst = self.setting.pool.worst
            if worst is not None and heap.least >= tuple(worst.tolist()):
                return
            if heap.size > self.setting.most_open:
                raise StopSearch(StopReason.MEMORY_LIMIT, heap.least)
            try:
                self.setting.pause()
            except StopSearch as stop:
                raise StopSearch(stop.reason, heap.least) from None
            batch = heap.pop(width, worst)
            fits = max(1, int(np.searchsorted(np.cumsum(self._growth.degrees(batch)), _MOST_CHILDREN)))
            heap.push(batch[:, fits:])
            children = self._children(batch[:, :fits])
            expanded += min(fits, batch.shape[1])
            if effort is not None and expanded > effort:
                raise TooLargeError(f"more than {effort} prefixes")
            done = complete(children)
            self._offer(children[:, done])
            heap.push(children[:, ~done])
            width = min(2 * width, _LARGEST_BATCH)

    @property
    def root_key(self) -> tuple[int, ...]:
        """Lower bound of each term over all plans of the graph."""
        return tuple(self._start()[: self.setting.layout.terms, 0].tolist())

    def _start(self) -> Ints:
        start = self.setting.layout.start()
        start[: self.setting.layout.terms] = self.setting.ranking.keys(self._outlook(start))
        return start

    def _children(self, nodes: Ints) -> Ints:
        children = self._growth.grow(nodes)
        return self._judged(children, self._outlook(children))

    def _judged(self, nodes: Ints, outlook: CompletionBounds) -> Ints:
        """Set the keys, and drop what fails a filter, the incumbent or a rule."""
        setting = self.setting
        nodes[: setting.layout.terms] = setting.ranking.keys(outlook)
        keep = setting.ranking.passing(outlook)
        promising = setting.pool.promising(nodes[setting.layout.rank])
        if promising is not None:
            keep = promising if keep is None else keep & promising
        if setting.prune is not None and nodes.shape[1]:
            allowed = setting.prune(nodes, outlook)
            if allowed is not None:
                keep = allowed if keep is None else keep & allowed
        return nodes if keep is None else nodes[:, keep]

    def _offer(self, plans: Ints) -> None:
        if plans.shape[1]:
            self.setting.pool.add(plans[self.setting.layout.rank])

    def _exact(self, plans: Ints) -> CompletionBounds:
        period, total = plans[MOST], plans[TOTAL]
        return CompletionBounds(
            period_us=period,
            least=plans[LEAST],
            latency_us=total,
            most_latency_us=total,
            bubbles_us=plans[DEPTH] * period - total,
            peak_bytes=plans[MEMORY],
            energy_nj=plans[DRAIN] + self.idle_mw * period,
            units=plans[DEPTH],
            most_period=period,
        )

    def _outlook(self, nodes: Ints) -> CompletionBounds:
        """Return what the completions of each prefix can reach at best.

        The rest of a plan adds: to the period its own least period; to the least busy time its own
        largest least one; totals; and bubbles of at least max(0, floor - busy) each. Any further
        chunk is at most as busy as the period.
        """
        if not self._completions:
            self._completions = self._tables()
        (
            period_of,
            least_of,
            total_of,
            most_of,
            bubbles_of,
            memory_of,
            drain_of,
            units_of,
        ) = self._completions
        state, depth, total = nodes[STATE], nodes[DEPTH], nodes[TOTAL]
        period = nodes[MOST]
        if period_of is not None:
            period = np.maximum(np.maximum(period, period_of[state]), 1)
        most_total = total
        if most_of is not None:
            most_total = total + np.minimum(most_of[state], (self._most_chunks - depth) * period)
        return CompletionBounds(
            period_us=period,
            least=nodes[LEAST] if least_of is None else np.minimum(nodes[LEAST], least_of[state]),
            latency_us=total if total_of is None else total + total_of[state],
            most_latency_us=most_total,
            bubbles_us=total if bubbles_of is None else depth * period - total + bubbles_of[state],
            peak_bytes=nodes[MEMORY] if memory_of is None else nodes[MEMORY] + memory_of[state],
            energy_nj=nodes[DRAIN] + self.idle_mw * period + (0 if drain_of is None else drain_of[state]),
            units=depth if units_of is None else depth + units_of[state],
            most_period=np.where(complete(nodes), period, self._longest_us),
        )

    @property
    def _most_chunks(self) -> int:
        return len(self.graph.levels) - 1

    def _tables(self) -> tuple[Ints | None, ...]:
        """Return the completion tables that the ranking, the filters or the rules ask for."""
        graph, ranking, limits = self.graph, self.setting.ranking, self.setting.ranking.limits
        rules = self.setting.prune is not None
        busy = graph.busy
        latencies = (limits.max_latency_us, limits.max_stream_latency_us, limits.max_in_flight)
        filtered = limits.min_balance_permille is not None or limits.max_gapness_us is not None
        wanted = (
            (True, busy, np.maximum, np.minimum, 0),
            (
                filtered or rules or ranking.needs(Term.GAPNESS, Term.PAPER_GAPNESS),
                busy,
                np.minimum,
                np.maximum,
                NO_LEAST,
            ),
            (
                rules
                or ranking.needs(Term.LATENCY, Term.STREAM_LATENCY, Term.IN_FLIGHT)
                or any(most is not None for most in latencies),
                busy,
                np.add,
                np.minimum,
                0,
            ),
            (
                rules or ranking.needs(Term.IDLE) or limits.min_utilisation_permille is not None,
                busy,
                np.add,
                np.maximum,
                0,
            ),
            (
                rules or ranking.needs(Term.BUBBLES) or limits.max_bubbles_us is not None,
                np.maximum(self.floor - busy, 0),
                np.add,
                np.minimum,
                0,
            ),
            (
                rules or ranking.needs(Term.PEAK_MEMORY) or ranking.device_memory is not None,
                graph.memory,
                np.add,
                np.minimum,
                0,
            ),
            (bool(graph.chunks.drain.any()), graph.drain, np.add, np.minimum, 0),
            (rules or ranking.needs(Term.UNITS, Term.HOPS), np.ones_like(busy), np.add, np.minimum, 0),
        )
        return tuple(
            graph.completions(combine, reduce, weights, neutral) if need else None
            for need, weights, combine, reduce, neutral in wanted
        )


class _Blocks:
    """Waiting prefixes in sorted blocks, behind a heap of the blocks' heads."""

    def __init__(self, layout: Layout) -> None:
        self._rank = layout.rank
        self._heap: list[tuple[tuple[int, ...], int, Ints]] = []
        self._pushed = 0
        self.size = 0

    def __bool__(self) -> bool:
        return bool(self._heap)

    @property
    def least(self) -> tuple[int, ...]:
        """Rank of the best prefix."""
        return self._heap[0][0]

    def push(self, nodes: Ints) -> None:
        """Add prefixes in any order."""
        if nodes.shape[1]:
            self._push_sorted(nodes[:, ascending(nodes[self._rank])])

    def _push_sorted(self, nodes: Ints) -> None:
        self._pushed += 1
        self.size += nodes.shape[1]
        heapq.heappush(self._heap, (tuple(nodes[self._rank, 0].tolist()), self._pushed, nodes))

    def pop(self, count: int, worst: Ints | None) -> Ints:
        """Remove and return about the `count` best prefixes; what cannot beat `worst` is dropped."""
        taken: list[Ints] = []
        room = count
        while room > 0 and self._heap:
            _, _, nodes = heapq.heappop(self._heap)
            self.size -= nodes.shape[1]
            if worst is not None:
                nodes = nodes[:, : int(less(nodes[self._rank], worst).sum())]
            size = nodes.shape[1]
            if not size:
                continue
            run = size
            if self._heap:
                run = int(less(nodes[self._rank], np.array(self._heap[0][0])).sum())
            take = min(size, room, max(run, _PATIENCE))
            taken.append(nodes[:, :take])
            if take < size:
                self._push_sorted(nodes[:, take:])
            room -= take
        return np.concatenate(taken, axis=1) if taken else np.empty((0, 0), dtype=np.int64)
