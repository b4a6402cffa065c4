"""The best order of the layers of a chain: against all orders of small networks."""

from __future__ import annotations

from dataclasses import replace

import pytest

import gapless
from gapless.formulations.reordering import reordered
from gapless.solvers.best_order import best_order
from gapless.solvers.protocol import SolveOptions
from gapless.solvers.session import solve
from tests.branch_instances import chain_problem, orders_of, random_network


def period(problem: gapless.Problem) -> int:
    found = solve(problem, "native", SolveOptions(), explain=False).objective
    assert found is not None
    return found


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_small_networks_have_the_best_of_all_orders(seed: int) -> None:
    problem = chain_problem(random_network(seed, layers=6), seed)
    least = min(period(reordered(problem, order)) for order in orders_of(problem.network))
    order = best_order(problem, gapless.graphs.with_parts(problem), SolveOptions())
    assert period(reordered(problem, order)) == least


def test_the_given_order_stays_where_no_other_is_better() -> None:
    edges = [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")]
    graph = gapless.graphs.layer_graph({name: [5, 5] for name in "abcd"}, edges, ["x", "y"])
    problem = replace(graph, data=None)
    assert best_order(problem, graph, SolveOptions()) == (0, 1, 2, 3)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_it_is_never_worse_than_the_given_order_and_repeats(seed: int) -> None:
    problem = chain_problem(random_network(100 + seed, layers=14), seed)
    parts = gapless.graphs.with_parts(problem)
    orders = {best_order(problem, parts, SolveOptions(seed=7)) for _ in range(2)}
    (order,) = orders
    assert sorted(order) == [*range(14)]
    assert period(reordered(problem, order)) <= period(problem)
