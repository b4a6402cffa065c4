"""A sweep: which platform is best, what devices bring, and what backends prove, in words and as charts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..solvers.protocol import SolveStatus
from ..sweeps.findings import FAILED, RATE, BackendRecord, Contest, Growth, Topic, is_proof, records, size_of
from ..sweeps.table import SweepRow
from .charts import Axis, Bar, Bars, Facts, Kind, Mark, Part, Plane, Series, Tone, Track, share
from .words import all_terms, gap, seconds, term_name, term_value

_MOST_CLASSES = 2
"""Classes of plans that are named."""

BACKEND_COLUMNS = (
    "backend",
    "plans",
    "proved best",
    "not proved",
    "none valid",
    "nothing found",
    "failed",
    "gap if not proved",
    "time of proofs",
    "largest proof",
)

_MOST_MARKS = 800
_LEAST_S = 1e-5
"""Shortest time that is drawn: an axis of ratios has no 0."""

OUTCOMES = (
    ("proved best", SolveStatus.OPTIMAL, 2),
    ("found, not proved", SolveStatus.FEASIBLE, 1),
    ("proved: none valid", SolveStatus.INFEASIBLE, 3),
    ("nothing found", SolveStatus.NO_SOLUTION, 7),
    ("failed", FAILED, 4),
)
"""What came of a task: in words, its status, and its colour."""

_SHARES = Axis(name="share of the best", unit="%", low=0, high=100)


def platforms_chart(contest: Contest, currency: str) -> Bars:
    """Return what each platform reaches, as a share of the best."""
    rows = [one.row for one in contest.standings]
    return Bars(
        title=topic_words(contest.topic),
        across=_SHARES,
        rows=tuple(
            Bar(
                name=one.row.platform,
                note=one.row.devices,
                tracks=(
                    Track(
                        parts=(Part(start=0, length=share(one.share, 1), colour=Tone.MEASURED),),
                        text=amount_words(contest.topic, one.row),
                        note=price_words(one.row.price, currency) if one.row.price else "",
                    ),
                ),
                strong=one.row is rows[0],
            )
            for one in contest.standings
        ),
    )


def growth_chart(growth: Growth) -> Bars:
    """Return what each number of devices reaches, and how much of it one less does."""
    topic, rows = growth.topic, [stage.row for stage in growth.stages]
    best = min(rows, key=topic.order)
    bars = []
    for stage, before in zip(growth.stages, (None, *rows), strict=False):
        reached = share(topic.share(stage.row, best), 1)
        kept = 0.0 if before is None else min(reached, share(topic.share(before, best), 1))
        track = Track(
            parts=(
                Part(start=0, length=kept, colour=Tone.PREDICTED),
                Part(start=kept, length=round(reached - kept, 3), colour=Tone.MEASURED),
            ),
            text=amount_words(topic, stage.row),
            note="" if stage.gain is None else gain_words(stage.gain),
        )
        bars.append(Bar(name=f"{stage.row.available}", note=stage.row.devices, tracks=(track,)))
    return Bars(title=f"{growth.platform}: {topic_words(topic)}", across=_SHARES, rows=tuple(bars))


def outcomes_chart(rows: Sequence[SweepRow]) -> Bars:
    """Return what came of the tasks of each backend."""
    bars = []
    for record in records(rows):
        parts, at = list[Part](), 0.0
        for name, status, colour in OUTCOMES:
            if length := share(record.counts.get(status, 0), record.tasks):
                parts.append(Part(start=round(at, 3), length=length, colour=colour, name=name))
                at += length
        text = f"{record.proved:,} of {record.tasks:,}"
        bars.append(Bar(name=record.backend, tracks=(Track(parts=tuple(parts), text=text, note="proved"),)))
    return Bars(
        title="What came of the tasks",
        across=Axis(name="share of the tasks", unit="%", low=0, high=100),
        rows=tuple(bars),
        legend=tuple((colour, name) for name, _, colour in OUTCOMES),
    )


def proofs_chart(rows: Sequence[SweepRow]) -> Plane | None:
    """Return time to proof by size, of many proofs some; None: there are none."""
    proofs = [row for row in rows if is_proof(row)]
    if not proofs:
        return None
    shown = proofs[:: -(-len(proofs) // _MOST_MARKS)]
    marks: dict[str, list[Mark]] = {row.backend: [] for row in proofs}
    for row in shown:
        mark = Mark(x=float(size_of(row)), y=max(row.runtime_s, _LEAST_S), facts=_facts(row))
        marks[row.backend].append(mark)
    known = [mark for found in marks.values() for mark in found]
    hidden = len(proofs) - len(shown)
    return Plane(
        kind=Kind.SCATTER,
        title="Time to proof by size",
        words=f"{len(shown):,} proofs; {hidden:,} more are not drawn." if hidden else "",
        noun="proof",
        across=Axis.around("layers x units", [mark.x for mark in known]),
        upwards=Axis.around("time of the search", [mark.y for mark in known], unit="s"),
        series=tuple(Series(name=name, marks=tuple(found)) for name, found in marks.items()),
    )


def _facts(row: SweepRow) -> Facts:
    return (
        ("task", str(row.task)),
        ("model", row.model),
        ("platform", f"{row.platform} {row.devices}"),
        ("objective", row.objective),
        ("backend", row.backend),
        ("size", f"{row.layers} layers x {row.units} units"),
        ("time", seconds(row.runtime_s)),
    )


def class_words(rows: Iterable[SweepRow]) -> str:
    """Return among which plans proofs and bounds hold; empty where there are none."""
    found = dict.fromkeys(row.plan_class for row in rows if row.plan_class and (is_proof(row) or row.bound))
    if not found:
        return ""
    if len(found) > _MOST_CLASSES:
        return f"Proofs and bounds are among {len(found)} classes of plans: see plan_class of the table."
    return f"Proofs and bounds are among {'; and among '.join(found)}."


def topic_words(topic: Topic) -> str:
    """Return what is compared."""
    more = [f"of {topic.batch} inferences" if topic.batch > 1 else "", topic.limits]
    return ", ".join(filter(None, [f"{topic.model}: {goal_words(topic)}", *more]))


def goal_words(topic: Topic) -> str:
    """Return by what it is compared."""
    return "inferences a second" if topic.goal == RATE else f"least {term_name(all_terms(), topic.goal)}"


def amount_words(topic: Topic, row: SweepRow) -> str:
    """Return what a plan reaches of its goal."""
    if topic.goal != RATE:
        return term_value(all_terms(), topic.goal, row.value)
    return rate_words(row.per_second)


def rate_words(per_second: float | None) -> str:
    """Return a rate with as many places as it deserves."""
    if per_second is None:
        return "-"
    return f"{per_second:,.1f} /s" if per_second >= 10 else f"{per_second:.3g} /s"


def gain_words(gain: float | None) -> str:
    """Return what one more device brings."""
    return "-" if gain is None else f"{100 * gain:+.1f} %"


def price_words(price: float | None, currency: str) -> str:
    """Return a price."""
    return "-" if price is None else f"{price:,.10g} {currency}".rstrip()


def backend_cells(record: BackendRecord) -> tuple[str, ...]:
    """Return what one backend proved, by `BACKEND_COLUMNS`."""
    return (
        record.backend,
        f"{record.tasks:,}",
        *(f"{record.counts.get(status, 0):,}" for _, status, _ in OUTCOMES),
        gap(record.gap),
        "-" if record.proof_s is None else seconds(record.proof_s),
        f"{record.largest:,}" if record.largest else "-",
    )
