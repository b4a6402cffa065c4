"""The native search for convex parts: loads of segments, chains of down-sets, bounds, large graphs."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

import gapless
from benchmarks.partition import brute_force, small_graph
from benchmarks.partition_encodings import VARIANTS, variant_of
from benchmarks.partition_graphs import LARGE, PUBLIC_LIKE
from gapless.formulations.judge import check, examined
from gapless.formulations.partition.bounds import bounds_of
from gapless.formulations.partition.tables import graph_of
from gapless.solvers.partition.chains import best_chain
from gapless.solvers.partition.line import best_cuts, build_arrays
from gapless.solvers.partition.samples import random_graph
from gapless.solvers.partition.solving import Parts
from gapless.solvers.protocol import NEVER, Claim, Deadline, SolveOptions, SolveStatus, TimeIsUpError
from gapless.solvers.session import solve
from gapless.solvers.topological_orders import (
    TooManySetsError,
    depth_first,
    down_sets,
    first_orders,
    reshuffled,
)


@pytest.mark.parametrize("seed", range(12))
def test_native_equals_brute_force(seed: int) -> None:
    problem = small_graph(1000 + seed)
    assert gapless.plan(problem, backend="native").objective == brute_force(problem)


@pytest.mark.parametrize("backend", ["cpsat", "z3", "pulp"])
def test_exact_backends_agree_on_a_drawn_graph(backend: str) -> None:
    problem = random_graph(14, 3, training=True, seed=3)
    native = gapless.plan(problem)
    found = gapless.plan(problem, backend=backend)
    assert (found.status, found.objective) == ("optimal", native.objective)


@pytest.mark.slow
@pytest.mark.parametrize("name", VARIANTS)
def test_encodings_that_are_compared_have_one_optimum(name: str) -> None:
    problem = random_graph(10, 3, seed=4)
    found = solve(problem, variant_of("cpsat", VARIANTS[name]))
    assert (found.status, found.objective) == (
        "optimal",
        gapless.plan(problem, backend="exhaustive").objective,
    )


@pytest.mark.parametrize("seed", range(6))
def test_programs_and_moves_know_the_loads_of_the_judge(seed: int) -> None:
    problem = random_graph(30, 4, training=bool(seed % 2), seed=seed)
    arrays = build_arrays(problem, graph_of(problem))
    rng = random.Random(seed)
    for order in first_orders(arrays.graph.blocks, rng, 4):
        line = best_cuts(arrays, order)
        assert line is not None
        numbers, broken = examined(problem, arrays.code(line.parts))
        assert broken == ()
        assert numbers.term("period") == line.value
        parts = Parts(arrays, line)
        assert max(parts.loads) == line.value
        parts.descend(rng, NEVER)
        chosen = [
            (kind, [block for block, own in enumerate(parts.part_of) if own == part])
            for part, kind in enumerate(parts.kinds)
        ]
        moved, broken = examined(problem, arrays.code(chosen))
        assert broken == ()
        assert moved.term("period") == max(parts.loads) <= line.value


@pytest.mark.parametrize("seed", range(4))
def test_orders_are_topological(seed: int) -> None:
    blocks = graph_of(random_graph(40, 3, seed=seed)).blocks
    rng = random.Random(seed)
    orders = [depth_first(blocks, rng, backward=backward) for backward in (False, True)]
    orders.append(reshuffled(blocks, orders[0], 5, 30, rng))
    for order in orders:
        place = {block: position for position, block in enumerate(order)}
        assert sorted(order) == list(range(blocks.count))
        assert all(place[other] < place[b] for b in order for other in blocks.before[b])


def test_chains_prove_that_nothing_is_better() -> None:
    problem = random_graph(25, 4, seed=2)
    graph = graph_of(problem)
    arrays, work = build_arrays(problem, graph), bounds_of(graph, graph.unit_count)
    best = best_chain(arrays, work, graph.most_us, NEVER)
    assert best is not None
    assert best.value == gapless.plan(problem, backend="cpsat").objective
    assert examined(problem, arrays.code(best.parts))[0].term("period") == best.value
    assert best_chain(arrays, work, best.value - 1, NEVER) is None
    with pytest.raises(TooManySetsError):
        best_chain(arrays, work, best.value, NEVER, most_sets=10)
    with pytest.raises(TimeIsUpError):
        best_chain(arrays, work, best.value, Deadline(0))


def test_chains_prove_the_first_plan_of_a_list() -> None:
    problem = random_graph(25, 4, seed=2)
    one, more = (solve(problem, "native", SolveOptions(top=top)) for top in (1, 3))
    assert (one.status, more.status, more.proven) == (SolveStatus.OPTIMAL, SolveStatus.OPTIMAL, 1)
    assert (one.values, one.bound) == (more.values, more.bound)


def test_who_watches_sees_the_first_plans_and_what_chains_find() -> None:
    shown: list[Claim] = []
    options = SolveOptions(top=3, publish=shown.append)
    found = solve(random_graph(25, 4, seed=2), "native", options, explain=False)
    first, *_, last = shown
    assert first.values is not None
    assert found.values is not None
    assert (first.status, first.values > found.values) == (SolveStatus.FEASIBLE, True)
    assert (last.status, last.values) == (SolveStatus.OPTIMAL, found.values)


def test_down_sets_of_two_chains() -> None:
    # 0 -> 1 and 2 -> 3: three times three sets.
    sets = down_sets([0, 1, 0, 4], 100)
    assert sorted(sets) == [0, 1, 3, 4, 5, 7, 12, 13, 15]
    with pytest.raises(TooManySetsError):
        down_sets([0] * 40, 1000)


def test_a_limit_on_units_is_kept() -> None:
    problem = random_graph(20, 4, seed=5).with_limits(max_units=2, min_units=2)
    found = gapless.plan(problem)
    assert found.plan is not None
    assert len({chunk.unit for chunk in found.plan.chunks}) == 2
    assert found.objective == gapless.plan(problem, backend="cpsat").objective


def test_rules_are_checked() -> None:
    problem = random_graph(15, 3, seed=1)
    found = gapless.plan(problem, rules=[lambda view: view.uses("host")])
    assert found.plan is not None
    assert "host" in {chunk.unit for chunk in found.plan.chunks}


@pytest.mark.slow
def test_public_like_graphs_have_plans_and_bounds() -> None:
    for instance in PUBLIC_LIKE[:6]:
        problem = instance.problem()
        found = gapless.plan(problem)
        assert found.plan is not None
        assert check(problem, found.plan) == ()
        assert found.bound is not None
        assert found.bound <= (found.objective or 0)


@pytest.mark.slow
@pytest.mark.usefixtures("counted_time")
def test_ten_thousand_layers_have_a_plan_and_a_bound() -> None:
    problem = replace(LARGE[1], size=10_000).problem()
    assert len(problem.network.layers) >= 10_000
    found = gapless.plan(problem, time_limit_s=0.1)
    assert found.plan is not None
    assert found.bound is not None
    assert 0 < found.bound <= (found.objective or 0)
