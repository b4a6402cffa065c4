"""Exact columns by budgets, against every combination of cuts."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from benchmarks.flow_bound import optima
from gapless.formulations.flow_shop.tables import shop_of
from gapless.formulations.play import Job, play_columns
from gapless.formulations.workload import Execution, Request, RequestOrder, Workload
from gapless.solvers.flow_shop.arrays import ChainArrays, build_arrays
from gapless.solvers.flow_shop.columns import columns_apply, contended_columns_us, least_columns
from gapless.solvers.flow_shop.draft import Row
from gapless.solvers.flow_shop.ways import Ways
from gapless.solvers.protocol import Deadline
from tests.workload_instances import workload_problem

from .cutting import every_cut, networks


def column_makespan(rows: tuple[Row, ...]) -> int:
    jobs = [
        Job(
            tuple((k, k + 1, k) for k, t in enumerate(row) if t),
            tuple(filter(None, row)),
            ((0, 0),) * len(row),
        )
        for row in rows
    ]
    return max((run.end_us for run in play_columns(jobs, range(len(rows)), len(rows[0]), None)), default=0)


@pytest.mark.slow
@given(arrays=networks(runs=True), count=st.integers(1, 3))
def test_least_columns(arrays: ChainArrays, count: int) -> None:
    choices = [times for _, times in every_cut(arrays)]
    assume(len(choices) ** count < 1500 and columns_apply([Ways(arrays)], 10**6))
    least = min(map(column_makespan, product(choices, repeat=count)))
    ways = Ways(arrays)
    result = least_columns([ways], [0] * count, least + 5, Deadline(None))
    assert result.bound_us == least
    assert result.places is not None
    assert column_makespan(tuple(map(ways.times_us, result.places))) == least
    assert least_columns([ways], [0] * count, least, Deadline(None)).bound_us == least


@pytest.mark.parametrize("seed", range(6))
def test_no_columns_with_slowdown_are_below_their_bound(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tables: dict[str, list[list[int | None]]] = {
        name: rng.integers(1_000, 90_000, (3, 3)).tolist() for name in "ab"
    }
    workload = Workload(
        requests=(Request(name="r", network="a"),), order=RequestOrder.FIXED, execution=Execution.COLUMNS
    )
    slowdown = [[0, 400, 900], [100, 0, 300], [700, 200, 0]]
    problem = workload_problem(tables, ["a", "b"], slowdown=slowdown, high=("b",), workload=workload)
    networks = [Ways(build_arrays(chain)) for chain in shop_of(problem).chains]
    least = optima(problem, ("makespan",))
    assert least is not None
    assert 0 < contended_columns_us(shop_of(problem), networks, Deadline(None)) <= least[0]


def test_copies_out_are_left_alone() -> None:
    arrays = ChainArrays(
        cuts=np.arange(3), head=np.array([[0, 0, 0]]), tail=np.array([[0, 9, 2]]), last=np.full((1, 3), 2)
    )
    assert not columns_apply([Ways(arrays)], 100)


def test_no_time_leaves_a_bound() -> None:
    times = np.array([[0, 5, 11, 14, 20], [0, 7, 9, 17, 21]])
    arrays = ChainArrays(cuts=np.arange(5), head=-times, tail=times, last=np.full((2, 5), 4))
    result = least_columns([Ways(arrays)], [0, 0, 0], 10**6, Deadline(0))
    assert result.places is None
    assert 0 < result.bound_us <= 62
