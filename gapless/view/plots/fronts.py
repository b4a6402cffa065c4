"""Trade-offs as a picture: a point a plan."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from ...formulations.errors import InvalidInputError
from ...formulations.problem import Problem
from ...solvers.pareto import ParetoFront
from ..words import SCALES
from .canvas import BLUE, GREEN, ORANGE, axes_of, with_plain_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@with_plain_names
def plot_front(
    front: ParetoFront,
    problem: Problem,
    *,
    terms: tuple[str, str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a front: predicted plans, proven or not, and beside each what was measured of it.

    Parameters
    ----------
    front
        Of `pareto`.
    problem
        What it is about.
    terms
        Two of its terms, to the right and upwards; None: the first two. With three terms a point can be
        dominated in the two that are drawn; a step line joins those that are not.
    ax
        Where to draw; None: in a new figure.

    Raises
    ------
    InvalidInputError
        There are no plans, the front is not of these terms, or matplotlib is not installed.
    """
    drawn = terms or front.terms[:2]
    if drawn not in set(combinations(front.terms, 2)) | set(combinations(front.terms[::-1], 2)):
        raise InvalidInputError(f"the front is of {', '.join(front.terms)}: draw two of these terms")
    if not front.points:
        raise InvalidInputError("the front has no plans: there is nothing to draw")
    axes = axes_of(ax, (7, 4.5))
    infos = [problem.formulation.terms[term] for term in drawn]
    places = [front.terms.index(term) for term in drawn]
    scales = [SCALES[info.dimension] for info in infos]
    spots = {
        point.values: tuple(
            point.values[place] / scale for place, (scale, _) in zip(places, scales, strict=True)
        )
        for point in front.points
    }
    for proven, colour, label in ((True, BLUE, "proven"), (False, ORANGE, "not proven")):
        found = [spots[point.values] for point in front.points if point.proven is proven]
        if found:
            axes.scatter(*zip(*found, strict=True), color=colour, label=label, zorder=3)
    line = _undominated(sorted(set(spots.values())))
    axes.step(*zip(*line, strict=True), where="post", color="grey", lw=1, zorder=1)
    seen = [
        (spots[point.values], tuple(point.measured[info.field] / SCALES[info.dimension][0] for info in infos))
        for point in front.points
        if all(info.field in point.measured for info in infos)
    ]
    for one, other in seen:
        axes.plot(*zip(one, other, strict=True), color=GREEN, lw=0.8, zorder=2)
    if seen:
        axes.scatter(
            *zip(*(other for _, other in seen), strict=True),
            color=GREEN,
            marker="s",
            label="measured",
            zorder=3,
        )
    axes.set_xlabel(f"{infos[0].label}{scales[0][1]}")
    axes.set_ylabel(f"{infos[1].label}{scales[1][1]}")
    axes.legend(frameon=False)
    axes.set_title(f"{'All' if front.complete else 'Known'} trade-offs: {len(front.points)} plans")
    return axes


def _undominated(spots: list[tuple[float, ...]]) -> list[tuple[float, ...]]:
    """Return which of some points, from left to right, are lower than all before."""
    kept: list[tuple[float, ...]] = []
    for spot in spots:
        if not kept or spot[1] < kept[-1][1]:
            kept.append(spot)
    return kept
