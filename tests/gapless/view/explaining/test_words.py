"""What explanations say, about instances small enough to know the answer, and about shipped ones."""

from __future__ import annotations

from dataclasses import replace

import pytest

import gapless
from gapless.answers.words import listed
from gapless.api.problems import load_problem, load_workload, table_problem
from gapless.executor.progress import Step
from gapless.formulations.errors import InvalidInputError, InvalidPlanError
from gapless.formulations.hardware import ProcessingUnit
from gapless.formulations.judge import check, score
from gapless.formulations.network import Layer, Network
from gapless.formulations.plan import Chunk, Plan
from gapless.formulations.problem import Problem
from gapless.formulations.registry import formulation_named
from gapless.formulations.terms import Objective
from gapless.profiler.platforms.catalog import methods_of, network_names, platform_names
from gapless.rules import OpaqueRule, pin
from gapless.view.explaining.explanation import difference_words
from tests.workload_instances import workload_problem

SHIPPED = [f"{platform}/{network}" for platform in platform_names() for network in network_names(platform)]


def three_units() -> Problem:
    """Return a problem whose units b and c share a core, and whose last layer only a can run."""
    problem = table_problem(
        [[4, 2, 2.5], [4, 2, 2.5], [1, None, None]],
        [
            ProcessingUnit(name="a"),
            ProcessingUnit(name="b", cores=(0,)),
            ProcessingUnit(name="c", cores=(0, 1)),
        ],
        network="net",
    )
    layers = (Layer(name="conv"), Layer(name="norm"), Layer(name="pick", op_types=("TopK", "Gather")))
    return replace(problem, networks=(Network(name="net", layers=layers),))


def plan_of(*parts: tuple[int, int, str]) -> Plan:
    return Plan(chunks=tuple(Chunk(network="net", start=a, stop=b, unit=unit) for a, b, unit in parts))


BEST = plan_of((0, 2, "b"), (2, 3, "a"))


def test_an_explanation_in_words() -> None:
    why = gapless.explain(three_units(), BEST, time_limit_s=None)
    a, b, c = why.units
    assert why.proven
    assert why.summary == (
        "b sets the pace with 4.000 ms; a is busy for 25.0 % of that. "
        "Proved: no valid one is better among plans with at most one chunk per unit; the next best one has "
        "period 5.000 ms (+25.0 %)."
    )
    assert a.otherwise.reason == "only it can run 'pick' (TopK, Gather)"
    assert b.unsupported == (("net", "pick", ("TopK", "Gather")),)
    assert b.otherwise.values == (5000, 2500)
    assert (c.excluded_by, c.otherwise.values) == (("b",), (5000, 2500))
    (cut,) = why.cuts
    assert cut.later is None
    assert cut.earlier is not None
    assert cut.earlier.values == (5000, 3000)


def test_where_the_latency_counts_it_is_told_where_a_request_spends_it() -> None:
    problem = three_units().with_objective("latency")
    assert score(problem, BEST).busy_us == (1000, 4000, None)
    words = gapless.explain(problem, BEST, time_limit_s=None).summary
    assert words.startswith("Of the 5.000 ms that a request takes, it spends 80.0 % on b and 20.0 % on a.")
    words = gapless.explain(problem, plan_of((0, 3, "a")), time_limit_s=None).summary
    assert words.startswith("A request takes ")
    assert "ms, all of it on a." in words


def test_a_plan_that_is_not_the_best_one_is_told_so() -> None:
    why = gapless.explain(three_units(), plan_of((0, 1, "b"), (1, 3, "a")), time_limit_s=None)
    assert not why.proven
    assert why.next_best.plan == BEST
    assert why.next_best.proven
    assert "It is not the best plan: [0-1 b | 2-2 a] has period 4.000 ms (-20.0 %)." in why.summary
    (cut,) = why.cuts
    assert cut.later is not None
    assert (cut.later.plan, cut.later.values) == (BEST, (4000, 3000))


