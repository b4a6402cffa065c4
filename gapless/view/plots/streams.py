"""Task streams as pictures: what each unit does, planned ahead and planned when its turn comes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ...answers.streams import stream_chart
from ...api.streams import TaskStream
from ...formulations.errors import InvalidInputError
from .canvas import axes_of, with_plain_names
from .draw import draw_bars

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
    chart = stream_chart(stream, played, "planned when its turn comes" if waiting else "planned ahead")
    axes = axes_of(ax, (10, 1.3 + 0.4 * len(chart.rows)))
    draw_bars(chart, axes)
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
