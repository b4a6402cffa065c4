"""The parts of the native search on their own."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from gapless.formulations.chunking.tables import chain_of
from gapless.solvers.chunking.facts import Facts
from gapless.solvers.chunking.lattice import Lattice, group_units
from gapless.solvers.chunking.ranking import less, runs, smallest
from gapless.solvers.chunking.tables import Restrictions, Tables, TooLargeError, Window
from gapless.solvers.chunking.widening import NEVER, completion_totals, windowed_totals

from .random_problems import random_problem
from .test_large import chain_problem

NOBODY = (frozenset[int](),)


def test_smallest_columns_are_sorted_lexicographically() -> None:
    rows = np.random.default_rng(1).integers(0, 4, (4, 500))
    columns = sorted(map(tuple, rows.T.tolist()))
    assert list(map(tuple, rows[:, smallest(rows, 90)].T.tolist())) == columns[:90]


def test_less_is_lexicographic() -> None:
    rows = np.random.default_rng(2).integers(0, 3, (3, 100))
    limit = np.array([1, 2, 1])
    assert less(rows, limit).tolist() == [tuple(column) < (1, 2, 1) for column in rows.T.tolist()]


def test_runs() -> None:
    owner, member = runs(np.array([5, 0, 9]), np.array([2, 0, 3]))
    assert owner.tolist() == [0, 0, 2, 2, 2]
    assert member.tolist() == [5, 6, 9, 10, 11]


@pytest.mark.parametrize("seed", range(20))
def test_arcs_are_exactly_the_chunks_of_a_window(seed: int) -> None:
    chain = chain_of(random_problem(seed, layers=8, units=3))
    tables = Tables(chain, Restrictions(), weigh_memory=True)
    window = Window(low=5, high=60)
    arcs = tables.arcs(window, 10_000)
    start = np.searchsorted(arcs.first, np.arange(len(arcs)), side="right") - 1
    found = {(chain.cuts[i], chain.cuts[j], u) for i, j, u in zip(start, arcs.stop, arcs.unit, strict=True)}
    expected = {
        (i, j, u)
        for i in chain.cuts
        for j in chain.cuts
        for u in range(chain.unit_count)
        if i < j and chain.runs(i, j, u) and chain.fits(i, j, u) and 5 <= chain.busy_us(i, j, u) <= 60
    }
    assert found == expected
    if len(arcs) > 1:
        with pytest.raises(TooLargeError):
            tables.arcs(window, len(arcs) - 1)


def test_identical_units_share_a_class_and_similar_ones_do_when_needed() -> None:
    assert group_units(["x", "y", "x"], [5, 9, 5], 100) == (0, 1, 0)
    assert group_units(["a", "b", "c"], [100, 101, 900], 6) == (0, 0, 1)
    assert len(set(group_units(list(range(64)), list(range(1, 65)), 1))) == 1


def test_lattice_counts_units_of_a_class() -> None:
    lattice = Lattice((0, 1, 0), NOBODY * 3)
    assert lattice.size == 6
    assert not lattice.exact
    point = 0
    for unit in (0, 1, 2):
        point = int(lattice.after[point, unit])
    assert lattice.used_low[:, point].all()
    assert (lattice.after[point] == lattice.size).all()


def test_lattice_knows_conflicts() -> None:
    lattice = Lattice((0, 1), (frozenset({1}), frozenset({0})))
    assert lattice.exact
    assert lattice.after[int(lattice.after[0, 0]), 1] == lattice.size


@pytest.mark.parametrize("largest", [False, True])
def test_totals_with_and_without_a_list_of_chunks_agree(largest: bool) -> None:
    draw = np.random.default_rng(3)
    chain = chain_of(chain_problem(draw.integers(1, 50, (9, 4)).tolist()))
    tables = Tables(chain, Restrictions(), weigh_memory=False)
    lattice = Lattice(range(4), NOBODY * 4)
    arcs = tables.arcs(Window(high=tables.most_busy), 100_000)
    one = completion_totals(tables, lattice, largest=largest)
    two = windowed_totals(arcs, tables.last, lattice, largest=largest)
    there = abs(one) < NEVER // 2
    assert (one == two)[there].all()
    assert (abs(two) < NEVER // 2).tolist() == there.tolist()


def test_reach_is_the_least_period_without_transfers() -> None:
    draw = np.random.default_rng(4)
    chain = chain_of(chain_problem(draw.integers(1, 50, (9, 3)).tolist()))
    tables = Tables(chain, Restrictions(), weigh_memory=False)
    lattice = Lattice(range(3), NOBODY * 3)
    feasible = [int(lattice.reach(tables.reach_back(high))[0]) == 0 for high in range(1, 300)]
    assert all(later or not earlier for earlier, later in pairwise(feasible))
    orders = [(a, b, c) for a in range(3) for b in range(3) for c in range(3) if len({a, b, c}) == 3]
    best = min(
        max(
            chain.busy_us(low, high, unit) if high > low else 0
            for low, high, unit in zip((0, i, j), (i, j, 9), order, strict=True)
        )
        for i in range(10)
        for j in range(i, 10)
        for order in orders
    )
    assert feasible.index(True) + 1 == best


def test_facts_from_rules() -> None:
    problem = chain_problem([[5, 5]] * 4)
    view = problem.view
    pinned = Facts(chain_of(problem), [view.on(1, "u0") & ~view.cut_after(2)])
    assert pinned.restrictions.blocked == {(1, 1)}
    assert pinned.restrictions.uncut == {3}
    assert not pinned.open
    capped = Facts(chain_of(problem), [view.busy_us("u1") * 2 <= 15])
    assert capped.restrictions.most_busy == {1: 7}
    assert Facts(chain_of(problem), [view.on(0, "u0") & view.on(0, "u1")]).contradictory
    caps = dict(Facts(chain_of(problem), [3 * view.gapness_us() <= view.period_us()]).plan_caps(9, 12))
    assert {str(term): value for term, value in caps.items()} == {"gapness": 4, "period": 12}
