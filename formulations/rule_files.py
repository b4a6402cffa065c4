"""Rules as they stand in the files of problems and plans."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .errors import ExpressionError, InvalidInputError, InvalidProblemError
from .expr import from_data, to_data
from .problem import Problem
from .rules import Rule
from .validation import FileContent


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleDocument(FileContent):
    """One rule of a problem file."""

    name: str
    """Name of the rule, as messages call it."""
    expr: Any
    """What must hold, as nested lists (see `formulations.expr`)."""
    text: str = ""
    """What it means, in words."""


def with_written_rules(problem: Problem, written: Iterable[RuleDocument]) -> Problem:
    """Return a problem with rules of a file.

    Raises InvalidInputError: some of them are not about this problem: each is named.
    """
    listed = tuple(written)
    if not listed:
        return problem
    rules, defects, find = [], [], problem.formulation.variables(problem).find
    for index, rule in enumerate(listed):
        try:
            expr = from_data(rule.expr, find)
            rules.append(Rule(name=rule.name, text=rule.text, expr=expr))
        except (InvalidInputError, ExpressionError, RecursionError) as error:
            defects.append(f"rules[{index}] {rule.name!r}: {error}")
    if defects:
        raise InvalidProblemError("not all rules are about this problem:", defects)
    return problem.with_rules(*rules)


def written_rules(problem: Problem) -> tuple[RuleDocument, ...]:
    """Return the rules of a problem that have a written form."""
    return tuple(
        RuleDocument(name=rule.name, text=rule.text, expr=to_data(rule.expr))
        for rule in problem.expression_rules
    )
