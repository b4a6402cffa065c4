"""What things cost: times of layers, and how much units slow each other down."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...answers.charts import HeatCell, HeatMap, HeatRow
from ...answers.layers import layer_chart
from ...formulations.errors import InvalidInputError
from ...formulations.plan import Plan
from ...formulations.problem import Problem
from .canvas import axes_of, short, with_plain_names
from .draw import draw_heat_map

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
    found = next(one for one in problem.networks if one.name == name)
    units, chunks = problem.platform.unit_names, () if plan is None else plan.chunks
    framed = [chunk for chunk in chunks if chunk.network == name]
    chart = layer_chart(found, units, problem.costs.of(name).layer_us, [framed])
    named = len(chart.rows) <= _MOST_NAMES
    axes = axes_of(ax, (10, 1.5 + 0.4 * len(units) + (0.9 if named else 0)))
    draw_heat_map(chart, axes, label="time (ms)", logarithmic=True, turned=True)
    axes.set_yticks(range(len(units)), units)
    axes.set_ylabel("unit")
    axes.set_xlabel("layer" if named else "layer (number)")
    if named:
        texts = [short(row.name, 18) for row in chart.rows]
        axes.set_xticks(range(len(texts)), texts, rotation=90, fontsize=8)
    missing = any(cell.level is None for row in chart.rows for cell in row.cells)
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
    losses = problem.interference.slowdown_permille
    most = max(map(max, losses)) or 1
    rows = []
    for suffers, row in enumerate(losses):
        texts = ["-" if suffers == other else f"{loss / 10:.0f} %" for other, loss in enumerate(row)]
        cells = (
            HeatCell(text=text, level=loss / most, value=loss / 10)
            for text, loss in zip(texts, row, strict=True)
        )
        rows.append(HeatRow(name=units[suffers], cells=tuple(cells)))
    high = f"{most / 10:.0f} %"
    chart = HeatMap(title="Base slowdown", columns=units, rows=tuple(rows), low="0 %", high=high)
    axes = axes_of(ax, (2.6 + 0.75 * len(units), 1.6 + 0.55 * len(units)))
    draw_heat_map(chart, axes, label="longer than alone (%)")
    axes.set_xticks(range(len(units)), units)
    axes.set_yticks(range(len(units)), units)
    axes.set_xlabel("unit that works beside it")
    axes.set_ylabel("unit that suffers")
    axes.set_title(chart.title)
    return axes


def _network(problem: Problem, name: str | None) -> str:
    names = [network.name for network in problem.networks]
    if name is None and len(names) > 1:
        raise InvalidInputError(f"the problem has several networks; name one of {', '.join(names)}")
    if name is not None and name not in names:
        raise InvalidInputError(f"no network is called {name[:100]!r}; the problem has {', '.join(names)}")
    return names[0] if name is None else name
