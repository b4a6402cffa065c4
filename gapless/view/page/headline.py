"""The beginning of a report: one sentence, the figures that count, and the plan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...executor.tuning.candidates import CandidateKind
from ...formulations.flow_shop.tables import workload_in
from ..explaining.reasons import listed
from ..words import microseconds, millis, objective_words, percent, size
from .execution import Achieved, achieved, predicted_pace_us, race_row
from .standing import Standing, standing
from .subject import Subject

_MOST_UNITS = 6

_WELL_PREDICTED = 10.0
"""Percent by which a prediction may be off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A number that counts: what it is, its value, and what to think of it ("good", "warn", "bad", "")."""

    label: str
    value: str
    note: str = ""
    kind: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """The beginning.

    Attributes
    ----------
    sentence
        Everything in one sentence.
    reasons
        Who sets the pace and why, from the explanation; may be empty.
    figures
        Numbers that count.
    violations
        What the plan breaks, in words; empty for a valid plan.
    """

    sentence: str
    reasons: str
    figures: tuple[Figure, ...]
    violations: tuple[str, ...]


def headline(subject: Subject) -> Headline:
    """Return the beginning of the report about a subject."""
    found, state = achieved(subject), standing(subject)
    judged = subject.score
    explained = subject.explanation
    return Headline(
        sentence=_sentence(subject, found, state),
        reasons="" if explained is None else explained.summary,
        figures=tuple(_figures(subject, found, state)),
        violations=() if judged is None else tuple(f"{v.rule}: {v.message}" for v in judged.violations),
    )


def utilised(subject: Subject) -> int | None:
    """Return the predicted utilisation of the platform, permille; None: not known.

    What the judge says of idle units is about a pipeline at work, not about one request at a time.
    """
    alone = subject.deployment.pace == "latency"
    return None if subject.score is None or alone else subject.score.utilisation_permille


def difference(predicted_us: float | None, found: Achieved | None) -> float | None:
    """Return by how many percent an execution was slower than predicted; None: not known."""
    if not predicted_us or found is None:
        return None
    return 100 * (found.pace_us / predicted_us - 1)


def _sentence(subject: Subject, found: Achieved | None, state: Standing) -> str:
    """Return who runs where, how fast, as predicted and measured, and how good that is."""
    predicted, units = predicted_pace_us(subject), subject.deployment.units
    words = f"{_what(subject)} on {_joined(units)} of {subject.problem.platform.name}"
    times = []
    if predicted is not None:
        times.append(f"{millis(predicted)} (predicted)")
    if found is not None:
        off = difference(predicted, found)
        times.append(f"{microseconds(found.pace_us)} (measured{'' if off is None else f', {off:+.1f} %'})")
    if times:
        words += f" {_verb(subject)} {', '.join(times)}"
    text = [f"{words}.", *_pace_words(subject)]
    if subject.score is not None and (subject.explanation is None or state.kind == "bad"):
        text.append(state.text)  # an explanation says it better
    return " ".join([*text, *_race_words(subject)])


def _verb(subject: Subject) -> str:
    if workload_in(subject.problem) is not None:
        return "ends after" if subject.deployment.is_batch else "gives one result of each request every"
    if subject.deployment.pace == "latency":
        return "has a latency of"
    return "give a result every" if len(subject.deployment.streams) > 1 else "gives a result every"


def _joined(units: Sequence[str]) -> str:
    """Return all names of a few units; of many, the first ones."""
    if len(units) > _MOST_UNITS:
        return listed(units)
    return " and ".join(filter(None, (", ".join(units[:-1]), units[-1])))


def _what(subject: Subject) -> str:
    streams, workload = subject.deployment.streams, workload_in(subject.problem)
    if workload is not None:
        names = [network.name for network in subject.problem.networks]
        used = [name for name in names if any(r.network == name for r in workload.requests)]
        count = len(workload.requests)
        return f"A workload of {count} request{'s' if count > 1 else ''} ({listed(used)})"
    if len(streams) > 1:
        return f"{len(streams)} replicas of {listed(subject.deployment.networks)}"
    count = len(streams[0].chunks)
    return f"{streams[0].network} in {count} chunk{'s' if count > 1 else ''}"


def _pace_words(subject: Subject) -> list[str]:
    """Return who sets the pace, where no explanation says it."""
    judged = subject.score
    told = subject.explanation is not None or subject.deployment.pace != "period"
    if told or judged is None or workload_in(subject.problem) is not None:
        return []
    names = subject.problem.platform.unit_names
    busiest = [n for n, busy in zip(names, judged.busy_us, strict=True) if busy == judged.period_us]
    return [f"{listed(busiest)} set{'' if len(busiest) > 1 else 's'} the pace."] if busiest else []


def _race_words(subject: Subject) -> list[str]:
    """Return how the race ended for this deployment."""
    result, row = subject.tuning, race_row(subject)
    if result is None or row is None or row.ratio is None:
        return []
    if row is not result.winner:
        return [f"In the race it took {row.ratio:.3f} times as long as the winner."]
    words = f"It won a race of {len(result.rows)}"
    if result.baseline_wins:
        plan = result.best(CandidateKind.PLAN)
        beaten = f"; the best plan takes {plan.ratio:.3f} times as long" if plan and plan.ratio else ""
        return [f"{words}, although it is a baseline: no plan is faster beyond the noise{beaten}."]
    best = result.best(CandidateKind.BASELINE)
    if best is None or best.ratio is None:
        return [f"{words}."]
    return [f"{words}; the best baseline ({best.candidate.label}) takes {best.ratio:.3f} times as long."]


def _figures(subject: Subject, found: Achieved | None, state: Standing) -> Iterator[Figure]:
    name, predicted = str(subject.deployment.pace).capitalize(), predicted_pace_us(subject)
    count = len(subject.deployment.streams) if subject.deployment.rounds is not None else 1
    if predicted is not None:
        rate = f"{1e6 * count / predicted:,.1f} requests/s"
        yield Figure(label=f"{name}, predicted", value=millis(predicted), note=rate)
    if found is not None:
        off = difference(predicted, found)
        notes = [f"{1e6 * count / found.pace_us:,.1f} requests/s"]
        notes += [] if off is None else [f"{off:+.1f} % against the prediction"]
        notes += [f"in the {found.source}"] if found.source != "execution" else []
        kind = "" if off is None else "good" if abs(off) <= _WELL_PREDICTED else "warn"
        yield Figure(
            label=f"{name}, measured", value=microseconds(found.pace_us), note="; ".join(notes), kind=kind
        )
    if subject.deployment.pace != "latency":
        yield from _latency(subject, found)
    yield from _score_figures(subject)
    if subject.score is not None:
        yield Figure(label="Standing", value=state.label, note=_objective(subject), kind=state.kind)


def _latency(subject: Subject, found: Achieved | None) -> Iterator[Figure]:
    judged = subject.score
    predicted = None if judged is None else judged.latency_us
    latencies = None if judged is None else judged.columns.get("request_latency_us")
    if judged is not None and latencies is not None:
        predicted = max(judged.request_latency_us)
    parts = [] if predicted is None else [f"{millis(predicted)} predicted"]
    if found is not None and found.latency_us is not None:
        note = f"median, measured; {parts[0]}" if parts else "median, measured"
        yield Figure(label="Latency", value=microseconds(found.latency_us), note=note)
    elif predicted is not None:
        note = "predicted" if latencies is None else "of the slowest request, predicted"
        yield Figure(label="Latency", value=millis(predicted), note=note)


def _score_figures(subject: Subject) -> Iterator[Figure]:
    judged, platform = subject.score, subject.problem.platform
    used = len(subject.deployment.units)
    whole = utilised(subject)
    if judged is None or whole is None:
        yield Figure(label="Units", value=f"{used} of {len(platform.units)}", note="in use")
    else:
        yield Figure(
            label="Utilisation",
            value=percent(whole),
            note=f"predicted, of all {len(platform.units)} units; {used} in use",
        )
        yield Figure(label="Bubbles", value=millis(judged.bubbles_us), note=_bubbles_note(subject))
    if judged is None:
        return
    has = "" if platform.memory_bytes is None else f"of {size(platform.memory_bytes)}"
    if judged.peak_bytes:
        yield Figure(label="Peak memory", value=size(judged.peak_bytes), note=has)


def _bubbles_note(subject: Subject) -> str:
    return "predicted, over all units" if subject.deployment.is_batch else "predicted, in each period"


def _objective(subject: Subject) -> str:
    return f"objective: {objective_words(subject.problem.objective)}"
