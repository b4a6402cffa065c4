"""Bounds of single requests are never above the optimum, and often near it."""

from __future__ import annotations

import pytest

from gapless.formulations.jobs import reach
from gapless.formulations.judge import examined
from gapless.formulations.problem import Problem
from gapless.solvers.exact.cp_sat import CpSatBackend
from gapless.solvers.families import Start
from gapless.solvers.jobs.bounds import bound_of
from gapless.solvers.protocol import Deadline, SolveOptions
from tests.jobs_instances import drawn_jobs, jobs_problem, slowed

TERMS = ("makespan", "late", "lateness", "latency", "work")


def least(problem: Problem) -> dict[str, int]:
    """Return the optimum of each term over all plans."""
    numbers = [examined(problem, code)[0] for code in problem.formulation.codes(problem)]
    return {term: min(each.term(term) for each in numbers) for term in TERMS}


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_bounds_hold_for_all_plans(part: int) -> None:
    shares = []
    for seed in range(part, 72, 8):
        problem = drawn_jobs(seed, requests=2 + seed % 2)
        best = least(problem)
        for term in TERMS:
            bound = bound_of(problem.with_objective(term))
            assert bound <= best[term], (seed, term)
            if term == "makespan":
                shares.append(bound / best[term])
    assert sum(shares) / len(shares) > 0.8


@pytest.mark.parametrize("seed", range(6))
def test_bounds_hold_with_slowdown(seed: int) -> None:
    problem = slowed(drawn_jobs(seed, requests=2), seed, strong=bool(seed % 2))
    best = least(problem)
    for term in TERMS:
        assert bound_of(problem.with_objective(term)) <= best[term]


@pytest.mark.slow
def test_smaller_models_hold_for_all_plans() -> None:
    """Counts of requests by chunk: what a solver proves of them is never above the optimum."""
    backend, better = CpSatBackend(), 0
    for seed in range(24):
        problem = drawn_jobs(seed, requests=2 + seed % 2).with_objective("makespan")
        best, known = least(problem)["makespan"], bound_of(problem)
        encoded = backend.encode(problem, SolveOptions(), Start())
        found = backend.bound_below(encoded, known, SolveOptions(), Deadline(20))
        assert found is not None
        assert known <= found <= best, seed
        better += found > known
    assert better >= 3


def test_loads_bound_the_makespan() -> None:
    # Six requests of 4 us on two equal units, each behind a section of 1 us that only the first unit runs.
    requests = tuple(drawn_jobs(0).data.requests[0].__class__(name=f"r{i}", network="net") for i in range(6))
    problem = jobs_problem({"net": [[1, None], [4, 4]]}, requests)
    assert bound_of(problem) == 16  # 30 us of work on two units, the second one idle for 1 us


def test_few_windows_of_many_hold_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of heads and tails that are many, only some make windows: the bound is lower, and still one."""
    problem = drawn_jobs(4, requests=2)
    whole, best = bound_of(problem), least(problem)["makespan"]
    monkeypatch.setattr(reach, "_MOST_PAIRS", 0)
    monkeypatch.setattr(reach, "_SPREAD", 2)
    assert 0 < bound_of(problem) <= whole <= best
