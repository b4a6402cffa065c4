"""The errata of Hetero2Pipe's slicing, bubbles and counts: the printed algorithm fails, ours does not."""

from __future__ import annotations

from itertools import combinations, pairwise, product
from math import comb, prod

import numpy as np
import pytest

from gapless.formulations.flow_shop.space import count_schedules, pipelines, split_points
from gapless.formulations.flow_shop.tables import Schedule, shop_of
from gapless.formulations.flow_shop.values import WorkloadValues
from gapless.formulations.workload import Execution, Request, Workload
from gapless.solvers.flow_shop.columns import is_monotone, least_bottleneck
from gapless.solvers.session import solve
from tests.workload_instances import workload_problem

from . import printed
from .tables import arrays_of

COLUMNS = Workload(requests=(Request(name="any", network="any"),), execution=Execution.COLUMNS)
SPEEDS = {"equal": (1, 1, 1, 1), "fast last": (8, 5, 3, 1), "fast first": (1, 10, 10, 10)}


def least(times: printed.Times, copy_in: printed.Times | None = None) -> int:
    """Return our least bottleneck."""
    found = least_bottleneck(arrays_of(times, copy_in))
    assert found is not None
    return found[0]


def draw(kind: str, count: int = 300) -> list[list[list[int]]]:
    """Return random networks of up to 8 layers on 2 to 4 processors of known speeds, or of any."""
    rng, found = np.random.default_rng(7), []
    for _ in range(count):
        units = int(rng.integers(2, 5))
        layers = int(rng.integers(units + 1, 9))
        if kind == "any":
            found.append(rng.integers(1, 10, (units, layers)).tolist())
        else:
            base = rng.integers(1, 10, layers)
            found.append([(base * speed).tolist() for speed in SPEEDS[kind][:units]])
    return found


def share(flags: list[bool]) -> float:
    """Return the share of true ones."""
    return sum(flags) / len(flags)


def test_1_and_2_the_definitions_of_slices_disagree() -> None:
    points = [1, 3, 4]  # three "splits" of five layers for three slices; two can be chosen
    assert printed.definition_1(points) == [[0], [1, 2], [3, 4]]
    assert printed.definition_2(points) == [[1, 2], [3]]  # neither layer 0 nor the last slice


def test_3_equation_4_does_not_see_the_last_slice() -> None:
    times = [[4, 4, 4], [9, 9, 9]]
    unseen = min(([0, c, 3] for c in range(4)), key=lambda cuts: printed.equation_4(times, cuts))
    assert printed.equation_4(times, unseen) == 0
    assert printed.slice_time(times, 1, 0, 2) == 27 > least(times) == 9


def test_4_the_boundary_condition_is_one_processor_for_everything() -> None:
    times = [[2, 2, 2], [2, 2, 2]]
    assert printed.boundary_condition(times, 2) == 6 > least(times) == 4


def test_5_the_recurrence_never_defines_the_answer() -> None:
    n, units = 8, 3
    assert all(n - 1 not in printed.prefixes(n, k) for k in range(2, units + 1))


def test_7_no_cut_is_tried_behind_the_first_layer() -> None:
    times = [[5, 1, 4], [5, 1, 1]]
    assert printed.algorithm_1(times) == 6
    assert least(times) == 5
    wrong = {kind: share([printed.algorithm_1(t) != least(t) for t in draw(kind)]) for kind in SPEEDS}
    assert wrong["equal"] > 0.1  # the study: 18 %
    assert wrong["fast last"] > 0.4  # 61 %
    assert wrong["fast first"] < 0.05  # 0.1 %
    assert share([printed.algorithm_1(t) != least(t) for t in draw("any")]) > 0.2  # 34 %
    assert max(printed.algorithm_1(t) / least(t) for t in draw("fast last")) > 3


def test_7_without_empty_slices_it_is_wrong_as_well() -> None:
    wrong = [
        printed.algorithm_1(t) != printed.least_without_empty_chunks(t)
        for kind in SPEEDS
        for t in draw(kind, 100)
    ]
    assert share(wrong) > 0.2


def test_8_another_start_of_the_pointer_does_not_help() -> None:
    wrong = share([printed.algorithm_1(t, first=1) != least(t) for t in draw("fast last")])
    assert 0.02 < wrong < 0.6


@pytest.mark.slow
def test_10_backtracking_cuts_at_the_wrong_layers() -> None:
    ones = [[1, 1, 1], [1, 1, 1]]
    assert printed.backtrack(ones, printed.algorithm_1(ones)) == [1, 2]  # two cuts for two processors
    for kind in (*SPEEDS, "any"):
        wrong = {
            beyond: share(
                [not _optimal(t, printed.backtrack(t, least(t), beyond=beyond)) for t in draw(kind)]
            )
            for beyond in (False, True)
        }
        assert wrong[False] > 0.8  # the study: 89 to 94 %
        assert 0.02 < wrong[True] <= wrong[False]


