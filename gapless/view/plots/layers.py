"""What things cost: times of layers, and how much units slow each other down."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ...formulations.errors import InvalidInputError
from ...formulations.plan import Plan
from ...formulations.problem import Problem
from .canvas import IDLE, axes_of, plain_decades, short, with_plain_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_NAMES = 45
"""Most layers whose names stand below a heat map; more are numbered."""


@with_plain_names
def plot_layer_times(
    problem: Problem, *, network: str | None = None, plan: Plan | None = None, ax: Axes | None = None
) -> Axes:
    """Draw how long each layer takes on each unit: a heat map on a logarithmic scale.

    Parameters
    ----------
    problem
        What is planned; of co-run costs, those of a plan on one unit.
    network
        Which network; None: the only one.
    plan
        A plan whose chunks are framed.
    ax
        Where to draw; None: in a new figure.

    Raises
    ------
    InvalidInputError
        There are several networks and none is named, there is none of that name, or matplotlib is missing.
    """
    name = _network(problem, network)
    layers = next(found for found in problem.networks if found.name == name).layer_names
    units = problem.platform.unit_names
    columns = zip(*problem.costs.of(name).layer_us, strict=True)
    times = [[math.nan if us is None else us / 1000 for us in column] for column in columns]
    named = len(layers) <= _MOST_NAMES
    axes = axes_of(ax, (10, 1.5 + 0.4 * len(units) + (0.9 if named else 0)))
    from matplotlib.colors import LogNorm

    known = [time for row in times for time in row if not math.isnan(time)] or [1.0]
    norm = LogNorm(vmin=min(known), vmax=max(*known, 1.01 * min(known)))
    axes.patch.set(**IDLE)  # shows through where there is no time
    image = axes.imshow(times, aspect="auto", cmap="cividis", norm=norm, interpolation="nearest")
    bar = axes.figure.colorbar(image, ax=axes, label="time (ms)", pad=0.02)
    plain_decades(bar.ax.yaxis, min(known), max(known))
    axes.set_yticks(range(len(units)), units)
    axes.set_ylabel("unit")
    axes.set_xlabel("layer" if named else "layer (number)")
    if named:
        axes.set_xticks(range(len(layers)), [short(layer, 18) for layer in layers], rotation=90, fontsize=8)
    framed = () if plan is None else tuple(chunk for chunk in plan.chunks if chunk.network == name)
    for chunk in framed:
        _frame(axes, chunk.start, units.index(chunk.unit), chunk.stop - chunk.start)
    missing = len(known) < len(layers) * len(units)
    notes = (("framed: the plan", bool(framed)), ("hatched: cannot run", missing))
    said = "; ".join(text for text, holds in notes if holds)
    axes.set_title(f"Time of each layer of {name}{f' ({said})' if said else ''}")
    return axes


@with_plain_names
def plot_slowdown(problem: Problem, *, ax: Axes | None = None) -> Axes:
    """Draw by how much units slow each other down, in percent of the time alone: a heat map.

    These are the base slowdowns: for the reference network beside itself; for others they are multiplied by
    the sensitivity of the one and the intensity of the other.

    Parameters
    ----------
    problem
        With an `interference`.
    ax
        Where to draw; None: in a new figure.

    Raises
    ------
    InvalidInputError
        The problem knows of no slowdown, or matplotlib is not installed.
    """
    if problem.interference is None:
        raise InvalidInputError(
            "the problem has no interference to draw; shipped workloads have (gapless.load_workload), "
            "and `gapless costs contention` measures it"
        )
    units = problem.interference.units
    percent = [[value / 10 for value in row] for row in problem.interference.slowdown_permille]
    axes = axes_of(ax, (2.6 + 0.75 * len(units), 1.6 + 0.55 * len(units)))
    most = max(map(max, percent)) or 1.0
    image = axes.imshow(percent, cmap="cividis", vmin=0, vmax=most, aspect="auto")
    for row, cells in enumerate(percent):
        for column, value in enumerate(cells):
            ink = "black" if value > most / 2 else "white"
            text = "-" if row == column else f"{value:.0f} %"
            axes.text(column, row, text, ha="center", va="center", color=ink)
    axes.figure.colorbar(image, ax=axes, label="longer than alone (%)")
    axes.set_xticks(range(len(units)), units)
    axes.set_yticks(range(len(units)), units)
    axes.set_xlabel("unit that works beside it")
    axes.set_ylabel("unit that suffers")
    axes.set_title("Base slowdown")
    return axes


def _network(problem: Problem, name: str | None) -> str:
    names = [network.name for network in problem.networks]
    if name is None and len(names) > 1:
        raise InvalidInputError(f"the problem has several networks; name one of {', '.join(names)}")
    if name is not None and name not in names:
        raise InvalidInputError(f"no network is called {name[:100]!r}; the problem has {', '.join(names)}")
    return names[0] if name is None else name


def _frame(axes: Axes, first_layer: int, unit: int, layers: int) -> None:
    """Draw a frame that shows on light and on dark cells."""
    from matplotlib.patches import Rectangle

    for colour, width, gid in (("white", 4.0, "frame ground"), ("#D55E00", 2.0, "frame")):
        axes.add_patch(
            Rectangle(
                (first_layer - 0.5, unit - 0.5),
                layers,
                1,
                fill=False,
                edgecolor=colour,
                linewidth=width,
                zorder=3,
                gid=gid,
            )
        )
