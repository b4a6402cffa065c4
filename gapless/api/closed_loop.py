"""The closed loop of tuning: measure plans, learn from them what things really cost, plan again.

1. The first round is a tuning run like any other: the best plans by the cost model, and the baselines.
2. From all plans of several chunks that were executed so far is learned who slows whom, with earlier sessions
   of this device (`knowledge`); where only one table was measured, or for a workload, corrections of it
   (`profiler.prediction`). What runs alone is not company, and is never charged by these tables: all
   plans of one chunk are baselines, which are measured anyway.
3. The problem is solved again with corrected costs. The first few plans that were not measured yet are
   raced against the best so far, which are executed again: numbers are compared within one run only.
4. It ends when the best plan has stood a round and no plan that was not measured is predicted to be
   faster. Even where nothing is predicted to be faster after the first round there is a second one:
   corrections know least of the plans that were furthest from being measured.

Every round is a run in the store, and what a round does follows from the runs before it alone. So a loop
that was cut off is resumed by going through it again, and one that has used up its rounds can be given more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ..executor.progress import Report, Step
from ..executor.runner import Runner
from ..executor.tuning.candidates import (
    CandidateKind,
    TuningCandidate,
    plan_candidates,
    predicted,
    predicted_us,
)
from ..executor.tuning.endurance import endure, finalists
from ..executor.tuning.judging import sustained
from ..executor.tuning.options import TuningOptions
from ..executor.tuning.result import TuningResult
from ..executor.tuning.store import Store
from ..executor.tuning.trust import TableFacts
from ..executor.tuning.tuner import TuningSubject, tune
from ..formulations.errors import InvalidInputError
from ..formulations.files import dump_problem
from ..formulations.judge import check
from ..formulations.objective import Objective
from ..formulations.plan import Plan
from ..formulations.problem import Problem
from ..formulations.rules import OpaqueRule
from ..profiler.prediction.corrections import Corrections, fit_corrections
from ..profiler.prediction.executions import ExecutedPlan
from ..profiler.prediction.learned import Lessons
from ..profiler.prediction.workload_corrections import fit_workload
from ..solvers.pareto import ParetoFront, ParetoSearch
from ..solvers.protocol import SolveOptions, StopReason
from .comparison import Comparison
from .executed import executed_plans
from .knowledge import Intervals, Knowledge, without_intervals
from .planning import compare_backends
from .rounds import CORRECTED, Loop, LoopStop, Outlook, Round, cut_off

FEWEST_NEW = 3
"""A later round measures half as many new plans as the first one, but at least these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningSetup:
    """What all rounds of a tuning run have in common.

    `backends`, `solving`: who plans, and how: how many plans, how different, for how long. `options`,
    `store`, `facts`, `resume`, `report`: as for `executor.tuning.tuner.tune`; the budget is for all rounds
    together.
    """

    runner: Runner  # executes candidates
    device: str  # fingerprint of the device and of the engine
    backends: Sequence[str]
    solving: SolveOptions
    options: TuningOptions
    store: Store
    resume: bool
    report: Report
    facts: TableFacts = TableFacts()
    knowledge: Knowledge | None = None
    """What who slows whom is learned from; None: costs are corrected instead."""

    def named(self, name: str) -> TuningSetup:
        """Return the same setup, whose steps bear the name of a round."""
        return replace(self, report=lambda step: self.report(replace(step, text=f"{name}: {step.text}")))

    def replaced(self, *, distance: int) -> TuningSetup:
        """Return the same setup, whose plans are so many layers apart."""
        return replace(self, solving=replace(self.solving, distance=distance))

    def plan(
        self, problem: Problem, *, top: int, most_s: float | None = None
    ) -> tuple[Comparison, list[Plan]]:
        """Have all backends plan, each in a given number of seconds at most.

        The plans are without repetitions.
        """
        self.report(Step(text=f"planning with {', '.join(self.backends)}"))
        limits = [limit for limit in (self.solving.time_limit_s, most_s) if limit is not None]
        options = replace(self.solving, top=top, time_limit_s=min(limits, default=None))
        found = compare_backends(problem, options, backends=self.backends)
        return found, list(dict.fromkeys(c.plan for result in found.results for c in result.candidates))

    def trade(self, problem: Problem, terms: Sequence[str]) -> ParetoFront:
        """Find the trade-offs of a problem."""
        self.report(Step(text=f"finding trade-offs with {self.backends[0]}"))
        return ParetoSearch(problem, terms, self.backends[0], self.solving).run()

    def race(
        self, candidates: Sequence[TuningCandidate], problem: Problem, *, after: Sequence[TuningResult] = ()
    ) -> TuningResult:
        """Measure candidates that were made from a problem, after the rounds before."""
        budget_s = self.options.budget_s
        if budget_s is not None:
            budget_s -= sum(result.spent_s for result in after)
        return tune(
            candidates,
            self.runner,
            store=self.store,
            options=replace(self.options, budget_s=budget_s),
            subject=TuningSubject(
                problem=_written(problem),
                device=self.device,
                after=tuple(result.run for result in after),
            ),
            facts=self.facts,
            resume=self.resume,
            report=self.report,
        )

    def sustain(self, result: TuningResult, problem: Problem, *, seconds: float) -> TuningResult:
        """Run the finalists of a race for longer; return its result with what they did."""
        if result.interrupted or result.winner is None:
            return result
        found = endure(
            finalists(result),
            self.runner,
            seconds=seconds,
            store=self.store,
            options=self.options,
            problem=_written(problem),
            device=self.device,
            after=result.run,
            resume=self.resume,
            report=self.report,
        )
        return sustained(result, found)


