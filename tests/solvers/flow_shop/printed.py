"""Hetero2Pipe's algorithms exactly as printed, with the line numbers of its listings.

They are here to be shown wrong (`test_errata.py`); where the text leaves something open, the reading is
said. Indices follow the paper: processors 1..K in `k`, layers 0..n-1, closed intervals [i, j].
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations, pairwise, permutations
from math import comb, inf

import numpy as np
from scipy.optimize import linear_sum_assignment

Times = Sequence[Sequence[int]]
"""Microseconds by [processor 0..K-1][layer]."""


def slice_time(times: Times, k: int, i: int, j: int, copy_in: Times | None = None) -> float:
    """T_k(i, j): layers i..j on processor k (0-based); 0 only if j < i (Property 2)."""
    if j < i:
        return 0
    return sum(times[k][i : j + 1]) + (copy_in[k][i] if copy_in else 0)


def algorithm_1(times: Times, *, first: int = 2) -> float:
    """Return S*(n - 1, p) as lines 3 to 13 compute it; `first` is what line 5 sets i to."""
    n, p = len(times[0]), len(times)
    best = {(j, 1): slice_time(times, 0, 0, j) for j in range(n)}  # 3
    best |= {(-1, k): 0.0 for k in range(1, p + 1)}
    for k in range(2, p + 1):  # 4
        i = first  # 5
        for j in range(n):  # 6
            before, own = best.get((i - 1, k - 1), best[n - 1, k - 1]), slice_time(times, k - 1, i, j)
            if max(before, own) == before:  # 7, 8
                best[j, k] = before  # 9
            else:
                while slice_time(times, k - 1, i + 1, j) >= best[i, k - 1]:  # 11
                    i += 1  # 12
                best[j, k] = min(best[i, k - 1], slice_time(times, k - 1, i, j))  # 13
    return best[n - 1, p]


def boundary_condition(times: Times, j: int) -> float:
    """Return line 2 of the recurrence, "k = j": max over i <= j of T_k(i, j)."""
    return max(slice_time(times, j - 1, i, j) for i in range(j + 1))


def prefixes(n: int, k: int) -> list[int]:
    """Return the j for which line 3 of the recurrence defines S*(j, k): j <= n - k."""
    return [j for j in range(n) if j <= n - k]


def backtrack(times: Times, value: float, *, beyond: bool = False) -> list[int]:
    """Return the splitting points of lines 14 to 20; k starts at 1 and stays at K once it is there.

    `beyond` compares with > instead of >=.
    """
    points, start, k = [], 0, 0  # 14
    for stop in range(1, len(times[0])):  # 15
        took = slice_time(times, k, start, stop)
        if took > value or (took == value and not beyond):  # 16
            points.append(stop)  # 17
            start, k = stop, min(k + 1, len(times) - 1)  # 18, 19
    return points  # 20


def pointer(times: Times, copy_in: Times) -> float:
    """Return the least bottleneck by the O(nK) pointer with empty chunks, whatever the copies cost."""
    n = len(times[0])
    best = [slice_time(times, 0, 0, b - 1, copy_in) for b in range(n + 1)]
    for k in range(1, len(times)):
        following, a = [], 0
        for b in range(n + 1):
            while a < b and best[a] < slice_time(times, k, a, b - 1, copy_in):
                a += 1
            sides = [max(best[c], slice_time(times, k, c, b - 1, copy_in)) for c in (a, a - 1) if c >= 0]
            following.append(min(sides))
        best = following
    return best[n]


def pointer_without_empty_chunks(times: Times) -> float:
    """Return the same where every processor must run a layer: Property 2's claim taken at its word."""
    n = len(times[0])
    best = [inf, *(slice_time(times, 0, 0, b - 1) for b in range(1, n + 1))]
    for k in range(1, len(times)):
        following, a = [inf] * (n + 1), k
        for b in range(k + 1, n + 1):
            while a < b - 1 and best[a] < slice_time(times, k, a, b - 1):
                a += 1
            sides = [max(best[c], slice_time(times, k, c, b - 1)) for c in (a, a - 1) if k <= c < b]
            following[b] = min(sides)
        best = following
    return best[n]


def least_without_empty_chunks(times: Times, layers: int | None = None) -> float:
    """Return the true least bottleneck of the first layers where every processor must run one."""
    n, p = layers or len(times[0]), len(times)
    return min(
        max(slice_time(times, k, a, b - 1) for k, (a, b) in enumerate(zip((0, *cut), (*cut, n), strict=True)))
        for cut in combinations(range(1, n), p - 1)
    )


def equation_4(times: Times, cuts: Sequence[int]) -> float:
    """Return the maximum that Eq. 4 minimises, over 1 <= k <= K - 1: the last slice is left out."""
    return max(slice_time(times, k, cuts[k], cuts[k + 1] - 1) for k in range(len(times) - 1))


def definition_1(points: Sequence[int]) -> list[list[int]]:
    """Return the slices {l_0..l_{p1-1}}, {l_p1..l_{p2-1}}, ..., {l_{p_(K-1)}..l_pK} of P = {p_1..p_K}."""
    starts = [0, *points[:-1]]
    return [
        list(range(a, b + (b == points[-1]))) for a, b in zip(starts, points, strict=True)
    ]  # the last one is closed


def definition_2(points: Sequence[int]) -> list[list[int]]:
    """Return the slices {l_pk..l_{p_(k+1)-1}} for k = 1..K-1, which is all that P defines."""
    return [list(range(a, b)) for a, b in pairwise(points)]


