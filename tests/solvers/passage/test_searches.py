"""What the native search for passages rests on: bounds, moves, sets of units, baselines."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest

import gapless
from gapless.formulations.chunking.tables import chain_of
from gapless.formulations.hardware import Platform, ProcessingUnit, UnitKind
from gapless.formulations.network import Tensor
from gapless.formulations.problem import Problem
from gapless.solvers.chunking.tables import Restrictions
from gapless.solvers.passage.baselines import fallback, providers
from gapless.solvers.passage.descent import Annealing
from gapless.solvers.passage.dominance import Dominance, _least, _staying
from gapless.solvers.passage.outlook import Exchange, Quantity, completions
from gapless.solvers.passage.prices import Paths, price
from gapless.solvers.passage.samples import passing, random_problem
from gapless.solvers.passage.sweep import Growth, path_rows
from gapless.solvers.passage.table import Table, build_table
from gapless.solvers.protocol import NEVER, SolveOptions, SolveStatus
from gapless.solvers.session import solve
from tests.solvers.chunking.random_problems import random_problem as any_problem


def copying(seed: int, layers: int = 6, units: int = 3) -> Problem:
    """Return a problem with copies."""
    problem = random_problem(layers, units, seed=seed)
    draw = random.Random(seed)
    rows = [
        tuple(tuple(draw.randrange(400) for _ in range(units)) for _ in range(layers + 1)) for _ in range(2)
    ]
    (costs,) = problem.costs.networks
    costs = replace(costs, transfer_in_us=rows[0], transfer_out_us=rows[1])
    return replace(problem, costs=replace(problem.costs, networks=(costs,))).with_objective("period")


def table_of(problem: Problem) -> Table:
    return build_table(chain_of(problem), Restrictions())


def loads_of(problem: Problem, units: tuple[int, ...]) -> list[int]:
    """Return the loads of a plan as the judge counts them."""
    numbers = problem.formulation.numbers(problem, table_of(problem).parts_of(units))
    busy = numbers.busy_us  # type: ignore[attr-defined]
    return [busy.get(unit, 0) for unit in range(len(problem.platform.units))]


@pytest.mark.parametrize("seed", range(4))
def test_paths_count_loads_as_the_judge_does(seed: int) -> None:
    problem = copying(seed)
    draw = random.Random(seed)
    paths = Paths(table_of(problem))
    for _ in range(30):
        units = tuple(draw.randrange(3) for _ in range(6))
        assert paths.loads(units) == loads_of(problem, units)


@pytest.mark.parametrize("seed", range(4))
def test_the_cheapest_path_and_the_completions_are_the_least_of_all_plans(seed: int) -> None:
    problem = copying(seed, layers=5)
    table, paths = table_of(problem), Paths(table_of(problem))
    every = list(product(range(3), repeat=5))
    for prices in ([1, 1, 1], [5, 1, 2], [0, 3, 1]):
        least = min(
            sum(w * load for w, load in zip(prices, loads_of(problem, u), strict=True)) for u in every
        )
        cost, units = paths.cheapest(prices)
        assert cost == least
        assert sum(w * load for w, load in zip(prices, paths.loads(units), strict=True)) == least
        assert completions(table, np.array([prices], dtype=np.float64))[0].min() == least


def test_prices_prove_no_more_than_the_least_period_and_as_much_as_any_others() -> None:
    problem = copying(3, layers=6)
    table = table_of(problem)
    found = price(table, NEVER)
    paths = Paths(table)
    proved = paths.cheapest(found.best)[0] / table.scale
    best = solve(problem, "exhaustive", SolveOptions(), explain=False).objective
    assert best is not None
    assert proved <= best
    others = [(a, b, 20 - a - b) for a in range(21) for b in range(21 - a)]
    assert max(paths.cheapest(prices)[0] / 20 for prices in others) <= 1.001 * proved


@pytest.mark.parametrize("seed", range(3))
def test_a_cap_on_the_period_bounds_hops_and_loads_of_all_plans_within_it(seed: int) -> None:
    problem = copying(seed, layers=5)
    table = table_of(problem)
    best = np.array(price(table, NEVER).best) / table.scale
    quantities = [
        Quantity(loads=(1.0,) * 3),
        Quantity(loads=(0.0,) * 3, hop=1.0),
        Quantity(loads=(0.0, -1.0, 0.0)),
    ]
    exchange = Exchange(table, best, quantities)
    every = list(product(range(3), repeat=5))
    loads = {units: loads_of(problem, units) for units in every}
    for place in (0, 2, 20):
        cap = sorted(max(found) for found in loads.values())[place]
        exchange.cap(cap)
        for first in range(3):
            begun = np.zeros((3, 1), dtype=np.int64)
            begun[first] = table.enter[0][first] + table.time[0][first]
            low = exchange.least(1, np.array([first]), begun, np.zeros(1, dtype=np.int64))[:, 0]
            for units, found in loads.items():
                if units[0] == first and max(found) <= cap:
                    borders = sum(a != b for a, b in pairwise(units))
                    assert (low <= [sum(found), borders, -found[1]]).all()


def test_a_bound_by_a_cap_that_is_tight_is_no_higher_than_the_plan_that_reaches_it() -> None:
    rows = {f"layer{index}": [4.0, 6.0] for index in range(5)}
    problem = gapless.with_passage(gapless.table_problem(rows, ["a", "b"], network="n"))
    exchange = Exchange(table_of(problem), np.array([1.0, 0.0]), [Quantity(loads=(1.0, 1.0))])
    exchange.cap(12_000)  # three layers on a, two on b: 24 ms in all, and no less
    low = exchange.least(1, np.array([0]), np.array([[4000], [0]]), np.zeros(1, dtype=np.int64))
    assert low[0, 0] == 24_000


@pytest.mark.parametrize("seed", range(4))
def test_annealing_knows_the_loads_that_its_moves_lead_to(seed: int) -> None:
    problem = copying(seed, layers=12)
    table, draw = table_of(problem), random.Random(seed)
    annealing, paths = Annealing(table, seed), Paths(table)
    units = [draw.randrange(3) for _ in range(12)]
    tried = 0
    while tried < 200:
        loads = paths.loads(units)
        window = annealing._window(units, loads)
        if window is not None:
            tried += 1
            begin, end, unit = window
            moved = annealing._moved(units, loads, begin, end, unit)
            units[begin:end] = [unit] * (end - begin)
            assert moved == paths.loads(units)
    found = annealing.near(units, paths.loads(units), 2000, NEVER)
    assert max(paths.loads(found)) < max(paths.loads(units))


def test_stairs_leave_what_no_other_column_can_replace() -> None:
    draw = np.random.default_rng(5)
    for size in (1, 40, 700):
        rows = draw.integers(0, 30, (3, size))
        order = draw.permutation(size)
        kept = _least(rows, order)
        for column in range(size):
            others = (rows <= rows[:, [column]]).all(axis=0)
            others &= (rows != rows[:, [column]]).any(axis=0) | (order < order[column])
            assert kept[column] == (not others.any())


@pytest.mark.parametrize("enough", [1, 3])
def test_labels_stay_unless_enough_before_them_are_no_worse(enough: int) -> None:
    draw = np.random.default_rng(enough)
    rows = draw.integers(0, 12, (4, 150))
    dominance = Dominance(enough=enough, monotone=True, sets=False, compared=1 << 20)
    kept = _staying(rows, dominance)
    for column in range(150):
        before = (rows[:, :column] <= rows[:, [column]]).all(axis=0).sum()
        assert kept[column] == (before < enough)


def test_labels_with_larger_loads_stay_where_the_next_piece_adds_fewer_bytes() -> None:
    """On v, layer 2 loads both units less than layer 1 does, but then layer 4 adds five bytes on u."""
    times_ms = ((2, None), (3, 10), (4, 9), (1, None), (1, None))
    problem = gapless.with_passage(gapless.table_problem(times_ms, ["u", "v"]))
    (network,), (u, v) = problem.networks, problem.platform.units
    tensors = (
        Tensor(name="kept", bytes=5, source=1, targets=(2,)),
        Tensor(name="output", bytes=5, source=4, targets=(5,)),
    )
    platform = replace(problem.platform, units=(replace(u, memory_bytes=7), v))
    problem = replace(problem, platform=platform, networks=(replace(network, tensors=tensors),))
    assert table_of(problem).working.tolist() == [0, 5, 5, 0, 5]
    for objective in ("period", "period,latency"):
        for backend in ("exhaustive", "native"):
            found = solve(problem.with_objective(objective), backend, explain=False)
            assert found.status is SolveStatus.OPTIMAL
            assert str(found.plan) == "0-0 u | 1-1 v | 2-4 u"
            assert found.objective == 10_000


def test_labels_with_one_unit_running_are_ranked_as_plans_that_go_on_with_it() -> None:
    problem = random_problem(7, 3)
    table = table_of(problem)
    growth = Growth(table, memory=False, paths=True)
    labels = growth.start()
    for at in range(1, 5):
        labels = growth.grow(at, labels)
    for unit in range(3):
        columns = np.flatnonzero(labels.unit == unit)
        ranked = labels.path[:, columns[np.argsort(labels.order[columns])]].T.tolist()
        whole = [table.parts_of([*units, unit, unit]) for units in ranked]
        keys = [problem.formulation.key(problem, parts) for parts in whole]
        assert keys == sorted(keys)
        assert len(set(labels.order[columns].tolist())) == len(columns) == 3**4


def test_path_rows_order_plans_as_the_canonical_key_does() -> None:
    problem = random_problem(5, 3)
    table = table_of(problem)
    plans = list(product(range(3), repeat=5))
    by_key = sorted(plans, key=lambda units: problem.formulation.key(problem, table.parts_of(units)))
    rows = path_rows(np.array(plans).T, 3)
    assert [plans[column] for column in np.lexsort(rows[::-1])] == by_key


def test_many_units_of_which_two_exclude_each_other_are_two_tables() -> None:
    """Not all sets of them are walked: with forty units that would never end."""
    units = tuple(ProcessingUnit(name=f"u{unit}", cores=(max(unit, 1),)) for unit in range(40))
    times = {f"l{layer}": [1.0] * 40 for layer in range(3)}
    problem = gapless.table_problem(times, units)
    tables = table_of(gapless.with_passage(problem)).compatible()
    assert [table.able.all(axis=0).sum() for table in tables] == [39, 39]
    assert [bool(table.able[0, 0]) for table in tables] == [True, False]


def test_units_that_exclude_each_other_are_not_both_used() -> None:
    """Of two pairs that share cores one unit each; the search per set of units finds what walking finds."""
    problem = random_problem(7, 4, seed=2)
    cores = ((0,), (0, 1), (2,), (2, 3))
    units = tuple(replace(u, cores=own) for u, own in zip(problem.platform.units, cores, strict=True))
    problem = replace(problem, platform=replace(problem.platform, units=units))
    known = solve(problem, "exhaustive", SolveOptions(top=6), explain=False)
    found = solve(problem, "native", SolveOptions(top=6), explain=False)
    assert [c.plan for c in found.candidates] == [c.plan for c in known.candidates]
    assert found.status is SolveStatus.OPTIMAL


def test_fallback_takes_the_accelerator_then_the_fastest_cpu() -> None:
    kinds = (UnitKind.CPU, UnitKind.CPU, UnitKind.GPU, UnitKind.NPU)
    problem = random_problem(4, 4, seed=1)
    units = tuple(replace(u, kind=kind) for u, kind in zip(problem.platform.units, kinds, strict=True))
    platform = replace(problem.platform, units=units)
    (costs,) = problem.costs.networks
    rows = ((90, 10, 1, 2), (90, 10, 1, None), (90, 10, 1, None), (90, 10, 1, 2))
    costs = replace(costs, layer_us=rows)
    table = replace(problem.costs, networks=(costs,))
    problem = replace(problem, platform=platform, costs=table)
    chain = chain_of(problem)
    assert providers(chain, platform) == [3, 1, 0, 2]
    assert fallback(chain, platform) == ((0, 1, 3), (1, 3, 1), (3, 4, 3))
    # The border before layer 1 is not legal and moves to the start: the CPU takes over from the first layer.
    network = replace(problem.network, forbidden_cuts=(1,))
    moved = chain_of(replace(problem, networks=(network,)))
    assert fallback(moved, platform) == ((0, 3, 1), (3, 4, 3))
    # The border before layer 3 moves behind the only layer of the last chunk, which is gone then.
    network = replace(problem.network, forbidden_cuts=(2, 3))
    assert fallback(chain_of(replace(problem, networks=(network,))), platform) == ((0, 1, 3), (1, 4, 1))


def test_baselines_say_nothing_where_their_plan_is_not_valid() -> None:
    problem = passing(any_problem(11, layers=5, units=3))
    for name in ("fallback", "one-unit"):
        found = solve(replace(problem, limits=type(problem.limits)(), rules=()), name, explain=False)
        assert found.status in (SolveStatus.FEASIBLE, SolveStatus.NO_SOLUTION)
        assert found.bound is None


def test_a_platform_of_one_unit() -> None:
    problem = passing(any_problem(3, layers=4, units=1))
    problem = replace(problem, platform=Platform(name="p", units=(ProcessingUnit(name="u0"),)))
    assert (
        solve(problem, "native", explain=False).values == solve(problem, "exhaustive", explain=False).values
    )