def _written(problem: Problem) -> str:
    """Return a problem as a file has it: what is only Python has no written form."""
    return dump_problem(replace(problem, rules=problem.expression_rules))


def check_rounds(rounds: int, *, objective: Objective | None = None) -> None:
    """Refuse a number of rounds that cannot be done."""
    if rounds < 1:
        raise InvalidInputError(f"rounds is {rounds}, must be at least 1")
    if rounds > 1 and objective is not None and objective.first == "latency":
        raise InvalidInputError(
            f"rounds is {rounds}: corrections are learned from pipelines at work, and for the latency one "
            "request is run at a time; leave the rounds out, or tune for the period"
        )


def close_loop(
    tables: Mapping[str, Problem], first: TuningResult, setup: TuningSetup, *, rounds: int
) -> Loop:
    """Go on after a first round: learn, plan again, measure, until nothing better is expected."""
    done = [Round(corrections=None, result=first)]
    outlook = None
    try:
        while (stop := cut_off(done[-1].result)) is None:
            learned = _learn(next(iter(tables.values())), done, setup)
            outlook = _outlook(learned, done[-1].result)
            stop = _verdict(done, outlook, setup.options, rounds)
            if stop is not None:
                break
            done.append(_next_round(tables, learned, done, setup))
    except KeyboardInterrupt:
        stop = LoopStop.INTERRUPTED
    return Loop(rounds=tuple(done), stop=stop, outlook=outlook)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Learned:
    """What was learned, the problem with the costs that follow, and its best plans not yet measured."""

    taught: Corrections | Lessons
    problem: Problem
    intervals: Intervals = without_intervals
    plans: tuple[Plan, ...] = ()


def _taught(problem: Problem, executed: Sequence[ExecutedPlan], setup: TuningSetup) -> _Learned:
    """Return what executed plans say about costs."""
    if setup.knowledge is not None:
        learned = setup.knowledge.after(executed)
        costs = learned.costs()
        return _Learned(
            taught=learned.lessons(),
            problem=problem.with_costs(costs.costs, costs.beside),
            intervals=Intervals(learned),
        )
    fit = fit_corrections if problem.formulation.one_network else fit_workload
    corrections = fit(problem, executed)
    return _Learned(taught=corrections, problem=corrections.applied(problem))


