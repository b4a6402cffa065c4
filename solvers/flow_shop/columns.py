"""Exact programs of Hetero2Pipe's parts: slices of one request (P1), orders (P3), and columns.

Slicing one request over the units: least bottleneck (P1 of Hetero2Pipe, corrected) and least work. With
T_k(a, b) the time of the pieces [a, b) on unit k, 0 if there are none, the recursion is

    S_0(b) = T_0(0, b),    S_k(b) = min over a <= b of max(S_{k-1}(a), T_k(a, b)),

and S_{K-1}(m) the least bottleneck. Chunks may be empty: a request skips units that do not help. The
bottleneck settles one chunk only, so among its many optima the one with the least total time is taken.

*Lemma 1.* Where T_k(a, b) never grows with a and never falls with b, S_{k-1} never falls either, and the
crossing a*(b) = least a with S_{k-1}(a) >= T_k(a, b) never moves back as b grows: one pointer finds
them all, O(mK). Copies break that (a boundary with a large tensor), and so would a ban on empty chunks;
the printed Algorithm 1 has neither condition. Everywhere else O(m^2 K), in numpy.

Ordering requests so that those of high contention stay apart: P3 of Hetero2Pipe, exactly. Requests of high
contention (H) share a column of the pipeline when their positions differ by d < K. The order has the least
violation, the sum of K - d over such pairs, and among those the least displacement, the sum of the distances
from the positions of arrival.

Neither sum tells two H apart, or two L, and crossing two equals never brings both closer to home: the
order among the H and among the L stays. With N_p and O_p the number of H among the first p positions,
now and on arrival, displacement is then 2 x sum of |N_p - O_p| (the earth mover's distance on a line,
once for H and once for L). So a state is (H placed, which of the last K - 1 positions are H), and
dynamic programming is exact in O(M |H| 2^(K-1)).

The exact least makespan in Hetero2Pipe's columns for a given order, without slowdown.

*Column budgets.* Give each column j a budget C_j. Where no chunk gets shorter by one more layer, the
boundaries that a request can have reached after k units within its budgets are all of 0, ..., B_k with

    B_{k+1} = max(B_k, max {b : T_k(a, b) <= C_{p+k} for some a <= B_k}),

for from each a the ends within the budget form an interval that begins at a. So for given budgets the
requests do not see each other, and the search is for budgets alone: column by column, a *label* is the
B of the requests on their way and the sum of the budgets so far. Only budgets at which some B grows
are tried; a label with no smaller B and no larger sum dominates. Prices of the cells that add up to 1 in
each column bound what is still to come, and the best makespan known cuts off the rest.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...formulations.errors import InvalidInputError
from ...formulations.flow_shop.tables import FlowShop
from ...formulations.losses import MOST_LOSS_PERMILLE
from ..contention import PRICE_SCALE, Floats, rounded_off
from ..protocol import NEVER, Deadline
from .arrays import FORBIDDEN, ChainArrays, Ints
from .draft import Places
from .ways import UNREACHABLE, Ways

POINTER_FROM = 110
"""Pieces from which the pointers beat numpy's tables, although Python walks them (benchmarks/ordering.py)."""


def least_bottleneck(arrays: ChainArrays) -> tuple[int, Ints] | None:
    """Return the least possible time of the longest chunk, with its cuts; ties go to the least work.

    The time is in microseconds; the K + 1 cuts are places among the boundaries. None: no plan runs every
    layer.
    """
    pointers = arrays.size >= POINTER_FROM and is_monotone(arrays)
    value = bottleneck_by_pointer(arrays) if pointers else bottleneck_by_table(arrays)
    if value >= FORBIDDEN:
        return None
    found = work_by_window(arrays, value) if pointers else work_by_table(arrays, value)
    assert found is not None, "the least bottleneck is reached by some cuts"
    return value, found[1]


def is_monotone(arrays: ChainArrays) -> bool:
    """Return whether Lemma 1 holds: a longer chunk never takes less time.

    Layers that a unit cannot run do no harm: a chunk that holds one holds it however it grows.
    """
    falling = np.diff(arrays.head, axis=1) <= 0
    rising = np.diff(arrays.tail, axis=1) >= 0
    return bool(falling.all() and rising.all())


