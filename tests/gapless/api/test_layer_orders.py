"""Problems with another order of the layers: chosen, given, free; all three side by side."""

from __future__ import annotations

from dataclasses import replace

import pytest

import gapless
from gapless.api.layer_orders import compare_layer_orders, with_layer_order
from gapless.formulations.costs import CostTable
from gapless.formulations.errors import InvalidInputError
from gapless.formulations.expr import BoolExpr
from gapless.formulations.network import ModelRef
from gapless.formulations.problem import Problem
from gapless.formulations.reordering import order_words
from tests.branch_instances import chain_problem, random_network


def branched(seed: int = 3) -> Problem:
    return chain_problem(random_network(seed, layers=9), seed)


def slower(costs: CostTable, factor: int) -> CostTable:
    networks = (
        replace(
            one,
            layer_us=tuple(tuple(None if us is None else us * factor for us in row) for row in one.layer_us),
        )
        for one in costs.networks
    )
    return replace(costs, networks=tuple(networks))


@pytest.mark.parametrize("seed", range(8))
def test_the_best_order_is_never_worse_and_the_judge_agrees(seed: int) -> None:
    problem = branched(seed)
    best = with_layer_order(problem, "best")
    found, fixed = gapless.plan(best), gapless.plan(problem)
    assert found.objective is not None
    assert fixed.objective is not None
    assert found.objective <= fixed.objective
    assert found.plan is not None
    assert not gapless.check(best, found.plan)
    assert {*best.network.layer_names} == {*problem.network.layer_names}


@pytest.mark.slow
def test_some_network_gains() -> None:
    gains = [
        (gapless.plan(problem).objective or 0)
        - (gapless.plan(with_layer_order(problem, "best")).objective or 0)
        for problem in map(branched, range(8))
    ]
    assert any(gain > 0 for gain in gains)


def test_everything_of_a_chain_goes_with_another_order() -> None:
    problem = with_layer_order(branched(), "best")
    for objective in ("latency", "gapness,period", "peak_memory,period", "units,period", "slack:50"):
        found = gapless.plan(problem, objective=objective)
        assert found.plan is not None
        exact = gapless.plan(problem, objective=objective, backend="exhaustive")
        assert found.objective == exact.objective
    several = gapless.plan(problem, pipelines="many")
    assert several.plan is not None
    first = problem.network.layer_names[0]

    def on_unit1(view: gapless.results.PlanView) -> BoolExpr:
        return view.on(first, "unit1")

    ruled = gapless.plan(problem, rules=[on_unit1])
    assert ruled.plan is not None
    assert ruled.plan.chunks[0].unit == "unit1"


def test_tables_for_company_are_in_the_same_order() -> None:
    problem = branched()
    crowded = problem.with_costs(problem.costs, tuple(slower(problem.costs, k) for k in (2, 3)))
    moved = with_layer_order(crowded, "best")
    rows = dict(zip(problem.network.layer_names, problem.costs.of("branches").layer_us, strict=True))
    assert moved.co_run_costs is not None
    for factor, table in enumerate((moved.costs, *moved.co_run_costs), start=1):
        for name, row in zip(moved.network.layer_names, table.of("branches").layer_us, strict=True):
            assert row == tuple(None if us is None else us * factor for us in rows[name])
    before, after = gapless.plan(crowded).objective, gapless.plan(moved).objective
    assert after is not None
    assert before is not None
    assert after <= before


def test_words_and_numbers_name_an_order() -> None:
    problem = branched()
    assert with_layer_order(problem, "fixed") is problem
    assert with_layer_order(problem, "free").formulation.name == "partition"
    best = with_layer_order(problem, "best")
    assert best.network.order
    assert with_layer_order(problem, order_words(best.network.order)) == best
    assert with_layer_order(best, "0-8") == problem
    chain = gapless.load_problem("pixel7a/alexnet-sparse")
    assert with_layer_order(chain, "best") == chain


def test_what_has_no_other_order_is_refused() -> None:
    problem = branched()

    def rule(view: gapless.results.PlanView) -> BoolExpr:
        return view.uses("unit0")

    cases = [
        (problem, "other", "must be fixed, best, free, or numbers"),
        (problem, "0-1", "each of the layers 0 to 8"),
        (problem.with_rules(rule), "best", "rules of the problem"),
        (gapless.graphs.with_parts(problem), "best", "about something else"),
        (gapless.table_problem({"a": [1], "b": [1]}, ["cpu"]), "best", "does not say which layer reads"),
        (gapless.load_workload("squeezenet", platform="kirin990"), "best", "are of one network"),
    ]
    for given, order, words in cases:
        with pytest.raises(InvalidInputError, match=words):
            with_layer_order(given, order)


def test_models_in_a_row_have_one_order() -> None:
    two = (ModelRef(locator="zoo:a", digest="0"), ModelRef(locator="zoo:b", digest="1"))
    problem = branched()
    joined = replace(problem, networks=(replace(problem.network, models=two),))
    order = order_words(with_layer_order(problem, "best").network.order)
    with pytest.raises(InvalidInputError, match="several models in a row"):
        with_layer_order(joined, order)


def test_three_orders_side_by_side_have_both_periods() -> None:
    problem = branched()
    fixed, best, free = compare_layer_orders(problem)
    assert [one.order for one in (fixed, best, free)] == ["fixed", "best", "free"]
    for one in (fixed, best, free):
        assert one.result is not None
        assert one.result.gap == 0
        assert one.chunks_us is not None
        assert one.parts_us is not None
    assert fixed.chunks_us == fixed.result.objective  # type: ignore[union-attr]
    assert best.chunks_us == best.result.objective  # type: ignore[union-attr]
    assert free.parts_us == free.result.objective  # type: ignore[union-attr]
    # Of its own costs none is worse than the others' plans: every chunk is a convex part.
    assert free.parts_us <= min(fixed.parts_us, best.parts_us)  # type: ignore[operator,type-var]
    assert best.chunks_us <= fixed.chunks_us  # type: ignore[operator]


def test_an_order_that_cannot_be_says_why() -> None:
    problem = gapless.load_problem("pixel7a/alexnet-sparse", costs="interpolated")
    fixed, free = compare_layer_orders(problem, orders=("fixed", "free"))
    assert fixed.plan is not None
    assert fixed.parts_us is None
    assert "one table of costs" in free.failure
    with pytest.raises(InvalidInputError, match="'other' is no order of layers"):
        compare_layer_orders(problem, orders=("other",))
    with pytest.raises(InvalidInputError, match="no order of layers is named"):
        compare_layer_orders(problem, orders=())


def test_the_graph_of_a_network_is_planned_on_one_table_of_costs() -> None:
    several = gapless.load_problem("pixel7a/octree", costs="interpolated")
    with pytest.raises(InvalidInputError, match="convex parts take one table of costs"):
        gapless.graphs.with_parts(several)
    with pytest.raises(InvalidInputError, match="layers side by side take one table of costs"):
        gapless.graphs.with_side_by_side(several)
