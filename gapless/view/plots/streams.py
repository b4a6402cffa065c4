"""Task streams as pictures: what each unit does, planned ahead and planned when its turn comes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ...api.streams import TaskStream
from ...formulations.errors import InvalidInputError
from ...formulations.task_stream import SpanKind
from .canvas import IDLE, PALETTE, Look, axes_of, legend, rows, with_plain_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PROFILE: Look = {"facecolor": "#d0d0d0", "edgecolor": "#808080", "hatch": "...", "linewidth": 0}


@with_plain_names
def plot_task_stream(stream: TaskStream, *, waiting: bool = False, ax: Axes | None = None) -> Axes:
    """Draw which task each unit works on when.

    Parameters
    ----------
    stream
        Of `task_stream`.
    waiting
        Whether networks are measured and planned when their turn comes, instead of ahead.
    ax
        Where to draw; None: in a new figure.

    Raises
    ------
    InvalidInputError
        That was not played, or matplotlib is not installed.
    """
    played = stream.waiting if waiting else stream.ahead
    if played is None:
        raise InvalidInputError("the stream was not played with planning during the run: give `planning`")
    units = stream.tasks[0].problem.platform.unit_names
    axes = axes_of(ax, (10, 1.3 + 0.4 * len(units)))
    looks: list[Look] = [{"facecolor": PALETTE[n % len(PALETTE)]} for n in range(len(stream.tasks))]
    waits: dict[SpanKind, Look] = {SpanKind.PROFILE: _PROFILE, SpanKind.IDLE: IDLE}
    for span in played.spans:
        look = looks[span.task] if span.kind is SpanKind.TASK else waits[span.kind]
        left, width = span.start_us / 1e6, (span.end_us - span.start_us) / 1e6
        axes.barh(units.index(span.device), width, left=left, height=0.8, **look)
    rows(axes, list(units))
    axes.set_xlabel("time (s)")
    how = "planned when its turn comes" if waiting else "planned ahead"
    axes.set_title(f"{how}: done after {played.makespan_us / 1e6:,.1f} s")
    named = [(f"{n + 1}. {t.problem.network.name}", looks[n]) for n, t in enumerate(stream.tasks)]
    seen = {span.kind for span in played.spans}
    legend(axes, [*named, *((str(kind), look) for kind, look in waits.items() if kind in seen)])
    return axes


def save_stream(stream: TaskStream, path: Path) -> None:
    """Draw a stream into a file, both ways where both were played, on one scale of time."""
    from matplotlib.figure import Figure

    ways = [False] if stream.waiting is None else [False, True]
    units = len(stream.tasks[0].problem.platform.units)
    figure = Figure(figsize=(10, len(ways) * (1.6 + 0.4 * units)), layout="constrained")
    drawn = [
        plot_task_stream(stream, waiting=way, ax=axes)
        for way, axes in zip(ways, figure.subplots(len(ways), sharex=True, squeeze=False)[:, 0], strict=True)
    ]
    drawn[0].set_xlim(0, (stream.waiting or stream.ahead).makespan_us / 1e6)
    figure.savefig(path, dpi=150)