def bottleneck_by_table(arrays: ChainArrays) -> int:
    """Return the least bottleneck by comparing all pairs (a, b); `FORBIDDEN` if there is no plan."""
    best = arrays.times[0][0]
    for times in arrays.times[1:]:
        best = np.maximum(best[:, None], times).min(axis=0)
    return int(best[-1])


def bottleneck_by_pointer(arrays: ChainArrays) -> int:
    """Return the least bottleneck where Lemma 1 holds; `FORBIDDEN` if there is no plan."""
    places = range(arrays.size + 1)
    head, tail, last = arrays.head.tolist(), arrays.tail.tolist(), arrays.last.tolist()
    best = [_time(head[0], tail[0], last[0], 0, b) for b in places]
    for unit in range(1, arrays.unit_count):
        row = head[unit], tail[unit], last[unit]
        following, a = [], 0
        for b in places:
            while a < b and best[a] < _time(*row, a, b):
                a += 1
            # Left of the crossing the chunk is the longer side, from there on what comes before it.
            before = _time(*row, a - 1, b) if a else FORBIDDEN
            following.append(min(max(best[a], _time(*row, a, b)), before))
        best = following
    return best[-1]


def _time(head: Sequence[int], tail: Sequence[int], last: Sequence[int], a: int, b: int) -> int:
    if a == b:
        return 0
    return tail[b] + head[a] if b <= last[a] else FORBIDDEN


def work_by_table(arrays: ChainArrays, most_us: int = FORBIDDEN - 1) -> tuple[int, Ints] | None:
    """Return the least work by comparing all pairs (a, b), no chunk longer than `most_us`."""
    first = arrays.times[0][0]
    best, choices = np.where(first <= most_us, first, FORBIDDEN), []
    for times in arrays.times[1:]:
        total = np.where(times <= most_us, best[:, None] + times, FORBIDDEN)
        choices.append(total.argmin(axis=0))
        best = np.minimum(total.min(axis=0), FORBIDDEN)
    return _found(arrays.size, int(best[-1]), choices)


def work_by_window(arrays: ChainArrays, most_us: int = FORBIDDEN - 1) -> tuple[int, Ints] | None:
    """Return the same in O(mK), by the minimum over a sliding window.

    The chunks that may end at b start in a window whose left end never moves back: always so without a
    cap, and with `most_us` where Lemma 1 holds.
    """
    head, tail, last = arrays.head.tolist(), arrays.tail.tolist(), arrays.last.tolist()
    best = [0] + [FORBIDDEN] * arrays.size
    choices = []
    for row in zip(head, tail, last, strict=True):
        best, choice = _one_unit(best, *row, most_us)
        choices.append(np.array(choice))
    return _found(arrays.size, best[-1], choices[1:])


def _one_unit(
    before: Sequence[int], head: Sequence[int], tail: Sequence[int], last: Sequence[int], most_us: int
) -> tuple[list[int], list[int]]:
    """Return the least work up to each boundary with one more unit, and where its chunk starts."""
    best, choice = [], []
    window: deque[int] = deque()
    for b, skipped in enumerate(before):
        while window and _time(head, tail, last, window[0], b) > most_us:
            window.popleft()
        with_chunk = before[window[0]] + head[window[0]] + tail[b] if window else FORBIDDEN
        best.append(min(with_chunk, skipped, FORBIDDEN))
        choice.append(window[0] if window and with_chunk <= skipped else b)
        while window and before[window[-1]] + head[window[-1]] > skipped + head[b]:
            window.pop()
        window.append(b)
    return best, choice


def _found(size: int, work_us: int, choices: Sequence[Ints]) -> tuple[int, Ints] | None:
    """Return the work and the cuts that lead to it, from where the chunk of each later unit starts."""
    if work_us >= FORBIDDEN:
        return None
    places = [size]
    for choice in reversed(choices):
        places.append(int(choice[places[-1]]))
    return work_us, np.array([0, *reversed(places)], dtype=np.int64)


MOST_REACH = 18
"""Largest window that is looked at exactly: its states grow as 2^(K - 1)."""

_NEVER = 2**62
"""Cost of a state that cannot be."""


def order_by_contention(high: Sequence[bool], reach: int) -> tuple[int, ...]:
    """Return the order with the least (violation, displacement).

    `high`: whether each request is of high contention, in order of arrival; M values. `reach`: units K: two
    requests disturb each other at distances below K.
    The result has the request at each position.
    """
    if reach <= 1 or sum(high) in (0, len(high)):
        return tuple(range(len(high)))
    window = min(reach, len(high))
    if window > MOST_REACH:
        raise InvalidInputError(
            f"{len(high)} requests on {reach} units: the exact order is found for up to {MOST_REACH} of "
            "either; minimise contention,displacement with an exact backend such as 'cpsat' instead"
        )
    return merge(high, _pattern(high, window, reach))


