"""Task streams for people: the tasks, who does what when, and what planning during the run costs."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from ...answers.words import microseconds, span_seconds
from ...api.streams import TaskStream
from ...executor.cluster.stream import RunStream
from ...formulations.history import History, Interval
from ...formulations.streams import Stream
from ...formulations.task_stream import SpanKind
from ..layout import indented, plain_table
from .gantt import gantt_view


def stream_view(found: TaskStream, ran: RunStream | None = None) -> RenderableType:
    """Return what `gapless requests stream` shows: the stream in simulation, and how it ran on a cluster."""
    platform = found.tasks[0].problem.platform
    items = sum(task.items for task in found.tasks)
    title = Text(f"{len(found.tasks)} tasks, {items:,} items", style="bold")
    title.append(f" on {platform.name}, {len(platform.units)} units; simulated", style="not bold")
    parts: list[RenderableType] = [title, "", indented(_tasks(found)), "", gantt_view(history_of(found))]
    return Group(*parts, "", *_comparison(found), *(_run_parts(found, ran) if ran else ()))


def _run_parts(found: TaskStream, ran: RunStream) -> list[RenderableType]:
    """Return how a stream ran: each task beside its prediction, and who idled at each switch."""
    numbers = ("items", "placed", "starts", "ends", "period", "predicted", "longest idle")
    table = plain_table("task", *numbers, numbers=numbers)
    for index, (task, done) in enumerate(zip(found.ahead.tasks, ran.tasks, strict=True)):
        idle = [switch for switch in ran.switches if switch.task == index]
        most = max(idle, key=lambda switch: switch.idle_us, default=None)
        table.add_row(
            done.network,
            f"{done.items:,}",
            span_seconds(done.placed_us),
            span_seconds(done.start_us),
            span_seconds(done.end_us),
            microseconds(done.period_us),
            microseconds((task.end_us - task.start_us) / sum(task.items)),
            "-" if most is None else f"{microseconds(most.idle_us)} ({most.device})",
        )
    lost = [Text(f"In {task.network}, {loss}.", style="yellow") for task in ran.tasks for loss in task.losses]
    said = [Text(f"In {task.network}, {task.numbers}.") for task in ran.tasks]
    return ["", Text("Run on the cluster:", style="bold"), "", indented(table), *lost, *said]


def _tasks(found: TaskStream) -> RenderableType:
    numbers = ("items", "starts", "ends", "items/s")
    table = plain_table("task", "items", "starts", "ends", "items/s", "plan", numbers=numbers)
    for task, done in zip(found.tasks, found.ahead.tasks, strict=True):
        seconds = (done.end_us - done.start_us) / 1e6
        shares = " + ".join(f"{share:,}" for share in done.items)
        table.add_row(
            done.network,
            shares,
            span_seconds(done.start_us),
            span_seconds(done.end_us),
            f"{task.items / seconds:,.2f}",
            str(task.plan),
        )
    return table


def _comparison(found: TaskStream) -> list[Text]:
    whole = found.ahead.makespan_us
    gaps = [gap for each in found.ahead.switch_us.values() for gap in each]
    lines = [Text(f"Planned ahead, all is done after {span_seconds(whole)}.", style="bold")]
    if gaps:
        lines.append(Text(f"Between two tasks a unit waits for {span_seconds(max(gaps))} at most."))
    if found.waiting is not None and found.planning is not None:
        late = found.waiting.makespan_us
        lines.append(
            Text(
                f"Measured and planned when its turn comes ({span_seconds(found.planning.whole_us)} a task), "
                f"after {span_seconds(late)}: {late / whole:.2f} times as long."
            )
        )
    return lines


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
