"""Rules about workloads: every atom means on a plan what it says."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless.formulations.errors import ExpressionError, InvalidProblemError
from gapless.formulations.expr import from_data, to_data
from gapless.formulations.files import dump_problem, parse_problem
from gapless.formulations.flow_shop.rules import (
    before,
    deadline,
    keep_off,
    keep_on,
    memory_cap_while,
    never_beside,
)
from gapless.formulations.flow_shop.tables import shop_of
from gapless.formulations.flow_shop.values import WorkloadValues
from gapless.formulations.flow_shop.view import WorkloadView
from gapless.formulations.judge import check
from gapless.formulations.plan import Plan
from gapless.formulations.problem import Problem
from gapless.formulations.rules import RuleFunction
from gapless.formulations.simulate import simulate_workload
from gapless.solvers.exhaustive import all_plans
from tests.workload_instances import workload_problem, workload_problems

PROBLEM = workload_problem(
    {"a": [[10, 20], [30, 20], [9, 9]], "b": [[5, 9], [7, 9]]},
    ["a", "b", "a"],
    slowdown=[[0, 100], [200, 0]],
    high=("a",),
    memory_bytes=1000,
)
PLANS = {str(plan): plan for plan in all_plans(PROBLEM)}
SHARED = PLANS["a0: 0-0 npu | 1-2 big; b1: 0-1 npu; a2: 0-2 npu"]
ALONE = PLANS["b1: 0-1 npu; a0: 0-2 npu; a2: 0-2 npu"]


def kept(rule: RuleFunction, plan: Plan) -> bool:
    return not check(PROBLEM.with_rules(rule), plan)


@pytest.mark.parametrize(
    ("rule", "shared", "alone"),
    [
        (before("a0", "b1"), True, False),
        (before("b1", "a2"), True, True),
        (never_beside("a0", "b1"), False, True),
        (never_beside("b1", "a2"), True, True),
        (deadline("b1", most_us=12), False, True),
        (memory_cap_while("b1", most_bytes=50), False, True),
        (keep_on("a0", units=("npu",)), False, True),
        (keep_off("a0", unit="big"), False, True),
        (lambda view: view.position("b1") == 1, True, False),
        (lambda view: view.cut_after("a0", "l0"), True, False),
        (lambda view: view.on("a0", 1, "big"), True, False),
        (lambda view: view.chunks("a0") <= 1, False, True),
        (lambda view: view.chunk_us("a0", "big") + view.load_us("npu") == 29 + 71, True, False),
        (lambda view: view.start_us("b1") >= 10, True, False),
        (lambda view: view.contention() == 1, False, True),
        (lambda view: view.displacement() == 0, True, False),
        (lambda view: view.makespan_us() <= 80, True, False),
        (lambda view: view.bubbles_us() + view.gapness_us() <= 100, True, False),
        (lambda view: view.peak_bytes() <= 50, False, True),
        (lambda view: view.period_us() >= 100, False, True),
    ],
)
def test_rules_hold_where_they_say(rule: RuleFunction, shared: bool, alone: bool) -> None:
    assert (kept(rule, SHARED), kept(rule, ALONE)) == (shared, alone)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda view: view.uses("c9", "npu"), "no request 'c9'; there are a0, b1, a2"),
        (lambda view: view.uses("a0", "gpu"), "no unit 'gpu'"),
        (lambda view: view.on("b1", 2, "npu"), "request 'b1' has no layer 2"),
        (lambda view: view.cut_after("b1", "l1"), "no chunk follows the last layer"),
        (lambda view: view.before("a0", "a0"), "two different requests"),
        (lambda view: view.beside("a0", "a0"), "two different requests"),
    ],
)
def test_what_is_not_there_is_named(wrong: RuleFunction, words: str) -> None:
    with pytest.raises(InvalidProblemError, match=words):
        PROBLEM.with_rules(wrong)


def test_a_number_is_no_rule() -> None:
    with pytest.raises(ExpressionError):
        PROBLEM.with_rules(lambda view: view.position("a0"))


def test_beside_is_what_the_trace_shows() -> None:
    view = PROBLEM.view
    for plan in list(PLANS.values())[::17]:
        events = simulate_workload(PROBLEM, plan).events
        values = WorkloadValues(shop_of(PROBLEM), shop_of(PROBLEM).schedule(plan))
        for first, second in (("a0", "b1"), ("a2", "a0"), ("b1", "a2")):
            pair = {view.requests.index(first), view.requests.index(second)}
            overlap = any(
                {a.stream, b.stream} == pair and a.start_us < b.end_us and b.start_us < a.end_us
                for a in events
                for b in events
            )
            assert bool(view.beside(first, second).evaluate(values)) == overlap


def test_every_atom_survives_json() -> None:
    view = PROBLEM.view
    atoms = [
        view.on("a0", 1, "big"),
        view.uses("b1", "npu"),
        view.cut_after("a2", 0),
        view.before("a2", "b1"),
        view.beside("a2", "b1"),
        view.position("a2") <= 1,
        view.chunk_us("a2", "npu") <= 3,
        view.load_us("npu") <= 3,
        view.start_us("a2") <= 3,
        view.latency_us("a2") <= 3,
        view.memory_while_bytes("a2") <= 3,
        view.makespan_us() <= view.period_us() + view.bubbles_us(),
        view.gapness_us() <= view.peak_bytes(),
        view.contention() <= view.displacement(),
    ]
    for atom in atoms:
        data = json.loads(json.dumps(to_data(atom)))
        assert repr(from_data(data, PROBLEM.formulation.variables(PROBLEM).find)) == repr(atom)


@pytest.mark.parametrize(
    "data",
    [
        ["var", "on", 0, 3, 0],
        ["var", "uses", 3, 0],
        ["var", "before", 1, 1],
        ["var", "cut", 0, 0],
        ["var", "x"],
    ],
)
def test_variables_that_are_not_there_are_refused(data: object) -> None:
    with pytest.raises(InvalidProblemError, match="names no quantity"):
        from_data(data, PROBLEM.formulation.variables(PROBLEM).find)


@pytest.mark.slow
@given(problem=workload_problems(), data=st.data())
def test_problems_with_workloads_survive_their_files(problem: Problem, data: st.DataObject) -> None:
    ruled = problem.with_rules(lambda view: view.makespan_us() <= data.draw(st.integers(1, 99)))
    again = parse_problem(dump_problem(ruled).encode(), name="memory")
    assert again == ruled
    assert again.fingerprint == ruled.fingerprint


def test_views_offer_names() -> None:
    view: WorkloadView = PROBLEM.view
    assert view.requests_of("a") == ("a0", "a2")
    assert view.layers("b1") == ("l0", "l1")
