"""Sums that leave 64 bits are refused by name, and exact searches of chains begin where `native` ends."""

from __future__ import annotations

import pytest

from gapless.formulations.errors import UnsupportedFeatureError
from gapless.formulations.problem import Problem
from gapless.formulations.rules import RuleFunction
from gapless.solvers.chunking.drawn import random_problem
from gapless.solvers.chunking.samples import sample_problem
from gapless.solvers.protocol import SolveOptions
from gapless.solvers.session import solve
from gapless.solvers.sources import Source, StartMode

pytestmark = pytest.mark.slow

RULES: dict[str, RuleFunction] = {
    "factors": lambda view: (10**17 + 1) * view.busy_us("big") <= (10**17 + 3) * view.busy_us("gpu") + 10**19,
    "constant": lambda view: view.busy_us("big") <= 10**20,
    "a choice": lambda view: (
        ((10**18 + 1) * view.busy_us("big") + view.busy_us("gpu") <= 10**20) | view.uses("gpu")
    ),
}


def ruled(name: str) -> Problem:
    return sample_problem().with_rules(RULES[name])


@pytest.mark.parametrize("name", ["factors", "a choice"])
def test_cpsat_names_the_rule_and_its_bits(name: str) -> None:
    (rule,) = ruled(name).rules
    with pytest.raises(UnsupportedFeatureError, match=rf"{rule.name}.*64 bits"):
        solve(ruled(name), "cpsat")


@pytest.mark.parametrize("name", RULES)
def test_others_solve_it(name: str) -> None:
    right = solve(ruled(name), "exhaustive")
    for backend in ("native", "z3"):
        found = solve(ruled(name), backend)
        assert (found.status, found.values) == (right.status, right.values)


def test_chains_start_from_plan_and_bound_of_native() -> None:
    problem = random_problem(40, 8, seed=1)
    best = solve(problem, "native").objective
    for backend in ("cpsat", "z3", "pulp"):
        found = solve(problem, backend, SolveOptions(time_limit_s=5))
        assert (found.objective, found.bound) == (best, best)
        assert Source.START in (found.plan_source, found.bound_source)
    cold = solve(problem, "cpsat", SolveOptions(time_limit_s=1, start=StartMode.NONE))
    assert Source.START not in (cold.plan_source, cold.bound_source)
