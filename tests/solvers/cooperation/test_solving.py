"""Limits, lists, time and size: what the native search of groups promises."""

from __future__ import annotations

import time

import pytest

from benchmarks.group_instances import chain_problem, unlike_speeds
from gapless.formulations.chunking.rules import latency_cap
from gapless.formulations.problem import Problem
from gapless.solvers.protocol import SolveOptions, SolveStatus, StopReason
from gapless.solvers.session import solve
from tests.cooperation_instances import drawn_problem, restricted_problem


def values(problem: Problem, backend: str) -> tuple[int, ...] | None:
    return solve(problem, backend, explain=False).values


@pytest.mark.slow
def test_limits_on_the_latency_may_be_tight_to_the_last_unit() -> None:
    tight = 0
    for seed in range(12):
        problem = drawn_problem(seed, layers=3, devices=3).with_objective("period")
        found = solve(problem, "exhaustive", SolveOptions(top=200), explain=False)
        latencies = sorted({candidate.score.value("latency") for candidate in found.candidates})
        for most in (latencies[0], latencies[0] - 1, latencies[len(latencies) // 2]) if latencies else ():
            limited = problem.with_rules(latency_cap(most_us=most))
            known = values(limited, "exhaustive")
            assert values(limited, "native") == known, f"seed {seed}, {most} us"
            assert values(problem.with_limits(max_latency_us=most), "native") == known
            tight += known is not None and known != found.values
    assert tight > 4


def test_lists_hold_devices_of_one_kind_in_every_order() -> None:
    problem = chain_problem(2, [2.0, 1.0, 1.0], types=["a", "b", "b"])
    found = [solve(problem, name, SolveOptions(top=5000)) for name in ("native", "exhaustive")]
    plans = [{candidate.plan for candidate in result.candidates} for result in found]
    assert plans[0] == plans[1]
    assert len(plans[0]) > 10
    assert [result.exhausted for result in found] == [True, True]


def test_a_plan_is_there_when_the_time_is_up() -> None:
    problem = chain_problem(16, unlike_speeds(11))
    started = time.monotonic()
    result = solve(problem, "native", SolveOptions(time_limit_s=0.6), explain=False)
    assert time.monotonic() - started < 60  # without the limit it takes far longer
    assert result.status is SolveStatus.FEASIBLE
    assert result.stop is StopReason.TIME_LIMIT
    assert result.best is not None


def test_what_is_too_large_gets_the_plan_of_the_heuristic_and_no_proof() -> None:
    result = solve(chain_problem(12, unlike_speeds(16)), "native", explain=False)
    assert result.status is SolveStatus.FEASIBLE
    assert result.stop is StopReason.SPACE_LIMIT
    assert "65,536 sets of devices" in str(result.statistics["refused"])
    assert result.values == values(chain_problem(12, unlike_speeds(16)), "pico")


def test_many_devices_of_few_types_are_counted() -> None:
    speeds = [speed for speed in (5.0, 1.0) for _ in range(6)]
    problem = chain_problem(6, speeds, types=[f"t{speed}" for speed in speeds])
    result = solve(problem, "native", explain=False)
    assert result.status is SolveStatus.OPTIMAL
    assert result.statistics["sets"] == 49


def test_links_that_are_missing_take_no_part_in_sums_of_several_terms() -> None:
    problem = restricted_problem(1061)  # the time of a missing link, scaled, had more than 64 bits
    assert values(problem, "native") == values(problem, "exhaustive")
