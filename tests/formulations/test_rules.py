"""Rules: what a user writes, and what is said about mistakes."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from gapless.formulations.chunking.rules import (
    at_most,
    avoid,
)
from gapless.formulations.chunking.tables import chain_of
from gapless.formulations.chunking.view import PlanView
from gapless.formulations.errors import ExpressionError, InvalidProblemError
from gapless.formulations.expr import BoolExpr, Const, to_data
from gapless.formulations.judge import check
from gapless.formulations.plan import Plan
from gapless.formulations.problem import Feature, Problem
from gapless.formulations.rules import OpaqueRule, Rule
from gapless.solvers.chunking.samples import sample_problem

LITTLE, BIG, ALL, GPU = range(4)


def test_a_rule_becomes_a_feature_and_a_violation() -> None:
    problem = sample_problem().with_rules(avoid("gpu"), OpaqueRule(name="no", predicate=lambda plan: False))
    assert {Feature.RULES, Feature.OPAQUE_RULES} <= problem.features
    plan = chain_of(problem).plan(((0, 2, LITTLE), (2, 4, BIG), (4, 5, GPU)))
    whole = Plan(chunks=(*plan.chunks[:2], chain_of(problem).plan(((4, 7, GPU),)).chunks[0]))
    assert {"avoid(gpu)", "no"} <= {v.rule for v in check(problem, whole)}


def python_if(view: PlanView) -> BoolExpr:
    return view.uses("gpu") if view.uses("big") else Const(1)


def python_and(view: PlanView) -> Any:
    return view.uses("gpu") and view.uses("big")


def chained(view: PlanView) -> Any:
    return 5 <= view.busy_us("gpu") <= 9


def crashes(view: PlanView) -> Any:
    return 1 / 0


@pytest.mark.parametrize(
    ("function", "error", "words"),
    [
        (python_if, ExpressionError, "'python_if'.*a & b for 'a and b'"),
        (python_and, ExpressionError, "a & b for 'a and b'"),
        (chained, ExpressionError, "chained comparison"),
        (crashes, InvalidProblemError, "'crashes' failed: ZeroDivisionError"),
        (lambda view: sys.exit(3), InvalidProblemError, "failed: SystemExit: 3"),
        (lambda view: True, ExpressionError, "returned True, not an expression"),
        (lambda view: None, ExpressionError, "returned None"),
        (lambda view: view.busy_us("gpu"), ExpressionError, "compare it"),
        (lambda view: view.on("nope", "gpu"), InvalidProblemError, "no layer 'nope'"),
        (lambda view: view.on(7, "gpu"), InvalidProblemError, "layers are 0 to 6"),
        (lambda view: view.uses("npu"), InvalidProblemError, "no unit 'npu'; the platform has little"),
        (lambda view: view.cut_after("l6"), InvalidProblemError, "last layer"),
        (lambda: None, InvalidProblemError, "TypeError"),
        ("pin", InvalidProblemError, "is not a rule"),
    ],
)
def test_mistakes_are_explained(function: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        sample_problem().with_rules(function)


@pytest.mark.parametrize(
    ("predicate", "words"),
    [
        (lambda plan: 1 / 0, "failed on the plan.*ZeroDivisionError"),
        (lambda plan: sys.exit(3), "failed on the plan.*SystemExit: 3"),
        (lambda plan: 1, "returned 1"),
    ],
)
def test_a_broken_opaque_rule_is_named(predicate: Any, words: str) -> None:
    problem = sample_problem().with_rules(OpaqueRule(name="mine", predicate=predicate))
    with pytest.raises(InvalidProblemError, match=f"'mine' {words}"):
        check(problem, chain_of(problem).plan(((0, 7, ALL),)))


def test_integers_of_numpy_are_integers() -> None:
    def plain(view: PlanView) -> BoolExpr:
        return 3 * view.busy_us("gpu") <= 5

    def drawn(view: PlanView) -> Any:
        factor: Any = np.int64(3)
        most: Any = np.int32(5)
        return view.busy_us("gpu") * factor <= most

    built = [sample_problem().with_rules(rule).expression_rules[0] for rule in (plain, drawn)]
    assert to_data(built[0].expr) == to_data(built[1].expr)


def test_names_are_unique() -> None:
    with pytest.raises(InvalidProblemError, match="unique"):
        sample_problem().with_rules(at_most(2), at_most(2))


def test_equal_rules_are_equal_values() -> None:
    one, two = (sample_problem().with_rules(at_most(2)) for _ in range(2))
    assert one == two
    assert hash(one.rules[0]) == hash(two.rules[0])
    assert one != sample_problem().with_rules(at_most(3))


def test_the_docstring_is_the_text() -> None:
    def documented(view: PlanView) -> BoolExpr:
        """Keep the gpu free.

        More words.
        """
        return ~view.uses("gpu")

    rule = sample_problem().with_rules(documented).rules[0]
    assert isinstance(rule, Rule)
    assert (rule.name, rule.text) == ("documented", "Keep the gpu free.")


def test_a_problem_without_features_says_so() -> None:
    problem: Problem = sample_problem()
    assert Feature.RULES not in problem.features
    assert {Feature.UNIT_CONFLICTS, Feature.TRANSFERS, Feature.CUT_RESTRICTIONS} <= problem.features
