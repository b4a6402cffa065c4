"""Plans over the graph: as good as the best over all chains of pieces, each looked at by itself."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import pytest

from gapless.formulations.costs import CostTable, NetworkCosts
from gapless.formulations.errors import InvalidProblemError
from gapless.formulations.groups import GraphOptimum
from gapless.formulations.judge import score
from gapless.formulations.problem import Problem
from gapless.formulations.spatial import SpatialNetwork, check_pieces
from gapless.solvers.cooperation.over_graph import solve_over_graph
from gapless.solvers.protocol import Deadline, TimeIsUpError
from gapless.solvers.session import solve
from tests.cooperation_instances import divided_network, drawn_problem

ANY = GraphOptimum(sets=1, period_us=1, given_pieces_us=1)
"""Lets results pass by pieces that do not read them."""


def linear(problem: Problem, labels: tuple[int, ...], factors: list[int]) -> Problem:
    """Return a problem in other pieces, where an operation takes each device a whole number of us."""
    spatial, count = problem.data.spatial, max(labels) + 1
    work = [
        sum(n.flops for n, own in zip(spatial.nodes, labels, strict=True) if own == piece)
        for piece in range(count)
    ]
    costs = NetworkCosts(network="net", layer_us=tuple(tuple(w * f for f in factors) for w in work))
    units = tuple(replace(unit, memory_bytes=None) for unit in problem.platform.units)
    return replace(
        problem,
        platform=replace(problem.platform, units=units),
        networks=(divided_network(spatial, labels, count),),
        costs=CostTable(units=problem.costs.units, networks=(costs,)),
        data=replace(problem.data, pieces=labels, fixed_us=(), over_graph=ANY),
    ).with_objective("period")


def chains(network: SpatialNetwork, labels: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    """Yield every labelling of a network by pieces."""
    node = len(labels)
    if node == len(network.nodes):
        if not any(check_pieces(network, labels, passing=True)):
            yield labels
        return
    about = network.nodes[node]
    before = [labels[source] for source in about.sources if labels[source] >= 0]
    labels_here = (-1,) if about.is_input else range(max(before, default=0), max(labels) + 2)
    for label in labels_here:
        yield from chains(network, (*labels, label))


def least_over_chains(problem: Problem, factors: list[int]) -> int:
    """Return the least period of all plans whose chunks are the pieces of a chain."""
    found = []
    for labels in chains(problem.data.spatial):
        own, count = linear(problem, labels, factors), max(labels) + 1
        result = solve(own.with_rules(lambda view, n=count: view.chunks() >= n), "native", explain=False)
        if result.objective is not None:
            found.append(result.objective)
    return min(found)


def facts(problem: Problem) -> GraphOptimum:
    found: GraphOptimum = problem.data.over_graph
    return found


@pytest.mark.parametrize("seed", range(6))
def test_no_chain_of_pieces_has_a_better_plan(seed: int) -> None:
    rng = random.Random(f"graph {seed}")
    drawn = drawn_problem(seed, layers=3, devices=rng.randint(1, 3))
    factors = [rng.randint(1, 4) for _ in drawn.platform.units]
    problem = linear(drawn, drawn.data.pieces, factors)
    chunks, plan = solve_over_graph(problem)
    assert score(chunks, plan).value("period") == facts(chunks).period_us
    assert facts(chunks).period_us == least_over_chains(problem, factors)
    assert facts(chunks).given_pieces_us == solve(problem, "native", explain=False).objective
    assert solve(chunks, "native", explain=False).objective == facts(chunks).period_us


def test_what_is_not_known_over_the_graph_is_refused() -> None:
    drawn = drawn_problem(2, layers=2, devices=2)
    problem = linear(drawn, drawn.data.pieces, [1, 2])
    with pytest.raises(InvalidProblemError, match="more than 2 down-sets"):
        solve_over_graph(problem, most_sets=2)
    with pytest.raises(InvalidProblemError, match="where rules name its layers"):
        solve_over_graph(problem.with_rules(lambda view: view.chunks() >= 2))
    with pytest.raises(InvalidProblemError, match="something else than the period"):
        solve_over_graph(problem.with_objective("latency"))
    with pytest.raises(TimeIsUpError):
        solve_over_graph(problem, deadline=Deadline(0.0))
