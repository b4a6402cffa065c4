"""Questions about other plans: what would be if the problem, or the plan, were a little different.

All questions share one time limit. Every answer is judged; plans that also keep the problem as it is are
remembered, because a search that proves nothing may stumble on a better plan while it looks for another.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from ...api.planning import default_backend
from ...formulations.errors import MalformedPlanError
from ...formulations.judge import score
from ...formulations.objective import Objective
from ...formulations.plan import Plan
from ...formulations.problem import Problem
from ...formulations.scores import Score, Violation
from ...solvers.conflict import explain_infeasible
from ...solvers.families import Start, starts_for
from ...solvers.protocol import LEAST_S, Deadline, RuleHandling, SolveOptions, SolveStatus
from ...solvers.registry import get_backend
from ...solvers.result import ConflictItem, SolveResult
from ...solvers.session import solve
from .explanation import Alternative

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
