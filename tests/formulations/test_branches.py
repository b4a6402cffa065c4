"""Branches of a network: its width against all sets of layers, and its unbranched runs."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest

from gapless.formulations.branches import later_runs, runs_of, width_of
from gapless.formulations.network import Network
from tests.branch_instances import random_network


def after_of(network: Network) -> list[set[int]]:
    """Return for each layer all layers that need it, directly or not."""
    count = len(network.layers)
    found: list[set[int]] = [set() for _ in range(count)]
    for layer in reversed(range(count)):
        for tensor in network.tensors:
            if tensor.source == layer:
                for target in tensor.targets:
                    if target < count:
                        found[layer] |= {target} | found[target]
    return found


def widest(network: Network) -> int:
    after = after_of(network)
    layers = range(len(network.layers))
    return max(
        size
        for size in range(1, len(layers) + 1)
        for some in combinations(layers, size)
        if not any(b in after[a] for a, b in combinations(some, 2))
    )


@pytest.mark.parametrize("seed", range(60))
def test_width_is_that_of_the_widest_set(seed: int) -> None:
    network = random_network(seed, layers=4 + seed % 6)
    runs = runs_of(network)
    assert sorted(layer for run in runs for layer in run) == [*range(len(network.layers))]
    assert width_of(later_runs(network, runs)) == widest(network)


@pytest.mark.parametrize("seed", range(20))
def test_later_runs_are_those_that_need_them(seed: int) -> None:
    network = random_network(seed, layers=8)
    after, runs = after_of(network), runs_of(network)
    for number, bits in enumerate(later_runs(network, runs)):
        for other, run in enumerate(runs):
            assert (bits >> other & 1) == (other != number and run[0] in after[runs[number][0]])


def test_a_run_ends_where_a_branch_begins_or_ends() -> None:
    network = random_network(0, layers=12)
    after = after_of(network)
    for run in runs_of(network):
        for before, layer in pairwise(run):
            assert after[before] == {layer} | after[layer]


def test_large_graphs_do_not_take_long_paths_by_recursion() -> None:
    # A ladder of 3,000 nodes in which the first node has to hand its choice on and on.
    count = 3000
    later = [(1 << count) - (1 << node + 1) for node in range(count)]
    assert width_of(later) == 1
