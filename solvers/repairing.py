"""Repairs: plans of heuristics that know no rules, changed until they keep to them.

A heuristic plans as its paper says, and its plan may then break a rule of the user, a limit, the memory of
the device or a deadline. A repair goes downhill from there: of the plans that are one small change away
(`Formulation.neighbours`) it takes the one that breaks least, and among those that break nothing the best
one. It is bounded, so that a heuristic stays quick, and may fail.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

from ..formulations.expr import And, BoolExpr, Expr, LessEq, Not, Or, Variable
from ..formulations.judge import examined
from ..formulations.limits import LIMITS, limits_missed
from ..formulations.problem import Problem
from .protocol import Deadline


def missed_by(value: int, limit: int) -> int:
    """Return how far a value is from a limit that it does not keep, in permille of the larger one."""
    return 1 + 1000 * abs(value - limit) // max(value, limit, 1)


def shortfall(expr: BoolExpr, value: Callable[[Variable], int], *, wanted: bool = True) -> int:
    """Return how far a condition is from being true (or false): 0 exactly if it is.

    A comparison that fails counts the difference in permille of its larger side, a conjunction the sum
    of its parts, a disjunction the least of them, anything else 1.
    """
    match expr:
        case Not():
            return shortfall(expr.arg, value, wanted=not wanted)
        case And() | Or():
            parts = (shortfall(arg, value, wanted=wanted) for arg in expr.args)
            every = isinstance(expr, And) is wanted
            return sum(parts) if every else min(parts, default=1)
        case LessEq():
            sides = (expr.left, expr.right) if wanted else (expr.right, expr.left)
            return _apart(*sides, value, margin=0 if wanted else 1)
        case _:
            return int(bool(expr.evaluate(value)) is not wanted)


def _apart(low: Expr, high: Expr, value: Callable[[Variable], int], *, margin: int) -> int:
    below, above = low.evaluate(value) + margin, high.evaluate(value)
    if below <= above:
        return 0
    return 1 + 1000 * (below - above) // max(abs(below), abs(above), 1)


MOST_REPAIRED = 3
"""Plans of one heuristic that are repaired: those that break least."""

_STEPS = 12
_TRIED = 400
"""Changes after one another, and plans that are tried for each of them: some by chance, if there are more."""

_LOOKED_AT = 10_000
"""Plans that are drawn from: those of a thousand requests have hundreds of thousands a change away."""

_WHOLE = 1000
"""What counts as much as missing a limit by all of it: a broken fact, or an opaque rule."""

CodeT = TypeVar("CodeT", bound=Hashable)

Breach = tuple[int, tuple[int, ...]]
"""How much a plan breaks, and its values in the order of the objective."""


def repair(
    problem: Problem, codes: Sequence[CodeT], deadline: Deadline, keep: Callable[[CodeT], object]
) -> int:
    """Repair those of some plans that break least; return how many that made valid.

    `codes`: well-formed plans by index that break something.
    """
    count = 0
    for key, code in least_broken(problem, codes, deadline):
        repaired = downhill(problem, code, key, deadline)
        if repaired is not None:
            keep(repaired)
            count += 1
    return count


def least_broken(problem: Problem, codes: Sequence[CodeT], deadline: Deadline) -> list[tuple[Breach, CodeT]]:
    """Return the valid plans of one heuristic and those to repair, with what they break and their values."""
    keyed = sorted((breach(problem, code), place) for place, code in enumerate(codes) if not deadline.passed)
    valid = sum(key[0] == 0 for key, _ in keyed)
    return [(key, codes[place]) for key, place in keyed[: valid + MOST_REPAIRED]]


def downhill(problem: Problem, code: CodeT, key: Breach, deadline: Deadline) -> CodeT | None:
    """Return what becomes of a plan with such a breach; None if it still breaks something."""
    for step in range(_STEPS):
        before = key
        for other in _drawn(problem.formulation.neighbours(problem, code), random.Random(step)):
            if deadline.passed:
                break
            found = breach(problem, other)
            if found < key:
                code, key = other, found
        if key[0] == 0:
            return code
        if key[0] == before[0]:
            return None
    return None


def _drawn(near: Iterator[CodeT], rng: random.Random) -> list[CodeT]:
    """Return all of a few plans, or as many as are tried of many, each with the same chance."""
    drawn: list[CodeT] = []
    for count, other in enumerate(islice(near, _LOOKED_AT)):
        place = count if count < _TRIED else rng.randrange(count + 1)
        if place == len(drawn):
            drawn.append(other)
        elif place < _TRIED:
            drawn[place] = other
    return drawn


def breach(problem: Problem, code: Hashable) -> Breach:
    """Return how far a plan is from keeping to everything, and its values."""
    numbers, broken = examined(problem, code)
    values = numbers.values(problem.objective.terms)
    if not broken:
        return 0, values
    own = {*LIMITS, *(rule.name for rule in problem.expression_rules)}
    excess = _WHOLE * sum(violation.rule not in own for violation in broken)
    excess += sum(missed_by(value, limit) for _, value, limit in limits_missed(problem.limits, numbers))
    excess += sum(shortfall(rule.expr, numbers) for rule in problem.expression_rules)
    return max(excess, 1), values
