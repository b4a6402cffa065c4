"""What happens when: Gantt charts, and the busy times of units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ...answers.traces import trace_chart
from ...formulations.errors import InvalidInputError
from ...formulations.history import History, Interval
from ...formulations.plan import Plan
from ...formulations.problem import Problem
from ..presenter import presenter_of
from .canvas import IDLE, LOST, PALETTE, axes_of, legend, with_plain_names
from .draw import draw_gantt, hatched

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MS = 1e6
"""Nanoseconds in a millisecond."""


@with_plain_names
def plot_trace(
    trace: History,
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
    events = _chosen(trace, requests)
    # Of a workload that is simulated, all units of the platform have a row.
    units = trace.units if trace.in_rounds else trace.used_units
    end_ns = max(event.end_ns for event in events)
    chart = trace_chart(trace, events=events, units=units)
    axes = axes_of(ax, (10, 1.3 + 0.5 * len(units)))
    named = _headline(trace, events) if title is None else title
    draw_gantt(replace(chart, end_ns=end_ns, title=named), axes)
    return axes


@with_plain_names
def plot_busy(problem: Problem, plans: Plan | Mapping[str, Plan], *, ax: Axes | None = None) -> Axes:
    """Draw how long each unit is busy, and how long it waits.

    Bars of an endless stream are about one period; those of requests that come once are about all of them,
    with the time that is lost to slowdown above the work itself.

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
    presenter = presenter_of(problem)
    shares = {name: presenter.unit_times(problem, plan) for name, plan in named.items()}
    axes = axes_of(ax, (max(7.0, 1.6 * len(units)), 3.6))
    width = 0.8 / len(named)
    colours = {name: PALETTE[index % len(PALETTE)] for index, name in enumerate(named)}
    for index, (name, bars) in enumerate(shares.items()):
        for column, bar in enumerate(bars):
            busy, lost, idle = bar.busy, bar.lost, bar.idle
            left, thick = column - 0.4 + index * width, 0.92 * width
            axes.bar(left, busy + lost, thick, align="edge", color=colours[name], gid="busy")
            if lost:
                axes.bar(left, lost, thick, busy, align="edge", **LOST, gid="slowed down")
            if idle:
                axes.bar(left, idle, thick, busy + lost, align="edge", **IDLE, gid="bubble")
    axes.set_ylim(0, 1.08 * max(bar.busy + bar.lost + bar.idle for bars in shares.values() for bar in bars))
    axes.set_xticks(range(len(units)), units)
    axes.set_xlabel("unit")
    axes.set_ylabel("time (ms)")
    axes.set_title(f"Busy time {presenter.busy_span}")
    drawn = [bar for found in shares.values() for bar in found]
    notes = hatched(lost=any(bar.lost for bar in drawn), idle=any(bar.idle for bar in drawn))
    legend(axes, [*((name or "busy", {"facecolor": colour}) for name, colour in colours.items()), *notes])
    return axes


def _number(trace: History, event: Interval) -> int:
    """Return the number of a request; measured workloads repeat theirs, so it is that of the round."""
    return event.stream if _served_once(trace) else event.request


def _served_once(trace: History) -> bool:
    return trace.in_rounds and not trace.measured


def _chosen(trace: History, requests: range | None) -> list[Interval]:
    """Return the events of some requests by their start, moved so that the first one starts at 0."""
    found = [event for event in trace.events if requests is None or _number(trace, event) in requests]
    if not found:
        there = max((_number(trace, event) for event in trace.events), default=-1) + 1
        raise InvalidInputError(f"requests is {requests}, the trace has {there} requests, numbered from 0")
    begin_ns = min(event.start_ns for event in found)
    return sorted((event.moved(-begin_ns) for event in found), key=lambda event: event.start_ns)


def _headline(trace: History, events: Sequence[Interval]) -> str:
    """Return what was played, and how long it took."""
    count = len({(event.stream, event.request) for event in events})
    took = f"{max(event.end_ns for event in events) / _MS:.2f} ms"
    what = "Measured" if trace.measured else "Predicted"
    return f"{what}: {count} request{'s' if count > 1 else ''} in {took}"
