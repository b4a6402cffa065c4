"""Lower bounds on the latency: longest paths, and the work between heads and tails at prices of turns.

With a price p_k >= 0 for each set k of units that take turns (`TaskTables.turns`), and W_u the sum of the
prices of the sets of unit u, tasks S that start at h or later and have q behind them prove

    (latency - h - q) * sum of p >= sum over S of min over units of W_u * t_u,

the dual of the relaxation that gives shares of tasks to units (Lenstra, Shmoys and Tardos 1990).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...formulations.task_graph.paths import Paths
from ...formulations.task_graph.tables import TaskTables

_ROUNDS, _SCALE = 80, 10_000
"""Rounds in which prices are improved; prices are whole numbers up to the second."""

_MARKS = 400
"""Most heads, and most tails, that windows begin and end at."""

_WORST = np.iinfo(np.int64).max // _SCALE**2


def latency_bound(tables: TaskTables, paths: Paths) -> int:
    """Return a lower bound on the latency of all plans."""
    least = np.array(
        [[_WORST if time is None else time for time in row] for row in tables.time_us], dtype=np.int64
    )
    member = np.array(
        [[unit in own for unit in range(tables.unit_count)] for own in tables.turns], dtype=np.int64
    )
    heads = np.array([_least(row, own) for row, own in zip(paths.head_us, tables.allowed, strict=True)])
    tails = np.array([_least(row, own) for row, own in zip(paths.tail_us, tables.allowed, strict=True)])
    found = paths.longest_us
    for prices in (np.ones(len(member), dtype=np.int64), _prices(least, member)):
        work = (least * (prices @ member)).min(axis=1)
        found = max(found, _best_window(heads, tails, work, int(prices.sum())))
    return found


def _least(row: Sequence[int], allowed: Sequence[int]) -> int:
    return min((row[unit] for unit in allowed), default=0)


def _best_window(heads: Any, tails: Any, work: Any, total: int) -> int:
    """Return the largest of h + q + work / total over heads h and tails q, rounded up."""
    marks = [_marks(heads), _marks(tails)]
    places = [
        np.searchsorted(own, each, side="right") - 1 for own, each in zip(marks, (heads, tails), strict=True)
    ]
    grid = np.zeros((len(marks[0]), len(marks[1])), dtype=np.int64)
    np.add.at(grid, tuple(places), work)
    inside = grid[::-1, ::-1].cumsum(axis=0).cumsum(axis=1)[::-1, ::-1]
    around = marks[0][:, None] + marks[1][None, :]
    return int(np.where(inside > 0, around - (-inside // total), 0).max())


def _marks(values: Any) -> Any:
    """Return the values, each once; of very many some, the least one among them."""
    found = np.unique(values)
    return found[:: max(1, -(-len(found) // _MARKS))]


def _prices(least: Any, member: Any) -> Any:
    """Return the prices of the sets that prove most about all tasks, as far as some rounds find them."""
    prices = np.ones(len(member)) / len(member)
    best_value, best = -1.0, prices
    tasks = np.arange(len(least))
    for turn in range(1, _ROUNDS + 1 if len(member) > 1 else 2):
        weighed = least * (prices @ member)
        chosen = weighed.argmin(axis=1)
        value = float(weighed[tasks, chosen].sum())
        if value > best_value:
            best_value, best = value, prices
        by_unit = np.bincount(chosen, weights=least[tasks, chosen], minlength=least.shape[1])
        loads = member @ by_unit
        prices = prices * (1 + (loads / max(loads.mean(), 1e-9) - 1) / (2 + turn) ** 0.5 / 2)
        prices = np.maximum(prices, 1e-5)
        prices /= prices.sum()
    return np.maximum(1, np.round(_SCALE * best / best.max())).astype(np.int64)
