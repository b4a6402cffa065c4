"""The canonical order of plans as levels: integer keys of a plan, most important first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from ...formulations.expr import BoolExpr, Expr, linear
from ...formulations.model import Digits, Encoded
from ...formulations.problem import Problem
from ...formulations.terms import PlanNumbers
from .lowering import Lowering


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What to minimise in order to learn about one level."""

    objective: Expr  # in normal form
    at_least: int | None  # a known lower bound of the objective over the plans not yet seen, or None
    learn: Callable[[int], int]  # from a proven lower bound of the objective to one of the level


class Level(Protocol):
    """One integer key of a plan."""

    def value(self, code: Any, numbers: PlanNumbers) -> int:
        """Return the key of a plan."""
        ...

    def at_most(self, most: int) -> BoolExpr:
        """Return the condition that the key is at most a number."""
        ...

    def question(self, least: int, known: int | None) -> Question:
        """Return what to minimise, given that the key of every plan not yet seen is at least `least`.

        `known` is the least key among the plans that are seen already, or None.
        """
        ...


class TermLevel:
    """An objective term that is an integer quantity, given by an expression."""

    def __init__(self, lowering: Lowering, term: str, expr: Expr) -> None:
        self._lowering = lowering
        self._term = term
        self._expr = lowering.number(expr)

    def value(self, code: Any, numbers: PlanNumbers) -> int:
        """Return the term of a plan."""
        return numbers.term(self._term)

    def at_most(self, most: int) -> BoolExpr:
        """Return "the term is at most `most`"."""
        return self._lowering.at_most(self._expr, most)

    def question(self, least: int, known: int | None) -> Question:
        """Minimise the term itself."""
        return Question(objective=self._expr, at_least=least, learn=lambda bound: max(bound, least))


class RatioLevel:
    """An objective term that is a ratio of two quantities, such as the share of the platform that is idle.

    `ratio <= v` is linear for a fixed v, so the least ratio is found as in Dinkelbach (1967): minimise
    the excess over v; when it is positive no plan reaches v, otherwise its plan gives the next v.

    `excess`: from v to an expression that is at most 0 exactly if the term is at most v (`TermInfo.excess`).
    """

    def __init__(self, lowering: Lowering, term: str, excess: Callable[[int], Expr]) -> None:
        self._lowering = lowering
        self._term = term
        self._excess = excess

    def value(self, code: Any, numbers: PlanNumbers) -> int:
        """Return the term of a plan."""
        return numbers.term(self._term)

    def at_most(self, most: int) -> BoolExpr:
        """Return "the term is at most `most`"."""
        return self._lowering.at_most(self._excess(most), 0)

    def question(self, least: int, known: int | None) -> Question:
        """Minimise the excess over the best value that is not refuted."""
        target = least if known is None or known <= least else known - 1
        objective = self._lowering.number(self._excess(target))
        return Question(
            objective=objective,
            at_least=None,
            learn=lambda bound: max(least, target + 1) if bound > 0 else least,
        )


class OrderLevel:
    """A few digits of the canonical order, as one number (`Digits`)."""

    def __init__(self, lowering: Lowering, digits: Digits[Any], first: int, stop: int) -> None:
        self._lowering, self._digits = lowering, digits
        self._first, self._stop = first, stop
        weights = [digits.base ** (stop - 1 - place) for place in range(first, stop)]
        terms = zip(weights, digits.symbols[first:stop], strict=True)
        self._expr = lowering.number(linear(terms))

    def value(self, code: Any, numbers: PlanNumbers) -> int:
        """Return the number that stands for these digits of a plan."""
        number = 0
        for digit in self._digits.of(code)[self._first : self._stop]:
            number = number * self._digits.base + digit
        return number

    def at_most(self, most: int) -> BoolExpr:
        """Return "the number is at most `most`"."""
        return self._lowering.at_most(self._expr, most)

    def question(self, least: int, known: int | None) -> Question:
        """Minimise the number itself."""
        return Question(objective=self._expr, at_least=least, learn=lambda bound: max(bound, least))


def build_levels(
    problem: Problem, encoded: Encoded[Any], lowering: Lowering, largest_number: int
) -> tuple[Level, ...]:
    """Return the levels of the canonical order: the terms that rank plans, then the digits of the order.

    `largest_number`: digits are taken together as long as their number stays below this.
    """
    levels: list[Level] = [_term_level(problem, term, lowering) for term in problem.ranking]
    digits = encoded.digits
    if digits is None:
        return tuple(levels)
    width = 1
    while digits.base ** (width + 1) <= largest_number:
        width += 1
    count = len(digits.symbols)
    starts = range(0, count, width)
    levels += (OrderLevel(lowering, digits, first, min(first + width, count)) for first in starts)
    return tuple(levels)


def _term_level(problem: Problem, term: str, lowering: Lowering) -> Level:
    info = problem.formulation.terms[term]
    if info.excess is not None:
        return RatioLevel(lowering, term, partial(info.excess, problem.tables))
    variable = problem.formulation.variables(problem).number(info.field)
    return TermLevel(lowering, term, variable)
