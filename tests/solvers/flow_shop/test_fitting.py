"""Eq. (6) of Hetero2Pipe: its planner keeps within the memory of the device."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gapless.formulations.judge import score
from gapless.formulations.problem import Problem
from gapless.profiler.platforms.workloads import shipped_workload
from gapless.solvers.protocol import SolveOptions, SolveStatus
from gapless.solvers.session import solve

TEXT = "bert,vit,yolov4,vgg16,alexnet"
PLANNERS = ("hetero2pipe", "hetero2pipe-noct", "hetero2pipe-noc", "hetero2pipe-not")


def with_memory(problem: Problem, memory_bytes: int) -> Problem:
    return replace(problem, platform=replace(problem.platform, memory_bytes=memory_bytes))


@pytest.mark.parametrize("planner", PLANNERS)
def test_a_plan_fits_the_device_where_the_free_one_does_not(planner: str) -> None:
    problem = shipped_workload("kirin990", TEXT)
    free = solve(problem, planner, SolveOptions(), explain=False)
    assert free.plan is not None
    needs = score(problem, free.plan).peak_bytes
    limited = with_memory(problem, 3 * needs // 4)
    assert not score(limited, free.plan).valid
    found = solve(limited, planner, SolveOptions(), explain=False)
    assert found.status is SolveStatus.FEASIBLE
    assert found.objective is not None
    assert free.objective is not None
    assert found.objective >= free.objective


def test_what_cannot_fit_is_said() -> None:
    """VGG16 alone needs more than that."""
    problem = with_memory(shipped_workload("kirin990", "vgg16"), 10_000_000)
    found = solve(problem, "hetero2pipe", SolveOptions(), explain=False)
    assert found.status is SolveStatus.NO_SOLUTION
    assert "device_memory" in str(found.statistics["reason"])
