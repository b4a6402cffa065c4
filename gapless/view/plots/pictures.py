"""Pictures of what gapless finds, with matplotlib: each builds a chart as data and draws it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

from ...answers.charts import DRAWN, Axis, Bar, Bars, HeatCell, HeatMap, HeatRow, Part, Tone, Track
from ...answers.comparing import courses_chart
from ...answers.coordination import deadlines_chart, record_chart
from ...answers.front import front_chart
from ...answers.layers import layer_chart
from ...answers.standings import profile_chart
from ...answers.streams import stream_chart
from ...answers.traces import trace_chart
from ...answers.tuning import candidates_chart, predicted_chart
from ...answers.words import Terms, all_terms, amount, seconds
from ...api.comparison import Comparison
from ...api.coordination import Coordination
from ...api.streams import TaskStream
from ...executor.tuning.result import TuningResult
from ...formulations.coordination.record import Record
from ...formulations.errors import InvalidInputError
from ...formulations.history import History, Interval
from ...formulations.plan import Plan
from ...formulations.problem import Problem
from ...formulations.terms import TermInfo
from ...solvers.pareto import ParetoFront
from ...solvers.protocol import SolveStatus
from ...solvers.result import SolveResult
from ...sweeps.contest import InstanceComparison
from ...sweeps.standings import profiles
from ..presenter import presenter_of
from .draw import (
    IDLE,
    LOST,
    PALETTE,
    axes_of,
    draw_bars,
    draw_gantt,
    draw_heat_map,
    draw_plane,
    hatched,
    legend,
    room,
    short,
    with_plain_names,
)

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
    if max(map(len, units)) > room(axes, 1 / len(units)):  # names would run into each other
        axes.tick_params(axis="x", rotation=15)
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
    draw_plane(front_chart(front, problem, drawn), axes)
    axes.set_title(f"{'All' if front.complete else 'Known'} trade-offs: {len(front.points)} plans")
    return axes


_LEAST_S = 1e-4
"""Shortest bar of a logarithmic scale of seconds."""


@with_plain_names
def plot_comparison(comparison: Comparison, *, ax: Axes | None = None) -> Axes:
    """Draw what backends answered to one problem, as `plot_answers` does.

    Parameters
    ----------
    comparison
        Of `compare`.
    ax
        Where to draw; None: in a new figure.

    Raises
    ------
    InvalidInputError
        No backend answered, or matplotlib is not installed.
    """
    failures = {failure.label: str(failure.error) for failure in comparison.failures}
    return _draw_answers(comparison.problem.formulation.terms, _by_backend(comparison), failures, ax)


@with_plain_names
def plot_answers(answers: Mapping[str, SolveResult], *, ax: Axes | None = None) -> Axes:
    """Draw answers: a bar up to the objective, a black mark at the proved bound, status and time in words.

    Parameters
    ----------
    answers
        Results by a name of your own, e.g. of one problem with different rules; of one objective.
    ax
        Where to draw; None: in a new figure.

    Raises
    ------
    InvalidInputError
        There are no answers, they are of different objectives, or matplotlib is not installed.
    """
    return _draw_answers(all_terms(), answers, {}, ax)


@with_plain_names
def plot_solve_times(comparison: Comparison, *, ax: Axes | None = None) -> Axes:
    """Draw how long each backend took, on a logarithmic scale.

    Parameters
    ----------
    comparison
        Of `compare`.
    ax
        Where to draw; None: in a new figure.

    Raises
    ------
    InvalidInputError
        No backend answered, or matplotlib is not installed.
    """
    results = _by_backend(comparison)
    if not results:
        raise InvalidInputError("no backend answered: there are no times to draw")
    taken = [max(result.runtime_s, _LEAST_S) for result in results.values()]
    bars = []
    for (name, result), time_s in zip(results.items(), taken, strict=True):
        part = Part(start=0, length=time_s, colour=Tone.MEASURED)
        bars.append(Bar(name=name, tracks=(Track(parts=(part,), text=seconds(result.runtime_s)),)))
    across = Axis(
        name="time of the solver", unit="s", low=min(taken) / 2, high=max(taken) * 6, logarithmic=True
    )
    axes = axes_of(ax, (8, 1.2 + 0.36 * len(results)))
    draw_bars(Bars(title="How long each backend took", across=across, rows=tuple(bars)), axes)
    return axes


def _by_backend(comparison: Comparison) -> dict[str, SolveResult]:
    return {result.label: result for result in comparison.results}


def _draw_answers(
    infos: Terms, results: Mapping[str, SolveResult], failed: Mapping[str, str], ax: Axes | None
) -> Axes:
    terms = sorted({result.asked.terms[0] for result in results.values()})
    if len(terms) != 1:
        what = f"of the objectives {', '.join(terms)}" if terms else "not there"
        raise InvalidInputError(f"the answers are {what}; draw answers to one objective")
    info = infos[terms[0]]
    divisor, unit = DRAWN[info.dimension]
    bars = []
    for name, result in results.items():
        colour = Tone.PREDICTED if result.status is SolveStatus.OPTIMAL else Tone.OPEN
        value = (result.objective or 0) / divisor
        track = Track(
            parts=(Part(start=0, length=value, colour=colour, name=str(result.status)),),
            bound=None if result.bound is None else result.bound / divisor,
            text=_verdict(info, result),
        )
        bars.append(Bar(name=name, tracks=(track,)))
    reasons = ((name, f"no answer: {short(reason, 70)}") for name, reason in failed.items())
    bars += [Bar(name=name, tracks=(Track(text=text),)) for name, text in reasons]
    most = max(track.end for bar in bars for track in bar.tracks) or 1.0
    classes = dict.fromkeys(result.plan_class for result in results.values())
    about = wrap(f"proofs are among {next(iter(classes))}", 90) if len(classes) == 1 else []
    legend = "Blue: proved optimal. Orange: not proved. Black mark: proved bound"
    chart = Bars(
        title="\n".join([legend, *about]),
        across=Axis(name=info.label, unit=unit, low=0, high=1.65 * most),
        rows=tuple(bars),
    )
    axes = axes_of(ax, (9, 1.3 + 0.36 * len(bars)))
    draw_bars(chart, axes)
    axes.set_xlabel(f"{chart.across.label}, less is better")
    return axes


def _verdict(info: TermInfo, result: SolveResult) -> str:
    """Return value, status, gap and time of an answer in one line."""
    parts = [str(result.status).replace("_", " "), seconds(result.runtime_s)]
    if result.objective is not None:
        parts.insert(0, amount(info.dimension, result.objective))
    if result.gap:
        parts.insert(2, f"gap {100 * result.gap:.1f} %")
    return ", ".join(parts)


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
        [(result.label, result.course) for result in comparison.results],
        problem.formulation.terms[problem.objective.terms[0]],
        comparison.horizon_s,
    )
    if chart is None:
        raise InvalidInputError("no backend has a plan: there is nothing to draw over time")
    axes = axes_of(ax, (8, 4.5))
    draw_plane(chart, axes)
    axes.set_title("Solid: best plan, dashed: proved bound. Dash-dotted, dotted: those that were given")
    return axes


@with_plain_names
def plot_predicted(result: TuningResult, *, table: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw measured against predicted periods of all that was tuned; on the dashed line both are equal.

    Parameters
    ----------
    result
        Of `tune` (its `result`).
    table
        Cost table whose predictions are drawn; None: the one that the plans were made from.
    ax
        Where to draw; None: in a new figure.

    Raises
    ------
    InvalidInputError
        Nothing was both predicted with this table and measured, or matplotlib is not installed.
    """
    tables = result.tables
    chosen = table if table is not None else tables[0] if tables else ""
    chart = predicted_chart(result, [chosen])
    if chart is None:
        raise InvalidInputError(
            f"nothing was predicted with the costs {chosen!r} and measured; there are predictions with: "
            f"{', '.join(tables) or 'none'}"
        )
    axes = axes_of(ax, (5.6, 5.2))
    draw_plane(chart, axes)
    axes.set_aspect("equal")
    axes.set_title("Predicted and measured: above the line, slower than predicted")
    axes.legend(loc="upper left")
    return axes