def merge(high: Sequence[bool], pattern: Sequence[bool]) -> tuple[int, ...]:
    """Return the order that puts the H where `pattern` has them, both kinds in order of arrival."""
    places = sorted(range(len(pattern)), key=lambda place: not pattern[place])
    requests = sorted(range(len(high)), key=lambda request: not high[request])
    order = dict(zip(places, requests, strict=True))
    return tuple(order[place] for place in range(len(high)))


def violation_of(pattern: Sequence[bool], reach: int) -> int:
    """Return the sum over pairs of H at distance d < K of K - d."""
    places = [place for place, high in enumerate(pattern) if high]
    return sum(max(0, reach - (v - u)) for i, u in enumerate(places) for v in places[i + 1 : i + reach])


def displacement_of(order: Sequence[int]) -> int:
    """Return the sum over requests of the distance from the position of arrival."""
    return sum(abs(place - request) for place, request in enumerate(order))


def _pattern(high: Sequence[bool], window: int, reach: int) -> list[bool]:
    """Return where the H go. Bit d - 1 of a mask says that the position d before is H."""
    count, half = sum(high), 2 ** (window - 2)
    price = _prices(window, reach) * (len(high) ** 2 + 1)
    cost = np.full((count + 1, 2 * half), _NEVER, dtype=np.int64)
    cost[0, 0] = 0
    places, arrived = np.arange(count + 1)[:, None], 0
    dropped = []
    for is_high in high:
        arrived += is_high
        cost, bits = _place(cost, price)
        dropped.append(np.packbits(bits))
        cost += 2 * np.abs(places - arrived)
    return _walk_back(cost, dropped, half)


def _prices(window: int, reach: int) -> Ints:
    """Return what it costs to place an H after each mask."""
    masks = np.arange(2 ** (window - 1))
    return sum(((masks >> (d - 1)) & 1) * (reach - d) for d in range(1, window)) + 0 * masks


