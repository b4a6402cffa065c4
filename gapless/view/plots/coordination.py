"""Coordination as pictures: what each unit does under each policy, and the share in time by deadline."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ...answers.coordination import deadlines_chart, record_chart
from ...api.coordination import Coordination
from ...formulations.coordination.record import Record
from .canvas import axes_of, with_plain_names
from .draw import draw_bars, draw_plane

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WINDOW_US = 500_000
"""How much of a record is drawn unless something else is asked for."""


@with_plain_names
def plot_record(
    record: Record, *, start_us: float = 0.0, end_us: float | None = None, ax: Axes | None = None
) -> Axes:
    """Draw what each unit does when; what fell back silently is hatched, and when a unit is away is grey.

    Parameters
    ----------
    record
        What happened.
    start_us, end_us
        From when to when; None: half a second.
    ax
        Where to draw; None: in a new figure.

    Raises
    ------
    InvalidInputError
        matplotlib is not installed.
    """
    end = start_us + WINDOW_US if end_us is None else end_us
    axes = axes_of(ax, (10, 1.2 + 0.4 * len(record.units)))
    draw_bars(record_chart(record, start_us, end), axes, said=False)
    return axes


@with_plain_names
def plot_deadlines(runs: Sequence[Coordination], *, ax: Axes | None = None) -> Axes:
    """Draw the share of requests in time by the multiplier of their deadlines (Band, Fig. 18).

    Parameters
    ----------
    runs
        Of `coordinate_deadlines`.
    ax
        Where to draw; None: in a new figure.

    Raises
    ------
    InvalidInputError
        matplotlib is not installed.
    """
    axes = axes_of(ax, (7, 4))
    draw_plane(deadlines_chart(runs), axes)
    return axes


def save_coordination(runs: Sequence[Coordination], path: Path) -> None:
    """Draw scenarios into a file: of one, what each policy does; of several deadlines, the shares in time."""
    from matplotlib.figure import Figure

    if len(runs) > 1:
        figure = Figure(figsize=(8, 4), layout="constrained")
        plot_deadlines(runs, ax=figure.subplots())
    else:
        records = runs[0].records
        height = len(records) * (1.0 + 0.35 * len(records[0].units))
        figure = Figure(figsize=(11, height), layout="constrained")
        for record, axes in zip(records, figure.subplots(len(records), squeeze=False)[:, 0], strict=True):
            plot_record(record, ax=axes)
    figure.savefig(path, dpi=150)
