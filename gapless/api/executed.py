"""What tuning executed, as plans with their times: what is learned from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..executor.tuning.candidates import asked_pace
from ..executor.tuning.result import TuningResult, TuningRow
from ..formulations.co_run import possible_models
from ..formulations.costs import CostTable
from ..formulations.plan import Plan, comes_back
from ..formulations.problem import Problem
from ..profiler.prediction.executions import ExecutedPlan, Executions


def executed_plans(results: Sequence[TuningResult], problem: Problem) -> tuple[ExecutedPlan, ...]:
    """Return every plan that was executed, with its times: the newest ones, and all as if measured today.

    Plans count whose time is of the kind that the problem is about, a period where there is one network; then
    several pipelines of it are no plan of the problem. Plans that come back to a unit are left out: what is
    learned is how long the one chunk of a unit takes while other units run.

    Within a run, times are freed from drift like `TuningRow.comparable_us`; between runs, by the winner of
    the one before, which is executed in both.
    """
    alone = problem.formulation.one_network
    pace = "period" if alone else asked_pace(problem)
    found: dict[Plan, ExecutedPlan] = {}
    speed = 1.0
    after: dict[str, TuningRow] = {}
    for result in reversed(results):
        rows = {row.candidate.key: row for row in result.rows}
        common = result.ties[:1] and (rows[result.ties[0]], after.get(result.ties[0]))
        if common and common[0].comparable_us and common[1] and common[1].comparable_us:
            speed *= common[1].comparable_us / common[0].comparable_us
        for row in result.rows:
            plan = row.candidate.deployment.plan
            ran = row.candidate.deployment
            if (
                plan is None
                or ran.is_divided
                or any(s.order for s in ran.streams)
                or ran.pace != pace
                or (alone and (plan.order or comes_back(plan.chunks, problem.platform)))
            ):
                continue
            if row.comparable_us is not None and row.period_us is not None:
                today = speed * row.comparable_us / row.period_us.median
                found.setdefault(
                    plan,
                    ExecutedPlan(
                        plan=plan,
                        period_us=today * row.period_us.median,
                        chunk_us=tuple(today * time_us for time_us in _chunk_us(plan, row)),
                        runs=row.period_us.count,
                        run_us=tuple(today * time_us for time_us in row.visit_us),
                    ),
                )
        after = rows
    return tuple(found.values())


def _chunk_us(plan: Plan, row: TuningRow) -> Iterator[float]:
    """Yield the times of chunks in the order of the plan, where they are known; rows have them by stream."""
    streams = row.candidate.deployment.streams
    places = ((stream.name, chunk.start) for stream in streams for chunk in stream.chunks)
    known = dict(zip(places, row.chunk_us, strict=False))
    for chunk in plan.chunks if known else ():
        yield known[chunk.request or streams[0].name, chunk.start]


def executions_of(
    problem: Problem, tables: Sequence[CostTable], results: Sequence[TuningResult]
) -> Executions | None:
    """Return all plans that were executed, and the tables that predicted them; None where there are none.

    Replicas are not one plan, plans for a workload have no period, and of a problem that was given with
    combined or unnamed tables the measured ones are not known.
    """
    if any(network.order for network in problem.networks):
        return None  # tables are of the order of the model
    found = executed_plans(results, problem)
    known = possible_models([table.provenance.method for table in tables])
    if not problem.formulation.one_network or not found or not known:
        return None
    return Executions(
        platform=problem.platform,
        network=problem.network,
        tables=tuple(tables),
        executed=found,
        source=f"gapless tune on {results[-1].device}",
    )