def _learn(problem: Problem, done: Sequence[Round], setup: TuningSetup) -> _Learned:
    known = executed_plans([one.result for one in done], problem)
    learned = _taught(problem, [one for one in known if len(one.plan.chunks) > 1], setup)
    corrected = learned.problem
    plans = (row.candidate.deployment.plan for one in done for row in one.result.rows)
    tried = {_settled(problem, plan) for plan in plans if plan is not None}
    new = OpaqueRule(
        name="new plan",
        predicate=lambda plan: _settled(problem, plan) not in tried and not check(problem, plan),
        text="it was not measured yet, and breaks nothing by the costs that were given",
    )
    comparison, found = setup.plan(corrected.with_rules(new), top=_batch(setup.solving.top))
    if any(result.stop is StopReason.INTERRUPTED for result in comparison.results):
        raise KeyboardInterrupt
    settled = dict.fromkeys(_settled(problem, plan) for plan in found)
    best_first = sorted(settled, key=lambda plan: predicted_us(corrected, plan))
    return replace(learned, plans=tuple(best_first))


def _settled(problem: Problem, plan: Plan) -> Plan:
    """Return the plan that stands for all that are the same to people."""
    difference = problem.formulation.difference
    return plan if difference is None else difference.settle(problem, plan)


def _batch(top: int) -> int:
    return max(FEWEST_NEW, top // 2)


def _outlook(learned: _Learned, last: TuningResult) -> Outlook | None:
    """Return the most promising plan; corrections say nothing of a baseline, but its time is known."""
    best = last.winner
    if not learned.plans or best is None or best.comparable_us is None:
        return None
    plan = best.candidate.deployment.plan
    solved = best.candidate.kind is CandidateKind.PLAN
    return Outlook(
        plan=learned.plans[0],
        predicted_us=predicted_us(learned.problem, learned.plans[0]),
        best_us=predicted_us(learned.problem, plan) if solved and plan else round(best.comparable_us),
    )


def _verdict(
    done: Sequence[Round], outlook: Outlook | None, options: TuningOptions, rounds: int
) -> LoopStop | None:
    """Return why to end now, or None."""
    if outlook is None:
        return LoopStop.EXHAUSTED
    if len(done) > 1 and not outlook.better:
        before, last = (one.result for one in done[-2:])
        if before.ties[0] in last.ties:
            return LoopStop.SETTLED
    if len(done) >= rounds:
        return LoopStop.ROUNDS
    if options.budget_s is not None and sum(one.result.spent_s for one in done) >= options.budget_s:
        return LoopStop.BUDGET
    return None


def _next_round(
    tables: Mapping[str, Problem], learned: _Learned, done: Sequence[Round], setup: TuningSetup
) -> Round:
    """Race the most promising plans against the best so far."""
    known = {CORRECTED: learned.problem, **tables}
    rank = 1 + max(row.candidate.rank or 0 for one in done for row in one.result.rows)
    new = plan_candidates(learned.plans[: _batch(setup.solving.top)], tables=known, first_rank=rank)
    # Corrections say nothing of baselines.
    kept = [
        predicted(candidate, known if candidate.kind is CandidateKind.PLAN else tables)
        for candidate in _best(done[-1].result)
    ]
    result = setup.named(f"round {len(done) + 1}").race(
        learned.intervals([*new, *kept]), learned.problem, after=[one.result for one in done]
    )
    return Round(
        corrections=learned.taught if isinstance(learned.taught, Corrections) else None,
        lessons=learned.taught if isinstance(learned.taught, Lessons) else None,
        result=result,
    )


def _best(result: TuningResult) -> Iterator[TuningCandidate]:
    """Yield the best so far: the winner, and whoever is the fastest of its kind."""
    rows = (result.winner, *map(result.best, CandidateKind))
    yield from {row.candidate.key: row.candidate for row in rows if row is not None}.values()
