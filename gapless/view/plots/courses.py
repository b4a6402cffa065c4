"""Plans and bounds over time: what each backend of a comparison had when."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...answers.courses import Course, courses_chart, profile_chart
from ...api.comparison import Comparison
from ...formulations.errors import InvalidInputError
from ...sweeps.contest import InstanceComparison
from ...sweeps.standings import profiles
from .canvas import axes_of, with_plain_names
from .draw import draw_plane

if TYPE_CHECKING:
    from matplotlib.axes import Axes


WHICH = ("time", "value", "proof")
"""Profiles that can be drawn: time to a plan within 1 % of the best, value of the plan, time to a proof."""


@with_plain_names
def plot_profile(found: InstanceComparison, which: str = "time", *, ax: Axes | None = None) -> Axes:
    """Draw a performance profile (Dolan and More 2002); higher is better.

    Parameters
    ----------
    found
        Of `compare_instances`.
    which
        What is compared: "time" to a plan within 1 % of the best, "value" of the plan, time to a "proof".
    ax
        Where to draw; None: in a new figure.

    Raises
    ------
    InvalidInputError
        There is no such profile, no backend solved anything, or matplotlib is not installed.
    """
    if which not in WHICH:
        raise InvalidInputError(f"which is {which!r}; choose from {', '.join(WHICH)}")
    chart = profile_chart(profiles(found)[WHICH.index(which)])
    if chart is None:
        raise InvalidInputError(f"no backend has solved anything: there is no profile of the {which}")
    axes = axes_of(ax, (7, 4.5))
    draw_plane(chart, axes)
    return axes


@with_plain_names
def plot_courses(comparison: Comparison, *, ax: Axes | None = None) -> Axes:
    """Draw plans and bounds over time, one colour a backend; the time is logarithmic.

    Solid: the best plan until then that it found, or proved to be best; dash-dotted: one that it was given.
    Dashed: the bound that the backend proved; dotted: the one it was given.

    Parameters
    ----------
    comparison
        Of `compare`.
    ax
        Where to draw; None: in a new figure.

    Raises
    ------
    InvalidInputError
        No backend has a plan, or matplotlib is not installed.
    """
    problem = comparison.problem
    chart = courses_chart(
        [Course(name=result.label, milestones=result.course) for result in comparison.results],
        problem.formulation.terms[problem.objective.terms[0]],
        comparison.horizon_s,
    )
    if chart is None:
        raise InvalidInputError("no backend has a plan: there is nothing to draw over time")
    axes = axes_of(ax, (8, 4.5))
    draw_plane(chart, axes)
    axes.set_title("Solid: best plan, dashed: proved bound. Dash-dotted, dotted: those that were given")
    return axes
