"""Plans and bounds over time, and performance profiles, as charts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ..formulations.terms import TermInfo
from ..solvers.course import credited
from ..solvers.result import Milestone
from ..solvers.sources import Source
from ..sweeps.standings import Profile
from .charts import DRAWN, Axis, Kind, Line, Mark, Plane, Series, Stroke
from .words import amount, seconds

LEAST_S = 1e-4
"""Shortest time that is drawn: an axis of ratios has no 0."""

_LOWEST = 0.5
"""Bounds below this share of the best plan lie at the lower edge: what is above it can be told apart."""

_MOST_MARKS = 60
"""Of one backend; lines are drawn whole."""

_STROKES = (
    (Stroke.SOLID, "best plan"),
    (Stroke.DASHED, "bound, its own"),
    (Stroke.DOTTED, "bound that it was given"),
    (Stroke.MIXED, "plan that it was given"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """What a backend had when."""

    name: str
    milestones: tuple[Milestone, ...]


def courses_chart(courses: Sequence[Course], term: TermInfo, end_s: float) -> Plane | None:
    """Return plans and bounds over time until at least `end_s`; None: nobody has a plan."""
    drawn = [course for course in courses if course.milestones]
    divisor, unit = DRAWN[term.dimension]
    steps = [one for course in drawn for one in course.milestones]
    plans = [one.value / divisor for one in steps if one.value is not None]
    if not plans:
        return None
    bounds = [max(_LOWEST * min(plans), one.bound / divisor) for one in steps if one.bound is not None]
    times = [max(one.at_s, LEAST_S) for one in steps]
    end_s = max(end_s, 1.1 * min(times), *times)
    return Plane(
        kind=Kind.LINES,
        title="Plans and bounds over time",
        noun="step",
        across=Axis.around("time of the search", [*times, end_s], unit="s", logarithmic=True),
        upwards=Axis.around(term.label, [*plans, *bounds], unit=unit),
        series=tuple(
            Series(
                name=course.name,
                lines=tuple(_lines(course.milestones, divisor, end_s)),
                marks=tuple(_marks(course, term)),
            )
            for course in drawn
        ),
        strokes=_STROKES,
    )


def _lines(course: Sequence[Milestone], divisor: int, end_s: float) -> Iterator[Line]:
    """Yield the stairs of a course that are not empty."""
    wanted: tuple[tuple[str, Stroke, Callable[[Milestone], float | None]], ...] = (
        ("", Stroke.SOLID, credited),
        ("given plan", Stroke.MIXED, lambda one: one.value if credited(one) is None else None),
        ("bound own", Stroke.DASHED, lambda one: one.bound if one.bound_source is Source.OWN else None),
        ("bound start", Stroke.DOTTED, lambda one: one.bound if one.bound_source is Source.START else None),
    )
    for name, stroke, value_of in wanted:
        points = [(max(one.at_s, LEAST_S), value_of(one)) for one in course]
        points.append((end_s, points[-1][1]))
        if any(value is not None for _, value in points):
            scaled = tuple((at_s, None if value is None else value / divisor) for at_s, value in points)
            yield Line(points=scaled, stroke=stroke, name=name, stairs=True)


def _marks(course: Course, term: TermInfo) -> list[Mark]:
    """Return better plans and better bounds as marks, some of many."""
    found: list[Mark] = []
    before, divisor = Milestone(at_s=0.0), DRAWN[term.dimension][0]
    for one in course.milestones:
        for value, old, source, what in (
            (one.value, before.value, one.plan_source, "plan"),
            (one.bound, before.bound, one.bound_source, "bound"),
        ):
            if value is None or value == old:
                continue
            facts = (
                ("backend", course.name),
                (what, amount(term.dimension, value)),
                ("after", seconds(one.at_s)),
                ("source", "given" if source is Source.START else "its own"),
            )
            at_s = max(one.at_s, LEAST_S)
            found.append(Mark(x=at_s, y=value / divisor, facts=facts, hollow=what == "bound"))
        before = one
    return found[:: -(-len(found) // _MOST_MARKS) or 1]


def profile_chart(profile: Profile) -> Plane | None:
    """Return a performance profile; None: nobody has solved anything."""
    if not any(profile.lines.values()):
        return None
    end = max(1.2 * profile.most, 1.05)
    return Plane(
        kind=Kind.PROFILE,
        title=profile.title,
        noun="step",
        across=Axis(name="times the best", low=1.0, high=end, logarithmic=True),
        upwards=Axis(name="problems", low=0, high=100, unit="%"),
        series=tuple(_profile(name, steps, end) for name, steps in profile.lines.items()),
    )


def _profile(name: str, steps: Sequence[tuple[float, float]], end: float) -> Series:
    """Return the stairs of a backend from none of the problems up."""
    points = [(1.0, 0.0), *((ratio, 100 * part) for ratio, part in steps)]
    marks = (
        Mark(
            x=ratio,
            y=100 * part,
            facts=(
                ("backend", name),
                ("problems", f"{100 * part:.0f} %"),
                ("at most", f"{ratio:.3g} times the best"),
            ),
        )
        for ratio, part in steps[:: -(-len(steps) // _MOST_MARKS) or 1]
    )
    line = Line(points=(*points, (end, points[-1][1])), stairs=True)
    return Series(name=name, lines=(line,), marks=tuple(marks))
