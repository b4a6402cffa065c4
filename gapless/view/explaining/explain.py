"""Why a plan is as it is: what each cut, unit and demand is good for, from the best plans without them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

from ...api.planning import default_backend
from ...api.problems import given_problem
from ...executor.progress import Report, Step, silent
from ...formulations.costs import CostTable
from ...formulations.demands import Demand, demands_of
from ...formulations.errors import InvalidInputError, InvalidPlanError, MalformedPlanError
from ...formulations.expr import BoolExpr, any_of
from ...formulations.flight import Flight
from ...formulations.judge import check, score
from ...formulations.plan import Chunk, Plan
from ...formulations.problem import Problem
from ...formulations.rules import RuleFunction, named
from ...formulations.scores import Score, Violation
from ...formulations.terms import Objective, QuantityInfo
from ...solvers.conflict import NO_COVERAGE, explain_infeasible
from ...solvers.families import Start, starts_for
from ...solvers.protocol import LEAST_S, Deadline, RuleHandling, SolveOptions, SolveStatus
from ...solvers.registry import get_backend
from ...solvers.result import ConflictItem, SolveResult
from ...solvers.session import solve
from ..presenter import presenter_of
from .explanation import (
    TIME_LIMIT_S,
    Alternative,
    Binding,
    CutReason,
    Explanation,
    SetReason,
    UnitReason,
    cannot_run,
    only_here,
    summary_of,
)

_CAP = "max_period_us"
"""The limit that the cap of slack mode becomes."""

_USE = ("uses", "on")
"""Quantities that say what a unit runs, as far as formulations have them; the first one counts."""

_UNITS = ("unit", "device")
"""What formulations call the index of a unit."""


def variant_of(problem: Problem, unit: str, name: str, *, used: bool, searched: bool) -> tuple[Problem, str]:
    """Return the problem without a used unit, or with an unused one, and the demand that makes it so.

    `used`: whether the explained plan uses the unit. `searched`: whether the backend that is asked reasons
    about rules. One that only checks them would hardly find a plan, but it knows from the costs where nothing
    can run: there the unit is taken out of the costs.
    The second text is how a conflict names the demand.
    """
    if searched or not used:
        return problem.with_rules(_use_rule(problem, name, unit, wanted=not used)), name
    return replace(problem, costs=_without_unit(problem.costs, unit)), NO_COVERAGE


def _without_unit(costs: CostTable, unit: str) -> CostTable:
    """Return a cost table of the same units, one of which cannot run anything."""
    column = costs.units.index(unit)
    networks = tuple(
        replace(
            entry,
            layer_us=tuple(
                tuple(None if place == column else time for place, time in enumerate(row))
                for row in entry.layer_us
            ),
        )
        for entry in costs.networks
    )
    return replace(costs, networks=networks)


def _use_rule(problem: Problem, name: str, unit: str, *, wanted: bool) -> RuleFunction:
    """Return the rule that a unit is used, or that it is not."""
    used = _used(problem, problem.platform.unit_names.index(unit))
    text = f"{unit!r} is {'' if wanted else 'not '}used"
    return named(name, text, lambda _: used if wanted else ~used)


def _used(problem: Problem, unit: int) -> BoolExpr:
    """Return "the unit runs something": any of the quantities that say what it runs."""
    formulation, tables = problem.formulation, problem.tables
    variables = formulation.variables(problem)
    for name in _USE:
        info = formulation.quantities.get(name)
        if info is not None and info.most is None and any(index.name in _UNITS for index in info.indices):
            return any_of(variables.truth(name, *args) for args in _places(info, tables, unit))
    raise InvalidInputError(f"rules about {formulation.label} cannot say that a unit is used")


def _places(info: QuantityInfo, tables: Any, unit: int) -> list[tuple[int, ...]]:
    """Return all indices of a quantity that are about one unit."""
    found: list[tuple[int, ...]] = [()]
    for index in info.indices:
        found = [
            (*args, value)
            for args in found
            for value in index.allowed(tables, *args)
            if index.name not in _UNITS or value == unit
        ]
    return found


def slack_words(given: Problem, problem: Problem) -> dict[str, str]:
    """Return what the cap of slack mode demands, by the name of the limit that it has become; or nothing."""
    slack, cap = given.objective.period_slack_permille, problem.limits.max_period_us
    if slack is None or cap == given.limits.max_period_us:
        return {}
    return {_CAP: f"the period is within {slack / 10:.1f} % of the least one: at most {cap} us"}


def demands(given: Problem, problem: Problem, slack: dict[str, str]) -> list[Demand]:
    """Return the demands of a problem; the cap of slack mode is one of them.

    `slack`: what that cap demands (`slack_words`).
    """

    def uncapped(variant: Problem) -> Problem:
        return variant.with_limits(max_period_us=given.limits.max_period_us)

    return [
        Demand(name="slack", text=slack[_CAP], without=uncapped) if demand.name in slack else demand
        for demand in demands_of(problem)
    ]


def without_unit(problem: Problem, plan: Plan, unit: str) -> Iterator[Plan]:
    """Yield the plan with the chunks of a unit elsewhere; the judge has to say whether that is valid.

    A chunk joins the one before or behind it. Where neither unit can run it, or there is none, it goes to the
    unit that is done with it first.
    """
    for step in (-1, 1):
        chunks = _Elsewhere(problem, plan, unit).chunks(step)
        if chunks is not None:
            yield replace(plan, chunks=chunks)


class _Elsewhere:
    """Where the chunks of one unit may go."""

    def __init__(self, problem: Problem, plan: Plan, unit: str) -> None:
        self._problem, self._plan, self._unit = problem, plan, unit
        self._load_us: Counter[str] = Counter()

    def chunks(self, step: int) -> tuple[Chunk, ...] | None:
        """Return all chunks, those of the unit with the neighbour at a distance; None if one has no place."""
        found: list[Chunk] = []
        for _, group in groupby(self._plan.chunks, key=lambda chunk: (chunk.request, chunk.network)):
            own = list(group)
            for place, chunk in enumerate(own):
                near = [own[at].unit for at in (place + step, place - step) if 0 <= at < len(own)]
                unit = self._place(chunk, near) if chunk.unit == self._unit else chunk.unit
                if unit is None:
                    return None
                self._load_us[unit] += self._time_us(chunk, unit) or 0
                if place and found[-1].unit == unit:
                    found[-1] = replace(found[-1], stop=chunk.stop)
                else:
                    found.append(replace(chunk, unit=unit))
        return tuple(found)

    def _place(self, chunk: Chunk, near: list[str]) -> str | None:
        for unit in near:
            if unit != self._unit and self._time_us(chunk, unit) is not None:
                return unit
        others = [unit for unit in self._problem.platform.unit_names if unit != self._unit]
        times = {unit: self._time_us(chunk, unit) for unit in others}
        ends = [(self._load_us[unit] + time, unit) for unit, time in times.items() if time is not None]
        return min(ends)[1] if ends else None

    def _time_us(self, chunk: Chunk, unit: str) -> int | None:
        """Return the time of the layers, or None where the unit cannot run one of them."""
        column = self._problem.platform.unit_names.index(unit)
        rows = self._problem.costs.of(chunk.network).layer_us[chunk.start : chunk.stop]
        times = [row[column] for row in rows]
        return None if None in times else sum(time for time in times if time is not None)


# Questions about other plans: what would be if the problem, or the plan, were a little different.
#
# All questions share one time limit. Every answer is judged; plans that also keep the problem as it is are
# remembered, because a search that proves nothing may stumble on a better plan while it looks for another.

Values = tuple[int, ...]

_OPEN = 4
"""The search for the least period of slack mode may take one part in this many of the time."""

_NO_TIME = "no plan was found in time, and nothing is proved"


class Inquiry:
    """Questions about one problem and one plan.

    `problem`: what is asked of plans. In slack mode it becomes the problem with the cap on the period.
    `time_limit_s`: seconds for all questions together, or None.
    `problem`: what is asked of plans, without slack mode; `sure`: whether that is certain: the least period
    of slack mode may not have been found.
    """

    def __init__(self, problem: Problem, plan: Plan, *, time_limit_s: float | None) -> None:
        self._deadline = Deadline(time_limit_s)
        self.backend = default_backend(problem)  # name of the backend that answers
        support = get_backend(self.backend).capabilities.support(problem)
        # whether it reasons about rules, and does not only check them
        self.searched = support is not None and support.rules is not RuleHandling.CHECKED
        self.problem, self.sure = self._settled(problem, plan, self.share(_OPEN))
        self._known: dict[Plan, Values] = {}

    def share(self, questions: int) -> Deadline:
        """Return a deadline for one of a given number of questions that are still open."""
        left = self._deadline.left_s
        return Deadline(None if left is None else left / questions)

    def judge(self, plan: Plan) -> tuple[Score | None, tuple[Violation, ...]]:
        """Return the score of a plan, if it has one, and what it breaks; a valid plan is remembered."""
        try:
            judged = score(self.problem, plan)
        except MalformedPlanError as error:
            return None, error.violations
        if judged.valid:
            self._known[plan] = judged.values(self.problem.objective.terms)
        return judged, judged.violations

    def solve(self, variant: Problem, deadline: Deadline, *, top: int = 1) -> SolveResult | None:
        """Return the best plans of a variant of the problem; None: the time is up before it is asked."""
        if deadline.passed:
            return None
        result = self._solve(variant, deadline, top=top)
        for candidate in result.candidates:
            self.judge(candidate.plan)
        return result

    def best(
        self, variant: Problem, deadline: Deadline, why: Callable[[Problem, Deadline], str]
    ) -> Alternative:
        """Return the best plan of a variant; `why` says why it has none, where that is proven."""
        result = self.solve(variant, deadline)
        if result is None or result.status is SolveStatus.NO_SOLUTION:
            return self._first(variant)
        if result.status is SolveStatus.INFEASIBLE:
            return Alternative(plan=None, reason=why(variant, deadline), proven=self.sure)
        return Alternative(
            plan=result.plan, values=result.values, proven=self.sure and result.status is SolveStatus.OPTIMAL
        )

    def _first(self, variant: Problem) -> Alternative:
        """Return a plan of a variant that takes no search, for want of a better one."""
        start = Start()
        if variant.co_run_costs is None:  # one table of costs holds for all plans
            start = next(starts_for(variant, SolveOptions(time_limit_s=LEAST_S)), start)
        if start.code is None:
            return Alternative(plan=None, reason=_NO_TIME, proven=False)
        plan = variant.formulation.plan(variant, start.code)
        self.judge(plan)
        values = score(variant, plan).values(variant.objective.terms)
        return Alternative(plan=plan, values=values, proven=False)

    def improved(self, found: Alternative, suits: Callable[[Plan], bool]) -> Alternative:
        """Return what was found, or a better plan of its kind that another question has brought up."""
        if found.plan is None and found.proven:
            return found
        known = [(values, plan) for plan, values in self._known.items() if suits(plan)]
        values, plan = min(known, key=lambda entry: entry[0], default=((), None))
        if plan is None or (found.values is not None and found.values <= values):
            return found
        return Alternative(plan=plan, values=values, proven=False)

    def contradiction(
        self, problem: Problem, deadline: Deadline, *, but: Collection[str]
    ) -> tuple[ConflictItem, ...] | None:
        """Return the demands that leave an infeasible problem no plan; None: not found in time.

        `but`: names of demands that are known to take part and are not repeated.
        """

        def again(variant: Problem, by: str | None, limit_s: float | None, *, best: bool) -> SolveResult:
            return self._solve(variant, Deadline(limit_s))

        conflict, _ = explain_infeasible(problem, again, self.backend, deadline)
        if not conflict.irreducible:
            return None
        return tuple(item for item in conflict.items if item.name not in but)

    def _settled(self, problem: Problem, plan: Plan, deadline: Deadline) -> tuple[Problem, bool]:
        """Return the problem of which the optimum is asked, and whether that is certain.

        In slack mode it is the one with the cap on the period. What the plans are shown by is left out, too:
        only what is best counts here.
        """
        objective = replace(problem.objective, present_by=None)
        slack = objective.period_slack_permille
        if slack is None:
            return problem.with_objective(objective), True
        fastest = self._solve(problem.with_objective(Objective(terms=("period",))), deadline)
        own_us = score(problem, plan).period_us
        least_us = own_us if fastest.objective is None else min(own_us, fastest.objective)
        cap, given = least_us * (1000 + slack) // 1000, problem.limits.max_period_us
        bare = problem.with_objective(replace(objective, period_slack_permille=None))
        capped = bare.with_limits(max_period_us=cap if given is None else min(cap, given))
        return capped, fastest.status is SolveStatus.OPTIMAL

    def _solve(self, problem: Problem, deadline: Deadline, *, top: int = 1) -> SolveResult:
        limit_s = None if deadline.left_s is None else max(deadline.left_s, LEAST_S)
        return solve(problem, self.backend, SolveOptions(top=top, time_limit_s=limit_s), explain=False)


def explain(
    problem: Problem | str | Path,
    plan: Plan,
    *,
    time_limit_s: float | None = TIME_LIMIT_S,
    report: Report = silent,
    answers: Sequence[SolveResult] = (),
) -> Explanation:
    """Explain a plan by what would be otherwise: other cuts, other units, fewer demands, the next best plan.

    Every question is a problem of its own, which the usual backend solves and the judge scores: the
    same problem with the rule that a unit is (not) used, or without one of its rules, limits, deadlines
    or facts of the device. A cut is moved to its neighbours, and the plan judged again.

    In slack mode, the cap on the period is a demand like any other.

    Parameters
    ----------
    problem, plan
        The problem, its name or its file, as for `load_problem`; and a valid plan for it, which need not
        be the best one.
    time_limit_s
        Seconds for all questions together. Where the usual backend is exact they rarely take that long, and
        the answers are proven. Answers of a local search use the time up; None: it takes a fixed number of
        steps for each question, so that equal questions have equal answers.
    report
        Called before each question.
    answers
        What backends answered to this very problem before: their plans are known, what they proved counts,
        and what they settled is not asked again. Answers to other problems are left out.

    Returns
    -------
    Explanation
        The best alternatives; each says whether it is proven to be the best of its kind.

    Raises
    ------
    InvalidPlanError
        The plan breaks the problem; everything that it breaks is listed.
    InvalidInputError
        The time limit is not greater than 0.

    Examples
    --------
    >>> import gapless
    >>> problem = gapless.table_problem({"conv": [9.0, 2.0], "fc": [1.0, None]}, ["cpu", "gpu"])
    >>> why = gapless.explain(problem, gapless.plan(problem).plan)
    >>> why.units[1].otherwise.values  # period and gapness without the gpu, microseconds
    (10000, 10000)
    """
    if time_limit_s is not None and time_limit_s <= 0:
        raise InvalidInputError(f"the time limit is {time_limit_s} s, must be greater than 0")
    problem = given_problem(problem)
    broken = check(problem, plan)
    if broken:
        raise InvalidPlanError(
            f"plan [{plan}] is not valid for the problem, so there is nothing to explain:",
            [f"{violation.rule}: {violation.message}" for violation in broken],
        )
    return _Explainer(problem, plan, time_limit_s, report, answers).run()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Next:
    """The best other plan, and whether it is proven that none beats the explained one."""

    other: Alternative
    proven: bool


class _Explainer:
    """One explanation in the making."""

    def __init__(
        self,
        problem: Problem,
        plan: Plan,
        time_limit_s: float | None,
        report: Report,
        answers: Sequence[SolveResult],
    ) -> None:
        self._given, self._plan, self._report = problem, plan, report
        self._started, self._limit_s = time.monotonic(), time_limit_s
        self._inquiry = Inquiry(problem, plan, time_limit_s=time_limit_s)
        self._problem = self._inquiry.problem
        self._values = score(problem, plan).values(problem.objective.terms)
        # Not remembered, as any other plan of slack mode, if its period is above the cap.
        self._inquiry.judge(plan)
        self._answers = [found for found in answers if found.fingerprint == problem.fingerprint]
        for found in self._answers:
            for candidate in found.candidates:
                self._inquiry.judge(candidate.plan)
        self._slack = slack_words(problem, self._problem)
        self._demands = demands(problem, self._problem, self._slack)
        self._sets = tuple(problem.formulation.other_units(self._problem))
        self._left = self._total = len(problem.platform.units) + len(self._demands) + len(self._sets) + 2

    def run(self) -> Explanation:
        """Ask everything; then let each answer profit from the plans that the others have brought up."""
        cuts, left_out = self._cuts()
        following = self._next()
        units = [self._unit(unit) for unit in self._problem.platform.unit_names]
        free = [
            (demand, self._best(demand.without(self._problem), f"without {demand.name}"))
            for demand in self._demands
        ]
        sets = self._set_reasons()
        inquiry = self._inquiry
        other = inquiry.improved(following.other, self._is_other)
        best = inquiry.improved(Alternative(plan=None, proven=False), lambda known: True)
        bindings = tuple(self._binding(item, found, best) for item, found in free)
        proven = following.proven or any(map(self._proves, self._answers))
        proven = proven and (other.values is None or other.values >= self._values)
        explanation = Explanation(
            terms=self._problem.objective.terms,
            values=self._values,
            summary="",
            cuts=tuple(cuts),
            units=tuple(self._with_known(reason) for reason in units),
            bindings=bindings,
            next_best=other,
            proven=proven,
            plan_class=self._problem.plan_class,
            sets=sets,
            left_out=left_out,
            backend=inquiry.backend,
            looked_s=time.monotonic() - self._started,
            limit_s=self._limit_s,
            told_by=tuple(dict.fromkeys(found.backend for found in self._answers)),
            flight=_flight_of(self._given, self._plan),
        )
        return replace(explanation, summary=summary_of(self._given, self._plan, explanation))

    def _question(self, text: str) -> Deadline:
        """Say what is asked now, and return how long that may take."""
        self._report(Step(text=text, done=self._total - self._left, total=self._total))
        share = self._inquiry.share(self._left)
        self._left -= 1
        return share

    def _best(self, variant: Problem, text: str, *, rule: str = "", nothing: str = "") -> Alternative:
        """Return the best plan of a variant.

        `nothing`: why there is no plan, if that is due to this rule alone.
        """

        def why(infeasible: Problem, deadline: Deadline) -> str:
            found = self._inquiry.contradiction(infeasible, deadline, but=(rule,))
            if found is None:
                return "none keeps everything that is asked"
            texts = [self._slack.get(item.name, item.text) for item in found]
            return f"contradicts: {'; '.join(texts)}" if texts else nothing

        return self._inquiry.best(variant, self._question(text), why)

    def _next(self) -> _Next:
        """Ask for the two best plans."""
        top, deadline = presenter_of(self._problem).alternatives, self._question("the next best plan")
        result = self._settled(top) or self._inquiry.solve(self._problem, deadline, top=top)
        if result is None or not result.candidates:
            nothing = Alternative(plan=None, reason="no other plan was found in time", proven=False)
            return _Next(other=nothing, proven=False)
        sure = self._inquiry.sure
        optimal = sure and result.status is SolveStatus.OPTIMAL
        values = [candidate.score.values(self._problem.objective.terms) for candidate in result.candidates]
        others = (i for i, found in enumerate(result.candidates) if self._is_other(found.plan))
        place = next(others, None)
        if place is None:
            reason = "there is no other valid one" if result.exhausted else "no other plan was found"
            other = Alternative(plan=None, reason=reason, proven=sure and result.exhausted)
        else:
            proven = (sure and result.proven > place) or (optimal and values[place] == values[0])
            other = Alternative(plan=result.candidates[place].plan, values=values[place], proven=proven)
        return _Next(other=other, proven=optimal and self._values <= values[0])

    def _settled(self, top: int) -> SolveResult | None:
        """Return an answer that has this many of the best plans, proved; None: that has to be asked."""
        objective = self._given.objective
        if objective.period_slack_permille is not None or objective.present_by is not None:
            return None  # its plans are in another order, or by another cap
        enough = (found for found in self._answers if found.distance == 1 and _has_best(found, top))
        return next(enough, None)

    def _proves(self, found: SolveResult) -> bool:
        """Return whether an answer proves that none is better than the explained plan."""
        if found.status is not SolveStatus.OPTIMAL:
            return False
        if self._given.objective.period_slack_permille is not None:
            # A plan above the cap may look better than the best one below: only what was answered is proved.
            return any(candidate.plan == self._plan for candidate in found.candidates[:1])
        values = [candidate.score.values(self._problem.objective.terms) for candidate in found.candidates]
        return self._values <= min(values)

    def _is_other(self, plan: Plan) -> bool:
        """Return whether a plan is another one, and not only with equal requests in each other's place."""
        shape = presenter_of(self._problem).shape
        return shape(self._problem, plan) != shape(self._problem, self._plan)

    def _cuts(self) -> tuple[list[CutReason], tuple[str, ...]]:
        """Judge the plan with each cut at its neighbours, and say what there was no time for."""
        deadline = self._question("the cuts")
        cuts = list(_cuts_of(self._plan))
        found = []
        for before, after in cuts:
            if deadline.passed:
                break
            found.append(self._cut(before, after))
        missing = len(cuts) - len(found)
        return found, (f"{missing} of {len(cuts)} cuts",) if missing else ()

    def _cut(self, before: _Group, after: _Group) -> CutReason:
        first, second = before[0], after[0]
        chain_cuts = _legal_cuts(self._problem, first.network)
        earlier = [cut for cut in chain_cuts if first.start < cut < first.stop]
        later = [cut for cut in chain_cuts if second.start < cut < second.stop]
        return CutReason(
            network=first.network,
            request=first.request,
            boundary=first.stop,
            before="+".join(chunk.unit for chunk in before),
            after="+".join(chunk.unit for chunk in after),
            earlier=self._moved(before, after, earlier[-1]) if earlier else None,
            later=self._moved(before, after, later[0]) if later else None,
        )

    def _moved(self, before: _Group, after: _Group, boundary: int) -> Alternative:
        """Return the plan with one cut elsewhere, judged."""
        kept = (chunk for chunk in self._plan.chunks if chunk not in (*before, *after))
        ends = (replace(chunk, stop=boundary) for chunk in before)
        starts = (replace(chunk, start=boundary) for chunk in after)
        moved = replace(self._plan, chunks=(*kept, *ends, *starts))
        judged, broken = self._inquiry.judge(moved)
        network, old = before[0].network, before[0].stop
        low, high = sorted((old, boundary))
        units = [chunk.unit for chunk in (after if boundary < old else before)]
        found = (cannot_run(self._problem, network, range(low, high), unit) for unit in units)
        stuck = next(filter(None, found), "")
        reason = stuck if stuck and judged is None else "; ".join(map(self._broken, broken))
        values = None if judged is None else judged.values(self._problem.objective.terms)
        return Alternative(plan=moved, values=values, reason=reason)

    def _broken(self, violation: Violation) -> str:
        """Return what a plan breaks, in words."""
        rules = {rule.name for rule in self._problem.rules}
        name = "slack" if violation.rule in self._slack else violation.rule
        named_elsewhere = name == violation.rule and violation.rule not in rules
        return violation.message if named_elsewhere else f"{name}: {violation.message}"

    def _unit(self, unit: str) -> UnitReason:
        """Ask for the best plan without a unit, or with it."""
        problem, used = self._problem, _uses(self._plan, unit)
        unsupported = tuple(_unsupported(problem, unit))
        name = f"{'without' if used else 'with'} {unit}"
        while name in {rule.name for rule in problem.rules}:
            name += "'"
        if used:
            known, nothing = only_here(problem, unit), "no chunks on the other units cover the network"
        else:
            able = len(unsupported) < sum(
                len(network.layers) for network in problem.formulation.placed(problem)
            )
            known, nothing = "" if able else "it cannot run any layer", "no chunks cover the network with it"
        if known:
            self._question(name)
            otherwise = Alternative(plan=None, reason=known)
        else:
            for near in without_unit(problem, self._plan, unit) if used else ():
                self._inquiry.judge(near)  # remembered, if it is valid
            variant, demand = variant_of(problem, unit, name, used=used, searched=self._inquiry.searched)
            otherwise = self._best(variant, name, rule=demand, nothing=nothing)
        return UnitReason(
            unit=unit,
            used=used,
            unsupported=unsupported,
            otherwise=otherwise,
            excluded_by=() if used else tuple(_rivals(problem, self._plan, unit)),
        )

    def _set_reasons(self) -> tuple[SetReason, ...]:
        """Ask for the best plan on each other set of units that the formulation wants to know of.

        One question a set; a solver that knows the best plans of all sets at once can answer here in one go.
        """
        found = [(text, variant, self._best(variant, f"with {text}")) for text, variant in self._sets]

        def valid(variant: Problem) -> Callable[[Plan], bool]:
            return lambda plan: not check(variant, plan)

        return tuple(
            SetReason(text=text, otherwise=self._inquiry.improved(best, valid(variant)))
            for text, variant, best in found
        )

    def _with_known(self, reason: UnitReason) -> UnitReason:
        def suits(plan: Plan) -> bool:
            return _uses(plan, reason.unit) is not reason.used

        return replace(reason, otherwise=self._inquiry.improved(reason.otherwise, suits))

    def _binding(self, item: Demand, found: Alternative, best: Alternative) -> Binding:
        """Return whether the best plan without a demand is better than the best one with it."""
        without = self._inquiry.improved(found, lambda known: True)
        binds = without.values is not None and (best.values is None or without.values < best.values)
        return Binding(name=item.name, text=item.text, binds=binds, without=without)


