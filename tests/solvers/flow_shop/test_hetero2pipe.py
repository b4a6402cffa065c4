"""Hetero2Pipe's planner: its assignment is scipy's, its columns are aligned, its plans fit the device."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from gapless.formulations.judge import score
from gapless.formulations.problem import Problem
from gapless.profiler.platforms.workloads import shipped_workload
from gapless.solvers.flow_shop.arrays import FORBIDDEN
from gapless.solvers.flow_shop.hetero2pipe import Alignment, cheapest_pairs
from gapless.solvers.protocol import SolveOptions, SolveStatus
from gapless.solvers.session import solve

from .tables import arrays_of, lognormal_arrays, random_arrays, slice_all


@given(data=st.data(), most=st.sampled_from((1, 3, 100)))
def test_the_cheapest_pairs_are_those_of_scipy(data: st.DataObject, most: int) -> None:
    rows = data.draw(st.integers(1, 7))
    columns = data.draw(st.integers(rows, 9))
    row = st.lists(st.integers(0, most), min_size=columns, max_size=columns)
    cost = np.array(data.draw(st.lists(row, min_size=rows, max_size=rows)))
    expected = zip(*(side.tolist() for side in linear_sum_assignment(cost)), strict=True)
    assert cheapest_pairs(cost) == list(expected)


def test_columns_are_the_longest_chunks_with_equal_position_plus_unit() -> None:
    arrays = arrays_of([[4, 4], [3, 3]])
    alignment = Alignment([arrays] * 2, [np.array([0, 1, 2]), np.array([0, 2, 2])])
    assert alignment.times.tolist() == [[4, 3], [8, 0]]
    assert alignment.columns_us == 4 + max(3, 8) + 0


def test_chunks_shrink_to_the_critical_one_of_their_column() -> None:
    heavy, light = arrays_of([[4, 9], [4, 9]]), arrays_of([[2] * 6, [1] * 6])
    alignment = Alignment([heavy, light], [np.array([0, 1, 2]), np.array([0, 6, 6])])
    assert alignment.columns_us == 4 + max(9, 12) + 0
    alignment.steal()
    assert alignment.places[1].tolist() == [0, 4, 6]  # 8 beside the critical 9
    assert alignment.columns_us == 4 + max(9, 8) + 2


def test_an_alignment_that_makes_the_columns_longer_is_dropped() -> None:
    heavy, light = arrays_of([[4, 9], [4, 9]]), arrays_of([[2] * 6, [8] * 6])
    alignment = Alignment([heavy, light], [np.array([0, 1, 2]), np.array([0, 6, 6])])
    alignment.steal()
    assert alignment.places[1].tolist() == [0, 6, 6]
    assert alignment.columns_us == 4 + max(9, 12) + 0


def test_stealing_never_makes_the_columns_longer() -> None:
    shorter = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        units = int(rng.integers(2, 5))
        arrays = [lognormal_arrays(rng, units) for _ in range(int(rng.integers(2, 9)))]
        places = slice_all(arrays)
        assert places is not None
        alignment = Alignment(arrays, places)
        before = alignment.columns_us
        alignment.steal()
        assert alignment.columns_us == Alignment(arrays, alignment.places).columns_us <= before
        shorter += alignment.columns_us < before
    assert shorter >= 15


def test_no_unit_gets_what_it_cannot_run() -> None:
    rng, tried = np.random.default_rng(8), 0
    for _ in range(200):
        arrays = [random_arrays(rng, copies=True, unsupported=True) for _ in range(3)]
        units = arrays[0].unit_count
        places = slice_all([one for one in arrays if one.unit_count == units])
        if places is None or len(places) < 2:
            continue
        alignment = Alignment([one for one in arrays if one.unit_count == units], places)
        alignment.steal()
        assert alignment.times.max() < FORBIDDEN
        tried += 1
    assert tried > 20


TEXT = "bert,vit,yolov4,vgg16,alexnet"
PLANNERS = ("hetero2pipe", "hetero2pipe-noct", "hetero2pipe-noc", "hetero2pipe-not", "hetero2pipe-nos")


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
