"""Performance profiles: on how many problems a backend needs at most a given multiple of the best."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...formulations.errors import InvalidInputError
from ...sweeps.contest import InstanceComparison
from ...sweeps.standings import profiles
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
