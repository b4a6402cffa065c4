"""Rules: constraints that a user adds in Python.

A rule function takes the view of a problem (`Problem.view`) and returns an expression; it runs once, when it
is added to a problem, and never sees a plan. An `OpaqueRule` is any Python predicate on a finished plan.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from .errors import ExpressionError, InvalidProblemError
from .expr import BoolExpr, Expr, Variable, as_bool
from .plan import Plan
from .validation import Defects, python_hint


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rule:
    """A constraint written as an expression: exact backends lower it, everybody evaluates it.

    Attributes
    ----------
    name
        Name for messages and results.
    expr
        Must be true.
    text
        The rule in words.
    """

    name: str
    expr: BoolExpr
    text: str = ""

    def __post_init__(self) -> None:
        _check_name(self.name)
        if not isinstance(self.expr, BoolExpr):
            raise InvalidProblemError(f"rule {self.name!r}: its expression must be true or false")

    def holds(self, values: Callable[[Variable], int]) -> bool:
        """Return whether a plan satisfies the rule."""
        return bool(self.expr.evaluate(values))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rule) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class OpaqueRule:
    """Any Python predicate on a finished plan; backends can only check it, plan by plan.

    Attributes
    ----------
    name
        Name for messages and results.
    predicate
        Takes a `Plan`, returns True or False.
    text
        The rule in words.
    """

    name: str
    predicate: Callable[[Plan], bool]
    text: str = ""

    def __post_init__(self) -> None:
        _check_name(self.name)

    def __repr__(self) -> str:
        # Without the address of the predicate: the fingerprint of a problem is made of this.
        where = getattr(self.predicate, "__qualname__", type(self.predicate).__qualname__)
        return f"OpaqueRule(name={self.name!r}, predicate={where}, text={self.text!r})"

    def holds(self, plan: Plan) -> bool:
        """Return whether a plan satisfies the rule.

        Raises
        ------
        InvalidProblemError
            The predicate failed, or did not return True or False.
        """
        try:
            verdict = self.predicate(plan)
        except (Exception, SystemExit) as error:
            raise InvalidProblemError(
                f"rule {self.name!r} failed on the plan [{plan}]: {type(error).__name__}: {error}"
            ) from error
        if not isinstance(verdict, bool):
            raise InvalidProblemError(
                f"rule {self.name!r} returned {verdict!r} for the plan [{plan}]; "
                "an opaque rule returns True or False"
            )
        return verdict


class RuleFunction(Protocol):
    """A function that builds a rule from a view."""

    def __call__(self, view: Any, /) -> BoolExpr:
        """Return an expression that must be true; `view` is `Problem.view`."""
        ...


AnyRule = Rule | OpaqueRule


def build_rule(source: RuleFunction | AnyRule, view: Any) -> AnyRule:
    """Return a rule from a rule function; rules pass through.

    Raises ExpressionError: the function used Python where an expression is needed, or returned something
    else.
    Raises InvalidProblemError: the function names something that is not there, or failed.
    """
    if isinstance(source, Rule | OpaqueRule):
        return source
    if not callable(source):
        raise InvalidProblemError(f"{source!r} is not a rule: give a function of a view, or a Rule")
    name = getattr(source, "__name__", type(source).__name__)
    try:
        result = as_bool(_expression(source(view)))
    except ExpressionError as error:
        raise ExpressionError(f"rule {name!r}: {error}") from error
    except InvalidProblemError as error:
        raise InvalidProblemError(f"rule {name!r}: {error}") from error
    except (Exception, SystemExit) as error:
        hint = python_hint(error)
        if isinstance(error, AttributeError) and error.obj is view:
            hint += getattr(view, "elsewhere", "")
        raise InvalidProblemError(f"rule {name!r} failed: {type(error).__name__}: {error}{hint}") from error
    text = (getattr(source, "__doc__", None) or "").strip().split("\n")[0]
    return Rule(name=name, expr=result, text=text)


def _expression(result: object) -> Expr:
    if isinstance(result, bool) or not isinstance(result, Expr):
        raise ExpressionError(
            f"it returned {result!r}, not an expression. Return e.g. view.busy_us('gpu') <= 9000; "
            "for a Python predicate on finished plans use OpaqueRule; "
            "for a constant use Const(0) or Const(1)"
        )
    return result


def _check_name(name: str) -> None:
    defects = Defects(f"rule {name!r}")
    defects.check_name("name", name)
    defects.raise_as(InvalidProblemError)


def named(name: str, text: str, build: RuleFunction) -> RuleFunction:
    """Return a rule function with the name and the words that its rule shall have."""
    build.__name__, build.__doc__ = name, text  # type: ignore[attr-defined]
    return build
