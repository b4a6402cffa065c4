"""Charts with matplotlib: one function for each kind of data, and what all pictures share."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec

from ...answers.charts import Axis as ChartAxis
from ...answers.charts import Bars, Block, Colour, Gantt, HeatMap, Kind, Line, Plane, Stroke, Tone, Track
from ...formulations.errors import InvalidInputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

Given = ParamSpec("Given")

PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
"""Colours of Okabe and Ito, which colour-blind people can tell apart."""

BLUE, ORANGE, GREEN = PALETTE[:3]

DARK = frozenset({"#0072B2", "#009E73", "#D55E00"})
"""Colours on which text is white."""

Look = Mapping[str, Any]
"""Properties of a patch, as matplotlib names them."""

# Hatching says the same as every grey, for printers and for colour-blind people.
IDLE: Look = {"facecolor": "#eeeeee", "edgecolor": "#b0b0b0", "hatch": "///", "linewidth": 0}
"""A bubble."""

LOST: Look = {"facecolor": "none", "edgecolor": "black", "hatch": "xxx", "linewidth": 0}
"""Time that a chunk lost to its neighbours; drawn over its colour."""

_DECADES = 1000
"""Ratio from which a logarithmic axis has enough ticks with the powers of ten alone."""

_CHARACTER_INCHES = 0.085
"""Width of a character of 9 points."""


def axes_of(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """Return where to draw: the given axes, or those of a new figure of (width, height) inches."""
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ModuleNotFoundError as error:
        raise _without(error) from error
    return pyplot.subplots(figsize=size, layout="constrained")[1]


def picture_endings() -> list[str]:
    """Return how the names of files may end that pictures are drawn into; refuses where none can be drawn."""
    try:
        from matplotlib.backend_bases import FigureCanvasBase
    except ModuleNotFoundError as error:
        raise _without(error) from error
    return sorted(f".{kind}" for kind in FigureCanvasBase.get_supported_filetypes())


def _without(error: ModuleNotFoundError) -> InvalidInputError:
    return InvalidInputError(
        f"pictures need {error.name}, which is not installed; install it with: pip install 'gapless[plots]'"
    )


def with_plain_names(draw: Callable[Given, Axes]) -> Callable[Given, Axes]:
    """Return a function that draws the same, where a dollar in a name begins no formula."""

    @wraps(draw)
    def drawn(*args: Given.args, **kwargs: Given.kwargs) -> Axes:
        axes = draw(*args, **kwargs)
        from matplotlib.text import Text  # there by now

        for text in axes.findobj(Text):
            assert isinstance(text, Text)
            text.set_parse_math("$" not in text.get_text())
        return axes

    return drawn


def legend(axes: Axes, entries: Sequence[tuple[str, Look]]) -> None:
    """Draw a legend of (label, look) on the right of the axes, so that it covers nothing."""
    from matplotlib.patches import Patch

    if entries:
        handles = [Patch(label=label, **look) for label, look in entries]
        axes.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.0, 1.02), frameon=False, fontsize=9)


def rows(axes: Axes, names: Sequence[str]) -> None:
    """Name the rows of a horizontal chart, the first one on top."""
    axes.set_yticks(range(len(names)), list(names))
    axes.set_ylim(len(names) - 0.4, -0.6)


def plain_decades(axis: Axis, low: float, high: float) -> None:
    """Write the ticks of a logarithmic axis from low to high as 0.1, 1, 10; in between where that is few."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    axis.set_major_locator(LogLocator(subs=(1,) if high >= _DECADES * low else (1, 2, 5)))
    axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.set_minor_formatter(NullFormatter())


def room(axes: Axes, share: float) -> int:
    """Return how many characters of 9 points a share of the width of the axes has room for."""
    inches = axes.get_window_extent().width / axes.figure.dpi
    return int(share * inches / _CHARACTER_INCHES)


