"""The bound that knows slowdown: its condition in exact integers, and what it is on small workloads."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pytest

from benchmarks.flow_bound import TERMS, optima
from benchmarks.workload_instances import crowded_workload, random_workload, small_workload
from gapless.formulations.flow_shop.rules import keep_on
from gapless.formulations.flow_shop.tables import FlowShop, shop_of
from gapless.formulations.losses import MOST_LOSS_PERMILLE
from gapless.formulations.problem import Problem
from gapless.formulations.workload import Execution, Request, RequestOrder, Workload
from gapless.solvers import contention
from gapless.solvers.contention import PRICE_SCALE
from gapless.solvers.flow_shop.arrays import build_arrays
from gapless.solvers.flow_shop.bounds import price_bound
from gapless.solvers.flow_shop.contention_bound import ContentionBound, contention_bound, kinds_of
from gapless.solvers.flow_shop.search import JointSearch, guided_drafts, objective_bound
from gapless.solvers.flow_shop.ways import Ways
from gapless.solvers.protocol import NEVER, Deadline
from tests.workload_instances import workload_problem


def bound_of(problem: Problem, deadline: Deadline | None = None) -> ContentionBound:
    networks = [Ways(build_arrays(chain)) for chain in shop_of(problem).chains]
    return contention_bound(shop_of(problem), kinds_of(problem, networks), deadline or Deadline(None))


def dearest(shop: FlowShop, bound: ContentionBound) -> int:
    """Return what the dearest set of pairs is worth, one set after the other, in thousandths."""
    worst, numbers = 0, range(len(bound.kinds))
    for members in product((None, *numbers), repeat=shop.unit_count):
        pairs = [(unit, number) for unit, number in enumerate(members) if number is not None]
        often = Counter(number for _, number in pairs)
        if all(often[number] <= bound.kinds[number].count for number in often):
            worst = max(worst, sum(_worth(shop, bound, pair, pairs) for pair in pairs))
    return worst


def _worth(
    shop: FlowShop, bound: ContentionBound, pair: tuple[int, int], pairs: list[tuple[int, int]]
) -> int:
    unit, number = pair
    losses = shop.losses.least_permille[bound.kinds[number].chain][unit]
    lost = sum(losses[bound.kinds[other].chain][beside] for beside, other in pairs if beside != unit)
    return int(bound.prices[number, unit]) * (1000 - min(lost, MOST_LOSS_PERMILLE))


@pytest.mark.parametrize("seed", range(40))
def test_no_optimum_is_below(seed: int) -> None:
    problem = small_workload(seed)
    least = optima(problem, TERMS)
    for term, value in zip(TERMS, least or (), strict=False):
        assert objective_bound(problem.with_objective(term)) <= value


@pytest.mark.parametrize("seed", range(20))
def test_no_optimum_under_the_cap_is_below(seed: int) -> None:
    problem = crowded_workload(seed)
    least = optima(problem, TERMS)
    assert least is not None
    for term, value in zip(TERMS, least, strict=True):
        assert objective_bound(problem.with_objective(term)) <= value
    assert dearest(shop_of(problem), bound_of(problem)) <= 1000 * PRICE_SCALE


@pytest.mark.parametrize("execution", Execution)
def test_the_bound_knows_what_the_cap_leaves(execution: Execution) -> None:
    """The last network runs beside two that it would lose all its speed to, and keeps a quarter of it."""
    tables: dict[str, list[list[int | None]]] = {
        "c": [[None, None, 100_000]],
        "b": [[None, 400_000, None]],
        "a": [[400_000, None, None]],
    }
    slowdown = [[0, 0, 0], [0, 0, 0], [2500, 2500, 0]]
    ordered = Workload(
        requests=(Request(name="r", network="a"),), order=RequestOrder.FIXED, execution=execution
    )
    problem = workload_problem(tables, ["c", "b", "a"], slowdown=slowdown, workload=ordered)
    least = optima(problem, ("makespan",))
    assert least is not None
    assert least[0] == pytest.approx(400_000, abs=10)
    assert 399_900 <= objective_bound(problem) <= least[0]


@pytest.mark.slow
def test_sets_that_are_searched_for_keep_to_the_cap(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(4):
        problem = crowded_workload(seed)
        with monkeypatch.context() as patched:
            patched.setattr(contention, "_MOST_SETS", 1)
            patched.setattr(contention, "_FRONT", 4)
            assert dearest(shop_of(problem), bound_of(problem)) <= 1000 * PRICE_SCALE


@pytest.mark.parametrize("limit_s", [None, 0.0])
def test_the_prices_keep_to_the_condition_exactly(limit_s: float | None) -> None:
    for seed in range(4):
        problem = random_workload(5, 3, seed, slowdown=True)
        bound = bound_of(problem, Deadline(limit_s))
        assert 0 < dearest(shop_of(problem), bound) <= 1000 * PRICE_SCALE
        assert bound.bound_us > 0


@pytest.mark.slow
def test_sets_that_are_searched_for_give_the_same_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = random_workload(6, 4, 1, slowdown=True)
    listed = bound_of(problem)
    monkeypatch.setattr(contention, "_MOST_SETS", 1)
    assert bound_of(problem).bound_us == pytest.approx(listed.bound_us, rel=1e-4)
    monkeypatch.setattr(contention, "_FRONT", 20)
    few = bound_of(problem)
    assert dearest(shop_of(problem), few) <= 1000 * PRICE_SCALE
    assert few.bound_us <= listed.bound_us * 1.0001


@pytest.mark.parametrize("seed", range(4))
def test_without_slowdown_it_is_no_less_than_the_price_bound(seed: int) -> None:
    problem = random_workload(20, 4, seed)
    networks = [Ways(build_arrays(chain)) for chain in shop_of(problem).chains]
    counts = Counter(shop_of(problem).chain_of)
    prices = price_bound(networks, [counts[index] for index in range(len(networks))])
    assert bound_of(problem).bound_us >= prices.bound_us


def test_one_request_alone_has_its_least_serial_time() -> None:
    problem = workload_problem({"a": [[9, 5], [2, 8], [7, 3]]}, ["a"], slowdown=[[0, 500], [500, 0]])
    assert bound_of(problem).bound_us == 14
    assert bound_of(problem).rounding_us == 0


def test_units_that_start_late_have_less_time() -> None:
    """The last layer runs on the second unit only, so it waits for the first one to be there."""
    rows: list[list[int | None]] = [[60, None], [None, 100]]
    problem = workload_problem({"a": rows}, ["a", "a", "a"])
    assert bound_of(problem).bound_us == 360


def test_rules_about_units_make_kinds() -> None:
    problem = random_workload(4, 3, 2)
    first = problem.with_rules(keep_on("r0", units=("cpu_b",)))
    networks = [Ways(build_arrays(chain)) for chain in shop_of(problem).chains]
    kinds = kinds_of(first, networks)
    own = next(kind for kind in kinds if 0 in kind.requests)
    assert own.requests == (0,)
    assert own.ways.units == (1,)
    assert objective_bound(first) >= objective_bound(problem)
    nowhere = problem.with_rules(keep_on("r0", units=()))
    assert JointSearch(nowhere).impossible


def test_the_program_says_a_good_schedule() -> None:
    problem = random_workload(60, 4, 3, slowdown=True)
    context, bounds = JointSearch(problem).contexts[0]
    draft = next(guided_drafts(context, bounds.contention, NEVER))
    assert sorted(draft.order) == list(range(60))
    ends = [context.row(request, places) for request, places in enumerate(draft.places)]
    assert max(np.array(ends).sum(axis=0)) <= 1.1 * bounds.contention.bound_us
