"""Task streams: the tasks, who does what when, and what planning during the run costs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

from ..api.streams import TaskStream
from ..formulations.history import History, Interval
from ..formulations.streams import Stream
from ..formulations.task_stream import PlayedStream, PlayedTask, SpanKind, Task
from .blocks import Block, Column, Section, Sentence, Table, Tone, Unit, table
from .charts import Axis, Bar, Bars, Colour, Part, Track
from .charts import Tone as Shade
from .traces import trace_chart
from .words import microseconds, span_seconds

if TYPE_CHECKING:
    from ..executor.cluster.stream import RunStream, RunTask

_Ran: TypeAlias = "tuple[int, PlayedTask, RunTask]"
"""Number of a task, what was predicted, and how it ran."""

_WAITS: dict[SpanKind, Colour] = {SpanKind.PROFILE: Shade.LOST, SpanKind.IDLE: Shade.IDLE}


def stream_chart(stream: TaskStream, played: PlayedStream, how: str) -> Bars:
    """Return what each unit does; `how`: how networks were planned."""
    units = stream.tasks[0].problem.platform.unit_names
    parts: dict[str, list[Part]] = {unit: [] for unit in units}
    for span in played.spans:
        colour = span.task if span.kind is SpanKind.TASK else _WAITS[span.kind]
        length = (span.end_us - span.start_us) / 1e6
        parts[span.device].append(Part(start=span.start_us / 1e6, length=length, colour=colour))
    seen = {span.kind for span in played.spans}
    named = [(number, f"{number + 1}. {t.problem.network.name}") for number, t in enumerate(stream.tasks)]
    return Bars(
        title=f"{how}: done after {played.makespan_us / 1e6:,.1f} s",
        across=Axis(name="time", unit="s", low=0, high=played.makespan_us / 1e6),
        rows=tuple(Bar(name=unit, tracks=(Track(parts=tuple(found)),)) for unit, found in parts.items()),
        legend=(*named, *((colour, str(kind)) for kind, colour in _WAITS.items() if kind in seen)),
        ticked=True,
    )


def stream_blocks(found: TaskStream, ran: RunStream | None = None) -> Iterator[Block]:
    """Yield what `gapless requests stream` answers: the stream in simulation, and how it ran on a cluster."""
    platform = found.tasks[0].problem.platform
    items = sum(task.items for task in found.tasks)
    words = f" on {platform.name}, {len(platform.units)} units; simulated"
    yield Sentence(words, lead=f"{len(found.tasks)} tasks, {items:,} items")
    yield _tasks(found)
    yield trace_chart(history_of(found))
    yield from _comparison(found)
    if ran is not None:
        yield from _run(found, ran)


def _tasks(found: TaskStream) -> Table:
    def rate(row: tuple[Task, PlayedTask]) -> str:
        task, done = row
        return f"{1e6 * task.items / (done.end_us - done.start_us):,.2f}"

    columns: list[Column[tuple[Task, PlayedTask]]] = [
        Column("task", Unit.NAME, lambda row: row[1].network),
        Column("items", Unit.COUNT, lambda row: " + ".join(f"{share:,}" for share in row[1].items)),
        Column("starts", Unit.COUNT, lambda row: span_seconds(row[1].start_us)),
        Column("ends", Unit.COUNT, lambda row: span_seconds(row[1].end_us)),
        Column("items/s", Unit.COUNT, rate),
        Column("plan", Unit.CODE, lambda row: str(row[0].plan)),
    ]
    return table("Tasks", columns, zip(found.tasks, found.ahead.tasks, strict=True))


def _run(found: TaskStream, ran: RunStream) -> Iterator[Block]:
    """Yield how a stream ran: each task beside its prediction, and who idled at each switch."""

    def idle(row: _Ran) -> str | None:
        own = [switch for switch in ran.switches if switch.task == row[0]]
        most = max(own, key=lambda switch: switch.idle_us, default=None)
        return None if most is None else f"{microseconds(most.idle_us)} ({most.device})"

    columns: list[Column[_Ran]] = [
        Column("task", Unit.NAME, lambda row: row[2].network),
        Column("items", Unit.COUNT, lambda row: row[2].items),
        Column("placed", Unit.COUNT, lambda row: span_seconds(row[2].placed_us)),
        Column("starts", Unit.COUNT, lambda row: span_seconds(row[2].start_us)),
        Column("ends", Unit.COUNT, lambda row: span_seconds(row[2].end_us)),
        Column("period", Unit.MEASURED, lambda row: row[2].period_us),
        Column("predicted", Unit.MEASURED, lambda row: (row[1].end_us - row[1].start_us) / sum(row[1].items)),
        Column("longest idle", Unit.COUNT, idle),
    ]
    pairs = zip(found.ahead.tasks, ran.tasks, strict=True)
    rows = ((index, task, done) for index, (task, done) in enumerate(pairs))
    yield Section("Run on the cluster:", (table("Tasks", columns, rows),))
    for task in ran.tasks:
        yield from (Sentence(f"In {task.network}, {loss}.", Tone.WARN) for loss in task.losses)
    yield from (Sentence(f"In {task.network}, {task.numbers}.") for task in ran.tasks)


def _comparison(found: TaskStream) -> Iterator[Sentence]:
    whole = found.ahead.makespan_us
    gaps = [gap for each in found.ahead.switch_us.values() for gap in each]
    yield Sentence(f"Planned ahead, all is done after {span_seconds(whole)}.", Tone.STRONG)
    if gaps:
        yield Sentence(f"Between two tasks a unit waits for {span_seconds(max(gaps))} at most.")
    if found.waiting is not None and found.planning is not None:
        late = found.waiting.makespan_us
        yield Sentence(
            f"Measured and planned when its turn comes ({span_seconds(found.planning.whole_us)} a task), "
            f"after {span_seconds(late)}: {late / whole:.2f} times as long."
        )


def history_of(found: TaskStream) -> History:
    """Return who does what when as a history: a block for each task on each unit."""
    events = [
        Interval(
            start_ns=1000 * span.start_us,
            end_ns=1000 * span.end_us,
            stream=span.task,
            request=0,
            chunk=0,
            unit=span.device,
        )
        for span in found.ahead.spans
        if span.kind is SpanKind.TASK
    ]
    return History(
        streams=tuple(
            Stream(name=f"{task.problem.network.name}", chunks=task.plan.chunks) for task in found.tasks
        ),
        units=found.tasks[0].problem.platform.unit_names,
        events=tuple(sorted(events)),
        in_rounds=True,
    )
