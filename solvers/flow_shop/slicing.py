"""Slicing one request over the units: least bottleneck (P1 of Hetero2Pipe, corrected) and least work.

With T_k(a, b) the time of the pieces [a, b) on unit k, 0 if there are none, the recursion is

    S_0(b) = T_0(0, b),    S_k(b) = min over a <= b of max(S_{k-1}(a), T_k(a, b)),

and S_{K-1}(m) the least bottleneck. Chunks may be empty: a request skips units that do not help. The
bottleneck settles one chunk only, so among its many optima the one with the least total time is taken.

*Lemma 1.* Where T_k(a, b) never grows with a and never falls with b, S_{k-1} never falls either, and the
crossing a*(b) = least a with S_{k-1}(a) >= T_k(a, b) never moves back as b grows: one pointer finds
them all, O(mK). Copies break that (a boundary with a large tensor), and so would a ban on empty chunks;
the printed Algorithm 1 has neither condition. Everywhere else O(m^2 K), in numpy.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from .arrays import FORBIDDEN, ChainArrays, Ints

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
