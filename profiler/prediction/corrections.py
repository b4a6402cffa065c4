"""Corrections of a cost model, learned from executed plans (formulations, section 5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...formulations.costs import CostRows, CostTable, NetworkCosts, TransferRows
from ...formulations.problem import Problem
from .executions import ExecutedPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class Shrinkage:
    """How strongly corrections are held back towards none.

    Attributes
    ----------
    unit
        As many imaginary chunks of each unit as these took exactly what was predicted.
    """

    unit: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrections:
    """What to multiply predicted times with.

    Attributes
    ----------
    unit_factor
        By unit of the platform: layers and copies alike.
    layer_factor
        On top of it, by [layer][unit].
    """

    unit_factor: tuple[float, ...]
    layer_factor: tuple[tuple[float, ...], ...]

    def applied(self, problem: Problem) -> Problem:
        """Return the problem with corrected costs: every table, rounded once to whole microseconds."""
        tables = problem.co_run_costs
        return replace(
            problem,
            costs=self._table(problem.costs),
            co_run_costs=None if tables is None else tuple(map(self._table, tables)),
        )

    def _table(self, table: CostTable) -> CostTable:
        (costs,) = table.networks
        corrected = NetworkCosts(
            network=costs.network,
            layer_us=self._layers(costs.layer_us),
            transfer_in_us=self._transfers(costs.transfer_in_us),
            transfer_out_us=self._transfers(costs.transfer_out_us),
        )
        return replace(table, networks=(corrected,))

    def _layers(self, rows: CostRows) -> CostRows:
        return tuple(
            tuple(
                None if time is None else max(1, round(time * unit * layer))
                for time, unit, layer in zip(row, self.unit_factor, factors, strict=True)
            )
            for row, factors in zip(rows, self.layer_factor, strict=True)
        )

    def _transfers(self, rows: TransferRows) -> TransferRows:
        return tuple(
            tuple(round(time * unit) for time, unit in zip(row, self.unit_factor, strict=True))
            for row in rows
        )


def fit_corrections(
    problem: Problem, executed: Sequence[ExecutedPlan], *, shrinkage: Shrinkage = Shrinkage()
) -> Corrections:
    """Learn corrections of a problem's costs from executed plans of it.

    One factor a unit: the mean of log(measured / predicted) over its chunks, weighted by how much of the
    period a chunk takes (short chunks are mostly noise, and no period depends on them), shrunk to 0; and
    one for all units, so that the largest chunk foretells the time between two outputs.

    Parameters
    ----------
    problem
        With the costs that are to be corrected.
    executed
        Plans with their times; plans without times of chunks tell the common factor only.
    shrinkage
        How strongly to hold back.
    """
    units = len(problem.platform.units)
    seen: NDArray[np.float64] = np.zeros((2, units))
    for one in executed:
        chain = problem.chain_of(one.plan)
        for (start, stop, unit), taken in zip(chain.parts(one.plan), one.chunk_us, strict=False):
            share = (taken / max(one.chunk_us)) ** 2
            seen[:, unit] += share * np.log(taken / chain.busy_us(start, stop, unit)), share
    factor = np.exp(seen[0] / (seen[1] + shrinkage.unit))
    ratios = [np.log(one.period_us / _longest_us(problem, one, factor)) for one in executed]
    factor *= np.exp(np.sum(ratios) / (len(ratios) + shrinkage.unit))
    rows = problem.costs.networks[0].layer_us
    return Corrections(unit_factor=tuple(factor.tolist()), layer_factor=((1.0,) * units,) * len(rows))


def _longest_us(problem: Problem, one: ExecutedPlan, factor: NDArray[np.float64]) -> float:
    chain = problem.chain_of(one.plan)
    parts = chain.parts(one.plan)
    return float(max(chain.busy_us(start, stop, unit) * factor[unit] for start, stop, unit in parts))
