"""Why there is no plan: a smallest set of rules, limits and capacities that contradict each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations

from ..formulations.demands import Demand, demands_of
from ..formulations.errors import BackendDisagreementError
from ..formulations.limits import Limits
from ..formulations.objective import Objective
from ..formulations.problem import Problem
from .families import family_of
from .protocol import Deadline, SolveStatus
from .result import Candidate, Conflict, ConflictItem, SolveResult

SEARCH_S = 10.0
"""How long the search for a smaller conflict may take."""

NATIVE = "native"
"""The backend that is quick to ask whether there is a plan."""

NO_COVERAGE = "cost table"
"""Name of the only item of a conflict when already the platform and the cost table admit no plan."""

Solve = Callable[..., SolveResult]
"""`solve(problem, by)`: solve again, by the backend that was asked unless `by` names another."""


def explain_infeasible(problem: Problem, solve: Solve, backend: str) -> tuple[Conflict, Candidate | None]:
    """Return why an infeasible problem has no plan, and its best plan without the filters.

    A deletion filter leaves out one demand after the other as long as the rest stays infeasible; then
    all smaller sets are tried. What is left is solved once more by the backend that was asked.

    Parameters
    ----------
    problem
        A problem that is proved infeasible.
    solve
        How to solve a variant of it.
    backend
        Name of the backend that was asked.

    Raises
    ------
    BackendDisagreementError
        One backend finds a plan where another one proved that there is none.
    """
    # Any term will do: what counts is whether there is a plan.
    bare = problem.with_objective(Objective(terms=(next(iter(problem.formulation.terms)),)))
    demands = demands_of(problem)
    support = family_of(problem.formulation.name).support
    # Where no native search is exact, only the backend that was asked can prove that there is no plan.
    search = _Search(bare, demands, solve, NATIVE if support is not None and support.exact else None)
    if support is not None:
        _confirm(solve(bare, NATIVE), backend, "the problem was proved infeasible")
    core = search.irreducible()
    core, smallest = search.smaller_than(core)
    final = _without(bare, [d for d in demands if d not in core])
    again = solve(final)
    demanded = "; ".join(d.text for d in core) or "the cost table alone"
    _confirm(again, NATIVE, f"it was proved that these contradict each other: {demanded}")
    proved = again.status is SolveStatus.INFEASIBLE
    conflict = Conflict(
        items=tuple(ConflictItem(name=d.name, text=d.text) for d in core) or (_no_coverage(problem),),
        smallest=smallest,
        confirmed_by=backend if proved else NATIVE,
    )
    unfiltered = None
    if problem.limits != Limits():
        unfiltered = solve(replace(problem, limits=Limits()), None if support is None else NATIVE).best
    return conflict, unfiltered


def _confirm(result: SolveResult, other: str, claim: str) -> None:
    """Raise if a backend finds a plan although another one proved that there is none."""
    if result.candidates:
        raise BackendDisagreementError(
            f"backend {result.backend!r} finds the plan [{result.plan}], although by {other!r} {claim}"
        )


class _Search:
    """Looks for small infeasible sets of demands, remembering what was feasible."""

    def __init__(self, problem: Problem, demands: Sequence[Demand], solve: Solve, prover: str | None) -> None:
        self._problem = problem
        self._demands = demands
        self._solve = solve
        self._prover = prover
        self._feasible: list[frozenset[int]] = []
        self._sure = True
        self._deadline = Deadline(SEARCH_S)

    def irreducible(self) -> list[Demand]:
        """Return an infeasible set from which nothing can be left out."""
        kept = list(range(len(self._demands)))
        for index in reversed(range(len(self._demands))):
            rest = [i for i in kept if i != index]
            if self._infeasible(rest):
                kept = rest
        return [self._demands[i] for i in kept]

    def smaller_than(self, core: list[Demand]) -> tuple[list[Demand], bool]:
        """Return a smallest infeasible set, and whether that is certain."""
        for size in range(len(core)):
            for chosen in combinations(range(len(self._demands)), size):
                if self._deadline.passed:
                    return core, False
                if self._infeasible(chosen):
                    return [self._demands[i] for i in chosen], self._sure
        return core, self._sure

    def _infeasible(self, chosen: Sequence[int]) -> bool:
        wanted = frozenset(chosen)
        if any(wanted <= known for known in self._feasible):
            return False
        left_out = [d for i, d in enumerate(self._demands) if i not in wanted]
        status = self._solve(_without(self._problem, left_out), self._prover).status
        if status is SolveStatus.INFEASIBLE:
            return True
        self._sure &= status is not SolveStatus.NO_SOLUTION
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