@with_plain_names
def plot_candidates(result: TuningResult, *, ax: Axes | None = None) -> Axes:
    """Draw the measured period of every candidate, the winner on top; lines reach from the least to the most.

    Parameters
    ----------
    result
        Of `tune` (its `result`).
    ax
        Where to draw; None: in a new figure.

    Raises
    ------
    InvalidInputError
        Nothing was measured, or matplotlib is not installed.
    """
    found = [row for row in result.rows if row.comparable_us is not None and row.failure is None]
    if not found:
        raise InvalidInputError("nothing was measured, so there is no candidate to draw")
    chart = candidates_chart(result)
    axes = axes_of(ax, (9, 1.3 + 0.34 * len(found)))
    draw_bars(chart, axes)
    axes.set_xlabel(f"{chart.across.label}, less is better")
    return axes


WINDOW_US = 500_000
"""How much of a record is drawn unless something else is asked for."""


@with_plain_names
def plot_record(
    record: Record, *, start_us: float = 0.0, end_us: float | None = None, ax: Axes | None = None
) -> Axes:
    """Draw what each unit does when; what fell back silently is hatched, and when a unit is away is grey.

    Parameters
    ----------
    record
        What happened.
    start_us, end_us
        From when to when; None: half a second.
    ax
        Where to draw; None: in a new figure.

    Raises
    ------
    InvalidInputError
        matplotlib is not installed.
    """
    end = start_us + WINDOW_US if end_us is None else end_us
    axes = axes_of(ax, (10, 1.2 + 0.4 * len(record.units)))
    draw_bars(record_chart(record, start_us, end), axes, said=False)
    return axes


