"""What tuning found: candidates by speed, and predictions against measurements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...answers.race import candidates_chart, predicted_chart
from ...executor.tuning.result import TuningResult
from ...formulations.errors import InvalidInputError
from .canvas import axes_of, with_plain_names
from .draw import draw_bars, draw_plane

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@with_plain_names
def plot_predicted(result: TuningResult, *, table: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw measured against predicted periods of all that was tuned; on the dashed line both are equal.

    Parameters
    ----------
    result
        Of `tune` (its `result`).
    table
        Cost table whose predictions are drawn; None: the one that the plans were made from.
    ax
        Where to draw; None: in a new figure.

    Raises
    ------
    InvalidInputError
        Nothing was both predicted with this table and measured, or matplotlib is not installed.
    """
    tables = result.tables
    chosen = table if table is not None else tables[0] if tables else ""
    chart = predicted_chart(result, [chosen])
    if chart is None:
        raise InvalidInputError(
            f"nothing was predicted with the costs {chosen!r} and measured; there are predictions with: "
            f"{', '.join(tables) or 'none'}"
        )
    axes = axes_of(ax, (5.6, 5.2))
    draw_plane(chart, axes)
    axes.set_aspect("equal")
    axes.set_title("Predicted and measured: above the line, slower than predicted")
    axes.legend(loc="upper left")
    return axes


@with_plain_names
def plot_candidates(result: TuningResult, *, ax: Axes | None = None) -> Axes:
    """Draw the measured period of every candidate, the winner on top; lines reach from the least to the most.

    Parameters
    ----------
    result
        Of `tune` (its `result`).
    ax
        Where to draw; None: in a new figure.

    Raises
    ------
    InvalidInputError
        Nothing was measured, or matplotlib is not installed.
    """
    found = [row for row in result.rows if row.comparable_us is not None and row.failure is None]
    if not found:
        raise InvalidInputError("nothing was measured, so there is no candidate to draw")
    chart = candidates_chart(result)
    axes = axes_of(ax, (9, 1.3 + 0.34 * len(found)))
    draw_bars(chart, axes)
    axes.set_xlabel(f"{chart.across.label}, less is better")
    return axes
