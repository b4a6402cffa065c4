"""Whole lists of best plans against brute force."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gapless.formulations.judge import score
from gapless.formulations.problem import Problem
from gapless.solvers.chunking import instance, search, widening
from gapless.solvers.chunking.samples import random_problem as drawn
from gapless.solvers.native import NativeBackend
from gapless.solvers.protocol import Claim, SolveOptions, SolveStatus, StopReason

from ...instances import problems, ruled_problems
from ..brute import ranked
from .random_problems import random_problem

EVERYTHING = 10_000


def check(problem: Problem, top: int) -> Claim:
    """Solve, and compare everything that is claimed with brute force."""
    claim = NativeBackend().solve(problem, SolveOptions(top=top))
    valid = ranked(problem)
    assert list(claim.plans) == valid[:top]
    assert claim.stop is StopReason.COMPLETE
    assert claim.proven == len(claim.plans)
    if valid:
        assert claim.status is SolveStatus.OPTIMAL
        assert claim.values == score(problem, valid[0]).values(problem.objective.terms)
        assert claim.bound == claim.values[0]
    else:
        assert claim.status is SolveStatus.INFEASIBLE
    assert claim.exhausted or len(valid) >= top
    assert not claim.exhausted or len(valid) <= top
    return claim


@pytest.fixture
def searching(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Let even tiny problems go through widening, settling, diving and best-first search."""
    monkeypatch.setattr(widening, "_SMALL_GRAPH", 0)
    monkeypatch.setattr(widening, "_ENUMERABLE", 0)
    monkeypatch.setattr(widening, "_GRAPH", 25)
    monkeypatch.setattr(search, "_FIRST_BATCH", 1)
    monkeypatch.setattr(search, "_LARGEST_BATCH", 4)
    monkeypatch.setattr(search, "_PATIENCE", 1)
    return monkeypatch


@pytest.mark.parametrize("objective", ["in_flight,latency", "latency", "hops,period"])
def test_of_plans_that_have_begun_the_period_may_grow(objective: str, searching: pytest.MonkeyPatch) -> None:
    """A longer period means fewer requests in flight: what is placed says little about their number."""
    for seed in range(4):
        problem = drawn(6, 4, seed=seed).with_objective(objective)
        check(problem.with_limits(max_in_flight=2, min_units=2 + seed % 2), top=6)


@pytest.mark.slow
@settings(max_examples=60)
@given(problem=problems(), top=st.sampled_from([1, 4, EVERYTHING]))
def test_every_feature_term_and_limit(problem: Problem, top: int) -> None:
    check(problem, top)


@pytest.mark.slow
@settings(max_examples=60)
@given(problem=ruled_problems(), top=st.sampled_from([1, 4, EVERYTHING]))
def test_every_kind_of_rule(problem: Problem, top: int) -> None:
    check(problem, top)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60))
def test_search_without_shortcuts(searching: pytest.MonkeyPatch, seed: int) -> None:
    problem = random_problem(seed, layers=1 + seed % 7, units=1 + seed // 7 % 4)
    check(problem, (1, 5, 20, EVERYTHING)[seed % 4])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_coarse_lattice_forgets_nothing_that_counts(searching: pytest.MonkeyPatch, seed: int) -> None:
    searching.setattr(instance, "_LATTICE_POINTS", (1,))
    check(random_problem(1000 + seed, layers=2 + seed % 5, units=2 + seed % 3), 10)


@pytest.mark.parametrize("seed", range(30))
def test_random_problems(seed: int) -> None:
    check(random_problem(2000 + seed, layers=1 + seed % 8, units=1 + seed % 4), 20)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_medium_problems(seed: int) -> None:
    check(random_problem(3000 + seed, layers=13, units=4), 20)


@pytest.mark.slow
def test_ten_layers_on_five_units() -> None:
    check(random_problem(4000, layers=10, units=5), 50)
