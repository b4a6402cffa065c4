"""How good a plan is, and what each backend answered to the same problem."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...answers.blocks import Block, Section, Sentence, Tone
from ...answers.charts import Axis, Bar, Bars, Part, Track
from ...answers.charts import Tone as Colour
from ...answers.comparing import SolverAnswer, backends, paces
from ...answers.courses import Course, courses_chart
from ...answers.words import amount
from ...formulations.terms import TermInfo
from ...solvers.protocol import Guarantee, SolveStatus
from .subject import Subject


def answers(subject: Subject) -> Iterator[Block]:
    """Yield what the backends answered to the problem of a subject, if any was asked."""
    found = subject.answers
    if not found:
        return
    terms = [subject.problem.formulation.terms[name] for name in subject.problem.objective.terms]
    term = terms[0]
    values = [value for a in found for value in (a.objective, a.bound) if value is not None]
    low, high = min(values, default=0), max(values, default=0)
    yield Sentence(_words(found, term, best_bound(subject), subject.problem.plan_class))
    if high > low:
        yield _ranges(found, term, low, high)
        yield Sentence(
            f"From {amount(term.dimension, low)} to {amount(term.dimension, high)}. A dot is a plan, a bar a "
            "bound: no plan of the class lies to its left. What lies between is open.",
            Tone.SOFT,
        )
    yield backends(found, terms)
    longest = max((a.runtime_s for a in found if a.course), default=0.0)
    chart = courses_chart([Course(name=a.label, milestones=a.course) for a in found], term, longest)
    if chart is not None:
        words = (
            "Plans are judged before they are drawn; bounds below half of the best one lie at the lower edge."
        )
        yield Section("Plans and bounds over time", (chart, paces(found), Sentence(words, Tone.SOFT)))


def _words(
    found: tuple[SolverAnswer, ...], term: TermInfo, bound: tuple[int, str] | None, plan_class: str
) -> str:
    """Return who is best, and by how much heuristics miss what exact backends have found."""
    known = [a for a in found if a.objective is not None]
    if not known:
        none = [a.label for a in found if a.status == SolveStatus.INFEASIBLE]
        proof = f" Proved by {', '.join(none)}: none is valid among {plan_class}." if none else ""
        return f"No backend has found a plan.{proof}"
    best = min(a.objective for a in known if a.objective is not None)
    first = [a.label for a in known if a.objective == best]
    words = [f"Least {term.label}: {amount(term.dimension, best)} ({', '.join(first)})"]
    proved = [a.label for a in known if a.status == SolveStatus.OPTIMAL]
    if proved:
        words.append(f"proved by {', '.join(proved)} among {plan_class}")
    elif bound is not None and bound[0] < best:
        least = f"{amount(term.dimension, bound[0])} ({bound[1]})"
        words.append(f"not proved; no valid one has less than {least} among {plan_class}")
    else:
        words.append("not proved")
    missed = [a for a in known if a.guarantee != Guarantee.EXACT and (a.objective or 0) > best > 0]
    words += [f"{a.label} misses it by {100 * ((a.objective or 0) / best - 1):.2f} %" for a in missed]
    return f"{'; '.join(words)}."


def _ranges(found: tuple[SolverAnswer, ...], term: TermInfo, low: int, high: int) -> Bars:
    """Return the plan and the bound of each backend on the axis of the objective."""
    bars = []
    for one in found:
        known = {"plan": one.objective, "bound": one.bound}
        parts = [f"{what} {amount(term.dimension, v)}" for what, v in known.items() if v is not None]
        still: tuple[Part, ...] = ()
        if one.objective is not None and one.bound is not None:
            still = (Part(start=one.bound, length=one.objective - one.bound, colour=Colour.OPEN),)
        said = ", ".join(parts) or "no plan, no bound"
        track = Track(parts=still, plan=one.objective, bound=one.bound, note=said)
        bars += [] if one.failure else [Bar(name=one.label, note=one.guarantee, tracks=(track,))]
    return Bars(
        title="Plan and bound of each backend",
        across=Axis(name=term.label, low=low, high=high),
        rows=tuple(bars),
    )


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
