"""Workloads whose slowdown is by slice: backends prove what the exhaustive search finds, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.schedule_instances import sliced
from benchmarks.workload_instances import small_workload
from gapless.formulations.flow_shop import slowdown
from gapless.formulations.flow_shop.tables import shop_of
from gapless.formulations.problem import Problem
from gapless.solvers.protocol import SolveOptions, SolveStatus
from gapless.solvers.result import SolveResult
from gapless.solvers.session import solve
from gapless.solvers.sources import StartMode


def drawn(seed: int) -> Problem:
    problem = small_workload(seed)
    known = problem.interference
    assert known is not None
    return sliced(replace(problem, interference=replace(known, high_from_permille=900)), seed)


def proved(problem: Problem, backend: str, limit_s: float | None = None) -> SolveResult:
    return solve(problem, backend, SolveOptions(start=StartMode.NONE, time_limit_s=limit_s))


SEEDS = [seed for seed in range(24) if small_workload(seed).interference is not None]


@pytest.mark.parametrize("seed", SEEDS)
def test_backends_agree(seed: int) -> None:
    problem = drawn(seed)
    least = proved(problem, "exhaustive")
    for backend in ("native", "cpsat"):
        found = proved(problem, backend)
        assert (found.status, found.values) == (least.status, least.values), backend


@pytest.mark.slow
def test_rows_that_know_no_marks_prove_nothing_false(monkeypatch: pytest.MonkeyPatch) -> None:
    """With many chunks the rows know between what losses are; then more plans are looked at."""
    exact = [proved(drawn(seed), "cpsat") for seed in SEEDS[:6]]
    monkeypatch.setattr(slowdown, "_MOST_MARKED", 0)
    rounds = 0
    for seed, known in zip(SEEDS, exact, strict=False):
        found = proved(drawn(seed), "cpsat", 5.0)
        assert found.bound is None or known.values is None or found.bound <= known.values[0]
        if found.status is SolveStatus.OPTIMAL:
            assert found.values == known.values
        rounds += int(found.statistics["calls"]) > int(known.statistics["calls"])
    assert rounds


def test_contention_by_slice_is_minimised() -> None:
    """Windows count slices: a bound by requests would say that less is impossible."""
    found = False
    for seed in SEEDS:
        problem = drawn(seed).with_objective("contention,makespan")
        if shop_of(problem).high == shop_of(problem).surely_high:
            continue
        least, native = proved(problem, "exhaustive"), proved(problem, "native", 5.0)
        assert native.values == least.values
        assert native.bound is not None
        assert least.values is not None
        assert native.bound <= least.values[0]
        found = True
    assert found
