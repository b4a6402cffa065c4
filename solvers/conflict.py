"""Why there is no plan: a smallest set of rules, limits and capacities that contradict each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from ..formulations.errors import BackendDisagreementError
from ..formulations.objective import LIMIT_NAMES, Limits, Objective, Term
from ..formulations.problem import Problem
from ..formulations.workload import RequestOrder
from .protocol import Deadline, SolveStatus
from .result import Candidate, Conflict, ConflictItem, SolveResult

SEARCH_S = 10.0
"""How long the search for a smaller conflict may take."""

Solve = Callable[..., SolveResult]
"""`solve(problem, by)`: solve again, by the backend that was asked unless `by` names another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Demand:
    """Something that can be left out of a problem."""

    item: ConflictItem
    without: Callable[[Problem], Problem]


_LIMIT_TEXT = {
    "max_period_us": "the period is at most {} us",
    "min_units": "at least {} units are used",
    "max_units": "at most {} units are used",
    "min_balance_permille": "the least loaded unit in use has at least {} permille of the largest load",
    "max_gapness_us": "the gapness is at most {} us",
    "min_utilisation_permille": "at least {} permille of the platform are busy",
}


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
    bare = problem.with_objective(Objective(terms=(Term.PERIOD,)))
    demands = _demands(problem)
    # With a workload only the backend that was asked can prove that there is no plan.
    search = _Search(bare, demands, solve, "native" if problem.workload is None else None)
    _confirm(solve(bare, "native"), backend, "the problem was proved infeasible")
    core = search.irreducible()
    core, smallest = search.smaller_than(core)
    final = _without(bare, [d for d in demands if d not in core])
    again = solve(final)
    demanded = "; ".join(d.item.text for d in core) or "the cost table alone"
    _confirm(again, "native", f"it was proved that these contradict each other: {demanded}")
    proved = again.status is SolveStatus.INFEASIBLE
    conflict = Conflict(
        items=tuple(d.item for d in core) or (_no_coverage(problem),),
        smallest=smallest,
        confirmed_by=backend if proved else "native",
    )
    unfiltered = None
    if problem.limits != Limits():
        unfiltered = solve(replace(problem, limits=Limits()), "native").best
    return conflict, unfiltered


def _confirm(result: SolveResult, other: str, claim: str) -> None:
    """Raise if a backend finds a plan although another one proved that there is none."""
    if result.candidates:
        raise BackendDisagreementError(
            f"backend {result.backend!r} finds the plan [{result.plan}], although by {other!r} {claim}"
        )


class _Search:
    """Looks for small infeasible sets of demands, remembering what was feasible."""

    def __init__(
        self, problem: Problem, demands: Sequence[_Demand], solve: Solve, prover: str | None
    ) -> None:
        self._problem = problem
        self._demands = demands
        self._solve = solve
        self._prover = prover
        self._feasible: list[frozenset[int]] = []
        self._sure = True
        self._deadline = Deadline(SEARCH_S)

    def irreducible(self) -> list[_Demand]:
        """Return an infeasible set from which nothing can be left out."""
        kept = list(range(len(self._demands)))
        for index in reversed(range(len(self._demands))):
            rest = [i for i in kept if i != index]
            if self._infeasible(rest):
                kept = rest
        return [self._demands[i] for i in kept]

    def smaller_than(self, core: list[_Demand]) -> tuple[list[_Demand], bool]:
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


def _without(problem: Problem, left_out: Sequence[_Demand]) -> Problem:
    for demand in left_out:
        problem = demand.without(problem)
    return problem


def _demands(problem: Problem) -> list[_Demand]:
    return [
        *_rule_demands(problem),
        *_limit_demands(problem),
        *_workload_demands(problem),
        *_hardware_demands(problem),
    ]


def _rule_demands(problem: Problem) -> list[_Demand]:
    def drop(name: str) -> Callable[[Problem], Problem]:
        return lambda p: replace(p, rules=tuple(rule for rule in p.rules if rule.name != name))

    return [
        _Demand(
            item=ConflictItem(name=rule.name, text=rule.text or f"the rule {rule.name!r} holds"),
            without=drop(rule.name),
        )
        for rule in problem.rules
    ]


def _limit_demands(problem: Problem) -> list[_Demand]:
    def drop(name: str) -> Callable[[Problem], Problem]:
        return lambda p: p.with_limits(**{name: None})

    return [
        _Demand(
            item=ConflictItem(name=name, text=_LIMIT_TEXT[name].format(getattr(problem.limits, name))),
            without=drop(name),
        )
        for name in LIMIT_NAMES
        if getattr(problem.limits, name) is not None
    ]