def equation_9(low: int, high: int) -> bool:
    """Return whether Eq. 9 has any solution: 0-1 and both sums equal to one."""
    cells = [(i, j) for i in range(low) for j in range(high)]
    return any(
        all(sum(i == row for i, _ in chosen) == 1 for row in range(low))
        and all(sum(j == column for _, j in chosen) == 1 for column in range(high))
        for size in range(len(cells) + 1)
        for chosen in combinations(cells, size)
    )


def algorithm_2(pattern: str, reach: int, rounds: int) -> tuple[str, bool]:
    """Return the sequence after Algorithm 2, and whether its while loop ended within some rounds.

    `pattern` is of H and L. Moves insert the low request behind the high one, one after the other.
    """
    sequence = list(enumerate(pattern))
    moved: set[int] = set()
    for _ in range(rounds):
        kinds = "".join(kind for _, kind in sequence)
        high = [j for j, kind in enumerate(kinds) if kind == "H" and kinds[j : j + reach].count("H") >= 2]
        low = [i for i, (name, kind) in enumerate(sequence) if kind == "L" and name not in moved]  # 3
        if not high or not low:  # 4
            return kinds, True
        cost = np.array([[cost_10(kinds, i, j, reach) for j in high] for i in low])  # 5 to 9
        if np.isinf(cost).all():
            continue  # 10: Kuhn and Munkres return nothing, 11: nothing changes
        pairs = zip(*linear_sum_assignment(np.where(np.isinf(cost), 1e6, cost)), strict=True)  # 10
        chosen = [(sequence[low[i]], sequence[high[j]]) for i, j in pairs if cost[i, j] < inf]
        for donor, slot in chosen:
            sequence.remove(donor)
            sequence.insert(sequence.index(slot) + 1, donor)
            moved.add(donor[0])  # 11
    return "".join(kind for _, kind in sequence), False


def cost_10(kinds: str, i: int, j: int, reach: int) -> float:
    """Eq. 10: the cost of moving the L at i behind the H at j."""
    if j - reach + 1 <= i <= j + reach - 1:
        return inf
    left = kinds[:i] + kinds[i + 1 :]
    window = left[max(0, i - reach + 1) : i + reach - 1]
    closer = [v - u for u, v in _neighbours(window)]
    return inf if closer and min(closer) < reach else abs(j - i)


def _neighbours(kinds: str) -> list[tuple[int, int]]:
    places = [place for place, kind in enumerate(kinds) if kind == "H"]
    return list(pairwise(places))


def hard_orders(pattern: str, reach: int) -> list[tuple[int, ...]]:
    """Return the orders in which all H are at least K apart, as Property 3 asks."""
    return [
        order
        for order in permutations(range(len(pattern)))
        if all(v - u >= reach for u, v in _neighbours("".join(pattern[r] for r in order)))
    ]


Cuts = list[list[int]]
"""Boundaries 0..n of each request, by position."""

Steal = tuple[int, int, float]

Row = Callable[[int, list[int]], list[float]]
"""Times of a request on each processor for its cuts."""


def algorithm_3(cuts: Cuts, row: Row, *, left: int = -1) -> Cuts:
    """Return the cuts after Algorithm 3; windows step by K, and k runs over all processors.

    "Assign layers until the difference tends to 0": one layer after the other while the chunk is longer
    than the critical one. Line 11 is taken with i_c - i, which the text means; `left=1` takes i_c + i.
    """
    cuts = [list(own) for own in cuts]
    units = range(1, len(cuts[0]))
    for window in windows(len(cuts), len(units)):  # 3, 4, 12
        critical = max(window, key=lambda place: sum(row(place, cuts[place])))  # 5
        goal = row(critical, cuts[critical])
        for place in window[critical - window[0] + 1 :]:  # 6
            steals = [(k - j, k - j + 1, goal[k - 1]) for k in units for j in range(1, k)]  # 7
            _steal(cuts[place], partial(row, place), steals)  # 8
        for i in range(1, critical - window[0] + 1):  # 9
            place = critical + left * i
            steals = [(k + j, k + j - 1, goal[k - 1]) for k in units for j in range(1, len(units) - k + 1)]
            if place in window:
                _steal(cuts[place], partial(row, place), steals)  # 10, 11
    return cuts


def windows(count: int, units: int) -> list[range]:
    """Return the windows of line 3 and 12: u = 0, K, 2 K, ..."""
    return [range(u, min(count, u + units)) for u in range(0, count, units)]


def _steal(own: list[int], times: Callable[[list[int]], list[float]], steals: list[Steal]) -> None:
    """Hand layers from processor to processor, each (from, to, until it takes at most this)."""
    for source, target, goal in steals:
        while own[source - 1] < own[source] and times(own)[source - 1] > goal:
            if target > source:
                own[source] -= 1
            else:
                own[source - 1] += 1


def equation_11(times: Sequence[Sequence[int]], critical: int) -> int:
    """Return Eq. 11 for each k summed, cells outside the window counting nothing; `times` is [i][k]."""
    count, units = len(times), len(times[0])
    total = 0
    for k in range(units):
        for i in range(1, count - critical):
            total += sum(abs(times[critical + i][k - j] - times[critical][k]) for j in range(1, k + 1))
        for i in range(1, critical + 1):
            ends = range(1, units - k)
            total += sum(abs(times[critical - i][k + j] - times[critical][k]) for j in ends)
    return total


def equation_12(cores: int, big: int) -> list[int]:
    """Return S_P for P = 2..C + 2 with the printed limits of Eq. 13."""
    found = []
    for depth in range(2, cores + 3):
        groups = depth - 2
        total = 0
        for of_big in range(max(1, groups + cores - big), min(big, groups - 1) + 1):
            d_big, d_small = comb(big - 1, of_big - 1), comb(cores - big - 1, groups - of_big - 1)
            total += 4 * d_big * d_small + 3 * d_big + 3 * d_small
        found.append(total + 1)
    return found