def short(text: str, most: int) -> str:
    """Return a text in one line of at most a given number of characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


_STROKES = {Stroke.SOLID: "-", Stroke.DASHED: "--", Stroke.DOTTED: ":", Stroke.MIXED: "-."}

_MARKERS = "osD^X"
"""As the shapes of the page, each with an inside that may be hollow; they repeat."""


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


_TONES: dict[Tone, Look] = {
    Tone.PREDICTED: {"facecolor": BLUE},
    Tone.MEASURED: {"facecolor": GREEN},
    Tone.OPEN: {"facecolor": ORANGE},
    Tone.LOST: LOST,
    Tone.IDLE: IDLE,
}


def draw_bars(chart: Bars, axes: Axes, *, said: bool = True) -> None:
    """Draw bars, one below the other; `said`: with what is said of them behind them."""
    for row, bar in enumerate(chart.rows):
        height = 0.8 / max(1, len(bar.tracks))
        for number, track in enumerate(bar.tracks):
            middle = row - 0.4 + (number + 0.5) * height
            for part in track.parts:
                look = {"edgecolor": "white", "linewidth": 0.4, **_look(part.colour, faded=part.faded)}
                gid = part.name or None
                axes.barh(middle, part.length, left=part.start, height=height, gid=gid, **look)
            _draw_ends(axes, track, middle, height)
            if said and track.text:
                axes.text(_beside(chart, track), middle, track.text, va="center", fontsize=9)
    rows(axes, [bar.name for bar in chart.rows])
    axes.set(xscale=_scale(chart.across), xlim=(chart.across.low, chart.across.high))
    axes.set(xlabel=chart.across.label, title=chart.title)
    _ticks(axes.xaxis, chart.across)
    faded = {**_look(0, faded=True), "facecolor": "white"}
    named = [(name, _look(colour)) for colour, name in chart.legend]
    legend(axes, [*named, *([(chart.faded, faded)] if chart.faded else [])])


_MS = 1e6
"""Nanoseconds in a millisecond."""


def draw_gantt(chart: Gantt, axes: Axes) -> None:
    """Draw who works when."""
    axes.set_xlim(chart.start_ns / _MS, chart.end_ns / _MS)
    for number, row in enumerate(chart.rows):
        for start_ns, end_ns in row.idle_ns:
            left, length = start_ns / _MS, (end_ns - start_ns) / _MS
            axes.barh(number, length, left=left, height=0.8, **IDLE, gid="bubble")
        for block in row.blocks:
            _draw_block(axes, number, block, chart.end_ns - chart.start_ns)
    rows(axes, [row.name for row in chart.rows])
    axes.set(xlabel="time (ms)", ylabel="unit", title=chart.title)
    named = [(name, _look(colour)) for colour, name in chart.legend]
    lost = any(block.lost_ns for row in chart.rows for block in row.blocks)
    legend(axes, [*named, *hatched(lost=lost, idle=any(row.idle_ns for row in chart.rows))])


def _draw_block(axes: Axes, row: int, block: Block, whole_ns: int) -> None:
    colour = PALETTE[block.colour % len(PALETTE)]
    start, length = block.start_ns / _MS, (block.end_ns - block.start_ns) / _MS
    axes.barh(row, length, left=start, height=0.8, color=colour, edgecolor="white", lw=0.6, gid="work")
    if block.lost_ns:
        lost = block.lost_ns / _MS
        axes.barh(row, lost, left=start + length - lost, height=0.8, **LOST, gid="slowed down")
    if len(block.label) <= room(axes, (block.end_ns - block.start_ns) / whole_ns):
        middle, ink = start + length / 2, "white" if colour in DARK else "black"
        axes.text(middle, row, block.label, ha="center", va="center", fontsize=9, color=ink, clip_on=True)


def hatched(*, lost: bool, idle: bool) -> list[tuple[str, Look]]:
    """Return the entries of a legend for what is hatched, as far as there is any of it."""
    entries = (("slowed down", LOST, lost), ("bubble", IDLE, idle))
    return [(label, look) for label, look, there in entries if there]


def _draw_ends(axes: Axes, track: Track, middle: float, height: float) -> None:
    if track.bound is not None:
        ends = [middle - height / 2, middle + height / 2]
        axes.plot([track.bound] * 2, ends, color="black", lw=3, gid="bound")
    if track.spread is not None:
        axes.plot(track.spread, [middle, middle], color="black", lw=1.5, marker="|", gid="spread")


def _beside(chart: Bars, track: Track) -> float:
    """Return where the words behind a bar begin."""
    across = chart.across
    return 1.1 * track.end if across.logarithmic else track.end + 0.012 * (across.high - across.low)


def _look(colour: Colour, *, faded: bool = False) -> Look:
    look = _TONES[colour] if isinstance(colour, Tone) else {"facecolor": PALETTE[colour % len(PALETTE)]}
    return {**look, "hatch": "xx", "edgecolor": "black", "linewidth": 0} if faded else look


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


def draw_heat_map(
    chart: HeatMap, axes: Axes, *, label: str, logarithmic: bool = False, turned: bool = False
) -> None:
    """Draw colours by value, what is framed, and texts where there is one colour a row.

    `turned`: whether rows of the data are columns of the picture, which then has no texts.
    """
    from matplotlib.colors import LogNorm, Normalize

    values = [[math.nan if cell.value is None else cell.value for cell in row.cells] for row in chart.rows]
    known = [value for row in values for value in row if not math.isnan(value)] or [1.0]
    low, high = min(known), max(known)
    norm = LogNorm(low, max(high, 1.01 * low)) if logarithmic else Normalize(0, high or 1.0)
    shown = list(map(list, zip(*values, strict=True))) if turned else values
    axes.patch.set(**IDLE)  # shows through where there is no value
    image = axes.imshow(shown, aspect="auto", cmap="cividis", norm=norm, interpolation="nearest")
    bar = axes.figure.colorbar(image, ax=axes, label=label, pad=0.02)
    if logarithmic:
        plain_decades(bar.ax.yaxis, low, high)
    if turned:
        _frames(chart, axes)
        return
    for number, row in enumerate(chart.rows):
        for column, cell in enumerate(row.cells):
            ink = "black" if (cell.level or 0) > 0.5 else "white"
            axes.text(column, number, cell.text, ha="center", va="center", color=ink)


def _frames(chart: HeatMap, axes: Axes) -> None:
    """Draw frames that show on light and on dark cells, of a picture that is turned."""
    from matplotlib.patches import Rectangle

    for column, first, last in chart.frames:
        for colour, width, gid in (("white", 4.0, "frame ground"), ("#D55E00", 2.0, "frame")):
            place, length = (first - 0.5, column - 0.5), last - first + 1
            frame = Rectangle(place, length, 1, fill=False, edgecolor=colour, zorder=3, gid=gid)
            frame.set_linewidth(width)
            axes.add_patch(frame)
