"""Executed plans of one network, beside the tables that they were predicted from."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from ...formulations.chain import Chain
from ...formulations.co_run import CoRunCosts, combine
from ...formulations.costs import CostTable, shape_of
from ...formulations.errors import InvalidInputError
from ...formulations.files import Schema
from ...formulations.hardware import Platform
from ...formulations.judge import check
from ...formulations.network import Network
from ...formulations.plan import Plan
from ...formulations.problem import Problem
from ...formulations.validation import Defects, FileContent

MOST_PLANS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutedPlan(FileContent):
    """One plan and what it took."""

    plan: Plan
    """What ran."""
    period_us: float
    """Time between two outputs: the median, if it ran several times."""
    chunk_us: tuple[float, ...] = ()
    """Busy time of each chunk, in the order of the plan; empty where it is not known."""
    runs: int = 1
    """How often it ran."""
    run_us: tuple[float, ...] = ()
    """Time between two outputs in each of its runs; empty where it is not known."""
    skipped_layers: tuple[int, ...] = ()
    """Indices of layers that its chunks left out when it ran: predictions leave them out, too."""

    def __post_init__(self) -> None:
        defects = Defects(f"executed plan [{self.plan}]")
        if self.chunk_us and len(self.chunk_us) != len(self.plan.chunks):
            defects.add(f"{len(self.chunk_us)} times of chunks, the plan has {len(self.plan.chunks)}")
        times = (self.period_us, *self.chunk_us, *self.run_us)
        defects.found += [f"a time is {time}, must be greater than 0" for time in times if not 0 < time < inf]
        defects.check_unique("skipped_layers", self.skipped_layers)
        beyond = set(self.skipped_layers)
        for chunk in self.plan.chunks:  # what a file calls a chunk may have a billion layers
            skipped = {layer for layer in self.skipped_layers if chunk.start <= layer < chunk.stop}
            beyond -= skipped
            if len(skipped) == chunk.stop - chunk.start:
                defects.add(f"its chunk [{chunk}] ran no layer: skipped_layers has all of them")
        if beyond:
            defects.add(f"skipped_layers has {min(beyond)}, which is in no chunk")
        defects.raise_as(InvalidInputError)

    def layers_run(self, start: int, stop: int) -> list[int]:
        """Return the layers of a chunk that were executed."""
        return [layer for layer in range(start, stop) if layer not in self.skipped_layers]


def chain_by_plan(problem: Problem, one: ExecutedPlan) -> Chain:
    """Return the tables that an executed plan is charged by."""
    tables = problem.charged(one.plan).tables
    assert isinstance(tables, Chain)  # executed plans are of one network
    return tables


def charged_us(problem: Problem, one: ExecutedPlan) -> list[int]:
    """Return what a problem charges for the chunks of an executed plan, without layers that did not run."""
    chain = chain_by_plan(problem, one)
    return [
        chain.busy_us(start, stop, unit)
        - sum(chain.layer_us[layer][unit] or 0 for layer in one.skipped_layers if start <= layer < stop)
        for start, stop, unit in chain.parts(one.plan)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Executions(FileContent):
    """Executed plans of one network on one platform."""

    platform: Platform
    network: Network
    """Where, and of what."""
    tables: tuple[CostTable, ...]
    """What was measured beforehand; their provenance says by which method ("isolated", "heavy")."""
    executed: tuple[ExecutedPlan, ...]
    """The plans."""
    source: str = ""
    """Who measured, where and when."""

    def __post_init__(self) -> None:
        defects = Defects("executions")
        defects.check_size("tables", len(self.tables), most=2)
        defects.check_size("executed", len(self.executed), most=MOST_PLANS)
        defects.check_unique("methods of tables", [table.provenance.method for table in self.tables])
        if len({shape_of(table) for table in self.tables}) > 1:
            defects.add("the tables differ in units, batch, networks, or in which layers run where")
        defects.raise_as(InvalidInputError)
        problem = self._problem(CoRunCosts(costs=self.tables[0]))
        for index, one in enumerate(self.executed):
            wrong = [violation.message for violation in check(problem, one.plan)]
            defects.found += [f"executed[{index}] [{one.plan}]: {text}" for text in wrong]
        defects.raise_as(InvalidInputError)

    def problem(self, model: str) -> Problem:
        """Return the problem with the costs of a co-run cost model: the judge then predicts the plans."""
        return self._problem(combine(model, self.tables, self.platform))

    def _problem(self, found: CoRunCosts) -> Problem:
        return Problem(
            platform=self.platform,
            networks=(self.network,),
            costs=found.costs,
            co_run_costs=found.beside,
        )


EXECUTIONS = Schema(format="gapless.executions", version=1, content=Executions)