def test_a_cut_that_cannot_move_says_why() -> None:
    problem = table_problem([[4, 2], [4, None], [1, 9]], ["a", "b"], network="net")
    layers = (
        Layer(name="conv"),
        Layer(name="norm", op_types=("Softmax",)),
        Layer(name="fc", weight_bytes=90),
    )
    problem = replace(problem, networks=(Network(name="net", layers=layers),))
    (cut,) = gapless.explain(problem, plan_of((0, 1, "b"), (1, 3, "a")), time_limit_s=None).cuts
    assert cut.later is not None
    assert (cut.later.values, cut.later.reason) == (None, "'b' cannot run 'norm' (Softmax)")


def test_rules_of_both_kinds_bind() -> None:
    problem = three_units().with_rules(
        OpaqueRule(
            name="one_unit", predicate=lambda plan: len(plan.chunks) == 1, text="everything on one unit"
        ),
        pin("pick", unit="a"),
    )
    why = gapless.explain(problem, plan_of((0, 3, "a")), time_limit_s=None)
    bound = {binding.name: binding for binding in why.bindings}
    assert bound["one_unit"].binds
    assert bound["one_unit"].without.plan == BEST
    assert bound["one_unit"].text == "everything on one unit"
    assert not bound["pin(pick, a)"].binds
    assert (why.next_best.plan, why.next_best.reason) == (None, "there is no other valid one")
    assert {unit.otherwise.reason for unit in why.units[1:]} == {"contradicts: everything on one unit"}


def test_limits_and_slack_are_demands() -> None:
    slack = Objective(terms=("idle",), period_slack_permille=100)
    problem = three_units().with_objective(slack).with_limits(max_units=2)
    why = gapless.explain(problem, BEST, time_limit_s=None)
    assert [binding.name for binding in why.bindings] == ["slack", "max_units", "shared cores"]
    slack_text = "the period is within 10.0 % of the least one: at most 4400 us"
    assert next(b.text for b in why.bindings if b.name == "slack") == slack_text
    (cut,) = why.cuts
    assert cut.earlier is not None
    assert cut.earlier.reason == "slack: max_period_us is 4400, the plan has 5000"
    assert why.units[1].otherwise.reason == f"contradicts: {slack_text}"


def test_a_unit_that_can_run_nothing_is_told_without_a_question() -> None:
    problem = table_problem([[4, None], [4, None]], ["a", "b"], network="net")
    why = gapless.explain(problem, plan_of((0, 2, "a")), time_limit_s=None)
    assert why.units[1].otherwise.reason == "it cannot run any layer"
    assert why.units[0].otherwise.reason.startswith("only it can run")
    assert why.summary == (
        "Everything runs on a, one request every 8.000 ms. Proved: no valid one is better among plans with "
        "at most one chunk per unit; there is no other valid one."
    )


def test_a_broken_plan_is_refused_with_all_that_it_breaks() -> None:
    problem = three_units().with_rules(pin("conv", unit="a")).with_limits(max_period_us=3000)
    with pytest.raises(InvalidPlanError, match="nothing to explain") as caught:
        gapless.explain(problem, BEST, time_limit_s=None)
    assert [text.partition(":")[0] for text in caught.value.problems] == ["max_period_us", "pin(conv, a)"]
    with pytest.raises(InvalidPlanError, match="coverage: layers 1 to 2 are not covered"):
        gapless.explain(three_units(), plan_of((0, 1, "a")), time_limit_s=None)


def test_a_rule_may_have_any_name() -> None:
    rule = replace(three_units().with_rules(pin(0, unit="b")).expression_rules[0], name="without b")
    why = gapless.explain(three_units().with_rules(rule), BEST, time_limit_s=None)
    assert why.units[1].otherwise.reason == "contradicts: layer 0 runs on 'b'"


def test_progress_counts_the_questions() -> None:
    steps: list[Step] = []
    gapless.explain(three_units(), BEST, report=steps.append, time_limit_s=None)
    assert [step.done for step in steps] == list(range(len(steps)))
    assert {step.total for step in steps} == {len(steps)}
    assert {step.text for step in steps} >= {"the cuts", "the next best plan", "without b", "with c"}


