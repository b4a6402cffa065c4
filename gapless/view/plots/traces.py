"""What happens when: Gantt charts, and the busy times of units."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ...executor.measurement import MeasuredTrace
from ...formulations.errors import InvalidInputError
from ...formulations.flow_shop.tables import workload_in
from ...formulations.judge import score
from ...formulations.plan import Plan
from ...formulations.problem import Problem
from ...formulations.simulate import Trace, simulate_workload
from .blocks import Block, blocks_of, bubbles_of, headline, rows_of
from .canvas import DARK, IDLE, LOST, PALETTE, Look, axes_of, legend, room, rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_trace(
    trace: Trace | MeasuredTrace,
    *,
    requests: range | None = None,
    title: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw which unit works on which request when: a Gantt chart.

    Bubbles (idle time of a unit between its first and its last work) are hatched. Where neighbours slowed a
    chunk down, as much as it lost is crossed out at its end. Colours stand for networks; where there is one
    network only, for requests.

    Parameters
    ----------
    trace
        Of `simulate`, `simulate_workload`, or of a running pipeline (`pipeline.trace`).
    requests
        Numbers of the requests to draw (of a measured batch: of the rounds), e.g. `range(20, 30)`; None: all.
    title
        None: what was played, and how long it took.
    ax
        Where to draw; None: in a new figure.

    Raises
    ------
    InvalidInputError
        None of the requests is in the trace, or matplotlib is not installed.
    """
    blocks = blocks_of(trace, requests)
    units = rows_of(trace)
    axes = axes_of(ax, (10, 1.3 + 0.5 * len(units)))
    networks = sorted({block.network for block in blocks})  # so that plans of one problem look alike
    several = len(networks) > 1
    keys = networks if several else list(dict.fromkeys(block.label for block in blocks))
    colours = {key: PALETTE[index % len(PALETTE)] for index, key in enumerate(keys)}
    end = max(block.end_ms for block in blocks)
    axes.set_xlim(0, end)
    idle = False
    for row, unit in enumerate(units):
        own = [block for block in blocks if block.unit == unit]
        for start, stop in bubbles_of(own):
            axes.barh(row, stop - start, left=start, height=0.8, **IDLE, gid="bubble")
            idle = True
        for block in own:
            _draw(axes, row, block, colours[_key(block, several=several)], end)
    rows(axes, units)
    axes.set_xlabel("time (ms)")
    axes.set_ylabel("unit")
    axes.set_title(headline(trace, blocks) if title is None else title)
    entries: list[tuple[str, Look]] = [(key, {"facecolor": colours[key]}) for key in keys if several]
    legend(axes, [*entries, *_hatched(lost=any(block.lost_ms for block in blocks), idle=idle)])
    return axes


def plot_busy(problem: Problem, plans: Plan | Mapping[str, Plan], *, ax: Axes | None = None) -> Axes:
    """Draw how long each unit is busy, and how long it waits.

    Bars of one network are about one period; those of a workload are about the whole batch, with the time
    that is lost to slowdown above the work itself.

    Parameters
    ----------
    problem
        What was planned.
    plans
        A plan, or several by name.
    ax
        Where to draw; None: in a new figure.

    Raises
    ------
    InvalidPlanError
        A plan is not well formed.
    InvalidInputError
        There is no plan, or matplotlib is not installed.
    """
    named = {"": plans} if isinstance(plans, Plan) else dict(plans)
    if not named:
        raise InvalidInputError("there is no plan to draw; give a plan, or a mapping from names to plans")
    units = problem.platform.unit_names
    shares = {name: _shares_ms(problem, plan) for name, plan in named.items()}
    axes = axes_of(ax, (max(7.0, 1.6 * len(units)), 3.6))
    width = 0.8 / len(named)
    colours = {name: PALETTE[index % len(PALETTE)] for index, name in enumerate(named)}
    for index, (name, bars) in enumerate(shares.items()):
        for column, (busy, lost, idle) in enumerate(bars):
            left, thick = column - 0.4 + index * width, 0.92 * width
            axes.bar(left, busy + lost, thick, align="edge", color=colours[name], gid="busy")
            if lost:
                axes.bar(left, lost, thick, busy, align="edge", **LOST, gid="slowed down")
            if idle:
                axes.bar(left, idle, thick, busy + lost, align="edge", **IDLE, gid="bubble")
    axes.set_ylim(0, 1.08 * max(sum(bar) for bars in shares.values() for bar in bars))
    axes.set_xticks(range(len(units)), units)
    axes.set_xlabel("unit")
    axes.set_ylabel("time (ms)")
    what = "in one period" if workload_in(problem) is None else "until all requests are done"
    axes.set_title(f"Busy time of each unit {what}")
    bars = [bar for found in shares.values() for bar in found]
    hatched = _hatched(lost=any(lost for _, lost, _ in bars), idle=any(idle for _, _, idle in bars))
    legend(axes, [*((name or "busy", {"facecolor": colour}) for name, colour in colours.items()), *hatched])
    return axes


def _hatched(*, lost: bool, idle: bool) -> list[tuple[str, Look]]:
    """Return the entries of a legend for what is hatched, as far as there is any of it."""
    entries = (("slowed down", LOST, lost), ("bubble", IDLE, idle))
    return [(label, look) for label, look, there in entries if there]


def _key(block: Block, *, several: bool) -> str:
    """Return what decides the colour of a block."""
    return block.network if several else block.label


def _draw(axes: Axes, row: int, block: Block, colour: str, end_ms: float) -> None:
    length = block.end_ms - block.start_ms
    axes.barh(
        row, length, left=block.start_ms, height=0.8, color=colour, edgecolor="white", lw=0.6, gid="work"
    )
    if block.lost_ms:
        left = block.end_ms - block.lost_ms
        axes.barh(row, block.lost_ms, left=left, height=0.8, **LOST, gid="slowed down")
    if len(block.label) <= room(axes, length / end_ms):
        middle, ink = block.start_ms + length / 2, "white" if colour in DARK else "black"
        axes.text(middle, row, block.label, ha="center", va="center", fontsize=9, color=ink, clip_on=True)


def _shares_ms(problem: Problem, plan: Plan) -> list[tuple[float, float, float]]:
    """Return (work, lost to slowdown, idle in between) of each unit of the platform."""
    if workload_in(problem) is None:
        found = score(problem, plan)
        pairs = zip(found.busy_us, found.bubble_us, strict=True)
        return [((busy or 0) / 1000, 0.0, (bubble or 0) / 1000) for busy, bubble in pairs]
    trace = simulate_workload(problem, plan)
    shares = []
    for unit in problem.platform.unit_names:
        events = trace.on(unit)
        lost = sum(event.slowdown_us for event in events)
        work = sum(event.end_us - event.start_us for event in events) - lost
        shares.append((work / 1000, lost / 1000, (trace.bubble_us(unit) or 0) / 1000))
    return shares
