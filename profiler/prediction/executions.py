"""Executed plans of one network, beside the tables that they were predicted from.

Two kinds of files are read: gapless's own (`gapless.executions`, exact), and the form in which the
BetterTogether measurements are shared: a JSON object with `columns` (units), `isolated_ms`, `heavy_ms`
and `schedules`, each with `chunks` (unit, layers from 1), `interval_ms` and, where known, `chunk_mean_ms`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ...formulations.co_run import CoRunCosts, combine
from ...formulations.costs import CostTable
from ...formulations.errors import InvalidInputError
from ...formulations.files import Schema
from ...formulations.hardware import Platform
from ...formulations.network import Network
from ...formulations.plan import Plan
from ...formulations.problem import Problem
from ...formulations.validation import STRICT, Defects


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutedPlan:
    """One plan and what it took.

    Attributes
    ----------
    plan
        What ran.
    period_us
        Time between two outputs: the median, if it ran several times.
    chunk_us
        Busy time of each chunk, in the order of the plan; empty where it is not known.
    runs
        How often it ran.
    """

    __pydantic_config__: ClassVar[Any] = STRICT

    plan: Plan
    period_us: float
    chunk_us: tuple[float, ...] = ()
    runs: int = 1

    def __post_init__(self) -> None:
        defects = Defects(f"executed plan [{self.plan}]")
        if self.chunk_us and len(self.chunk_us) != len(self.plan.chunks):
            defects.add(f"{len(self.chunk_us)} times of chunks, the plan has {len(self.plan.chunks)}")
        if not all(time > 0 for time in (self.period_us, *self.chunk_us)):
            defects.add("a time is not greater than 0")
        defects.raise_as(InvalidInputError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Executions:
    """Executed plans of one network on one platform.

    Attributes
    ----------
    platform, network
        Where, and of what.
    tables
        What was measured beforehand; their provenance says by which method ("isolated", "heavy").
    executed
        The plans.
    source
        Who measured, where and when.
    """

    __pydantic_config__: ClassVar[Any] = STRICT

    platform: Platform
    network: Network
    tables: tuple[CostTable, ...]
    executed: tuple[ExecutedPlan, ...]
    source: str = ""

    def problem(self, model: str | CoRunCosts) -> Problem:
        """Return the problem with the costs of a co-run cost model: the judge then predicts the plans."""
        found = combine(model, self.tables) if isinstance(model, str) else model
        return Problem(
            platform=self.platform,
            networks=(self.network,),
            costs=found.costs,
            co_run_costs=found.beside,
        )


EXECUTIONS = Schema(format="gapless.executions", version=1, content=Executions)
