"""The judge: checks and scores every plan in exact integers. Nobody else decides what a plan is worth."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from functools import partial

from .errors import MalformedPlanError
from .limits import limits_missed
from .plan import Plan
from .problem import Problem
from .scores import Score, Violation
from .terms import PlanNumbers

_REMEMBERED = 16
"""Scores that are kept with a problem: backends and whoever asks them have the same plans judged."""


def score(problem: Problem, plan: Plan) -> Score:
    """Check and score one plan; the latest scores of a problem are remembered.

    Raises
    ------
    MalformedPlanError
        The plan is not well formed for the problem (unknown names, a unit with two chunks, gaps or
        overlaps, a layer that its unit cannot run), so that no score can be computed. Every other
        defect is a violation.

    Examples
    --------
    >>> import gapless
    >>> problem = gapless.load_problem("pixel7a/alexnet-sparse")
    >>> found = gapless.score(problem, gapless.plan(problem).plan)
    >>> found.period_us, found.valid
    (7648, True)
    """
    latest = problem.judged
    found = latest.get(plan)
    if found is None:
        found = latest[plan] = _scored(problem, plan)
        if len(latest) > _REMEMBERED:
            del latest[next(iter(latest))]
    return found


def _scored(problem: Problem, plan: Plan) -> Score:
    formulation, charged = problem.formulation, problem.charged(plan)
    code = formulation.code(charged, plan)
    numbers = formulation.numbers(charged, code)
    known, asked = charged.known_terms, {*charged.ranking, *charged.limited_terms}
    later = {info.field: name for name, info in known.items() if info.costly and name not in asked}
    return Score(
        terms={info.field: numbers.term(name) for name, info in known.items() if info.field not in later},
        later={field: partial(numbers.term, name) for field, name in later.items()},
        columns=formulation.columns(numbers),
        names=formulation.fields,
        key=formulation.key(charged, code),
        throughput=formulation.rate(numbers),
        violations=tuple(violations(charged, code, numbers, plan)),
    )


def ranked(problem: Problem, plan: Plan) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Return the key of a valid plan (`rank_key`); None for one that breaks something."""
    formulation, charged = problem.formulation, problem.charged(plan)
    code = formulation.code(charged, plan)
    numbers = formulation.numbers(charged, code)
    if next(violations(charged, code, numbers, plan), None) is not None:
        return None
    return numbers.values(problem.ranking), formulation.key(charged, code)


def check(problem: Problem, plan: Plan) -> tuple[Violation, ...]:
    """Return everything that a plan breaks, malformed plans included; empty for a valid plan.

    Examples
    --------
    >>> from dataclasses import replace
    >>> import gapless
    >>> problem = gapless.load_problem("pixel7a/alexnet-sparse")
    >>> best = gapless.plan(problem).plan
    >>> gapless.check(problem, best)
    ()
    >>> hasty = replace(problem, limits=gapless.Limits(max_period_us=7000))
    >>> [violation.message for violation in gapless.check(hasty, best)]
    ['max_period_us is 7000, the plan has 7648']
    """
    charged = problem.charged(plan)
    try:
        code = charged.formulation.code(charged, plan)
    except MalformedPlanError as error:
        return error.violations
    return examined(charged, code, plan)[1]


def malformations(problem: Problem, plan: Plan) -> tuple[Violation, ...]:
    """Return what keeps a plan from having a score at all; empty for a well-formed one."""
    try:
        problem.formulation.code(problem, plan)
    except MalformedPlanError as error:
        return error.violations
    return ()


def examined(
    problem: Problem, code: Hashable, plan: Plan | None = None
) -> tuple[PlanNumbers, tuple[Violation, ...]]:
    """Return the numbers of a well-formed plan by index, and everything that it breaks.

    `code`, `plan`: the plan by index, and by name where that is known.
    """
    numbers = problem.formulation.numbers(problem, code)
    return numbers, tuple(violations(problem, code, numbers, plan))


def rank_key(problem: Problem, plan_score: Score) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the key of the canonical order of plans: objective, tie-break, then the plan itself."""
    return plan_score.values(problem.ranking), plan_score.key


def violations(
    problem: Problem, code: Hashable, numbers: PlanNumbers, plan: Plan | None = None
) -> Iterator[Violation]:
    """Yield everything that a well-formed plan by index breaks; parameters as for `examined`."""
    formulation = problem.formulation
    yield from formulation.broken(problem, code, numbers)
    for name, value, limit in limits_missed(problem.limits, numbers):
        yield Violation(rule=name, message=f"{name} is {limit}, the plan has {value}")
    for rule in problem.expression_rules:
        if not rule.holds(numbers):
            yield Violation(rule=rule.name, message=rule.text or "the rule does not hold")
    for opaque in problem.opaque_rules:
        plan = formulation.plan(problem, code) if plan is None else plan
        if not opaque.holds(plan):
            yield Violation(rule=opaque.name, message=opaque.text or "the predicate is false")
