"""The beginning of a report: one sentence, the figures that count, and how good the plan is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...answers.blocks import Block, Cell, Section, Sentence, Tone, Unit, grid
from ...answers.comparing import SolverAnswer
from ...answers.tuning import compared, rivals
from ...answers.words import (
    WELL_PREDICTED,
    amount,
    capital,
    listed,
    microseconds,
    millis,
    objective_words,
    share,
    size,
    term_name,
    term_value,
)
from ...executor.tuning.result import TuningResult
from ...formulations.deployment import FROM_ARRIVAL
from ...formulations.scores import Score
from ...formulations.shares import shares_of, slowest_latency_us, utilisation
from ...formulations.terms import TermInfo
from ...solvers.protocol import SolveStatus
from ..presenter import presenter_of
from .played import Achieved, achieved, predicted_pace_us, race_row
from .subject import Subject

_MOST_UNITS = 6

Figure = tuple[str, Cell]
"""A number that counts: what it is, its value, and what to think of it."""


def headline(subject: Subject) -> Iterator[Block]:
    """Yield the beginning of a report about a subject: all in a sentence, why, and the figures that count."""
    found, state = achieved(subject), standing(subject)
    yield Sentence(_sentence(subject, found, state))
    if subject.explanation is not None:
        yield Sentence(subject.explanation.summary)
    violations = () if subject.score is None else subject.score.violations
    broken = (Sentence(f"{one.rule}: {one.message}", Tone.BAD) for one in violations)
    yield Section("This plan is not valid for the problem.", tuple(broken))
    figures = dict(_figures(subject, found, state))
    yield grid("Figures", [(label, Unit.TEXT) for label in figures], [tuple(figures.values())])


def utilised(subject: Subject) -> str:
    """Return the predicted utilisation of the platform; "-": not known.

    It is the sum of the busy shares of the units over how many units can work at once. One request at a time
    is no pipeline at work.
    """
    if subject.pace == "latency" or not subject.steady:
        return "-"
    return share(utilisation(subject.problem, shares_of(subject.steady)), 1)


def difference(predicted_us: float | None, found: Achieved | None) -> float | None:
    """Return by how many percent an execution was slower than predicted; None: not known."""
    if not predicted_us or found is None:
        return None
    return 100 * (found.pace_us / predicted_us - 1)


def _sentence(subject: Subject, found: Achieved | None, state: Standing) -> str:
    """Return who runs where, how fast, as predicted and measured, and how good that is."""
    predicted, units = predicted_pace_us(subject), subject.deployment.units
    problem, deployment = subject.problem, subject.deployment
    presenter = presenter_of(problem)
    words = (
        f"{presenter.deployment_words(problem, deployment)} on {_joined(units)} of {problem.platform.name}"
    )
    times = []
    if predicted is not None:
        times.append(f"{_shown(subject, predicted)} (predicted)")
    if found is not None:
        off = difference(predicted, found)
        times.append(
            f"{microseconds(found.pace_us)} ({subject.observed}{'' if off is None else f', {off:+.1f} %'})"
        )
    if times:
        words += f" {presenter.pace_verb(problem, deployment, subject.pace)} {', '.join(times)}"
    text = [f"{words}."]
    judged, plan = subject.score, subject.plan
    if judged is not None and judged.valid and plan is not None and subject.explanation is None:
        text += filter(None, [presenter.pace_words(problem, plan)])
    if judged is not None and (subject.explanation is None or state.kind == "bad"):
        text.append(state.text)  # an explanation says it better
    return " ".join([*text, *_race_words(subject)])


def _shown(subject: Subject, predicted: int) -> str:
    """Return a predicted pace with its unit."""
    return term_value(subject.problem.formulation.terms, subject.pace, predicted)


def _joined(units: Sequence[str]) -> str:
    """Return all names of a few units; of many, the first ones."""
    if len(units) > _MOST_UNITS:
        return listed(units)
    return " and ".join(filter(None, (", ".join(units[:-1]), units[-1])))


def _race_words(subject: Subject) -> list[str]:
    """Return how the race ended for this deployment."""
    result, row = subject.tuning, race_row(subject)
    if result is None or row is None or row.ratio is None:
        return []
    if row is not result.winner:
        return [f"In a race of {result.measured} it {compared(row, result, 'the winner')}."]
    place = "won" if len(result.ties) == 1 else "won a tie in"
    standing = f"It {place} a race of {result.measured}."
    if not result.all_told:
        standing = f"It is the fastest so far of the {result.measured} that were measured."
    if not result.has_verdict:
        standing = f"It is the fastest of the {result.measured} of {len(result.rows)} that were measured."
    return [standing, *rivals(result), *_trust_words(result)]


def _trust_words(result: TuningResult) -> list[str]:
    """Return how far the answer of a race can be trusted, where that was judged."""
    return [] if result.verdict is None else [result.verdict.line]


def _figures(subject: Subject, found: Achieved | None, state: Standing) -> Iterator[Figure]:
    name = capital(term_name(subject.problem.formulation.terms, subject.pace))
    predicted = predicted_pace_us(subject)
    count = len(subject.deployment.streams) if subject.deployment.rounds is not None else 1
    if predicted is not None:
        rate = f"{1e6 * count / predicted:,.1f} requests/s" if subject.runs else ""
        yield f"{name}, predicted", Cell(_shown(subject, predicted), note=rate)
    if found is not None:
        off = difference(predicted, found)
        notes = [f"{1e6 * count / found.pace_us:,.1f} requests/s"]
        notes += [] if off is None else [f"{off:+.1f} % against the prediction"]
        notes += [f"in the {found.source}"] if found.source != "execution" else []
        tone = Tone.PLAIN if off is None else Tone.GOOD if abs(off) <= WELL_PREDICTED else Tone.WARN
        yield f"{name}, {subject.observed}", Cell(microseconds(found.pace_us), tone, "; ".join(notes))
    if subject.pace != "latency":
        yield from _latency(subject, found)
    yield from _score_figures(subject)
    if subject.score is not None:
        yield "Standing", Cell(state.label, state.kind, _objective(subject))


def _latency(subject: Subject, found: Achieved | None) -> Iterator[Figure]:
    """Yield the latencies that are known: a request that waits is not compared with one that does not."""
    judged, name = subject.score, subject.deployment.latency_name
    predicted, which = (None, "") if judged is None else presenter_of(subject.problem).latency(judged)
    if subject.is_endless_workload:
        predicted = None  # that of the first round, which finds all units idle
    slowest = "of the slowest request, " if which == FROM_ARRIVAL else ""
    if found is not None and found.latency_us is not None:
        note = f"{slowest}median, {subject.observed}"
        if which == name:
            note, predicted = f"{note}; {millis(predicted)} predicted", None
        elif subject.steady and subject.deployment.rounds is None:
            note = f"{note}; {millis(round(slowest_latency_us(subject.steady)))} predicted"
        yield capital(name), Cell(microseconds(found.latency_us), note=note)
    if predicted is not None:
        yield capital(which), Cell(millis(predicted), note=f"{slowest}predicted")


def _score_figures(subject: Subject) -> Iterator[Figure]:
    judged, platform = subject.score, subject.problem.platform
    used, whole = len(subject.deployment.units), utilised(subject)
    if whole == "-":
        yield "Units", Cell(f"{used} of {len(platform.units)}", note="in use")
    else:
        at_once = f"predicted, of the {platform.most_at_once} units that can work at once; {used} in use"
        yield "Utilisation", Cell(whole, note=at_once)
    if judged is None:
        return
    if whole != "-" and "bubbles_us" in judged.terms:
        yield "Bubbles", Cell(_bubbles(subject, judged), note=_bubbles_note(subject))
    has = "" if platform.memory_bytes is None else f"of {size(platform.memory_bytes)}"
    if judged.terms.get("peak_bytes"):
        yield "Peak memory", Cell(size(judged.peak_bytes), note=has)


def _bubbles(subject: Subject, judged: Score) -> str:
    """Return the idle times of the units in use; of a stream of rounds in its steady state."""
    if not subject.is_endless_workload:
        return millis(judged.bubbles_us)
    return millis(round(sum(one.idle_us for one in shares_of(subject.steady).values())))


def _bubbles_note(subject: Subject) -> str:
    return "predicted, over all units" if subject.deployment.is_batch else "predicted, in each period"


def _objective(subject: Subject) -> str:
    return f"objective: {objective_words(subject.problem.formulation.terms, subject.problem.objective)}"


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