def _workload_demands(problem: Problem) -> list[_Demand]:
    workload = problem.workload
    if workload is None:
        return []
    found = [
        _Demand(
            item=ConflictItem(
                name=f"deadline of {request.name}",
                text=f"request {request.name!r} takes at most {request.deadline_us} us",
            ),
            without=_without_deadline(request.name),
        )
        for request in workload.requests
        if request.deadline_us is not None
    ]
    if workload.order is RequestOrder.FIXED:
        text = f"the requests are served in the order {', '.join(workload.names)}"
        found.append(_Demand(item=ConflictItem(name="order", text=text), without=_without_order))
    return found


def _without_deadline(name: str) -> Callable[[Problem], Problem]:
    def drop(problem: Problem) -> Problem:
        assert problem.workload is not None
        requests = tuple(
            replace(request, deadline_us=None) if request.name == name else request
            for request in problem.workload.requests
        )
        return replace(problem, workload=replace(problem.workload, requests=requests))

    return drop


def _without_order(problem: Problem) -> Problem:
    assert problem.workload is not None
    return replace(problem, workload=replace(problem.workload, order=RequestOrder.FREE))


def _hardware_demands(problem: Problem) -> list[_Demand]:
    platform = problem.platform
    found = [
        _Demand(
            item=ConflictItem(
                name=f"memory of {unit.name}",
                text=f"unit {unit.name!r} holds at most {unit.memory_bytes} bytes",
            ),
            without=_unit_without_memory(unit.name),
        )
        for unit in platform.units
        if unit.memory_bytes is not None
    ]
    if platform.memory_bytes is not None:
        text = f"the device holds at most {platform.memory_bytes} bytes"
        item = ConflictItem(name="memory of the device", text=text)
        found.append(_Demand(item=item, without=_without_device_memory))
    if any(network.forbidden_cuts for network in problem.networks):
        item = ConflictItem(name="forbidden cuts", text=_forbidden_cuts(problem))
        found.append(_Demand(item=item, without=_without_cut_restrictions))
    if platform.conflicts:
        pairs = [(platform.unit_names[u], platform.unit_names[v]) for u, v in platform.conflicts]
        text = f"units that share cores exclude each other: {', '.join(f'{a}/{b}' for a, b in pairs)}"
        item = ConflictItem(name="shared cores", text=text)
        found.append(_Demand(item=item, without=_without_shared_cores))
    return found


def _unit_without_memory(name: str) -> Callable[[Problem], Problem]:
    def drop(problem: Problem) -> Problem:
        units = tuple(
            replace(unit, memory_bytes=None) if unit.name == name else unit for unit in problem.platform.units
        )
        return replace(problem, platform=replace(problem.platform, units=units))

    return drop


def _without_device_memory(problem: Problem) -> Problem:
    return replace(problem, platform=replace(problem.platform, memory_bytes=None))


def _without_cut_restrictions(problem: Problem) -> Problem:
    networks = tuple(replace(network, forbidden_cuts=()) for network in problem.networks)
    return replace(problem, networks=networks)


def _forbidden_cuts(problem: Problem) -> str:
    parts = []
    for network in problem.networks:
        if network.forbidden_cuts:
            cuts = ", ".join(map(str, network.forbidden_cuts))
            parts.append(cuts if problem.workload is None else f"{cuts} of {network.name!r}")
    return f"no chunk ends at the cuts {'; '.join(parts)}"


def _without_shared_cores(problem: Problem) -> Problem:
    units = tuple(replace(unit, cores=()) for unit in problem.platform.units)
    return replace(problem, platform=replace(problem.platform, units=units))


def _no_coverage(problem: Problem) -> ConflictItem:
    """Say in words why the cost table alone admits no plan."""
    stuck = [
        name if problem.workload is None else f"{network.name}/{name}"
        for network in problem.networks
        for name, row in zip(network.layer_names, problem.costs.of(network.name).layer_us, strict=True)
        if all(time is None for time in row)
    ]
    if stuck:
        text = f"no unit can run the layers {', '.join(map(repr, stuck))}"
    else:
        text = (
            "every layer can run somewhere, but no sequence of chunks, at most one on each unit"
            f"{'' if problem.workload is None else ' and in the order of the units'}, covers the network"
        )
    return ConflictItem(name="cost table", text=text)
