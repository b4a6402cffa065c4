"""Plans and bounds over time: what each backend of a comparison had when."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...api.comparison import Comparison
from ...formulations.errors import InvalidInputError
from ...solvers.course import credited
from ...solvers.result import Milestone
from ...solvers.sources import Source
from ...sweeps.contest import InstanceComparison
from ...sweeps.standings import profiles
from ..words import SCALES
from .canvas import PALETTE, axes_of, plain_decades, with_plain_names

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
    profile = profiles(found)[WHICH.index(which)]
    if not any(profile.lines.values()):
        raise InvalidInputError(f"no backend has solved anything: there is no profile of the {which}")
    axes = axes_of(ax, (7, 4.5))
    end = 1.1 * max(profile.most, 1.05)
    for index, (backend, line) in enumerate(profile.lines.items()):
        ratios = [1.0, *(ratio for ratio, _ in line), end]
        shares = [0.0, *(100 * share for _, share in line)]
        colour = PALETTE[index % len(PALETTE)]
        axes.plot(ratios, [*shares, shares[-1]], drawstyle="steps-post", color=colour, label=backend)
    axes.set_xscale("log")
    axes.set_xlim(1.0, end)
    axes.set_ylim(-2, 102)
    plain_decades(axes.xaxis, 1.0, end)
    axes.set_xlabel("times the best, logarithmic")
    axes.set_ylabel("problems (%)")
    axes.set_title(profile.title)
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.02), frameon=False, fontsize=9)
    return axes


_LEAST_S = 1e-4


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
    drawn = [result for result in comparison.results if result.course]
    if not any(one.value is not None for result in drawn for one in result.course):
        raise InvalidInputError("no backend has a plan: there is nothing to draw over time")
    info = comparison.problem.formulation.terms[comparison.problem.objective.terms[0]]
    scale, unit = SCALES[info.dimension]
    axes = axes_of(ax, (8, 4.5))
    first_s = max(_LEAST_S, min(one.at_s for result in drawn for one in result.course))
    end_s = max(comparison.horizon_s, *(result.course[-1].at_s for result in drawn), 1.1 * first_s)
    for index, result in enumerate(drawn):
        colour, course = PALETTE[index % len(PALETTE)], result.course
        own = [credited(one) for one in course]
        plans = [None if value is None else value / scale for value in own]
        given = [
            one.value / scale if one.value is not None and value is None else None
            for one, value in zip(course, own, strict=True)
        ]
        _stairs(axes, course, plans, end_s, color=colour, linestyle="-", label=result.label, marker=".")
        _stairs(axes, course, given, end_s, color=colour, linestyle="-.", gid="given plan", marker="x")
        for source, style in ((Source.OWN, "--"), (Source.START, ":")):
            bounds = [
                one.bound / scale if one.bound is not None and one.bound_source is source else None
                for one in course
            ]
            _stairs(axes, course, bounds, end_s, color=colour, linestyle=style, gid=f"bound {source}")
    axes.set_xscale("log")
    axes.set_xlim(first_s / 1.2, end_s * 1.05)
    plain_decades(axes.xaxis, first_s, end_s)
    axes.set_xlabel("time of the search (s), logarithmic")
    axes.set_ylabel(f"{info.label}{unit}")
    axes.set_title("Solid: best plan, dashed: proved bound. Dash-dotted, dotted: those that were given")
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.02), frameon=False, fontsize=9)
    return axes


def _stairs(
    axes: Axes, course: tuple[Milestone, ...], values: list[float | None], end_s: float, **how: str
) -> None:
    """Draw values that hold until the next milestone, the last one until the end."""
    if any(value is not None for value in values):
        times = [*(max(one.at_s, _LEAST_S) for one in course), end_s]
        known = [float("nan") if value is None else value for value in [*values, values[-1]]]
        axes.plot(times, known, drawstyle="steps-post", **how)  # type: ignore[arg-type]