@pytest.mark.usefixtures("counted_time")
def test_without_time_nothing_is_said_to_be_proven() -> None:
    why = gapless.explain(three_units(), BEST, time_limit_s=1e-9)
    assert not why.proven
    assert why.left_out == ("1 of 1 cuts",)
    assert not any(unit.otherwise.proven for unit in why.units[1:])
    assert not any(binding.binds or binding.without.proven for binding in why.bindings)
    assert "(not proved)" in why.summary
    with pytest.raises(InvalidInputError, match="must be greater than 0"):
        gapless.explain(three_units(), BEST, time_limit_s=0)


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_tables_are_explained_with_proofs(name: str) -> None:
    costs = "interpolated" if len(methods_of(name)) > 1 else None
    problem = load_problem(name, costs=costs)
    plan = gapless.plan(problem).plan
    assert plan is not None
    why = gapless.explain(problem, plan, time_limit_s=None)
    assert why.proven
    assert why.next_best.proven
    assert why.next_best.plan is not None
    assert all(unit.otherwise.proven for unit in why.units)
    assert "Proved: no valid one is better" in why.summary


@pytest.mark.usefixtures("counted_time")
def test_a_workload_is_explained_by_what_was_found() -> None:
    problem = load_workload("bert,mobilenetv2x2", platform="kirin990", passage="ordered")
    plan = gapless.plan(problem, time_limit_s=0.2).plan
    assert plan is not None
    why = gapless.explain(problem, plan, time_limit_s=1.5)
    assert " ends last, at " in why.summary
    assert {name for name, _, types in why.units[0].unsupported if types} == {"bert"}
    others = [why.next_best, *(unit.otherwise for unit in why.units)]
    for other in others:
        assert other.plan is not None
        assert not check(problem, other.plan)
        assert other.values is not None
        assert why.next_best.values is not None
        assert min(why.next_best.values, why.values) <= other.values
    for unit in why.units:
        assert unit.otherwise.plan is not None
        assert unit.used != any(chunk.unit == unit.unit for chunk in unit.otherwise.plan.chunks)


def test_equal_requests_in_each_others_place_are_no_other_plan() -> None:
    problem = workload_problem({"net": [[10, 20], [30, 20]]}, ["net", "net"])
    plan = gapless.plan(problem).plan
    assert plan is not None
    swapped = {"net0": "net1", "net1": "net0"}
    twin = Plan(
        chunks=tuple(replace(chunk, request=swapped[chunk.request]) for chunk in plan.chunks),
        order=tuple(swapped[name] for name in plan.order),
    )
    why = gapless.explain(problem, plan, time_limit_s=None)
    assert why.next_best.plan not in {None, plan, twin}


@pytest.mark.parametrize(
    ("terms", "ours", "others", "words"),
    [
        (("period", "gapness"), (100, 5), (100, 5), "as good"),
        (("period",), (10_000,), (10_210,), "period 10.210 ms (+2.1 %)"),
        (
            ("period", "gapness"),
            (10_000, 0),
            (10_000, 70),
            "equal period, gapness 0.070 ms (+0.070 ms)",
        ),
        (("idle",), (84,), (103,), "idle share 10.3 % (+1.9 points)"),
        (("makespan",), (1_000_000,), (999_900,), "makespan 999.900 ms (-0.01 %)"),
        (("peak_memory",), (2048,), (1024,), "peak memory 1.0 KiB (-50.0 %)"),
    ],
)
def test_differences_in_words(
    terms: tuple[str, ...], ours: tuple[int, ...], others: tuple[int, ...], words: str
) -> None:
    infos = {**formulation_named("flow_shop").terms, **formulation_named("chunking").terms}
    assert difference_words(infos, terms, ours, others) == words


def test_long_lists_are_cut_short() -> None:
    assert listed(["a"]) == "a"
    assert listed(["a", "b", "c"]) == "a, b and c"
    assert listed(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"


@pytest.mark.usefixtures("counted_time")
def test_slack_mode_proves_nothing_without_the_least_period() -> None:
    slack = Objective(terms=("idle",), period_slack_permille=100)
    problem = load_workload("bert,mobilenetv2x2", platform="kirin990", objective=slack)
    plan = gapless.plan(problem, time_limit_s=0.2).plan
    assert plan is not None
    why = gapless.explain(problem, plan, time_limit_s=1.0)
    assert not why.proven
    assert not why.next_best.proven
    assert {binding.name for binding in why.bindings} == {"slack", "memory of the device"}
    assert not any(binding.without.proven for binding in why.bindings)