def _flight_of(problem: Problem, plan: Plan) -> Flight | None:
    operation = problem.formulation.operation
    return None if operation is None else operation.flight(problem, plan)


def _has_best(found: SolveResult, top: int) -> bool:
    """Return whether an answer has this many of the best plans, or all that there are."""
    return found.status is SolveStatus.OPTIMAL and (found.proven >= top or found.exhausted)


_Group = tuple[Chunk, ...]
"""Chunks of the same layers, which several units compute together; most often only one."""


def _cuts_of(plan: Plan) -> Iterator[tuple[_Group, _Group]]:
    """Yield the chunks on both sides of each cut, but for steps of one group, which are no decision."""
    ranked = sorted(plan.chunks, key=_layers)
    for before, after in pairwise(tuple(same) for _, same in groupby(ranked, key=_layers)):
        steps = len(before) + len(after) > 2 and {c.unit for c in before} & {c.unit for c in after}
        if _layers(before[0])[:2] == _layers(after[0])[:2] and not steps:
            yield before, after


def _layers(chunk: Chunk) -> tuple[str, str, int, int]:
    return chunk.request, chunk.network, chunk.start, chunk.stop


def _legal_cuts(problem: Problem, network: str) -> tuple[int, ...]:
    return next(known for known in problem.networks if known.name == network).legal_cuts


def _unsupported(problem: Problem, unit: str) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield network, layer and operator types of all that a unit cannot run."""
    column = problem.platform.unit_names.index(unit)
    for network in problem.formulation.placed(problem):
        for layer, row in zip(network.layers, problem.costs.of(network.name).layer_us, strict=True):
            if row[column] is None:
                yield network.name, layer.name, layer.op_types


def _uses(plan: Plan, unit: str) -> bool:
    return any(chunk.unit == unit for chunk in plan.chunks)


def _rivals(problem: Problem, plan: Plan, unit: str) -> Iterator[str]:
    """Yield the used units that share cores with a unit."""
    names = problem.platform.unit_names
    for pair in problem.platform.conflicts:
        first, second = (names[index] for index in pair)
        if unit in (first, second):
            other = second if unit == first else first
            if _uses(plan, other):
                yield other
