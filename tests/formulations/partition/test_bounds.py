"""Bounds on parts: no valid plan is better, and none holds more than they say."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, combinations

import pytest

from gapless.formulations.hardware import ProcessingUnit
from gapless.formulations.judge import examined
from gapless.formulations.partition.bounds import PartBounds, bounds_of
from gapless.formulations.partition.separators import least_cut, stretches_of
from gapless.formulations.partition.tables import chain_of, graph_of
from gapless.formulations.partitions import GraphNode, graph_problem
from gapless.formulations.problem import Problem
from gapless.solvers.partition.samples import random_graph
from gapless.solvers.session import solve

PARTS = 3


def strings_of_pairs(seed: int) -> Problem:
    """Return pairs of layers side by side between single ones; messages are large, one unit is slower."""
    rng = random.Random(f"pairs {seed}")
    names = ["s0", "a0", "b0", "s1", "a1", "b1", "s2"]
    edges = [
        edge
        for number in (0, 1)
        for side in (f"a{number}", f"b{number}")
        for edge in ((f"s{number}", side), (side, f"s{number + 1}"))
    ]
    nodes = []
    for name in names:
        time, sends = rng.randint(5, 40), rng.randint(5, 30)
        nodes.append(
            GraphNode(name=name, times_us=(time, time, 2 * time), sends_us=(sends, sends, 0), bytes=0)
        )
    return graph_problem(nodes, edges, [ProcessingUnit(name=f"u{number}") for number in range(PARTS)])


PROBLEMS = [
    *(random_graph(6, PARTS, seed=seed) for seed in range(4)),
    *(strings_of_pairs(seed) for seed in range(4)),
    random_graph(4, PARTS, training=True, seed=1),
]


def valid_parts(problem: Problem) -> Iterator[tuple[int, list[int]]]:
    """Yield the period of every valid plan, and the part of each block."""
    graph = graph_of(problem)
    for code in problem.formulation.codes(problem):
        numbers, broken = examined(problem, code)
        if not broken:
            parts = chain_of(graph, code)
            assert parts is not None
            of = [parts.index(code[layers[0]]) for layers in graph.blocks.members]
            yield numbers.term("period"), of


def all_bounds(problem: Problem) -> list[PartBounds]:
    """Return the bounds of a problem with and without separators."""
    bounds = bounds_of(graph_of(problem), PARTS)
    assert bounds.stretches is not None
    return [bounds, replace(bounds, stretches=None)]


@pytest.mark.parametrize("problem", PROBLEMS)
def test_no_plan_is_better_than_the_bound(problem: Problem) -> None:
    best = min(period for period, _ in valid_parts(problem))
    with_cuts, without = (bounds.least_us for bounds in all_bounds(problem))
    assert 0 < without <= with_cuts <= best


def test_separators_make_the_bound_better() -> None:
    found = [[bounds.least_us for bounds in all_bounds(strings_of_pairs(seed))] for seed in range(4)]
    assert sum(with_cuts > without for with_cuts, without in found) >= 3


@pytest.mark.parametrize("problem", PROBLEMS)
def test_plans_hold_no_more_than_the_bounds_say(problem: Problem) -> None:
    plans = list(valid_parts(problem))
    for bounds in all_bounds(problem):
        work = bounds.work.block
        for period, parts in sorted(plans)[: len(plans) // 2]:
            ahead, behind = bounds.ahead(period), bounds.behind(period)
            windows = bounds.windows(period)
            assert all(first <= part <= last for part, (first, last) in zip(parts, windows, strict=True))
            for count in range(PARTS + 1):
                last = max(parts) + 1 - count
                assert sum(own for own, part in zip(work, parts, strict=True) if part < count) <= ahead[count]
                assert (
                    sum(own for own, part in zip(work, parts, strict=True) if part >= last) <= behind[count]
                )


def test_all_work_is_held_at_the_bound_and_not_below() -> None:
    for problem in PROBLEMS:
        bounds = bounds_of(graph_of(problem), PARTS)
        assert bounds.ahead(bounds.least_us)[-1] == bounds.work.total == bounds.behind(bounds.least_us)[-1]


def test_stretches_lie_between_separators() -> None:
    problem = strings_of_pairs(0)
    graph = graph_of(problem)
    bounds = bounds_of(graph, PARTS)
    stretches = stretches_of(graph, bounds.work, 9)
    work = bounds.work.block
    assert stretches.low == (0, work[0], sum(work[:4]), sum(work))  # a0 and b0 are side by side
    assert stretches.high == (0, sum(work[:3]), sum(work[:6]), sum(work))
    assert stretches.cuts[0][0] == stretches.cuts[0][-1] == 0
    sends = [problem.data.tensor_us[number][0] for number in range(3)]
    assert stretches.cuts[0][1] == min(sends[0], sends[1] + sends[2])
    assert not any(stretches.cuts[-1])  # nothing costs the last unit anything
    again = stretches.reversed(bounds.work.total).reversed(bounds.work.total)
    assert (again.low, again.high, again.cuts) == (stretches.low, stretches.high, stretches.cuts)


@pytest.mark.parametrize("seed", range(20))
def test_the_least_cut_is_that_of_the_best_set(seed: int) -> None:
    rng = random.Random(seed)
    nodes = range(6)
    tensors = [(rng.sample(nodes, rng.randint(2, 4)), rng.randint(0, 9)) for _ in range(rng.randint(1, 9))]
    inner = nodes[1:-1]
    sets = chain.from_iterable(combinations(inner, size) for size in range(len(inner) + 1))

    def paid(held: set[int]) -> int:
        return sum(cost for blocks, cost in tensors if 0 < len(held.intersection(blocks)) < len(blocks))

    assert least_cut(tensors, 0, 5) == min(paid({0, *others}) for others in sets)


@pytest.mark.slow
def test_many_kinds_of_units_do_without_separators() -> None:
    nodes = [
        GraphNode(name=f"n{number}", times_us=tuple(range(5, 15)), sends_us=(3,) * 10, bytes=0)
        for number in range(12)
    ]
    edges = [(f"n{number}", f"n{number + 1}") for number in range(11)]
    units = [ProcessingUnit(name=f"u{number}") for number in range(10)]
    problem = graph_problem(nodes, edges, units)
    bounds = bounds_of(graph_of(problem), 10)
    assert bounds.stretches is None
    found = solve(problem, "native")
    assert found.objective is not None
    assert bounds.least_us <= found.objective
