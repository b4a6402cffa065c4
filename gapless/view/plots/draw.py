"""Charts with matplotlib: one function for each kind of data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...answers.charts import Axis as ChartAxis
from ...answers.charts import Kind, Line, Plane, Stroke
from .canvas import PALETTE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

_STROKES = {Stroke.SOLID: "-", Stroke.DASHED: "--", Stroke.DOTTED: ":", Stroke.MIXED: "-."}

_MARKERS = "osD^x"
"""As the shapes of the page; they repeat."""


def draw_plane(chart: Plane, axes: Axes) -> None:
    """Draw numbers against numbers, and what the colours mean."""
    for number, series in enumerate(chart.series):
        colour, label = PALETTE[number % len(PALETTE)], series.name
        for line in series.lines:
            _line(axes, chart, line, colour, label=label, gid=line.name)
            label = ""
        for hollow in (False, True):
            marks = [mark for mark in series.marks if mark.hollow is hollow]
            if marks and chart.kind is not Kind.PROFILE:
                axes.scatter(
                    [mark.x for mark in marks],
                    [mark.y for mark in marks],
                    s=45 if chart.kind is Kind.SCATTER else 12,
                    marker=_MARKERS[number % len(_MARKERS)],
                    facecolors="white" if hollow else colour,
                    edgecolors=colour,
                    label=label or None,
                    zorder=3,
                )
                label = ""
    for guide in chart.guides:
        _line(axes, chart, guide, "#666666", label=guide.name)
    for _, mark in chart.marks:
        if mark.ring:
            name = chart.ring.removeprefix("ring: ")
            axes.annotate(name, (mark.x, mark.y), xytext=(9, -4), textcoords="offset points", fontsize=9)
    across, upwards = chart.across, chart.upwards
    axes.set(xscale=_scale(across), xlim=(across.low, across.high), xlabel=across.label)
    axes.set(yscale=_scale(upwards), ylim=(upwards.low, upwards.high), ylabel=upwards.label)
    _ticks(axes.xaxis, across)
    _ticks(axes.yaxis, upwards)
    axes.set_title(chart.title)
    if any(series.name for series in chart.series):
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.02), frameon=False, fontsize=9)


def _scale(axis: ChartAxis) -> str:
    return "log" if axis.logarithmic else "linear"


def _ticks(axis: Axis, given: ChartAxis) -> None:
    """Draw the ticks of the data."""
    ticks = given.ticks()
    axis.set_ticks([tick.value for tick in ticks], [tick.text for tick in ticks])
    axis.set_ticks([], minor=True)


def _line(axes: Axes, chart: Plane, line: Line, colour: str, *, label: str, gid: str = "") -> None:
    low, high = chart.upwards.low, chart.upwards.high
    axes.plot(
        [x for x, _ in line.points],
        [float("nan") if y is None else min(max(y, low), high) for _, y in line.points],
        color="#B00020" if line.alert else colour,
        linestyle=_STROKES[line.stroke],
        drawstyle="steps-post" if line.stairs else "default",
        lw=1 if gid == "" and not label else 1.5,
        label=label or None,
        gid=gid or None,
        zorder=1,
        clip_on=False,
    )
