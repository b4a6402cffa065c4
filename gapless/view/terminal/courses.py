"""How fast backends came to good plans, for people: times, areas, and a coarse line for each."""

from __future__ import annotations

import math
from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from ...api.comparison import Comparison
from ...solvers.course import NEAR, credited, primal_gap
from ...solvers.result import Milestone
from ..layout import indented, plain_table
from ..words import seconds

WIDTH = 24
"""Characters of a line."""

_LEVELS = ((0.0, "▁"), (NEAR, "▂"), (0.03, "▃"), (0.1, "▄"), (0.3, "▅"), (1.0, "▇"))
"""Most primal gap of each character; nothing stands where there is no plan."""

GIVEN = "·"
"""Stands where there is only a plan that the backend was given."""

_SHORTEST_S = 1e-4
"""Where lines begin at the earliest: their scale is logarithmic."""


def pace_view(comparison: Comparison) -> RenderableType | None:
    """Return how the plans of each backend got better; None: there was no plan, or nothing was kept."""
    best = comparison.best
    if best is None or best.objective is None or not any(result.course for result in comparison.results):
        return None
    times = ("first plan", "within 1 %", "primal integral")
    table = plain_table("backend", *times, "plans over time", numbers=times)
    start_s, end_s = span_of(comparison)
    for result in comparison.results:
        pace = comparison.pace(result)
        table.add_row(
            result.label,
            *(
                "-" if value is None else seconds(value)
                for value in (pace.first_plan_s, pace.near_best_s, pace.primal_integral_s)
            ),
            Text("".join(_line(result.course, best.objective, start_s, end_s)), no_wrap=True),
        )
    words = (
        f"times from when the backend was loaded; plans that it was given count from when it has proved them "
        "best; primal integral: area under the distance to the best plan here, until "
        f"{seconds(comparison.horizon_s)} (Berthold 2013); plans over time: from {seconds(start_s)} to "
        f"{seconds(end_s)}, logarithmic: ▁ the best, ▂ within 1 %, ▃ 3 %, ▄ 10 %, ▅ 30 %, ▇ worse, "
        "·: only what it was given, nothing: no plan"
    )
    return Group(indented(table), Text(words, style="dim"))


def span_of(comparison: Comparison) -> tuple[float, float]:
    """Return from when to when a logarithmic line of the courses of a comparison goes, in seconds."""
    times = [one.at_s for result in comparison.results for one in result.course if one.value is not None]
    start_s = max(_SHORTEST_S, min(times, default=_SHORTEST_S))
    return start_s, max(comparison.horizon_s, *times, 2 * start_s)


def _line(course: tuple[Milestone, ...], best: int, start_s: float, end_s: float) -> Iterator[str]:
    """Yield a character for what there was at the end of each part of the time."""
    for place in range(1, WIDTH + 1):
        # A hair later: the last one ends where the last plan came.
        at_s = start_s * math.exp(math.log(end_s / start_s) * place / WIDTH) * 1.000001
        had = [one for one in course if one.at_s <= at_s and one.value is not None]
        value = credited(had[-1]) if had else None
        gap = None if value is None else primal_gap(value, best)
        yield (
            GIVEN
            if had and gap is None
            else " "
            if gap is None
            else next(s for most, s in _LEVELS if gap <= most)
        )
