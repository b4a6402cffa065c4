"""Costs that depend on which units are used: exact with every backend, and bounds leave nothing out."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gapless.api.problems import table_problem
from gapless.formulations.chunking.tables import chain_of
from gapless.formulations.costs import CostTable
from gapless.formulations.judge import score
from gapless.formulations.parts import narrowed
from gapless.formulations.problem import Problem
from gapless.formulations.rules import OpaqueRule
from gapless.solvers.chunking.solving import cheap_bounds
from gapless.solvers.exhaustive import all_plans
from gapless.solvers.protocol import Backend, SolveOptions, SolveStatus
from gapless.solvers.session import solve
from tests.instances import set_problems

from .agreement import in_one_child
from .test_by_units import THIRD_PARTY, check_against_brute_force, objectives

QUICK = settings(max_examples=30, suppress_health_check=list(HealthCheck))
SLOW = settings(max_examples=6, suppress_health_check=list(HealthCheck))


@st.composite
def asked(draw: st.DrawFn, *, most_layers: int = 5, most_units: int = 4) -> Problem:
    problem = draw(set_problems(most_layers=most_layers, most_units=most_units))
    if draw(st.integers(0, 4)) == 0:
        odd = OpaqueRule(name="odd", predicate=lambda p: p.chunks[0].stop % 2 == 1)
        problem = problem.with_rules(odd)
    objective = draw(objectives)
    return problem if objective is None else problem.with_objective(objective)


@pytest.mark.slow
@QUICK
@given(problem=asked(), top=st.sampled_from([1, 5, 200]))
def test_the_best_plans_of_all_sets(problem: Problem, top: int) -> None:
    for backend in ("native", "exhaustive"):
        check_against_brute_force(problem, backend, top)


@pytest.mark.slow
@pytest.mark.parametrize("backend", THIRD_PARTY)
def test_third_party_backends_find_the_same(backend: str) -> None:
    def check(loose: Backend) -> None:
        @SLOW
        @given(problem=asked(most_layers=4, most_units=3))
        def agrees(problem: Problem) -> None:
            check_against_brute_force(problem, loose, top=3)

        agrees()

    in_one_child(backend, check)


@pytest.mark.slow
@given(set_problems(), st.sampled_from(["period", "latency"]))
def test_bounds_hold_for_every_plan(problem: Problem, term: str) -> None:
    wanted = problem.with_objective(term)
    bounds = cheap_bounds(wanted)
    assert bounds.keys() <= set(problem.parts) or problem.limits.in_use()
    for part in problem.parts:
        for plan in all_plans(problem):
            units = {chunk.unit for chunk in plan.chunks}
            if units == set(part.key) if isinstance(part.key, tuple) else len(units) == part.key:
                assert score(wanted, plan).value(term) >= bounds.get(part, 0)


def test_sets_that_cannot_win_are_not_solved_and_the_bound_is_still_proven() -> None:
    problem = _three()
    found = solve(problem, "native", SolveOptions(top=1))
    assert found.status is SolveStatus.OPTIMAL
    assert found.bound == found.objective == min(score(problem, p).period_us for p in all_plans(problem))
    assert found.statistics["parts_pruned"] == 4


def test_the_judge_charges_by_the_set_of_units() -> None:
    problem = _three()
    seen = {
        units: [
            score(problem, plan).period_us
            for plan in all_plans(problem)
            if tuple(chunk.unit for chunk in plan.chunks) == units
        ]
        for units in permutations("abc", 2)
    }
    assert seen["a", "b"] == [100]
    assert seen["a", "c"] == [300]
    assert seen["c", "b"] == [900]
    chain = chain_of(problem.using(("a", "b")))
    assert chain.layer_us == ((100, 100, None), (100, 100, None))


def _three() -> Problem:
    """Return two layers on three units: a and b get on, c disturbs and is disturbed."""
    plain = table_problem([[0.1, 0.1, 0.1]] * 2, ["a", "b", "c"], network="net")

    def times(units: tuple[str, ...], us: int) -> CostTable:
        table = narrowed(plain.costs, units)
        (costs,) = table.networks
        return replace(table, networks=(replace(costs, layer_us=((us,) * len(units),) * 2),))

    tables = (times(("a", "b"), 100), times(("a", "c"), 300), times(("b", "c"), 900))
    whole = replace(plain.costs, networks=(replace(plain.costs.networks[0], layer_us=((500,) * 3,) * 2),))
    return replace(plain, co_run_costs=(*tables, narrowed(whole, ("a", "b", "c"))))
