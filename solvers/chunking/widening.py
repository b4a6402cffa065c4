"""Widening: look for the best plans where they must be, and prove that nothing better is elsewhere.

The canonical order compares the first term first. So all plans whose first term is at most some cap
come before all others, and a cap bounds which chunks can occur. Starting from a lower bound, the cap
grows until the box below it holds as many plans as wanted: the best ones of the box are then the best
of all. The cost follows the plans near the optimum, not the size of the space.

*Plateaus* - one dominant layer, and millions of plans share the least period - make a box with a
single value of the term too large to build. Then the value is settled: everything below it has been
collected, and the next term is widened in the same way among the plans that attain it.

*Filters* that ask for a least busy time (balance, gapness, utilisation) cut chunks off from below,
the more the larger the period. Let f(T) be the least period of a plan whose chunks are all at least
as busy as the filters demand of period T. f is monotone, every plan that passes has
period >= f(its period), and so iterating T <- f(T) from a lower bound climbs to the least period that
passes without ever skipping one (Kleene's fixed point).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np

from ...formulations.terms import Term
from ..protocol import StopReason
from .facts import Box, Narrowing
from .graph import START, StateGraph, build_graph
from .lattice import Lattice, Lattices
from .ranking import Ints
from .search import GraphSearch, Setting, StopSearch
from .tables import Arcs, Tables, TooLargeError, Window

# Least and largest totals of the rest of a plan, for every set of used units and every boundary.
#
# With the running unit as part of the state, a total needs no chunks: from one boundary to the next a
# unit goes on, or stops and another one starts. With R[b][S] the best total from boundary b on when
# the units S are used, and V[b][u][S] the same when u runs on across b,
#
#     V[b][u][S] = time of u from b to b+1 + best(V[b+1][u][S], transfer_out[b+1][u] + R[b+1][S])
#     R[b][S]    = best over free u of transfer_in[b][u] + V[b][u][S + u],     R[last][S] = 0.
#
# That is O(boundaries x points x units), however many chunks there are. The largest busy time of a
# chunk is ignored, so these totals are bounds. With a list of the chunks of a window they are exact for
# that window, at O(chunks x points).

NEVER = 1 << 60


def completion_totals(tables: Tables, lattice: Lattice, *, largest: bool, rates: Ints | None = None) -> Ints:
    """Return the least (or largest) total of the rest, by [point][boundary]; the last row is for no point.

    Where there is no rest, the total is beyond half of `NEVER`, on the bad side. With `rates` (by unit) it is
    the total of busy times by these rates: their drain.
    """
    never = -NEVER if largest else NEVER
    best = np.maximum if largest else np.minimum
    units = tables.unit_count
    ways = lattice.after.T + np.arange(units)[:, None] * (lattice.size + 1)
    found = np.full((tables.last + 1, lattice.size + 1), never, dtype=np.int64)
    found[-1, lattice.terminal] = 0
    running = np.full((units, lattice.size + 1), never, dtype=np.int64)
    starts, steps, stops = tables.steps(never, rates)
    for boundary in reversed(range(tables.last)):
        ahead = found[boundary + 1] + stops[boundary + 1][:, None]
        running = best(running, ahead) + steps[boundary][:, None]
        running[:, -1] = never
        # Sums of impossible steps must stay impossible, and within 64 bits.
        running = np.clip(running, -NEVER, NEVER)
        started = running.ravel()[ways] + starts[boundary][:, None]
        found[boundary, :-1] = np.clip(best.reduce(started, axis=0), -NEVER, NEVER)
    return np.ascontiguousarray(found.T)


def windowed_totals(arcs: Arcs, last: int, lattice: Lattice, *, largest: bool, drains: bool = False) -> Ints:
    """Return the same as `completion_totals` for plans whose chunks are all in the list.

    `drains`: of the energy above the idle power, not of the busy times.
    """
    weights = arcs.drain if drains else arcs.busy
    never = -NEVER if largest else NEVER
    best = np.maximum if largest else np.minimum
    found = np.full((last + 1, lattice.size + 1), never, dtype=np.int64)
    found[-1, lattice.terminal] = 0
    after = np.ascontiguousarray(lattice.after.T)
    for boundary in reversed(range(last)):
        begin, end = int(arcs.first[boundary]), int(arcs.first[boundary + 1])
        unit, stop, busy = arcs.unit[begin:end], arcs.stop[begin:end], weights[begin:end]
        firsts = np.flatnonzero(np.diff(unit, prepend=-1, append=-1))
        for low, high in pairwise(firsts.tolist()):
            # Reduce over the stops first: one gather for each unit, whatever the number of its chunks.
            ahead = best.reduce(found[stop[low:high]] + busy[low:high, None], axis=0)
            best(found[boundary, :-1], ahead[after[unit[low]]], out=found[boundary, :-1])
    return np.clip(found.T, -NEVER, NEVER)


_SMALL_GRAPH, _GRAPH, _LARGE_GRAPH = 6_000, 400_000, 2_500_000
"""Most arcs: of a graph tried before anything else, of a box, and of a box that cannot be split."""
_ENUMERABLE = 8_000
"""Up to this number of walks, making them all is cheaper than searching."""
_EFFORT = 20_000
"""Most prefixes to expand in a box that can still be split; four times more after every failure."""
_FIRST_STEP = 512
"""The first step of a cap is this fraction of the period or of the value it starts from."""
_NEAR = 100
"""A period is near the least one within this fraction of it."""
_LEAST_BEAM, _MOST_BEAM = 32, 512
_WINDOWED = 100_000_000
"""Most chunks x lattice points for exact totals of a window, a few operations each."""
_MOST_PLATEAUS = 2
"""After this number of values that had to be settled, what is left of a box is searched in one piece."""
_ENERGY_ROUNDS = 40
"""Most rounds of narrowing the periods that an energy allows."""
_ENERGY_STEP = 64
"""The least period that an energy allows is found within this fraction of it."""
_WIDE = 2
"""Imbalance is not widened when periods may differ by more than this factor: it would exclude nothing."""
_IMBALANCE = (Term.GAPNESS, Term.PAPER_GAPNESS, Term.BUBBLES, Term.IDLE)


class Widening:
    """One search for the best plans of at least two chunks.

    `narrowing`: how bounds on plans become bounds on chunks.
    """

    def __init__(self, tables: Tables, lattices: Lattices, setting: Setting, narrowing: Narrowing) -> None:
        self.tables, self.lattices, self.setting, self.narrowing = tables, lattices, setting, narrowing
        self.terms = setting.ranking.terms
        # proven lower bound on the key (or its first terms) of every plan not examined yet
        self.frontier: tuple[int, ...] = ()
        self._known_totals: dict[tuple[int, int, bool], Ints] = {}
        self._known_drains: dict[tuple[int, int], Ints] = {}

    def run(self) -> None:
        """Fill the pool with the best plans.

        Raises StopSearch: a limit was hit; `frontier` tells what is proven.
        """
        box = self._everything()
        try:
            graph, narrow = self._graph(box, self.lattices.finest, _SMALL_GRAPH)
        except TooLargeError:
            if (floor := self._least_period(box)) is not None:
                self._widen((), replace(box, floor=floor))
        else:
            self._collect(graph, narrow, (), (), None)

    def _everything(self) -> Box:
        """Return the box of all plans."""
        limits, tables = self.setting.ranking.limits, self.tables
        high = tables.most_busy
        if limits.max_period_us is not None:
            high = min(high, limits.max_period_us)
        window = Window(high=high, most_memory=self.setting.ranking.device_memory)
        # All units together need this long at the very least.
        floor = max(1, -(-tables.least_total // tables.unit_count))
        if self.terms[0] == Term.PERIOD:
            floor = max(floor, self.setting.at_least)
        return Box(window=window, floor=floor, most_period=high)

    def _least_period(self, box: Box) -> int | None:
        """Return a lower bound on all periods, attained when there are no transfers; None: no plan."""
        high = box.window.high
        if not self._reachable(high):
            return None
        low, step = box.floor - 1, max(1, box.floor // 4)
        while low + step < high and not self._reachable(low + step):
            low, step = low + step, 2 * step
        high = min(high, low + step)
        while high - low > 1:
            middle = (low + high) // 2
            if self._reachable(middle):
                high = middle
            else:
                low = middle
        return high

    def _reachable(self, high: int) -> bool:
        return int(self.lattices.finest.reach(self.tables.reach_back(high))[0]) == 0

    def _graph(self, box: Box, lattice: Lattice, most: int) -> tuple[StateGraph, Box]:
        """Return the graph of a box, and the box after the filters have raised its floor."""
        self.setting.pause()
        box = self.narrowing.filtered(box)
        graph = build_graph(
            self.tables,
            lattice,
            box.window,
            partial(self._totals, lattice, box.most_period),
            partial(self._drains, lattice, box.window.high),
            most=most,
            pause=self.setting.pause,
        )
        while self.narrowing.filters_least and len(graph):
            floor = int(graph.completions(np.maximum, np.minimum, graph.busy, 0)[START])
            if floor <= box.floor:
                break
            box = self.narrowing.filtered(replace(box, floor=floor))
            graph = graph.narrowed(box.window)
        return graph, box

    def _totals(self, lattice: Lattice, high: int, *, largest: bool) -> Ints:
        """Return bounds on the total of the rest when no chunk is busier than `high`."""
        key = id(lattice), high, largest
        if key not in self._known_totals:
            self._known_totals[key] = self._total_tables(lattice, high, largest=largest)
        return self._known_totals[key]

    def _drains(self, lattice: Lattice, high: int) -> Ints:
        """Return the least energy above the idle power of the rest when no chunk is busier than `high`."""
        key = id(lattice), high
        if key not in self._known_drains:
            self.setting.pause()
            self._known_drains[key] = self._drain_table(lattice, high)
        return self._known_drains[key]

    def _drain_table(self, lattice: Lattice, high: int) -> Ints:
        try:
            arcs = self.tables.arcs(Window(high=high), _WINDOWED // lattice.size)
        except TooLargeError:
            return completion_totals(self.tables, lattice, largest=False, rates=self.tables.extra_mw)
        return windowed_totals(arcs, self.tables.last, lattice, largest=False, drains=True)

    def _least_energy(self, box: Box, least: int, most: int) -> int:
        """Return what no plan of a box takes less energy than, close to what some plans may take."""
        low, high, step = least - 1, most, max(1, least // _FIRST_STEP)
        while low + step < high:
            cap = low + step
            if self._within_energy(self.narrowing.capped(box, Term.ENERGY, cap), cap) is None:
                low, step = cap, 2 * step
            else:
                high, step = cap, max(1, (cap - low) // 2)
            if high - low <= 1 + low // _ENERGY_STEP**2:
                break
        return low + 1

    def _within_energy(self, box: Box, most_nj: int) -> Box | None:
        """Return the box of plans of at most so much energy, without periods that leave none; None: no plan.

        With D(T) the least energy above the idle power i of plans whose period is at most T, plans of period
        T take D(T) + i T at least. So T is at most (most - D(T)) / i, which makes D larger, and so on: where
        that ends, there is a plan.
        """
        idle_mw, high = self.narrowing.idle_mw, box.window.high
        for _ in range(_ENERGY_ROUNDS):
            drain = self._least_drain(high)
            if drain + idle_mw * box.floor > most_nj:
                return None
            if not idle_mw or (most_nj - drain) // idle_mw >= high:
                break
            high = (most_nj - drain) // idle_mw
        # Of a shorter period D is larger: it is found by bisection, as far as that is worth its time.
        low, above = box.floor - 1, high
        while idle_mw and above - low > 1 + box.floor // _ENERGY_STEP:
            middle = (low + above) // 2
            if self._least_drain(middle) + idle_mw * (low + 1) > most_nj:
                low = middle
            else:
                above = middle
        box = replace(box, floor=low + 1)
        return self.narrowing.capped(self.narrowing.capped(box, Term.PERIOD, high), Term.ENERGY, most_nj)

    def _least_drain(self, high: int) -> int:
        """Return the least energy above the idle power of plans whose chunks are all at most so busy."""
        return int(self._drains(self.lattices.finest, high)[0, 0])

    def _total_tables(self, lattice: Lattice, high: int, *, largest: bool) -> Ints:
        if high < self.tables.most_busy:
            try:
                arcs = self.tables.arcs(Window(high=high), _WINDOWED // lattice.size)
            except TooLargeError:
                # The totals without the window are weaker bounds, and cheap.
                return completion_totals(self.tables, lattice, largest=largest)
            return windowed_totals(arcs, self.tables.last, lattice, largest=largest)
        return completion_totals(self.tables, lattice, largest=largest)

    def _widen(self, settled: tuple[int, ...], box: Box) -> None:
        """Collect the best plans of a box whose first terms have the settled values.

        Plans of the box with smaller values of these terms have been collected.
        """
        depth = len(settled)
        if depth == len(self.terms):
            self._collect_whole(settled, box)
            return
        term = self.terms[depth]
        least, most = self._range(term, box)
        least = max(least, self.setting.at_least) if not settled else least
        if term == Term.ENERGY:
            least = self._least_energy(box, least, most)
        self._advance((*settled, least))
        if not self._splits(term, box):
            self._seed(box)
            self._collect_whole(settled, box)
            return
        scale = 1000 if term == Term.IDLE else max(least, box.floor)
        low, cap, step = least - 1, least, max(1, scale // _FIRST_STEP)
        plateaus, effort = 0, _EFFORT
        while low < most:
            self._advance((*settled, low + 1))
            inner: Box | None = self.narrowing.capped(box, term, cap)
            if term == Term.ENERGY and inner is not None:
                inner = self._within_energy(inner, cap)
            try:
                if inner is not None:
                    graph, narrow = self._graph(inner, self.lattices.finest, _GRAPH)
                    self._collect(graph, narrow, settled, (*settled, cap + 1), effort)
            except TooLargeError:
                effort *= 4
                if cap > low + 1:
                    step = max(1, (cap - low) // 2)
                    cap = low + step
                    continue
                settling = self.narrowing.capped(box, term, cap)
                if term == Term.PERIOD:
                    settling = replace(settling, floor=max(settling.floor, cap))
                self._widen((*settled, cap), settling)
                plateaus += 1
            low = cap
            if self._finished((*settled, cap)):
                return
            if plateaus >= _MOST_PLATEAUS:
                self._advance((*settled, low + 1))
                self._collect_whole(settled, box)
                return
            cap, step = min(most, low + step), 2 * step

    def _seed(self, box: Box) -> None:
        """Find some good plans quickly: what is near the least period is also near balance."""
        near = self.narrowing.capped(box, Term.PERIOD, box.floor + box.floor // _NEAR)
        try:
            graph, near = self._graph(near, self.lattices.finest, _GRAPH)
        except TooLargeError:
            return
        if len(graph):
            GraphSearch(self.setting, graph, near.floor).dive(self._beam)

    @property
    def _beam(self) -> int:
        return min(max(self.setting.pool.size, _LEAST_BEAM), _MOST_BEAM)

    def _finished(self, key: tuple[int, ...]) -> bool:
        """Whether the pool is full of plans whose key is not beyond `key`."""
        worst = self.setting.pool.worst
        return worst is not None and tuple(worst[: len(key)].tolist()) <= key

    def _advance(self, key: tuple[int, ...]) -> None:
        self.frontier = max(self.frontier, key)

    @staticmethod
    def _splits(term: str, box: Box) -> bool:
        """Whether a cap on the term shrinks the box."""
        imbalanced = term in _IMBALANCE and box.window.high > _WIDE * box.floor
        return term not in (Term.UNITS, Term.HOPS, Term.IN_FLIGHT) and not imbalanced

    def _range(self, term: str, box: Box) -> tuple[int, int]:
        """Return the least and the largest value of a term in a box."""
        window, chunks = box.window, self.narrowing.most_chunks
        match term:
            case Term.PERIOD:
                return box.floor, window.high
            case Term.LATENCY | Term.STREAM_LATENCY:
                total = chunks * window.high
                least = int(self._totals(self.lattices.finest, box.most_period, largest=False)[0, 0])
                return least, min(total, window.most_total or total)
            case Term.PEAK_MEMORY:
                whole = self.tables.bytes_of_whole
                return whole, min(chunks * whole, window.most_memory or chunks * whole)
            case Term.ENERGY:
                drain = int(self._drains(self.lattices.finest, window.high)[0, 0])
                most = chunks * window.high * int(self.tables.extra_mw.max())
                idle_mw = self.narrowing.idle_mw
                return drain + idle_mw * box.floor, most + idle_mw * window.high
            case Term.UNITS | Term.IN_FLIGHT:
                return 1, chunks
            case Term.HOPS:
                return 0, chunks - 1
            case Term.BUBBLES:
                return 0, chunks * window.high
            case Term.IDLE:
                return 0, 1000
            case _:
                return 0, window.high

    def _collect_whole(self, settled: tuple[int, ...], box: Box) -> None:
        """Collect a box that cannot be split, on a coarser lattice if need be."""
        for lattice in self.lattices:
            try:
                graph, narrow = self._graph(box, lattice, _LARGE_GRAPH)
            except TooLargeError:
                continue
            self._collect(graph, narrow, settled, (*settled[:-1], settled[-1] + 1) if settled else (), None)
            return
        raise StopSearch(StopReason.MEMORY_LIMIT)

    def _collect(
        self,
        graph: StateGraph,
        box: Box,
        settled: tuple[int, ...],
        outside: tuple[int, ...],
        effort: int | None,
    ) -> None:
        """Collect the best plans of a graph; keys of plans elsewhere are at least `outside`, if given."""
        try:
            self._search(graph, box, settled, effort)
        except StopSearch as stop:
            if stop.open_key:
                self._advance(min(stop.open_key, outside) if outside else stop.open_key)
            raise

    def _search(self, graph: StateGraph, box: Box, settled: tuple[int, ...], effort: int | None) -> None:
        for _ in range(len(self.terms) + 1):
            if not len(graph):
                return
            search = GraphSearch(self.setting, graph, box.floor)
            if graph.walks() <= _ENUMERABLE:
                search.enumerate()
                return
            self.setting.pause()
            search.dive(self._beam)
            tightened = self._tightened(box, search.root_key, settled)
            if tightened == box:
                break
            box = tightened
            graph = graph.narrowed(box.window)
        if len(graph):
            GraphSearch(self.setting, graph, box.floor).best_first(effort)

    def _tightened(self, box: Box, least: tuple[int, ...], settled: tuple[int, ...]) -> Box:
        """Return what is left of a box when the worst plan of the pool must be beaten.

        A better plan has a first term at most as large; where that cannot be smaller, the same holds
        for the next term, and so on.
        """
        worst = self.setting.pool.worst
        if worst is None:
            return box
        box = replace(box, floor=max(box.floor, least[self.terms.index(Term.PERIOD)]))
        for depth, (term, value, bound) in enumerate(zip(self.terms, worst.tolist(), least, strict=False)):
            box = self.narrowing.capped(box, term, value)
            if max(bound, settled[depth] if depth < len(settled) else bound) < value:
                break
        return self.narrowing.filtered(box)
