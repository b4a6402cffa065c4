"""Why there is no plan: a smallest set of rules, limits and capacities that contradict each other."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Protocol

from ..formulations.demands import Demand, demands_of
from ..formulations.errors import BackendDisagreementError, GaplessError
from ..formulations.judge import score
from ..formulations.limits import Limits
from ..formulations.problem import Problem
from ..formulations.terms import Objective
from .families import family_of
from .protocol import LEAST_S, Backend, Claim, Deadline, SolveOptions, SolveStatus
from .registry import get_backend
from .result import Candidate, Conflict, ConflictItem, SolveResult

SEARCH_S = 10.0
"""How long the search for a smaller conflict may take where no time limit is given."""

_FIRST, _LAST = 8, 2
"""Native is asked first, for one part of the time in so many; the last questions are left one in so many."""

NATIVE = "native"
"""The backend that is quick to ask whether there is a plan."""

NO_COVERAGE = "cost table"
"""Name of the only item of a conflict when already the platform and the cost table admit no plan."""


class Solve(Protocol):
    """Solves a variant of a problem again."""

    def __call__(
        self, variant: Problem, by: str | None, limit_s: float | None, /, *, best: bool
    ) -> SolveResult:
        """Return the answer of a backend, of the one that was asked where `by` is None.

        Unless `best`, any plan will do.
        """
        ...


class _PlanFoundError(GaplessError):
    """Ends a search that was asked whether there is a plan: there is one."""

    def __init__(self, claim: Claim) -> None:
        super().__init__("a plan was found")
        self.claim = claim


@dataclass(frozen=True)
class Again:
    """A `Solve` that ends at the first valid plan where any will do.

    `solve`, `reconcile`: those of the session; `worker`, `options`: the backend that was asked, and how.
    """

    solve: Callable[[Problem, Backend, SolveOptions], SolveResult]
    reconcile: Callable[[Problem, Backend, Claim, int, float], SolveResult]
    worker: Backend
    options: SolveOptions

    def __call__(self, variant: Problem, by: str | None, limit_s: float | None, *, best: bool) -> SolveResult:
        """Solve a variant."""

        def see(claim: Claim) -> None:
            if not best and any(score(variant, plan).valid for plan in claim.plans):
                raise _PlanFoundError(claim)

        asked, started = self.worker if by is None else get_backend(by), time.monotonic()
        try:
            quick = replace(self.options, top=1, time_limit_s=limit_s, publish=see)
            return self.solve(variant, asked, quick)
        except _PlanFoundError as found:
            return self.reconcile(variant, asked, found.claim, 1, time.monotonic() - started)


def explain_infeasible(
    problem: Problem, solve: Solve, backend: str, deadline: Deadline
) -> tuple[Conflict, Candidate | None]:
    """Return why an infeasible problem has no plan, and its best plan without the filters.

    A deletion filter leaves out one demand after the other as long as the rest stays infeasible; then
    all smaller sets are tried. What is left is solved once more by the backend that was asked. All that ends
    at the deadline: what was not tried by then stays part of the conflict, which says so.

    Raises BackendDisagreementError: one backend finds a plan where another one proved that there is none.
    """
    # Any term will do: what counts is whether there is a plan.
    bare = problem.with_objective(Objective(terms=(next(iter(problem.formulation.terms)),)))
    demands = demands_of(problem)
    support = family_of(problem.formulation.name).support
    ask = _Questions(solve, deadline)
    # Where no native search is exact, only the backend that was asked can prove that there is no plan.
    search = _Search(bare, demands, ask, NATIVE if support is not None and support.exact else None)
    if support is not None:
        _confirm(ask(bare, NATIVE, _FIRST), backend, "the problem was proved infeasible")
    kept = search.irreducible()
    tried = search.sure
    core, smallest = search.smaller_than(kept)
    again = ask(_without(bare, [d for d in demands if d not in core]), None, _LAST)
    demanded = "; ".join(d.text for d in core) or "the cost table alone"
    _confirm(again, NATIVE, f"it was proved that these contradict each other: {demanded}")
    proved = again is not None and again.status is SolveStatus.INFEASIBLE
    by_itself = proved or search.prover is None or len(core) == len(demands)
    conflict = Conflict(
        items=tuple(ConflictItem(name=d.name, text=d.text) for d in core) or (_no_coverage(problem),),
        smallest=smallest,
        irreducible=tried if core is kept else search.sure,
        confirmed_by=backend if by_itself else NATIVE,
    )
    unfiltered = None
    if problem.limits != Limits():
        found = ask(replace(problem, limits=Limits()), None if support is None else NATIVE, 1, best=True)
        unfiltered = None if found is None else found.best
    return conflict, unfiltered


class _Questions:
    """Asks for plans of variants, each within its share of the time that is left."""

    def __init__(self, solve: Solve, deadline: Deadline) -> None:
        self._solve, self.deadline = solve, deadline

    def __call__(
        self, problem: Problem, by: str | None, parts: int, *, best: bool = False
    ) -> SolveResult | None:
        """Return an answer that takes one part of the time in so many; None: there is none left."""
        if self.deadline.passed:
            return None
        left_s = self.deadline.left_s
        limit_s = None if left_s is None else max(left_s / parts, LEAST_S)
        return self._solve(problem, by, limit_s, best=best)


def _confirm(result: SolveResult | None, other: str, claim: str) -> None:
    """Raise if a backend finds a plan although another one proved that there is none."""
    if result is not None and result.candidates:
        raise BackendDisagreementError(
            f"backend {result.backend!r} finds the plan [{result.plan}], although by {other!r} {claim}"
        )


class _Search:
    """Looks for small infeasible sets of demands, remembering what was feasible.

    `sure`: whether every question had an answer until now.
    """

    def __init__(
        self, problem: Problem, demands: Sequence[Demand], ask: _Questions, prover: str | None
    ) -> None:
        self._problem, self._demands, self._ask = problem, demands, ask
        self.prover, self.sure = prover, True
        self._feasible: list[frozenset[int]] = []

    def irreducible(self) -> list[Demand]:
        """Return an infeasible set from which nothing can be left out."""
        kept = list(range(len(self._demands)))
        for index in reversed(range(len(self._demands))):
            rest = [i for i in kept if i != index]
            if self._infeasible(rest, index + 1 + _LAST):
                kept = rest
        return [self._demands[i] for i in kept]

    def smaller_than(self, core: list[Demand]) -> tuple[list[Demand], bool]:
        """Return a smallest infeasible set, and whether that is certain."""
        left_s = self._ask.deadline.left_s
        until = Deadline(SEARCH_S if left_s is None else left_s / _LAST)
        for size in range(len(core)):
            for chosen in combinations(range(len(self._demands)), size):
                if until.passed:
                    return core, False
                if self._infeasible(chosen, 1 + _LAST):
                    return [self._demands[i] for i in chosen], self.sure
        return core, self.sure

    def _infeasible(self, chosen: Sequence[int], parts: int) -> bool:
        wanted = frozenset(chosen)
        if any(wanted <= known for known in self._feasible):
            return False
        left_out = [d for i, d in enumerate(self._demands) if i not in wanted]
        result = self._ask(_without(self._problem, left_out), self.prover, parts)
        if result is not None and result.status is SolveStatus.INFEASIBLE:
            return True
        self.sure &= result is not None and result.status is not SolveStatus.NO_SOLUTION
        self._feasible.append(wanted)
        return False


def _without(problem: Problem, left_out: Sequence[Demand]) -> Problem:
    for demand in left_out:
        problem = demand.without(problem)
    return problem


def _no_coverage(problem: Problem) -> ConflictItem:
    """Say in words why the cost table alone admits no plan."""
    stuck = [
        name if problem.formulation.one_network else f"{network.name}/{name}"
        for network in problem.networks
        for name, row in zip(network.layer_names, problem.costs.of(network.name).layer_us, strict=True)
        if all(time is None for time in row)
    ]
    if stuck:
        text = f"no unit can run the layers {', '.join(map(repr, stuck))}"
    else:
        text = problem.formulation.incomplete
    return ConflictItem(name=NO_COVERAGE, text=text)
