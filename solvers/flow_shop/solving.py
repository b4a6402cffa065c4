"""From a problem with a workload to a claim.

Small spaces are walked whole, larger ones searched by `search.py`, which re-plans requests one at a time and
compares with lower bounds. Then `branch_and_price.py` looks for a proof, and makes the bound better, for up
to a dozen requests or so. A plan is said to be optimal only where it meets the bounds or there is a proof,
rules are checked rather than lowered, and the time limit is used up unless the bounds are met.
"""

from __future__ import annotations

from ...formulations.flow_shop.tables import Schedule, shop_of
from ...formulations.problem import Problem
from ..exhaustive import MOST_WALKED, ExhaustiveBackend, count_plans
from ..protocol import Claim, Deadline, SolveOptions, SolveStatus, StopReason, Support
from ..showing import Showing
from .measure import Key
from .search import JointSearch, Proof

MOST_BRANCHED = 10**10
"""In spaces of so many plans the local search ends after so many steps, and a proof is looked for."""


def solve_flow_shop(problem: Problem, options: SolveOptions, support: Support) -> Claim:
    """Return good plans for a workload, and bounds (see `WorkloadSolve`)."""
    return WorkloadSolve(problem, options, support).run()


class WorkloadSolve:
    """One solve of one problem with a workload.

    The plans come from local search; it is an optimum, and said to be one, where every term of the
    objective meets a lower bound. Rules are checked on every proposal, which is dropped if it breaks one.
    """

    def __init__(self, problem: Problem, options: SolveOptions, support: Support) -> None:
        self._problem, self._options = problem, options
        self._handling = support.handling(problem)
        self._showing = Showing(options)

    def run(self) -> Claim:
        """Solve."""
        plans = count_plans(self._problem)
        if plans <= MOST_WALKED:
            return ExhaustiveBackend().solve(self._problem, self._options)
        small = plans <= MOST_BRANCHED and self._options.top == 1
        self._search = JointSearch(
            self._problem,
            top=self._options.top,
            seed=self._options.seed,
            most_rejections=self._options.max_rejections,
            on_better=self._publish,
            deadline=Deadline(self._options.time_limit_s, self._options.clock),
            counted=small,
            proof=Proof.ALWAYS if small else Proof.PRICED,
        )
        if self._search.impossible:
            return self._denial()
        self._search.run()
        if self._search.proved and self._search.kept.best is None:
            return self._denial()
        if not self._search.contexts:
            return Claim(status=SolveStatus.NO_SOLUTION, stop=StopReason.SPACE_LIMIT, handling=self._handling)
        return self._claim(self._search.kept.schedules, self._search.stop())

    def _denial(self) -> Claim:
        """Return the claim that there is no plan."""
        return Claim(
            status=SolveStatus.INFEASIBLE, stop=StopReason.COMPLETE, exhausted=True, handling=self._handling
        )

    def _publish(self, key: Key, schedule: Schedule) -> None:
        """Show a better schedule."""
        self._showing.offer(lambda: self._claim([schedule], StopReason.TIME_LIMIT))

    def _claim(self, schedules: list[Schedule], stop: StopReason) -> Claim:
        """Return what some valid schedules, best first, allow to claim."""
        search = self._search
        best = search.kept.best
        values = None if best is None else best[1:]
        proven = values == search.bounds
        status = SolveStatus.OPTIMAL if proven else SolveStatus.FEASIBLE
        return Claim(
            status=status if values else SolveStatus.NO_SOLUTION,
            stop=StopReason.COMPLETE if proven else stop,
            plans=tuple(map(shop_of(self._problem).plan, schedules)),
            values=values,
            bound=search.bounds[0],
            proven=int(proven),
            handling=self._handling,
            statistics={"steps": search.steps},
        )
