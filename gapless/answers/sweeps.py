"""A sweep: which platform is best, what devices bring, and what backends prove, in words and as charts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import median

from ..solvers.protocol import SolveStatus
from ..sweeps.findings import (
    FAILED,
    RATE,
    BackendRecord,
    Contest,
    Growth,
    Stage,
    Standing,
    Topic,
    contests,
    disagreements,
    growths,
    is_proof,
    records,
    size_of,
)
from ..sweeps.run import SweepResult
from ..sweeps.spec import Sweep
from ..sweeps.table import SweepRow
from . import blocks
from .blocks import Block, Cell, Column, Section, Sentence, Shown, Table, Unit, table
from .charts import Axis, Bar, Bars, Facts, Kind, Mark, Part, Plane, Series, Tone, Track, share
from .comparing import status_cell
from .words import all_terms, counted, seconds, term_name, term_value

_MOST_CLASSES = 2
"""Classes of plans that are named."""

_MOST = 6
"""Tables of one kind in the terminal; the page has all."""

_MOST_CHARTS = 24

MOST_FAILED = 10
"""Rows in the terminal."""

MOST_ROWS = 300
_SIZES = (32, 128, 512, 2048, 8192)

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


_OF_PLATFORMS = (
    "Of each platform the best plan, over all backends; numbers of devices that differ in price are "
    "platforms of their own."
)
_OF_DEVICES = (
    "The best plan with each number of devices (of a board: with that many of its units at most). Blue: what "
    "the next smaller number reaches; green: what is new."
)


def sweep_blocks(found: SweepResult) -> Iterator[Block]:
    """Yield what `gapless sweep` answers."""
    rows, currency = found.rows, found.sweep.currency
    proved = sum(record.proved for record in records(rows))
    before = f"; {found.resumed:,} of them from before" if found.resumed else ""
    words = f", {proved:,} of them proved; {len(found.failed):,} failed{before}."
    yield Sentence(words, lead=f"{len(rows):,} of {found.total:,} plans")
    yield from map(Sentence, filter(None, _notes(found)))
    yield contradictions(disagreements(rows))
    compared = [(platforms_chart(one, currency), platforms(one, currency)) for one in contests(rows)]
    yield _pairs("Which platform to buy", _OF_PLATFORMS, compared, "platforms")
    grown = [(growth_chart(one), devices(one)) for one in growths(rows)]
    yield _pairs("What one more device brings", _OF_DEVICES, grown, "devices")
    if any(row.backend for row in rows):
        proofs = proofs_chart(rows)
        told: list[Block] = [outcomes_chart(rows), backends(rows)]
        told.append(Section("", (sizes(rows), *([proofs] if proofs else [])), shown=Shown.PAGES))
        if proofs is not None and proofs.words:
            told.append(Sentence(proofs.words, blocks.Tone.SOFT, shown=Shown.PAGES))
        yield Section("Which backend proves what", tuple(told), place="backends")
    yield Section("What failed", (failures(found.failed),), place="failures")
    yield Section("All plans", (plans(rows, currency),), place="plans", shown=Shown.PAGES)


def _notes(found: SweepResult) -> Iterator[str]:
    """Yield what is to be known about all plans of a sweep."""
    rows = found.rows
    yield class_words(rows)
    if found.interrupted:
        yield "The sweep was interrupted: what is shown is what was answered until then."
    spent = sum(row.total_s for row in rows)
    yield f"Solved in {seconds(spent)} of work, {seconds(spent / max(1, len(rows)))} a plan."
    estimated = {row.platform for row in rows if row.estimated}
    yield f"Costs on {', '.join(sorted(estimated))} are estimates, not measurements." if estimated else ""
    again = sum(row.attempts > 1 for row in rows)
    yield f"Tried again because a worker was lost: {counted(again, 'plan')}." if again else ""


def contradictions(found: Sequence[str]) -> Section:
    """Return proofs that contradict each other."""
    title = "Proofs contradict each other: a backend has a bug. Please report it."
    return Section(title, tuple(Sentence(text, blocks.Tone.BAD) for text in found))


def _pairs(title: str, words: str, found: Sequence[tuple[Bars, Table]], place: str) -> Section:
    """Return charts, each with its table, after a sentence; no blocks where there are none."""
    soft, ends = blocks.Tone.SOFT, ((_MOST, Shown.TERMINAL, "page"), (_MOST_CHARTS, Shown.PAGES, "table"))
    parts: list[Block] = [Sentence(words, soft, shown=Shown.PAGES)] if found else []
    for number, pair in enumerate(found[:_MOST_CHARTS]):
        parts.append(Section(pair[0].title, pair, shown=Shown.ALWAYS if number < _MOST else Shown.PAGES))
    for most, where, name in ends:
        if len(found) > most:
            text = f"... and {len(found) - most} more: see the {name} of the sweep."
            parts.append(Sentence(text, soft, shown=where))
    return Section(title, tuple(parts), place=place)


def spec_blocks(sweep: Sweep) -> tuple[Block, ...]:
    """Return what a sweep file asks for: the names on each of its axes."""
    axes = {
        "models": [one if isinstance(one, str) else one.name for one in sweep.models],
        "platforms": [one if isinstance(one, str) else one.name for one in sweep.platforms],
        "problems": [one if isinstance(one, str) else " ".join(one.values()) for one in sweep.problems],
        "objectives": [text or "usual" for text in sweep.objectives],
        "limits": [one.words or "none" for one in sweep.limits],
        "backends": [name or "usual" for name in sweep.backends],
    }
    columns: list[Column[str]] = [
        Column("what", Unit.NAME, lambda axis: axis),
        Column("number", Unit.COUNT, lambda axis: len(axes[axis])),
        Column("names", Unit.LONG, lambda axis: ", ".join(axes[axis])),
    ]
    asked = table("What the sweep asks for", columns, [axis for axis, names in axes.items() if names])
    return Sentence("", lead=sweep.title or "Sweep"), asked


def platforms(contest: Contest, currency: str) -> Table:
    """Return what each platform reaches, the best first."""
    first = contest.standings[0]

    def price(one: Standing) -> str | None:
        return price_words(one.row.price, currency) if first.for_price is not None else None

    columns: list[Column[Standing]] = [
        Column("platform", Unit.NAME, lambda one: one.row.platform),
        Column("devices", Unit.NAME, lambda one: one.row.devices or f"{one.row.available} units"),
        Column("reached", Unit.COUNT, lambda one: amount_words(contest.topic, one.row)),
        Column("of the best", Unit.SHARE, lambda one: one.share),
        Column("price", Unit.COUNT, price, optional=True),
        Column("for its price", Unit.SHARE, lambda one: one.for_price, optional=True),
        Column("status", Unit.TEXT, lambda one: status_cell(one.row.status)),
        Column("plan", Unit.CODE, lambda one: one.row.plan, Shown.PAGES),
    ]

    def tone(one: Standing) -> blocks.Tone:
        return blocks.Tone.STRONG if one is first else blocks.Tone.PLAIN

    return table(topic_words(contest.topic), columns, contest.standings, tone=tone)


def devices(growth: Growth) -> Table:
    """Return what each number of devices reaches."""
    topic, stages = growth.topic, growth.stages
    before = dict(zip((id(stage) for stage in stages[1:]), (stage.row for stage in stages), strict=False))

    def more(stage: Stage) -> str | None:
        last = before.get(id(stage))
        if topic.goal != RATE or last is None:
            return None
        apart = (stage.row.per_second or 0.0) - (last.per_second or 0.0)
        return f"{'-' if apart < 0 else '+'}{rate_words(abs(apart))}"

    columns: list[Column[Stage]] = [
        Column("number", Unit.COUNT, lambda stage: stage.row.available),
        Column("devices", Unit.NAME, lambda stage: stage.row.devices or None),
        Column("reached", Unit.COUNT, lambda stage: amount_words(topic, stage.row)),
        Column("more, share", Unit.CHANGE, lambda stage: stage.gain),
        Column("more", Unit.COUNT, more, Shown.PAGES),
        Column("status", Unit.TEXT, lambda stage: status_cell(stage.row.status)),
        Column("plan", Unit.CODE, lambda stage: stage.row.plan, Shown.PAGES),
    ]
    return table(f"{growth.platform}: {topic_words(topic)}", columns, stages)


def backends(rows: Sequence[SweepRow]) -> Table:
    """Return what each backend proved."""

    def count(status: str) -> Callable[[BackendRecord], int]:
        return lambda record: record.counts.get(status, 0)

    titles = ("proved best", "not proved", "none valid", "nothing found", "failed")
    columns: list[Column[BackendRecord]] = [
        Column("backend", Unit.NAME, lambda record: record.backend),
        Column("plans", Unit.COUNT, lambda record: record.tasks),
        *(
            Column(title, Unit.COUNT, count(status))
            for title, (_, status, _) in zip(titles, OUTCOMES, strict=True)
        ),
        Column("gap if not proved", Unit.SHARE, lambda record: record.gap, digits=2),
        Column("time of proofs", Unit.SECONDS, lambda record: record.proof_s),
        Column("largest proof", Unit.COUNT, lambda record: record.largest or None),
    ]
    return table("Backends", columns, records(rows))


def sizes(rows: Sequence[SweepRow]) -> Table:
    """Return for each backend and size of problem how much is proved, how fast, and the gap of the rest."""
    Group = tuple[str, int, list[SweepRow]]
    found: dict[tuple[str, int], list[SweepRow]] = {}
    for row in rows:
        if not row.failed:
            place = sum(size_of(row) > most for most in _SIZES)
            found.setdefault((row.backend, place), []).append(row)

    def size(group: Group) -> str:
        return f"up to {_SIZES[group[1]]:,}" if group[1] < len(_SIZES) else f"more than {_SIZES[-1]:,}"

    def proofs(group: Group) -> list[float]:
        return [row.runtime_s for row in group[2] if is_proof(row)]

    def gaps(group: Group) -> list[float]:
        return [row.gap for row in group[2] if row.gap is not None and not is_proof(row)]

    columns: list[Column[Group]] = [
        Column("backend", Unit.NAME, lambda group: group[0]),
        Column("size", Unit.TEXT, size),
        Column("plans", Unit.COUNT, lambda group: len(group[2])),
        Column("proved", Unit.COUNT, lambda group: len(proofs(group))),
        Column("median time of proofs", Unit.SECONDS, lambda group: median(proofs(group) or [0]) or None),
        Column("median gap of others", Unit.SHARE, lambda g: median(gaps(g)) if gaps(g) else None, digits=2),
    ]
    return table("By backend and size", columns, [(*key, own) for key, own in sorted(found.items())])


def failures(rows: Sequence[SweepRow]) -> Table:
    """Return the tasks without an answer, and why."""
    columns: list[Column[SweepRow]] = [
        Column("task", Unit.COUNT, lambda row: row.task),
        Column("tries", Unit.COUNT, lambda row: row.attempts),
        Column("model", Unit.NAME, lambda row: row.model),
        Column("platform", Unit.NAME, lambda row: row.platform or None),
        Column("backend", Unit.NAME, lambda row: row.backend or None),
        Column("why", Unit.LONG, lambda row: row.error),
    ]
    return table("Tasks without an answer", columns, rows, most=MOST_FAILED)


def plans(rows: Sequence[SweepRow], currency: str) -> Table:
    """Return every task and its plan."""
    columns: list[Column[SweepRow]] = [
        Column("task", Unit.COUNT, lambda row: row.task),
        Column("model", Unit.NAME, lambda row: row.model),
        Column("platform", Unit.NAME, lambda row: Cell(row.platform or None, note=row.devices)),
        Column("objective", Unit.TEXT, lambda row: row.objective),
        Column("limits", Unit.NAME, lambda row: row.limits or None),
        Column("backend", Unit.NAME, lambda row: row.backend or None),
        Column("status", Unit.TEXT, lambda row: status_cell(row.status)),
        Column("inferences", Unit.COUNT, lambda row: rate_words(row.per_second)),
        Column("price", Unit.COUNT, lambda row: price_words(row.price, currency)),
        Column("gap", Unit.SHARE, lambda row: row.gap, digits=2),
        Column("time", Unit.SECONDS, lambda row: row.total_s),
        Column("plan", Unit.CODE, lambda row: row.plan or None),
    ]
    return table("All plans", columns, rows, most=MOST_ROWS)
