"""Plans and bounds over time: what each backend had when."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...formulations.terms import Dimension, TermInfo
from ...solvers.course import credited
from ...solvers.result import Milestone
from ...solvers.sources import Source
from ..words import amount, seconds
from .race import SHAPES
from .scale import Axis, Tick
from .subject import SolverAnswer
from .table import Table, TableCell, columns, numbers, table
from .texts import visible

SIZE = 1000
"""Width and height of the lines, in units of their own; they are stretched to the chart."""

_LEAST_US = 100.0
_APART = 11.0
"""Percent between two ticks at least."""

_LOWEST = 0.5
"""Bounds below this share of the best plan lie at the lower edge: what is above it can be told apart."""

_MOST_MARKS = 60
"""Of one backend; lines are drawn whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveLine:
    """One backend: its name, its shape, and its lines as SVG paths; empty where there is nothing.

    `plans` it found, or proved to be best; `given` it was handed over. `own` and `borrowed` are its bounds:
    proved by itself, and handed over before it began.
    """

    name: str
    shape: str
    plans: str
    own: str
    borrowed: str
    given: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveMark:
    """A better plan or a better bound: percent from the left and the top, whose, and what is shown of it."""

    x: float
    y: float
    line: int
    is_bound: bool
    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Curves:
    """Plans and bounds over time, and how fast plans got good.

    `lines`, `marks`: what is drawn; `across`, `upwards`: ticks of the axes: time of the search, and the first
    objective term.
    """

    lines: tuple[CurveLine, ...]
    marks: tuple[CurveMark, ...]
    across: tuple[Tick, ...]
    upwards: tuple[Tick, ...]
    across_name: str
    upwards_name: str
    table: Table  # times and areas


def curves(found: Sequence[SolverAnswer], term: TermInfo) -> Curves | None:
    """Return the courses of some answers; None: not enough is known to draw them."""
    drawn = [answer for answer in found if answer.course]
    plans = [float(one.value) for a in drawn for one in a.course if one.value is not None]
    if not plans:
        return None
    least = _LOWEST * min(plans)
    bounds = [max(least, one.bound) for a in drawn for one in a.course if one.bound is not None]
    end_s = max(max(a.runtime_s, a.course[-1].at_s) for a in drawn)
    times = Axis.around([*(_time_us(one.at_s) for a in drawn for one in a.course), _time_us(end_s)])
    heights = Axis.around([*plans, *bounds])
    place = _Place(times, heights, least, _time_us(end_s))
    shapes = tuple(SHAPES)
    return Curves(
        lines=tuple(
            CurveLine(
                name=answer.label,
                shape=shapes[index % len(shapes)],
                plans=place.path([(one, credited(one)) for one in answer.course]),
                given=place.path([(o, o.value if credited(o) is None else None) for o in answer.course]),
                own=place.path(_bounds(answer.course, borrowed=False)),
                borrowed=place.path(_bounds(answer.course, borrowed=True)),
            )
            for index, answer in enumerate(drawn)
        ),
        marks=tuple(mark for index, answer in enumerate(drawn) for mark in place.marks(index, answer, term)),
        across=spaced(times.named(moment)),
        upwards=_ticks(heights, term.dimension),
        across_name=f"time of the search{_scale(times)}",
        upwards_name=f"{term.label}{_scale(heights)}",
        table=_table(found),
    )


def _bounds(course: Sequence[Milestone], *, borrowed: bool) -> list[tuple[Milestone, int | None]]:
    wanted = Source.START if borrowed else Source.OWN
    return [(one, one.bound if one.bound_source is wanted else None) for one in course]


@dataclass(frozen=True, slots=True)
class _Place:
    """Where values lie at which time."""

    times: Axis
    heights: Axis
    least: float
    end_us: float

    def at(self, at_s: float, value: float) -> tuple[float, float]:
        """Return percent from the left, and from the top."""
        return self.times.at(_time_us(at_s)), round(100 - self._height(value), 3)

    def _height(self, value: float) -> float:
        return self.heights.at(max(value, self.least))

    def path(self, steps: Sequence[tuple[Milestone, int | None]]) -> str:
        """Return stairs; each value holds until the next milestone, the last one until the end."""
        parts, pen = [], False
        for one, value in steps:
            if value is None:
                if pen:
                    parts.append(f"H{self._x(_time_us(one.at_s))}")
                pen = False
                continue
            x, y = self._x(_time_us(one.at_s)), round(SIZE * (1 - self._height(value) / 100), 1)
            parts.append(f"H{x}V{y}" if pen else f"M{x} {y}")
            pen = True
        return "".join([*parts, f"H{self._x(self.end_us)}"] if pen else parts)

    def _x(self, time_us: float) -> float:
        return round(SIZE * self.times.at(time_us) / 100, 1)

    def marks(self, line: int, answer: SolverAnswer, term: TermInfo) -> Iterator[CurveMark]:
        """Yield the milestones of an answer as marks, some of many."""
        found: list[CurveMark] = []
        before = Milestone(at_s=0.0)
        for one in answer.course:
            for value, old, source, what in (
                (one.value, before.value, one.plan_source, "plan"),
                (one.bound, before.bound, one.bound_source, "bound"),
            ):
                if value is None or value == old:
                    continue
                x, y = self.at(one.at_s, value)
                facts = {
                    "backend": answer.label,
                    what: amount(term.dimension, value),
                    "after": seconds(one.at_s),
                    "source": "given" if source is Source.START else "its own",
                }
                told = tuple((name, visible(text)) for name, text in facts.items())
                found.append(CurveMark(x=x, y=y, line=line, is_bound=what == "bound", facts=told))
            before = one
        step = -(-len(found) // _MOST_MARKS)
        yield from (mark for number, mark in enumerate(found) if number % max(step, 1) == 0)


def _time_us(at_s: float) -> float:
    return max(1e6 * at_s, _LEAST_US)


def moment(time_us: float) -> str:
    """Return a time on an axis."""
    return f"{time_us / 1e6:g} s" if time_us >= 1e6 else f"{time_us / 1000:g} ms"


def spaced(ticks: Sequence[Tick]) -> tuple[Tick, ...]:
    """Return the ticks whose texts have room beside each other."""
    found: list[Tick] = []
    for tick in ticks:
        if not found or tick.at - found[-1].at >= _APART:
            found.append(tick)
    return tuple(found)


def _scale(axis: Axis) -> str:
    return " (logarithmic)" if axis.logarithmic else ""


def _ticks(axis: Axis, dimension: Dimension) -> tuple[Tick, ...]:
    if dimension is Dimension.MICROSECONDS:
        return axis.ticks()
    return axis.named(lambda value: amount(dimension, round(value)))


def _table(found: Sequence[SolverAnswer]) -> Table:
    titles = columns("backend", *numbers("first plan", "within 1 % of the best", "primal integral"))
    rows: Iterator[list[TableCell | str]] = (
        [
            TableCell(text=answer.label, kind="name"),
            *(
                "-" if value is None else seconds(value)
                for value in (
                    answer.pace.first_plan_s,
                    answer.pace.near_best_s,
                    answer.pace.primal_integral_s,
                )
            ),
        ]
        for answer in found
        if not answer.failure
    )
    return table("How fast plans got good", titles, rows)
