"""The search calls valid what the judge calls valid."""

from __future__ import annotations

from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless.formulations.expr import And, BoolExpr, BoolVar, IntVar, Not, Or
from gapless.formulations.flow_shop.tables import shop_of
from gapless.formulations.judge import check, score
from gapless.formulations.problem import Problem
from gapless.formulations.rules import OpaqueRule, RuleFunction, named
from gapless.solvers.exhaustive import all_plans
from gapless.solvers.flow_shop.measure import Measure
from gapless.solvers.repairing import shortfall
from tests.workload_instances import workload_problems

STRUCTURE = {"conflict", "unit_memory", "order"}
"""What the search never proposes."""

RULES: tuple[RuleFunction | OpaqueRule, ...] = (
    named("early", "", lambda view: view.finish_us(view.requests[0]) <= 40),
    named("not both", "", lambda view: ~(view.uses(view.requests[0], "npu") & (view.makespan_us() >= 20))),
    OpaqueRule(name="even", predicate=lambda plan: len(plan.chunks) % 2 == 0),
)


@pytest.mark.slow
@given(problem=workload_problems(), rules=st.lists(st.sampled_from(RULES), max_size=2, unique_by=id))
def test_valid_is_what_the_judge_says(problem: Problem, rules: list[RuleFunction | OpaqueRule]) -> None:
    problem = problem.with_rules(*rules).with_limits(max_gapness_us=60)
    measure = Measure(problem)
    for plan in islice(all_plans(problem), 0, 60, 7):
        broken = {violation.rule for violation in check(problem, plan)}
        if not broken & STRUCTURE:
            measured = measure.of(shop_of(problem).schedule(plan))
            assert measured.valid is not bool(broken)
            assert measured.key[1:] == score(problem, plan).values(problem.objective.terms)


VALUES = {"x": 7, "y": 3, "yes": 1, "no": 0}
X, Y = IntVar("x", (), 0, 9), IntVar("y", (), 0, 9)
YES, NO = BoolVar("yes"), BoolVar("no")


EXPRESSIONS = (
    *(X <= Y, Y <= X, ~(X <= Y), ~(Y <= X), YES, NO, YES & (X <= Y), YES | (X <= Y)),
    *(~(YES & NO), ~(YES | NO), And(()), Or(()), Not(Or(())), Not(And((NO, X <= Y)))),
)


@pytest.mark.parametrize("expr", EXPRESSIONS)
def test_no_shortfall_exactly_if_true(expr: BoolExpr) -> None:
    def value(variable: object) -> int:
        return VALUES[variable.name]  # type: ignore[attr-defined]

    assert (shortfall(expr, value) == 0) is bool(expr.evaluate(value))


def test_a_larger_miss_counts_more() -> None:
    def value(variable: object) -> int:
        return 100

    assert shortfall(X <= 10, value) > shortfall(X <= 90, value) > shortfall(X <= 100, value) == 0
