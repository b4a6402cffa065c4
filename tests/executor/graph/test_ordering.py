from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gapless.executor.graph.grouping import order_in_runs, thrifty_order
from gapless.formulations.network import Layer, Network, Tensor


def tensor(name: str, size: int, source: int, *targets: int) -> Tensor:
    return Tensor(name=name, bytes=size, source=source, targets=targets)


def held(count: int, tensors: list[Tensor], order: tuple[int, ...]) -> int:
    """Return the bytes alive, summed over all cuts, of nodes in a given order."""
    place = {node: position for position, node in enumerate(order)} | {-1: -1, count: count}
    moved = [
        tensor(t.name, t.bytes, place[t.source], *sorted(place[target] for target in t.targets))
        for t in tensors
    ]
    layers = tuple(Layer(name=str(index)) for index in range(count))
    return sum(Network(name="n", layers=layers, tensors=tuple(moved)).boundary_bytes)


def test_branches_are_finished_one_after_the_other() -> None:
    # Two branches, interleaved in the file: each grows, then shrinks.
    tensors = [
        tensor("x", 1, -1, 0, 1),
        tensor("a", 100, 0, 2),
        tensor("b", 100, 1, 3),
        tensor("c", 1, 2, 4),
        tensor("d", 1, 3, 4),
        tensor("y", 1, 4, 5),
    ]
    order = thrifty_order(5, tensors)
    assert order == (0, 2, 1, 3, 4)
    assert held(5, tensors, order) < held(5, tensors, (0, 1, 2, 3, 4))


def test_equal_orders_stay_as_they_are() -> None:
    tensors = [
        tensor("x", 8, -1, 0, 1, 2),
        *(tensor(str(i), 8, i, 3) for i in range(3)),
        tensor("y", 8, 3, 4),
    ]
    assert thrifty_order(4, tensors) == (0, 1, 2, 3)


def test_a_greedy_order_that_is_worse_is_not_taken() -> None:
    # Greed takes node 1 first (it makes less), and keeps the large input alive for longer.
    tensors = [
        tensor("large", 90, -1, 0),
        tensor("small", 10, -1, 1),
        tensor("a", 95, 0, 2),
        tensor("b", 1, 2, 4),
        tensor("c", 11, 1, 3),
        tensor("d", 11, 3, 4),
        tensor("y", 1, 4, 5),
    ]
    order = thrifty_order(5, tensors)
    assert held(5, tensors, order) <= held(5, tensors, (0, 1, 2, 3, 4))


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, list[Tensor]]:
    count = draw(st.integers(1, 12))
    tensors = []
    for source in range(-1, count):
        later = st.integers(source + 1, count)
        targets = draw(st.sets(later, min_size=1, max_size=4))
        tensors.append(tensor(str(source), draw(st.integers(0, 50)), source, *sorted(targets)))
    return count, tensors


@pytest.mark.slow
@settings(max_examples=100)
@given(graphs())
def test_orders_are_topological_and_never_worse(graph: tuple[int, list[Tensor]]) -> None:
    count, tensors = graph
    order = thrifty_order(count, tensors)
    assert sorted(order) == list(range(count))
    place = {node: position for position, node in enumerate(order)} | {-1: -1, count: count}
    assert all(place[t.source] < place[target] for t in tensors for target in t.targets)
    assert held(count, tensors, order) <= held(count, tensors, tuple(range(count)))
    assert thrifty_order(count, tensors) == order


def test_thousands_of_nodes_do_not_hang() -> None:
    count = 5000
    wide = [tensor("x", 4, -1, *range(count - 1))]
    wide += [tensor(str(i), 4, i, count - 1) for i in range(count - 1)]
    wide += [tensor("y", 4, count - 1, count)]
    start = time.monotonic()
    assert thrifty_order(count, wide) == tuple(range(count))
    assert time.monotonic() - start < 60


def test_nodes_of_one_class_stand_together_whatever_the_order_in_the_file() -> None:
    # Two branches of two nodes each, interleaved in the file, then one that needs both.
    tensors = [tensor("a", 1, 0, 2), tensor("b", 1, 1, 3), tensor("c", 1, 2, 4), tensor("d", 1, 3, 4)]
    assert order_in_runs(["here", "there", "here", "there", "here"], tensors) == (0, 2, 1, 3, 4)
    assert order_in_runs(["here"] * 5, tensors) == (0, 1, 2, 3, 4)


def test_a_run_ends_where_dependencies_need_another_class() -> None:
    chained = [tensor(str(node), 1, node, node + 1) for node in range(4)]
    assert order_in_runs(["here", "there", "here", "here", "there"], chained) == (0, 1, 2, 3, 4)
