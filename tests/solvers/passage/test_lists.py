"""Native lists of plans whose units may have several chunks, compared with walking all of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gapless.formulations.problem import Problem
from gapless.formulations.rules import RuleFunction
from gapless.formulations.terms import Objective
from gapless.solvers.passage.samples import passing
from gapless.solvers.passage.samples import random_problem as drawn
from gapless.solvers.protocol import SolveOptions, SolveStatus
from gapless.solvers.session import solve
from tests.solvers.chunking.random_problems import random_problem

RULES: tuple[RuleFunction, ...] = (
    lambda view: view.chunks("u0") >= 2,
    lambda view: view.chunks("u1") + view.hops() <= 3,
    lambda view: view.uses("u0") & view.uses("u1"),
    lambda view: view.memory_bytes("u0") <= 40,
    lambda view: view.bubbles_us() + view.gapness_us() <= view.latency_us(),
)


def problem_of(seed: int) -> Problem:
    """Return a small problem with a random choice of everything, some with hops limited or spoken of."""
    problem = passing(random_problem(seed, layers=2 + seed % 5, units=2 + seed % 3))
    if seed % 6 == 1:
        problem = replace(problem, limits=replace(problem.limits, max_hops=seed % 4))
    if seed % 6 == 2:
        problem = problem.with_rules(RULES[seed // 6 % len(RULES)])
    if seed % 6 == 3:
        problem = replace(problem, objective=Objective(terms=("hops", "energy")[: 1 + seed % 2]))
    return problem


@pytest.mark.parametrize("first", range(0, 96, 24))
def test_lists_are_those_of_the_oracle(first: int) -> None:
    """Values, plans, order, proofs and whether there are more: all as the oracle says."""
    for seed in range(first, first + 24):
        problem, options = problem_of(seed), SolveOptions(top=1 + seed % 6)
        known = solve(problem, "exhaustive", options, explain=False)
        found = solve(problem, "native", options, explain=False)
        assert found.status is known.status, seed
        assert [c.plan for c in found.candidates] == [c.plan for c in known.candidates], seed
        assert (found.proven, found.values, found.bound) == (known.proven, known.values, known.bound), seed
        # The oracle always knows whether there are more plans; the search where it ran out of them.
        assert known.exhausted or not found.exhausted, seed


@pytest.mark.parametrize("objective", ["period", "period,hops", "latency,period", "period,gapness"])
def test_longer_networks_agree_whatever_the_width(objective: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Narrow sweeps lose labels, and the next ones make up for it."""
    from gapless.solvers.passage import solving

    monkeypatch.setattr(solving, "_ENUMERABLE", 1)
    monkeypatch.setattr(solving, "_FIRST_WIDTH", 2)
    for listable in (1, 1 << 60):
        monkeypatch.setattr(solving, "_LISTABLE", listable)
        for seed in range(2):
            problem = drawn(6, 3, seed=seed).with_objective(objective)
            known = solve(problem, "exhaustive", SolveOptions(top=5), explain=False)
            found = solve(problem, "native", SolveOptions(top=5), explain=False)
            assert [c.plan for c in found.candidates] == [c.plan for c in known.candidates], (listable, seed)
            assert (found.status, found.proven) == (SolveStatus.OPTIMAL, 5)


def test_bounds_hold_when_the_time_is_short() -> None:
    """A search that is stopped says a bound below what a longer one proves, and a plan above it."""
    problem = drawn(16, 3, seed=3).with_objective("period")
    known = solve(problem, "native", SolveOptions(), explain=False)
    assert known.status is SolveStatus.OPTIMAL
    assert known.objective is not None
    for limit_s in (0.001, 0.02, 0.05):
        found = solve(problem, "native", SolveOptions(time_limit_s=limit_s), explain=False)
        assert found.objective is None or found.objective >= known.objective
        assert found.bound is None or found.bound <= known.objective
