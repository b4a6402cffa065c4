"""The canonical order of plans as levels: integer keys of a plan, most important first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

from ...formulations.chain import Chain, Part
from ...formulations.chunking.quantities import PlanValues
from ...formulations.chunking.totals import idle_excess, term_expr
from ...formulations.expr import BoolExpr, Expr, linear
from ...formulations.model import Encoded
from ...formulations.objective import Term
from ...formulations.problem import Problem
from .lowering import Lowering


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What to minimise in order to learn about one level.

    Attributes
    ----------
    objective
        In normal form.
    at_least
        A known lower bound of the objective over the plans not yet seen, or None.
    learn
        From a proven lower bound of the objective to one of the level.
    """

    objective: Expr
    at_least: int | None
    learn: Callable[[int], int]


class Measured(Protocol):
    """The numbers of a plan that terms speak of."""

    @property
    def idle_permille(self) -> int:
        """Unused share."""
        ...

    def term(self, term: Term) -> int:
        """Return the value of an objective term."""
        ...


ValuesT_contra = TypeVar("ValuesT_contra", contravariant=True)


class Level(Protocol[ValuesT_contra]):
    """One integer key of a plan."""

    def value(self, values: ValuesT_contra) -> int:
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

    def __init__(self, lowering: Lowering, term: Term, expr: Expr) -> None:
        self._lowering = lowering
        self._term = term
        self._expr = lowering.number(expr)

    def value(self, values: Measured) -> int:
        """Return the term of a plan."""
        return values.term(self._term)

    def at_most(self, most: int) -> BoolExpr:
        """Return "the term is at most `most`"."""
        return self._lowering.at_most(self._expr, most)

    def question(self, least: int, known: int | None) -> Question:
        """Minimise the term itself."""
        return Question(objective=self._expr, at_least=least, learn=lambda bound: max(bound, least))


class IdleLevel:
    """The share of the platform that is idle: a ratio of two quantities.

    `idle <= v` is linear for a fixed v, so the least ratio is found as in Dinkelbach (1967): minimise
    the excess over v; when it is positive no plan reaches v, otherwise its plan gives the next v.

    Parameters
    ----------
    lowering
        How expressions are rewritten.
    excess
        From v to an expression that is at most 0 exactly if at most v permille are idle.
    """

    def __init__(self, lowering: Lowering, excess: Callable[[int], Expr]) -> None:
        self._lowering = lowering
        self._excess = excess

    def value(self, values: Measured) -> int:
        """Return the idle permille of a plan."""
        return values.idle_permille

    def at_most(self, most: int) -> BoolExpr:
        """Return "at most `most` permille are idle"."""
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
    """A few layers of the chunk order, as one number to the base (units + 1); see `Encoded.symbols`."""

    def __init__(self, lowering: Lowering, encoded: Encoded, units: int, first: int, stop: int) -> None:
        self._lowering = lowering
        self._first, self._stop, self._base = first, stop, units + 1
        weights = [self._base ** (stop - 1 - layer) for layer in range(first, stop)]
        terms = zip(weights, encoded.symbols[first:stop], strict=True)
        self._expr = lowering.number(linear(terms))

    def value(self, values: PlanValues) -> int:
        """Return the number that stands for the ends of chunks among these layers."""
        ends = {stop - 1: unit for _, stop, unit in values.parts}
        number = 0
        for layer in range(self._first, self._stop):
            number = number * self._base + ends.get(layer, self._base - 1)
        return number

    def at_most(self, most: int) -> BoolExpr:
        """Return "the number is at most `most`"."""
        return self._lowering.at_most(self._expr, most)

    def question(self, least: int, known: int | None) -> Question:
        """Minimise the number itself."""
        return Question(objective=self._expr, at_least=least, learn=lambda bound: max(bound, least))


def build_levels(
    problem: Problem, encoded: Encoded, lowering: Lowering, largest_number: int
) -> tuple[Level[PlanValues], ...]:
    """Return the levels of the canonical order: the ranking of the objective, then the chunk order.

    Parameters
    ----------
    problem, encoded, lowering
        The problem, its model and how expressions are rewritten.
    largest_number
        Layers are taken together as long as their number stays below this.
    """
    chain = problem.chain
    levels: list[Level[PlanValues]] = [
        IdleLevel(lowering, partial(idle_excess, chain))
        if term is Term.IDLE
        else TermLevel(lowering, term, term_expr(chain, term))
        for term in problem.objective.ranking
    ]
    width = 1
    while (chain.unit_count + 1) ** (width + 1) <= largest_number:
        width += 1
    for first in range(0, chain.layer_count, width):
        stop = min(first + width, chain.layer_count)
        levels.append(OrderLevel(lowering, encoded, chain.unit_count, first, stop))
    return tuple(levels)


def key_of(levels: tuple[Level[PlanValues], ...], chain: Chain, parts: tuple[Part, ...]) -> tuple[int, ...]:
    """Return the position of a plan in the canonical order."""
    values = PlanValues(chain, parts)
    return tuple(level.value(values) for level in levels)
