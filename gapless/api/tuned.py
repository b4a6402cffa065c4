"""What tuning found, round by round, everything it was made from, and the plans it executed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, ClassVar

from ..executor.tuning.candidates import asked_pace
from ..executor.tuning.result import TuningResult, TuningRow, TuningStop
from ..formulations.co_run import possible_models
from ..formulations.costs import CostTable
from ..formulations.deployment import Deployment
from ..formulations.files import Schema
from ..formulations.plan import Plan, comes_back
from ..formulations.printing import shortened
from ..formulations.problem import Problem
from ..formulations.validation import STRICT
from ..profiler.prediction.corrections import Corrections
from ..profiler.prediction.executions import ExecutedPlan, Executions
from ..profiler.prediction.learned import Lessons
from ..profiler.profile import Profile
from ..solvers.pareto import ParetoFront
from .comparison import Comparison

CORRECTED = "corrected"
"""Name of the predictions by corrected costs."""


class LoopStop(StrEnum):
    """Why a closed loop ended.

    SETTLED
        The best plan has stood a round, and no plan that was not measured is predicted to be faster.
    EXHAUSTED
        No backend finds another plan.
    ROUNDS
        All rounds that were asked for are done.
    BUDGET
        The time was used up.
    INTERRUPTED
        The user stopped it; it can be resumed.
    """

    SETTLED = "settled"
    EXHAUSTED = "exhausted"
    ROUNDS = "rounds"
    BUDGET = "budget"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One round."""

    __pydantic_config__: ClassVar[Any] = STRICT

    corrections: Corrections | None
    """What the costs were multiplied with before its plans were made; None in the first round, and where who
    slows whom was learned instead."""
    result: TuningResult
    """What was measured: its plans, and in a later round the best so far once more."""
    lessons: Lessons | None = None
    """What was learned of who slows whom before its plans were made; None where that was not asked."""

    @property
    def unit_factors(self) -> tuple[float, ...]:
        """What times of each unit are multiplied with, with company that slows it most; empty: not known."""
        if self.corrections is not None:
            return self.corrections.unit_factor
        return () if self.lessons is None else self.lessons.unit_factors

    @property
    def costs(self) -> str:
        """Name of the costs that its plans were made from."""
        if self.corrections is not None or self.lessons is not None:
            return CORRECTED
        return next(name for row in self.result.rows for name, _ in row.candidate.predicted_us)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """The most promising plan that was not measured, after the last round."""

    __pydantic_config__: ClassVar[Any] = STRICT

    plan: Plan
    """The plan."""
    predicted_us: int
    """Its period by what was learned from all rounds."""
    best_us: int
    """That of the best plan, by the same; of a baseline, as measured."""

    @property
    def better(self) -> bool:
        """Whether the plan is predicted to be faster than the best."""
        return self.predicted_us < self.best_us


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """All rounds of a closed loop."""

    __pydantic_config__: ClassVar[Any] = STRICT

    rounds: tuple[Round, ...]
    """At least one."""
    stop: LoopStop
    """Why it ended."""
    outlook: Outlook | None = None
    """What could be measured next; None where there is nothing, or it was cut off before that was known."""

    @property
    def answer(self) -> TuningResult:
        """What the last round says that came to its end: of one that was cut off, it is not known."""
        whole = [one.result for one in self.rounds if cut_off(one.result) is None]
        return whole[-1] if whole else self.rounds[0].result

    @property
    def plans_measured(self) -> int:
        """How many plans of solvers were executed at least once, over all rounds."""
        return sum(self.new_plans)

    @property
    def new_plans(self) -> tuple[int, ...]:
        """How many plans of solvers each round was the first to execute."""
        seen: set[str] = set()
        counts = []
        for one in self.rounds:
            known = len(seen)
            seen |= {row.candidate.key for row in one.result.rows if row.candidate.rank and row.period_us}
            counts.append(len(seen) - known)
        return tuple(counts)


LOOP = Schema(format="gapless.rounds", version=1, content=Loop)


def cut_off(result: TuningResult) -> LoopStop | None:
    """Return why a round did not come to its end, or None if it did."""
    stops = {TuningStop.INTERRUPTED: LoopStop.INTERRUPTED, TuningStop.BUDGET: LoopStop.BUDGET}
    return stops.get(result.stop)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuned:
    """What tuning found, and everything it was made from.

    Attributes
    ----------
    problem
        What was planned, with the table that the plans were made from.
    profile
        The measured tables; None where the problem was given.
    comparison
        What the backends answered.
    result
        What was measured; of several rounds, in the last one that came to its end. With the sustained run.
    loop
        All rounds, where more than one was asked for.
    front
        The trade-offs, with what was measured of them, where those were asked for.
    """

    problem: Problem
    profile: Profile | None
    comparison: Comparison
    result: TuningResult
    loop: Loop | None = None
    front: ParetoFront | None = None

    def _repr_html_(self) -> str:
        """Return what notebooks show: the verdict, and every candidate in brief."""
        from ..answers.tuning import candidates, verdict
        from ..view.text import notebook_html

        return notebook_html(self._words, (candidates(self.result), *verdict(self.result)))

    def __repr__(self) -> str:
        return f"<Tuned {self._words}>"

    @property
    def _words(self) -> str:
        """What won, of which network where, in a line."""
        winner, networks = self.result.winner, ", ".join(network.name for network in self.problem.networks)
        what = "nothing was measured" if winner is None else f"{winner.candidate.label} is the fastest"
        return f"{shortened(f'{networks} on {self.problem.platform.name}')}: {what}"

    @property
    def results(self) -> list[TuningResult]:
        """What was measured, round by round."""
        return [self.result] if self.loop is None else [one.result for one in self.loop.rounds]

    @property
    def interrupted(self) -> bool:
        """Whether the user stopped it."""
        return self.result.interrupted or (self.loop is not None and self.loop.stop is LoopStop.INTERRUPTED)

    @property
    def deployment(self) -> Deployment | None:
        """What to run; None when nothing was measured."""
        winner = self.result.winner
        return None if winner is None else winner.candidate.deployment

    @property
    def problem_without_opaque_rules(self) -> Problem:
        """The problem as far as it has a written form."""
        return replace(self.problem, rules=self.problem.expression_rules)

    @property
    def plan(self) -> Plan | None:
        """What to run, as a plan; None for replicas, which are several streams of one network."""
        return None if self.deployment is None else self.deployment.plan


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
