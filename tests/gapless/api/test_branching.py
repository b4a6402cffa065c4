"""How much of an order the graph of a network leaves open."""

from __future__ import annotations

import gapless
from tests.branch_instances import orders_of, random_network


def test_a_chain_has_one_order() -> None:
    found = gapless.graphs.branching(gapless.load_problem("pixel7a/alexnet-sparse"))
    assert found.is_chain
    assert (found.width, found.branches, found.longest_branch, found.down_sets) == (1, 0, 0, 10)


def test_a_network_without_tensors_is_a_chain() -> None:
    found = gapless.graphs.branching(gapless.table_problem({"a": [1], "b": [2]}, ["cpu"]))
    assert found.is_chain
    assert found.down_sets == 3


def test_two_branches_of_two_layers_between_a_stem_and_a_head() -> None:
    edges = [("s", "a1"), ("a1", "a2"), ("s", "b1"), ("b1", "b2"), ("a2", "h"), ("b2", "h"), ("s", "h")]
    layers = ("s", "a1", "a2", "b1", "b2", "h")
    problem = gapless.graphs.layer_graph({name: [1] for name in layers}, edges, ["cpu"])
    found = gapless.graphs.branching(problem)
    assert (found.width, found.branches, found.longest_branch) == (2, 2, 2)
    assert found.down_sets == 1 + 3 * 3 + 1  # nothing; the stem and 0 to 2 layers of each branch; everything
    assert gapless.graphs.branching(problem, count_to=10).down_sets is None
    assert gapless.graphs.branching(problem, count_to=11).down_sets == 11


def test_down_sets_are_what_lies_before_the_cuts_of_all_orders() -> None:
    for seed in range(10):
        network = random_network(seed)
        before = {frozenset(order[:cut]) for order in orders_of(network) for cut in range(len(order) + 1)}
        assert gapless.graphs.branching(network).down_sets == len(before)