def _place(cost: Ints, price: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    """Return the costs after one more position, and the oldest bit that each best predecessor drops."""
    placed, masks = cost.shape
    low = cost.reshape(placed, 2, masks // 2)
    high = (cost + price).reshape(placed, 2, masks // 2)
    after = np.full((placed, masks // 2, 2), _NEVER, dtype=np.int64)
    after[:, :, 0] = low.min(axis=1)
    after[1:, :, 1] = high[:-1].min(axis=1)
    bits = np.zeros(after.shape, dtype=np.bool_)
    bits[:, :, 0] = low[:, 1] < low[:, 0]
    bits[1:, :, 1] = (high[:, 1] < high[:, 0])[:-1]
    return np.minimum(after, _NEVER).reshape(placed, masks), bits


def _walk_back(cost: Ints, dropped: Sequence[NDArray[np.uint8]], half: int) -> list[bool]:
    """Return the pattern that ends in the best last state."""
    placed, masks = cost.shape
    count, mask = placed - 1, int(cost[-1].argmin())
    pattern = []
    for bits in reversed(dropped):
        index = count * masks + mask
        oldest = int(bits[index // 8] >> (7 - index % 8)) & 1
        pattern.append(bool(mask & 1))
        count -= mask & 1
        mask = (mask >> 1) | oldest * half
    return pattern[::-1]


_ROUNDS, _FIRST_STEP, _DECAY = 120, 0.8, 0.97
"""Updates of the prices of cells; exponent of the first one, and by how much it shrinks."""

_MOST_LABELS, _MOST_KEPT, _MOST_CELLS = 100_000, 300_000, 500_000
"""Most labels after a column and after all, and cells of the table that finds the dominated ones."""

_SAFE = 1 + 1e-9
"""More than the rounding of floating point in the worth of a set."""

_BLOCK = 256
"""Labels that are grown together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnsResult:
    """What is known about the least makespan."""

    bound_us: int  # a lower bound
    places: tuple[Places, ...] | None = None
    """Cuts by position that reach it and are better than what was known, or None."""


def columns_apply(networks: Sequence[Ways], known_us: int) -> bool:
    """Return whether the search is exact here.

    No chunk may get shorter by one more layer (copies out can do that), sums must fit in 64 bits, and
    the table of labels (one axis for each unit but two) in memory.
    """
    units = networks[0].arrays.unit_count
    small = (max(network.size for network in networks) + 1) ** max(0, units - 2) <= _MOST_CELLS
    rising = all(bool((np.diff(network.arrays.tail, axis=1) >= 0).all()) for network in networks)
    return small and rising and known_us < UNREACHABLE // PRICE_SCALE


def least_columns(
    networks: Sequence[Ways], chain_at: Sequence[int], known_us: int, deadline: Deadline
) -> ColumnsResult:
    """Return the least makespan in columns of requests in a given order.

    `networks`: the networks, for which `columns_apply`.
    """
    prices, bound_us = _cell_prices(networks, chain_at)
    if bound_us >= known_us:
        return ColumnsResult(bound_us=known_us)
    columns = _Columns(networks, chain_at, prices, known_us)
    history = columns.solve(deadline)
    if history is None:
        return ColumnsResult(bound_us=bound_us)
    if not len(history[-1].spent):
        return ColumnsResult(bound_us=known_us)
    return ColumnsResult(bound_us=int(history[-1].spent.min()), places=columns.recover(history))


def contended_columns_us(shop: FlowShop, networks: Sequence[Ways], deadline: Deadline) -> int:
    """Return a lower bound on the makespan in columns of requests in the order of arrival, with slowdown.

    The chunks of a column run in sets that get smaller, so prices of its cells give a bound where every set
    of them is worth at most 1 at the rates of its members, as in `contention_bound`. 0: it is too large.
    """
    chain_at, units = np.array(shop.chain_of), np.arange(shop.unit_count)
    position = np.arange(len(chain_at) + len(units) - 1)[:, None] - units
    there = (position >= 0) & (position < len(chain_at))
    if len(there) * len(units) << len(units) > _MOST_CELLS:
        return 0
    chain = chain_at[np.where(there, position, 0)]
    pairs, together = (chain[:, :, None], units[:, None], chain[:, None, :], units), there[:, :, None]
    together = together & there[:, None, :]
    tables = (shop.losses.least_permille, shop.losses.most_permille)
    losses, most = (np.where(together, np.array(table)[pairs], 0) for table in tables)
    sets = (np.arange(1 << len(units))[:, None] >> units & 1).astype(np.float64)
    lost = np.minimum(sets @ losses.transpose(0, 2, 1), MOST_LOSS_PERMILLE)
    rates = sets * (1.0 - lost / 1000)

    def dearest(weights: Floats) -> Floats:
        cells = np.where(there, weights[np.where(there, position, 0), units], 0.0)
        found: Floats = (rates @ cells[:, :, None])[:, :, 0].max(axis=1) * _SAFE
        return found

    prices, bound_us = _cell_prices(networks, shop.chain_of, dearest, deadline)
    short = rounded_off(losses, most).sum(axis=2)
    rounded = int((np.where(there, prices[np.where(there, position, 0), units], 0) * short).sum())
    return bound_us - -(-rounded // (1000 * PRICE_SCALE))


def _cell_prices(
    networks: Sequence[Ways],
    chain_at: Sequence[int],
    dearest: Callable[[Floats], Floats] | None = None,
    deadline: Deadline = NEVER,
) -> tuple[Ints, int]:
    """Return prices of the cells by [position][unit], which add up to the scale in each column; the bound.

    Multiplicative updates: cells that are longer than their column's mean get dearer. `dearest` returns by
    how much the weights of each column are too large where that is not their sum.
    """
    count, units = len(chain_at), networks[0].arrays.unit_count
    column = np.arange(count)[:, None] + np.arange(units)
    of_chain = [np.flatnonzero(np.array(chain_at) == chain) for chain in range(len(networks))]
    weights = np.ones((count, units))
    best, best_sum, step = np.zeros((count, units), dtype=np.int64), -1, _FIRST_STEP
    mean = np.zeros((count, units))
    for _ in range(_ROUNDS):
        whole = np.bincount(column.ravel(), weights.ravel()) if dearest is None else dearest(weights)
        weights /= whole[column]
        prices = np.floor(weights * PRICE_SCALE).astype(np.int64)
        total = 0
        times = np.zeros((count, units))
        for network, positions in zip(networks, of_chain, strict=True):
            if len(positions):
                sums, places = network.least_priced(prices[positions])
                times[positions] = network.arrays.times_us(places)
                total += sum(sums.tolist())
        if total > best_sum:
            best, best_sum = prices, total
        mean = 0.6 * mean + 0.4 * times
        longest = np.zeros(count + units - 1)
        np.maximum.at(longest, column, mean)
        weights = np.maximum(weights * np.exp(step * (mean / np.maximum(longest, 1.0)[column] - 1.0)), 1e-9)
        step *= _DECAY
        if deadline.passed:
            break
    return best, -(-best_sum // PRICE_SCALE)


@dataclass(frozen=True, slots=True)
class _Labels:
    """Labels after one column.

    `parent`, `budget`: the label before the column, and its budget.
    """

    reached: Ints  # how far each request on its way can be, shape (L, Q), the oldest first
    spent: Ints  # sum of the budgets, shape (L,)
    parent: Ints
    budget: Ints

    def of(self, index: NDArray[np.intp]) -> _Labels:
        """Return some of the labels."""
        return _Labels(self.reached[index], self.spent[index], self.parent[index], self.budget[index])

    def undominated(self, sizes: Sequence[int]) -> _Labels:
        """Return the labels that no other one dominates; `sizes` are those of the requests on their way.

        Labels come in with growing sums; a table holds how far the last request is in any of them, by
        how far the others are at least.
        """
        front = self.of(np.lexsort((-self.reached.sum(axis=1), self.spent)))
        if not sizes:
            return front.of(np.arange(min(1, len(front.spent))))
        farthest = np.full([size + 1 for size in sizes[:-1]], -1, dtype=np.int64)
        kept = []
        for index, (*others, last) in enumerate(front.reached.tolist()):
            if farthest[tuple(others)] < last:
                kept.append(index)
                below: list[Any] = [slice(place + 1) for place in others]
                corner = farthest[(*below, ...)]
                np.maximum(corner, last, out=corner)
        return front.of(np.array(kept, dtype=np.intp))


class _Columns:
    """The search for budgets, column by column."""

    def __init__(
        self, networks: Sequence[Ways], chain_at: Sequence[int], prices: Ints, known_us: int
    ) -> None:
        self._networks, self._chain_at = networks, chain_at
        self._units, self._count = networks[0].arrays.unit_count, len(chain_at)
        self._most = (known_us - 1) * PRICE_SCALE
        self._needs = [_needs(network.arrays.times) for network in networks]
        self._ahead = [
            _ahead(networks[chain].arrays.times, prices[position]) for position, chain in enumerate(chain_at)
        ]
        whole = [int(ahead[0, 0]) for ahead in self._ahead]
        self._unstarted = [*accumulate(reversed(whole), initial=0)][::-1]

    def solve(self, deadline: Deadline) -> list[_Labels] | None:
        """Return the labels after each column; none at the end if nothing beats what is known.

        None: they were too many, or the time is up.
        """
        none = np.zeros(1, dtype=np.int64)
        history = [_Labels(np.zeros((1, 0), dtype=np.int64), none, none, none)]
        for column in range(self._count + self._units - 1):
            labels = self._grow(column, history[-1], deadline)
            if labels is None:
                return None
            history.append(labels)
            if not len(labels.spent):
                break
            if sum(len(kept.spent) for kept in history) > _MOST_KEPT:
                return None
        return history

    def recover(self, history: Sequence[_Labels]) -> tuple[Places, ...]:
        """Return the cuts at the least sum of budgets, by position."""
        at = int(history[-1].spent.argmin())
        budgets = []
        for labels in reversed(history[1:]):
            budgets.append(int(labels.budget[at]))
            at = int(labels.parent[at])
        budgets.reverse()
        return tuple(
            self._cut(chain, budgets[position : position + self._units])
            for position, chain in enumerate(self._chain_at)
        )

    def _grow(self, column: int, labels: _Labels, deadline: Deadline) -> _Labels | None:
        """Return the labels after one more column, or None if they are too many or the time is up."""
        reached = labels.reached
        if column < self._count:
            reached = np.concatenate([reached, np.zeros((len(reached), 1), dtype=np.int64)], axis=1)
        first = max(0, column - self._units + 1)
        grown = []
        for start in range(0, len(reached), _BLOCK):
            if deadline.passed:
                return None
            block = slice(start, start + _BLOCK)
            grown.append(self._grow_block(column, first, reached[block], labels.spent[block], start))
        every = _Labels(*(np.concatenate(parts) for parts in zip(*grown, strict=True)))
        running = range(max(0, column - self._units + 2), min(column + 1, self._count))
        kept = every.undominated([self._networks[self._chain_at[position]].size for position in running])
        return kept if len(kept.spent) <= _MOST_LABELS else None

    def _grow_block(
        self, column: int, first: int, reached: Ints, spent: Ints, offset: int
    ) -> tuple[Ints, Ints, Ints, Ints]:
        """Return (reached, spent, parent, budget) of all labels that follow some labels."""
        positions = range(first, first + reached.shape[1])
        needs = [self._needs[self._chain_at[p]][column - p] for p in positions]
        steps = [needs[index][reached[:, index]] for index in range(len(needs))]
        least = np.zeros((len(reached), 1), dtype=np.int64)
        finishing = column - first == self._units - 1
        if finishing:
            least = steps[0][:, -1:]
        budgets = np.concatenate([least, *steps[finishing:]], axis=1)
        room = (self._most - self._unstarted[min(column + 1, self._count)]) // PRICE_SCALE
        right = (budgets > least) & (budgets < FORBIDDEN) & (spent[:, None] + budgets <= room)
        right[:, 0] = least[:, 0] < FORBIDDEN
        parent, which = np.nonzero(right)
        budget = budgets[parent, which]
        total = spent[parent] + budget
        bound = total * PRICE_SCALE + self._unstarted[min(column + 1, self._count)]
        new, possible = [], np.ones(len(parent), dtype=bool)
        for index, position in enumerate(positions):
            place = _reach(needs[index], reached[parent, index], budget)
            ahead = self._ahead[position][column - position + 1][place]
            possible &= ahead < UNREACHABLE
            bound += np.where(ahead < UNREACHABLE, ahead, 0)
            new.append(place)
        kept = np.flatnonzero(possible & (bound <= self._most))
        places = np.array(new[finishing:], dtype=np.int64).reshape(-1, len(parent)).T
        return places[kept], total[kept], offset + parent[kept], budget[kept]

    def _cut(self, chain: int, budgets: Sequence[int]) -> Places:
        """Return cuts of a request that keep to its budgets."""
        times, reached = self._networks[chain].arrays.times, [0]
        for needs, budget in zip(self._needs[chain], budgets, strict=True):
            before = np.array(reached[-1:])
            reached.append(int(_reach(needs, before, np.array([budget]))[0]))
        places = [self._networks[chain].size]
        for unit in range(self._units - 1, -1, -1):
            stop = places[-1]
            if stop > reached[unit]:
                stop = int(np.argmax(times[unit, : reached[unit] + 1, stop] <= budgets[unit]))
            places.append(stop)
        return tuple(reversed(places))


def _needs(times: Ints) -> Ints:
    """Return the least budget to get from {0, ..., B} to b, by [unit][B][b]; 0 where b is at most B."""
    size = times.shape[1]
    ahead = np.triu(np.ones((size, size), dtype=bool), 1)
    return np.where(ahead, np.minimum.accumulate(np.where(ahead, times, FORBIDDEN), axis=1), 0)


def _reach(needs: Ints, before: Ints, budget: Ints) -> Ints:
    """Return the last boundary within each budget, from all up to each of `before`."""
    found = np.empty(len(before), dtype=np.int64)
    for start in np.unique(before):
        own = np.flatnonzero(before == start)
        found[own] = np.searchsorted(needs[start], budget[own], side="right") - 1
    return found


def _ahead(times: Ints, prices: Ints) -> Ints:
    """Return the least sum of price x time from unit k on and {0, ..., B}, by [k][B]; (K + 1, m + 1)."""
    units, size = len(times), times.shape[1]
    exact = np.full((units + 1, size), UNREACHABLE, dtype=np.int64)
    exact[units, -1] = 0
    for unit in range(units - 1, -1, -1):
        paid = np.where(times[unit] >= FORBIDDEN, UNREACHABLE, prices[unit] * times[unit])
        total = np.minimum(paid, UNREACHABLE) + np.minimum(exact[unit + 1], UNREACHABLE)
        exact[unit] = np.minimum(total.min(axis=1), UNREACHABLE)
    return np.minimum.accumulate(exact, axis=1)
