"""Charts as data, which pages, pictures and the terminal draw alike.

A `Plane` shows numbers against numbers: lines, scatter plots and performance profiles. Numbers of an axis are
in the unit that the axis names.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from ..formulations.terms import Dimension

_STEPS = (1, 2, 5, 10)

_TIME_UNITS = ((1_000_000, "s"), (1_000, "ms"), (1, "us"))
"""Microseconds of each unit of time, the largest first."""

LOG_FROM = 6.0
"""Ratio of the largest to the smallest value from which on an axis is logarithmic."""

_DECADES = 1000
"""Ratio of the ends of a logarithmic axis from which on powers of ten are ticks enough."""

_WIDE, _NARROW, _CHARACTER, _GAP = 500, 260, 6.8, 12
"""Pixels: the least width of a chart on a wide and on a narrow page, a character, and between two ticks."""

Facts = tuple[tuple[str, str], ...]
"""What is told of a mark: (name, value)."""

DRAWN: dict[Dimension, tuple[int, str]] = {
    Dimension.MICROSECONDS: (1000, "ms"),
    Dimension.NANOSECONDS: (1_000_000, "ms"),
    Dimension.NANOJOULES: (1_000_000, "mJ"),
    Dimension.BYTES: (2**20, "MiB"),
    Dimension.PERMILLE: (10, "%"),
    Dimension.COUNT: (1, ""),
}
"""Divisor and unit of the numbers of an axis."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A named place on an axis: its value, percent of the length of the axis, and what stands there."""

    value: float
    at: float
    text: str
    narrow: bool = True  # whether there is room for it on a narrow page, too


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A part of a chart: its beginning and its width, percent of the whole."""

    x: float
    width: float


def share(part: float, whole: float) -> float:
    """Return a part in percent of a whole, to a thousandth; 0 of nothing."""
    return round(100 * part / whole, 3) if whole else 0.0


def span(start: float, end: float, whole: float) -> Span:
    """Return a part of a time line; rounded so that it never reaches beyond the end."""
    x = share(start, whole)
    return Span(x=x, width=round(max(0.0, share(end, whole) - x), 3))


def nice_step(length: float, most: int) -> float:
    """Return the least of ..., 0.5, 1, 2, 5, 10, ... that makes at most `most` steps of a length."""
    if length <= 0:
        return 1.0
    least = length / most
    power = 10.0 ** math.floor(math.log10(least))
    return next((step * power for step in _STEPS if step * power >= least * (1 - 1e-9)), 10 * power)


def time_unit(longest_us: float) -> tuple[int, str]:
    """Return the unit in which times of an axis are best read: its microseconds, and its name."""
    return next(((us, name) for us, name in _TIME_UNITS if longest_us >= 2 * us), _TIME_UNITS[-1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """An axis: its name, its unit, and the values at its two ends."""

    name: str
    low: float
    high: float
    unit: str = ""
    logarithmic: bool = False  # whether equal distances are equal ratios; both ends are positive then
    counts: bool = False  # whether it counts something: no tick lies between two whole numbers

    @classmethod
    def around(
        cls, name: str, values: Sequence[float], *, unit: str = "", logarithmic: bool | None = None
    ) -> Axis:
        """Return an axis that shows some values, with air.

        `logarithmic`: None: if they are positive and differ much.
        """
        low, high = min(values), max(values)
        if logarithmic or (logarithmic is None and low > 0 and high / low >= LOG_FROM):
            return cls(name=name, unit=unit, low=low / 1.15, high=high * 1.15, logarithmic=True)
        air = 0.08 * (high - low) or 0.1 * high or 1.0
        counts = not unit and all(float(value).is_integer() for value in values)
        return cls(name=name, unit=unit, low=max(0.0, low - air), high=high + air, counts=counts)

    @property
    def label(self) -> str:
        """Its name with its unit and scale."""
        notes = ", ".join(filter(None, (self.unit, "logarithmic" * self.logarithmic)))
        return f"{self.name} ({notes})" if notes else self.name

    def at(self, value: float) -> float:
        """Return where a value lies, percent from the low end; what is beyond an end lies there."""
        inside = min(max(value, self.low), self.high)
        if self.logarithmic:
            return share(math.log(inside / self.low), math.log(self.high / self.low))
        return share(inside - self.low, self.high - self.low)

    def ticks(self, most: int = 8) -> tuple[Tick, ...]:
        """Return round values between its ends; across, those whose texts have room beside each other."""
        ticks = [Tick(value=value, at=self.at(value), text=f"{value:,.10g}") for value in self._values(most)]
        narrow = [tick.at for tick in _apart(ticks, _NARROW)]
        return tuple(replace(tick, narrow=tick.at in narrow) for tick in _apart(ticks, _WIDE))

    def _values(self, most: int) -> Iterator[float]:
        if not self.logarithmic or self.high < 10 * self.low:
            step = max(nice_step(self.high - self.low, most), float(self.counts))
            first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
            yield from (number * step for number in range(first, last + 1))
            return
        steps = (1,) if self.high >= _DECADES * self.low else (1, 2, 5)
        power = 10.0 ** math.floor(math.log10(self.low))
        while power <= self.high:
            yield from (step * power for step in steps if self.low <= step * power <= self.high)
            power *= 10


def _apart(ticks: Sequence[Tick], width: float) -> Iterator[Tick]:
    """Yield the ticks whose texts do not touch each other on an axis; its width is in pixels."""
    reached = -math.inf
    for tick in ticks:
        half, middle = _CHARACTER * len(tick.text) / 2, tick.at * width / 100
        if middle - half >= reached:
            reached = middle + half + _GAP
            yield tick


def time_ticks(end_us: float, most: int = 8) -> tuple[Tick, ...]:
    """Return the ticks of a time line that begins at 0, each with its unit."""
    us, name = time_unit(end_us)
    step = nice_step(end_us / us, most)
    count = math.floor(end_us / us / step + 1e-9)
    times = (number * step for number in range(count + 1))
    return tuple(
        Tick(value=time * us, at=share(time * us, end_us), text=f"{time:g} {name}") for time in times
    )


class Kind(StrEnum):
    """Kinds of charts of numbers against numbers."""

    LINES = "line chart"
    SCATTER = "scatter plot"
    PROFILE = "performance profile"


class Stroke(StrEnum):
    """How a line is drawn."""

    SOLID = "solid"
    DASHED = "dashed"
    DOTTED = "dotted"
    MIXED = "mixed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line through points (x, y); where y is None it is interrupted."""

    points: tuple[tuple[float, float | None], ...]
    stroke: Stroke = Stroke.SOLID
    name: str = ""
    stairs: bool = False  # whether each y holds until the next x, instead of being joined to the next point
    filled: bool = False  # whether what is below it is shaded
    alert: bool = False  # whether it is a limit that should not be reached


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A point, and what is told of it."""

    x: float
    y: float
    facts: Facts = ()
    hollow: bool = False
    ring: bool = False  # whether it stands out


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Lines and marks of one colour and shape."""

    name: str
    lines: tuple[Line, ...] = ()
    marks: tuple[Mark, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plane:
    """Numbers against numbers.

    `words`: what there is to see, for those who do not see it; `noun`: what a mark is.
    """

    kind: Kind
    title: str
    across: Axis
    upwards: Axis
    series: tuple[Series, ...]
    words: str = ""
    noun: str = "mark"
    guides: tuple[Line, ...] = ()  # lines of no series, as a bound; those with a name are in the legend
    strokes: tuple[tuple[Stroke, str], ...] = ()  # what the strokes of the lines mean
    hollow: str = ""  # what hollow marks are
    ring: str = ""  # what the mark with a ring is
    flat: bool = False  # whether it is as wide as the page, and low

    @property
    def marks(self) -> tuple[tuple[int, Mark], ...]:
        """Number of the series and mark, in the order in which keys go through them: from left to right."""
        found = [(number, mark) for number, series in enumerate(self.series) for mark in series.marks]
        return tuple(sorted(found, key=lambda one: (one[1].x, one[1].y, one[0])))


class Tone(StrEnum):
    """Colours of bars that mean something; all others are numbers, which only tell bars apart."""

    PREDICTED = "predicted"
    MEASURED = "measured"
    OPEN = "open"  # what is not known yet, between a bound and a plan
    LOST = "lost"  # hatched over what is below it
    IDLE = "idle"  # hatched


Colour = Tone | int


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A piece of a bar."""

    start: float
    length: float
    colour: Colour
    name: str = ""  # what it is, where that matters
    faded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """One line of a bar: its pieces, and what is said of it, of which `note` is less important."""

    parts: tuple[Part, ...] = ()
    text: str = ""
    note: str = ""
    plan: float | None = None  # a dot: what is reached
    bound: float | None = None  # a line across: what cannot be passed
    spread: tuple[float, float] | None = None  # between which values it varied

    @property
    def end(self) -> float:
        """Where its last piece ends."""
        return max((part.start + part.length for part in self.parts), default=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A bar of one or several lines with its name."""

    name: str
    tracks: tuple[Track, ...]
    note: str = ""
    tag: str = ""  # why it stands out
    strong: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """Names against numbers, on one axis.

    `words`: what there is to see, for those who do not see it.
    """

    title: str
    across: Axis
    rows: tuple[Bar, ...]
    words: str = ""
    legend: tuple[tuple[Colour, str], ...] = ()
    faded: str = ""  # what faded pieces are
    ticked: bool = False  # whether the axis is drawn: where its bars do not say all that they show


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A piece of work on a unit, or a message on a link.

    `short`: what stands for it where a character or two have room. `number`: of its request.
    """

    start_ns: int
    end_ns: int
    label: str
    colour: int
    short: str = ""
    number: int = 0
    lost_ns: int = 0  # of its length, at its end: what company took
    copies_ns: tuple[tuple[int, int], ...] = ()  # when it copies


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What one unit or link did.

    `heading`: what stands above it, if it is the first row of a pipeline of several; else empty.
    """

    unit: str
    name: str  # its unit, or of a link its target where the row of its sender is above
    blocks: tuple[Block, ...]  # in order of their start
    heading: str = ""
    link: bool = False  # whether it is a link, with messages

    @property
    def idle_ns(self) -> tuple[tuple[int, int], ...]:
        """Bubbles: from when to when it did nothing, between its first and its last work; links have none."""
        found, until = [], self.blocks[0].end_ns if self.blocks else 0
        for block in () if self.link else self.blocks:
            if block.start_ns > until:
                found.append((until, block.start_ns))
            until = max(until, block.end_ns)
        return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gantt:
    """Who works when: rows of blocks on one line of time, which may be a part of what was played."""

    rows: tuple[Row, ...]
    end_ns: int
    start_ns: int = 0
    title: str = ""
    note: str = ""
    hot_ns: tuple[tuple[int, int], ...] = ()  # when requests of high contention run at once
    legend: tuple[tuple[int, str], ...] = ()  # colour and name
    letters: tuple[tuple[str, str], ...] = ()  # what the letters of `Block.short` mean
    outputs_ns: tuple[int, ...] = ()  # when each request (of each stream) or round was through, in order
    noun: str = "request"  # what is numbered

    @property
    def shown(self) -> tuple[int, int]:
        """First and last number of what is shown."""
        numbers = [block.number for row in self.rows for block in row.blocks]
        return min(numbers, default=0), max(numbers, default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatCell:
    """A cell of a heat map.

    `framed`: whether it stands out: "all" or "some" of what is shown is there, or "". `edges`: whether the
    frame begins ("t") or ends ("b") here.
    """

    text: str
    level: float | None  # its colour, from 0 to 1; None: there is nothing
    value: float | None = None  # in the unit of the map
    about: str = ""  # what a pointer on it is told
    framed: str = ""
    edges: str = ""
    mark: str = ""  # what says without colours what the level does


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatRow:
    """A row of a heat map: its name, what else is said of it, and a cell for each column."""

    name: str
    cells: tuple[HeatCell, ...]
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatMap:
    """Names against names, with a colour for each pair."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[HeatRow, ...]
    low: str  # what the colours at both ends of the scale mean
    high: str
    unit: str = ""  # of the values
    totals: tuple[str, ...] = ()  # of each column
    hidden: int = 0  # rows that are left out
    corner: str = "unit"  # what the names of the rows are
    across: str = "columns"  # what its columns are, in the plural
    notes: str = ""  # what the notes of the rows are; empty: they have no column in the terminal
    words: tuple[str, ...] = ()  # what the terminal says below it
    frames: tuple[tuple[int, int, int], ...] = ()  # what is outlined: column, first and last row