def _optimal(times: printed.Times, points: list[int]) -> bool:
    if len(points) != len(times) - 1:
        return False
    ends = (0, *points, len(times[0]))
    return max(printed.slice_time(times, k, a, b - 1) for k, (a, b) in enumerate(pairwise(ends))) == least(
        times
    )


def test_11_copies_break_the_pointer() -> None:
    times, copy_in = [[3, 1, 3], [3, 1, 1]], [[0] * 4, [0, 7, 6, 0]]
    assert printed.pointer(times, copy_in) == 7
    assert least(times, copy_in) == 5
    assert not is_monotone(arrays_of(times, copy_in))


def test_11_a_ban_on_empty_chunks_breaks_the_pointer() -> None:
    times = [[1, 1, 1], [100, 100, 1]]
    assert printed.least_without_empty_chunks(times, 2) == 100
    assert printed.least_without_empty_chunks(times, 3) == 2  # more layers, and less
    times = [[4, 5, 3, 2, 2, 4], [1, 1, 30, 1, 30, 30], [7, 8, 5, 2, 7, 6]]
    assert printed.pointer_without_empty_chunks(times) == 20
    assert printed.least_without_empty_chunks(times) == 13
    assert least(times) <= 13


def test_13_plans_without_bubbles_can_take_many_times_longer() -> None:
    problem = workload_problem({"net": [[20, 11, 2]]}, ["net"], workload=COLUMNS)
    plans = {
        unit: WorkloadValues(shop_of(problem), Schedule((0,), ((0,) * (unit + 1) + (1,) * (3 - unit),)))
        for unit in range(3)
    }
    assert [(p.bubbles_us, p.makespan_us) for p in plans.values()] == [(0, 20), (0, 11), (0, 2)]
    assert solve(problem, "exhaustive").objective == 2


def test_13_the_least_bubbles_are_not_the_least_makespan() -> None:
    tables: dict[str, list[list[int | None]]] = {"a": [[3, 9], [3, 9]], "b": [[4, 30], [5, 2]]}
    problem = workload_problem(tables, ["a", "b", "a"], workload=COLUMNS, objective="bubbles,makespan")
    bubbles = solve(problem, "exhaustive").values
    fastest = solve(problem.with_objective("makespan,bubbles"), "exhaustive").values
    assert bubbles is not None
    assert fastest is not None
    assert bubbles[0] < fastest[1]
    assert bubbles[1] > 1.5 * fastest[0]


def test_15_the_first_chunk_runs_alone_whatever_equation_7_says() -> None:
    slowdown = [[0, 300], [300, 0]]
    problem = workload_problem({"n": [[400, 400]] * 2}, ["n"] * 3, slowdown=slowdown, workload=COLUMNS)
    values = WorkloadValues(shop_of(problem), Schedule((0, 1, 2), ((0, 1, 2),) * 3))
    first, *later = values.runs
    assert first.end_us - first.start_us == first.work_us
    assert any(run.end_us - run.start_us > run.work_us for run in later)


def test_28_the_printed_limits_leave_nothing_to_sum() -> None:
    assert sum(printed.equation_12(8, 4)) == 9
    assert pipelines(4, 4) == 449


def test_28_pipelines_of_one_cluster_are_counted_several_times() -> None:
    breaks = [frozenset(chosen) for size in range(4) for chosen in combinations(range(1, 4), size)]
    clusters = [None, *breaks]  # not used, or split behind some of its first three cores
    distinct = set(product(clusters, clusters, (False, True), (False, True)))
    distinct.remove((None, None, False, False))
    assert len(distinct) == 323 < pipelines(4, 4)


def test_29_the_published_split_points_are_a_product_of_sums() -> None:
    ways = [comb(27, depth - 1) for depth in range(2, 11)]
    assert pipelines(4, 4) * sum(ways) == 3_678_442_827  # "over 3.6B"
    assert split_points(28, 4, 4) == 299_198_823
    assert split_points(28, 4, 4) - sum(ways) == pytest.approx(2.91e8, rel=1e-3)  # without any "+ 1"


def test_30_the_tail_has_more_plans_than_processors() -> None:
    problem = workload_problem({"net": [[1, 1, 1, 1]] * 28}, ["net"] * 3)
    plans = count_schedules(shop_of(problem)) / prod(range(1, 4))
    assert plans == comb(28 + 3, 3) ** 3 > 4
