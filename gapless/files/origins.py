"""What a file of plans knows of their problem, so that `gapless simulate PLAN` finds it again."""

from __future__ import annotations

from dataclasses import replace

from ..api.asked import problem_of
from ..formulations.errors import InvalidInputError
from ..formulations.files import Origin, with_written_rules
from ..formulations.problem import Problem
from ..question.question import Question


def question_of(origin: Origin) -> Question:
    """Return what was asked; raises InvalidInputError: in words that this gapless does not know."""
    return Question.of_texts(origin.asked)


def on_problem(origin: Origin, problem: str) -> Origin:
    """Return an origin with another problem: the workload that was asked for, on other costs and units.

    Rules are about the layers and units of one problem, and are left behind.
    """
    return Origin(asked=replace(question_of(origin), platform=None, problem=problem).texts())


def remembered_problem(origin: Origin) -> Problem:
    """Return the problem that an origin names, with its objective, limits and rules.

    Raises InvalidInputError: it names nothing, or something that is not there; an objective, a limit or a
    rule is not valid.
    """
    return with_remembered_rules(problem_of(question_of(origin)), origin)


def with_remembered_rules(problem: Problem, origin: Origin) -> Problem:
    """Return a problem with the rules that a plan file remembers and that it does not have already."""
    own = {rule.name for rule in problem.rules}
    try:
        return with_written_rules(problem, [rule for rule in origin.rules if rule.name not in own])
    except InvalidInputError as error:
        raise InvalidInputError(
            "the problem has changed since the plan was made; give its rules again with --rules:",
            error.problems,
        ) from None


def forgotten(origin: Origin, problem: Problem) -> tuple[str, ...]:
    """Return what to say about rules that a plan file could not keep, and its problem has not."""
    known = {rule.name for rule in problem.rules}
    names = ", ".join(repr(name) for name in origin.opaque_rules if name not in known)
    if not names:
        return ()
    return (f"the plan was made with opaque rules, which no file can keep: {names}; add them with --rules",)
