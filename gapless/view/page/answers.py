"""How good a plan is, by its explanation and by what backends answered to the same problem."""

from __future__ import annotations

from dataclasses import dataclass

from ...answers.blocks import Tone
from ...answers.comparing import SolverAnswer
from ...answers.words import amount
from ...formulations.terms import TermInfo
from ...solvers.protocol import SolveStatus
from .subject import Subject


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How good a plan is."""

    label: str  # in two or three words
    text: str  # in a sentence
    kind: Tone  # good: proved to be the best; warn: found, not proved; bad: something better is known


_NO_PLAN = Standing(
    label="no plan", text="Replicas are no plan: no solver speaks about them.", kind=Tone.PLAIN
)


def standing(subject: Subject) -> Standing:
    """Return how good the plan of a subject is, by its explanation and by what the backends answered."""
    if subject.score is None:
        return _NO_PLAN
    objective = subject.problem.objective
    infos, term = subject.problem.formulation.terms, objective.terms[0]
    value = subject.score.value(term)
    known, plan_class = subject.explanation, subject.problem.plan_class
    better = [a for a in subject.answers if a.objective is not None and a.objective < value]
    if objective.period_slack_permille is None and better:
        return _beaten(min(better, key=lambda answer: answer.objective or 0), infos[term], value)
    if known is not None and known.proven:
        return Standing(
            label="proved best", text=f"Proved: no valid one is better among {plan_class}.", kind=Tone.GOOD
        )
    if known is not None and known.next_best.values is not None and known.next_best.values < known.values:
        return Standing(label="not the best", text="A better plan is known: see below.", kind=Tone.BAD)
    return _bounded(subject, infos[term], value)


def best_bound(subject: Subject) -> tuple[int, str] | None:
    """Return the largest bound on the first objective term, and who has proved it; None: there is none."""
    found = [(answer.bound, answer.label) for answer in subject.answers if answer.bound is not None]
    return max(found, key=lambda pair: pair[0], default=None)


def _bounded(subject: Subject, term: TermInfo, value: int) -> Standing:
    if subject.problem.objective.period_slack_permille is not None:
        return Standing(label="not proved", text="Found, not proved to be the best.", kind=Tone.WARN)
    name, bound = term.label, best_bound(subject)
    if bound is not None and bound[0] >= value:
        optimal = [a.label for a in subject.answers if a.status == SolveStatus.OPTIMAL]
        by = ", ".join(optimal) or bound[1]
        text = f"Proved by {by}: no valid one has less {name} among {subject.problem.plan_class}."
        return Standing(label="proved best", text=text, kind=Tone.GOOD)
    if bound is None or not value:
        text = "Found, not proved: nothing is known about how much better a plan can be."
        return Standing(label="not proved", text=text, kind=Tone.WARN)
    gap = 100 * (value - bound[0]) / value
    text = (
        f"Found, not proved; at most {gap:.1f} % could be gained: no valid one has less {name} than "
        f"{amount(term.dimension, bound[0])} ({bound[1]}) among {subject.problem.plan_class}."
    )
    return Standing(label=f"gap {gap:.1f} %", text=text, kind=Tone.WARN)


def _beaten(best: SolverAnswer, term: TermInfo, value: int) -> Standing:
    assert best.objective is not None
    less = 100 * (value - best.objective) / value
    text = (
        f"Not the best plan: {best.label} has found one with {term.label} "
        f"{amount(term.dimension, best.objective)}, {less:.1f} % less."
    )
    return Standing(label="not the best", text=text, kind=Tone.BAD)
