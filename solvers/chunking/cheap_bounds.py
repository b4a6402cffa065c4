"""Bounds of the first term for each set of units, by a few sums: which sets cannot have the best plan.

Every unit in use is busy for at most a period. So with any weights w_u >= 0 of the units of a set S

    period >= sum_u w_u busy_u / sum_u w_u >= sum_l min_{u in S} w_u t_lu / sum_u w_u ,

whatever is cut where: copies cost at least nothing. The weights are raised where the units that attain the
minima are busier than others (multiplicative weights), and the best bound is kept. With all weights 1 and
without the division it is a bound of the latency.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...formulations.costs import CostTable
from ...formulations.parts import Part
from ...formulations.problem import Problem
from ...formulations.validation import MAX_COUNT

_STEPS = 25
_PACE = 0.5
_FINE = 1000
"""Weights are whole numbers that add up to about this: bounds are exact."""


def cheap_bounds(problem: Problem) -> dict[Part, int]:
    """Return a lower bound on the first term of the objective for each part of a problem with costs by set.

    Nothing where costs do not depend on sets, or where nothing is known of the term.
    """
    term = problem.objective.first
    if not problem.by_set or term not in ("period", "latency"):
        return {}
    tables = {Part(table.units): table for table in problem.co_run_costs or ()}
    bound = _least_period if term == "period" else _least_latency
    found = {part: bound(_times(problem, table)) for part, table in tables.items()}
    alone = _times(problem, problem.costs).sum(axis=0)
    return {Part(1): int(min(alone.min(), MAX_COUNT)), **found}


def _times(problem: Problem, table: CostTable) -> NDArray[np.int64]:
    """Return times by [layer][unit]; where a layer cannot run, more than any plan may take."""
    layers = table.of(problem.network.name).layer_us
    whole = sum(max((time for time in row if time is not None), default=0) for row in layers)
    most = min(whole + 1, MAX_COUNT)
    return np.array([[most if time is None else time for time in row] for row in layers], dtype=np.int64)


def _least_latency(time_us: NDArray[np.int64]) -> int:
    return int(time_us.min(axis=1).sum())


def _least_period(time_us: NDArray[np.int64]) -> int:
    weight = 1.0 / time_us.sum(axis=0)
    best, chosen = 0.0, weight
    for _ in range(_STEPS):
        weight = weight / weight.sum()
        charged = time_us * weight
        unit = charged.argmin(axis=1)
        value = float(charged.min(axis=1).sum())
        if value > best:
            best, chosen = value, weight
        load = np.bincount(unit, time_us[np.arange(len(unit)), unit], time_us.shape[1])
        weight = weight * np.exp(_PACE * (load / max(load.max(), 1.0) - 1))
    whole = np.maximum(np.rint(_FINE * chosen), 1).astype(np.int64)
    return -(-int((time_us * whole).min(axis=1).sum()) // int(whole.sum()))
