"""The closed loop of tuning: measure plans, learn from them what things really cost, plan again.

What tuning goes by: plans that were executed on this device before, and what is learned from them. Each
tuning run of one network leaves its executed plans in the store, under the fingerprint of the device and of
the engine. Later runs, of any network on the same units, learn from them before they have measured anything.

The closed loop of tuning: measure plans, learn from them what things really cost, plan again.

1. The first round is a tuning run like any other: the best plans by the cost model, and the baselines.
2. From all plans of several chunks that were executed so far is learned who slows whom, with earlier sessions
   of this device; where only one table was measured, or for a workload, corrections of it
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

import json
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
from ..executor.tuning.racing import TuningOptions
from ..executor.tuning.result import TableFacts, TuningResult
from ..executor.tuning.store import Store
from ..executor.tuning.summary import sustained
from ..executor.tuning.tuner import TuningSubject, endure, finalists, tune
from ..formulations.co_run import LEARNED
from ..formulations.costs import CostTable
from ..formulations.errors import InvalidInputError
from ..formulations.files import dump, dump_problem, parse
from ..formulations.judge import check
from ..formulations.plan import Plan
from ..formulations.problem import Problem
from ..formulations.rules import OpaqueRule
from ..formulations.terms import Objective
from ..profiler.prediction.corrections import Corrections, fit_corrections, fit_workload
from ..profiler.prediction.executions import EXECUTIONS, ExecutedPlan, Executions
from ..profiler.prediction.learned import MOST_UNITS, Learned, Lessons, learn
from ..profiler.prediction.session import NEEDED, Session, session
from ..profiler.profile import Profile
from ..solvers.pareto import ParetoFront, ParetoSearch
from ..solvers.protocol import SolveOptions, StopReason
from .comparison import Comparison
from .execution import profiled_problem
from .planning import compare_backends
from .tuned import CORRECTED, Loop, LoopStop, Outlook, Round, cut_off, executed_plans

MOST_SESSIONS = 12
"""Most earlier sessions that are learned from, the newest ones: the solve is cubic in their chunks."""

_KEPT, _USED = "executions", "learned from"


@dataclass(frozen=True, slots=True, kw_only=True)
class Knowledge:
    """What is known before and while a network is tuned."""

    session: Session  # its tables
    earlier: tuple[Session, ...] = ()  # executed plans of earlier sessions on this device

    @property
    def ranks_plans(self) -> bool:
        """Whether what earlier sessions teach is what the first plans are made from.

        Executions of this network are. Those of others tell who slows whom: nothing where every plan of
        several chunks has the same company, because no more than two units run at once (measured by
        `benchmarks.prediction` on two cores: never better than the heavy table for the first three plans).
        """
        same = any(one.key == self.session.key for one in self.earlier)
        return same or (bool(self.earlier) and self.session.platform.most_at_once > 2)

    def after(self, executed: Sequence[ExecutedPlan]) -> Learned:
        """Return what is learned from executed plans of this session, and of the earlier ones."""
        return learn(replace(self.session, executed=tuple(executed)), self.earlier)


@dataclass(frozen=True, slots=True)
class Intervals:
    """Tells of candidates between what they are expected to lie; None: nothing was learned."""

    learned: Learned | None

    def __call__(self, candidates: Sequence[TuningCandidate]) -> list[TuningCandidate]:
        """Return candidates with intervals: those that are one plan."""
        return [self._told(candidate) for candidate in candidates]

    def _told(self, candidate: TuningCandidate) -> TuningCandidate:
        plan, ran = candidate.deployment.plan, candidate.deployment
        if self.learned is None or plan is None or plan.order or ran.is_divided or ran.pace != "period":
            return replace(candidate, interval_us=())
        found = self.learned.foretell(plan)
        return replace(candidate, interval_us=(round(found.low_us), round(found.high_us)))


without_intervals = Intervals(None)


def knowledge_from(problem: Problem, tables: Sequence[CostTable]) -> Knowledge | None:
    """Return what can be learned from; None: both tables of one network on few units are needed."""
    plain = problem.formulation.one_network and problem.data is None
    few = len(problem.platform.units) <= MOST_UNITS
    if not plain or not few or not {table.provenance.method for table in tables} >= NEEDED:
        return None
    return Knowledge(session=session(problem.platform, problem.network, tables))


def known_before(
    taken: Profile,
    store: Store,
    device: str,
    *,
    costs: str | None,
    goal: Objective,
    resume: bool,
) -> Knowledge | None:
    """Return what is known before a profiled network is tuned; None: nothing is to be learned.

    `costs`, `goal`: the co-run cost model that is asked for, and what counts: tables but `learned` are
    corrected, and a request that is alone has no company.
    """
    if costs not in (None, LEARNED) or goal.first == "latency":
        return None
    problem = profiled_problem(taken, costs=taken.tables[0].provenance.method)
    found = knowledge_from(problem, taken.tables)
    if found is None:
        return None
    about = problem.fingerprint
    return replace(found, earlier=earlier_sessions(found.session, store, device, about=about, resume=resume))


def earlier_sessions(
    begun: Session, store: Store, device: str, *, about: str, resume: bool
) -> tuple[Session, ...]:
    """Return the newest sessions of a device that have units in common with one that begins.

    `about`: what is tuned: a run that is resumed goes by the same sessions as when it began.
    """
    kept = store.kept(_KEPT, f"{device} ")
    used = store.find(_USED, f"{device} {about}") if resume else None
    names = list(kept) if used is None else [name for name in json.loads(used) if name in kept]
    units = set(begun.platform.units)
    found: dict[str, Session] = {}
    for name in names:
        known = Session.of(parse(kept[name].encode(), EXECUTIONS, name=f"executions {name!r} in the store"))
        if units & set(known.platform.units) and len(found) < MOST_SESSIONS:
            found[name] = known
    store.keep(_USED, f"{device} {about}", json.dumps(list(found)))
    return tuple(found.values())


def keep_session(executions: Executions | None, store: Store, device: str, run: int) -> None:
    """Keep what a tuning run executed, where both tables were measured, for later sessions.

    `executions`: plans of several chunks are kept; None: there are none.
    """
    if executions is None or not {table.provenance.method for table in executions.tables} >= NEEDED:
        return
    several = tuple(one for one in executions.executed if len(one.plan.chunks) > 1)
    if several:
        store.keep(_KEPT, f"{device} {run}", dump(replace(executions, executed=several), EXECUTIONS))


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
