"""What tuning found: candidates by speed, and predictions against measurements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...answers.race import predicted_chart
from ...executor.tuning.candidates import CandidateKind
from ...executor.tuning.result import TuningResult, TuningRow
from ...formulations.errors import InvalidInputError
from .canvas import BLUE, ORANGE, axes_of, legend, rows, short, with_plain_names
from .draw import draw_plane

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_KINDS = ((CandidateKind.PLAN, BLUE, "o"), (CandidateKind.BASELINE, ORANGE, "s"))
"""Colour and marker of plans and baselines."""


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
    axes = axes_of(ax, (9, 1.3 + 0.34 * len(found)))
    colours = {kind: colour for kind, colour, _ in _KINDS}
    for place, row in enumerate(found):
        period = (row.comparable_us or 0.0) / 1000
        axes.barh(place, period, height=0.7, color=colours[row.candidate.kind], gid=str(row.candidate.kind))
        if row.period_us is not None:
            ends = [row.period_us.least / 1000, row.period_us.most / 1000]
            axes.plot(ends, [place, place], color="black", lw=1.5, marker="|", gid="spread")
    rows(axes, [_label(row, place, result) for place, row in enumerate(found)])
    axes.set_xlim(left=0)
    axes.set_xlabel(f"measured {result.pace} (ms), less is better")
    axes.set_title("Candidates of the race, fastest first")
    legend(axes, [(str(kind), {"facecolor": colour}) for kind, colour, _ in _KINDS])
    return axes


def _label(row: TuningRow, place: int, result: TuningResult) -> str:
    wins = place == 0 and bool(result.ties)
    return f"{short(row.candidate.label, 32)}{' (winner)' if wins else ''}"
