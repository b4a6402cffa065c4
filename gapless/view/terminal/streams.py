"""Task streams for people: the tasks, who does what when, and what planning during the run costs."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from ...api.streams import TaskStream
from ...formulations.deployment import Stream
from ...formulations.history import History, Interval
from ...formulations.task_stream import SpanKind
from ..layout import indented, plain_table
from ..words import span_seconds
from .gantt import gantt_view


def stream_view(found: TaskStream) -> RenderableType:
    """Return what `gapless stream` shows."""
    platform = found.tasks[0].problem.platform
    items = sum(task.items for task in found.tasks)
    title = Text(f"{len(found.tasks)} tasks, {items:,} items", style="bold")
    title.append(f" on {platform.name}, {len(platform.units)} units; simulated", style="not bold")
    parts: list[RenderableType] = [title, "", indented(_tasks(found)), "", gantt_view(history_of(found))]
    return Group(*parts, "", *_comparison(found))


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