@with_plain_names
def plot_deadlines(runs: Sequence[Coordination], *, ax: Axes | None = None) -> Axes:
    """Draw the share of requests in time by the multiplier of their deadlines (Band, Fig. 18).

    Parameters
    ----------
    runs
        Of `coordinate_deadlines`.
    ax
        Where to draw; None: in a new figure.

    Raises
    ------
    InvalidInputError
        matplotlib is not installed.
    """
    axes = axes_of(ax, (7, 4))
    draw_plane(deadlines_chart(runs), axes)
    return axes


def save_coordination(runs: Sequence[Coordination], path: Path) -> None:
    """Draw scenarios into a file: of one, what each policy does; of several deadlines, the shares in time."""
    from matplotlib.figure import Figure

    if len(runs) > 1:
        figure = Figure(figsize=(8, 4), layout="constrained")
        plot_deadlines(runs, ax=figure.subplots())
    else:
        records = runs[0].records
        height = len(records) * (1.0 + 0.35 * len(records[0].units))
        figure = Figure(figsize=(11, height), layout="constrained")
        for record, axes in zip(records, figure.subplots(len(records), squeeze=False)[:, 0], strict=True):
            plot_record(record, ax=axes)
    figure.savefig(path, dpi=150)


@with_plain_names
def plot_task_stream(stream: TaskStream, *, waiting: bool = False, ax: Axes | None = None) -> Axes:
    """Draw which task each unit works on when.

    Parameters
    ----------
    stream
        Of `task_stream`.
    waiting
        Whether networks are measured and planned when their turn comes, instead of ahead.
    ax
        Where to draw; None: in a new figure.

    Raises
    ------
    InvalidInputError
        That was not played, or matplotlib is not installed.
    """
    played = stream.waiting if waiting else stream.ahead
    if played is None:
        raise InvalidInputError("the stream was not played with planning during the run: give `planning`")
    chart = stream_chart(stream, played, "planned when its turn comes" if waiting else "planned ahead")
    axes = axes_of(ax, (10, 1.3 + 0.4 * len(chart.rows)))
    draw_bars(chart, axes)
    return axes


def save_stream(stream: TaskStream, path: Path) -> None:
    """Draw a stream into a file, both ways where both were played, on one scale of time."""
    from matplotlib.figure import Figure

    ways = [False] if stream.waiting is None else [False, True]
    units = len(stream.tasks[0].problem.platform.units)
    figure = Figure(figsize=(10, len(ways) * (1.6 + 0.4 * units)), layout="constrained")
    drawn = [
        plot_task_stream(stream, waiting=way, ax=axes)
        for way, axes in zip(ways, figure.subplots(len(ways), sharex=True, squeeze=False)[:, 0], strict=True)
    ]
    drawn[0].set_xlim(0, (stream.waiting or stream.ahead).makespan_us / 1e6)
    figure.savefig(path, dpi=150)
