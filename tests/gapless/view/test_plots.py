"""Pictures: what is drawn is what the values say."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.patches import Rectangle
from matplotlib.text import Annotation

import gapless
from gapless.answers.charts import Axis, Kind, Mark, Plane, Series
from gapless.api.comparison import BackendFailure
from gapless.api.tuning import tune_simulated
from gapless.executor.tuning.candidates import CandidateKind
from gapless.executor.tuning.result import TuningResult
from gapless.formulations.chunking.operation import deploy
from gapless.formulations.costs import CostTable, NetworkCosts
from gapless.formulations.deployment import Deployment
from gapless.formulations.errors import BackendUnavailableError, InvalidInputError
from gapless.formulations.hardware import Platform, ProcessingUnit
from gapless.formulations.history import Interval, executed
from gapless.formulations.network import Layer, Network
from gapless.formulations.plan import Chunk, Plan
from gapless.formulations.problem import Problem
from gapless.formulations.streams import Stream
from gapless.formulations.terms import Objective
from gapless.formulations.workload import Request, Workload
from gapless.plots import (
    plot_answers,
    plot_busy,
    plot_candidates,
    plot_comparison,
    plot_layer_times,
    plot_predicted,
    plot_slowdown,
    plot_solve_times,
    plot_trace,
)
from gapless.rules import avoid, pin
from gapless.solvers.protocol import SolveStatus
from gapless.view.plots.draw import draw_plane

from ...solvers.fakes import plan
from ...workload_instances import workload_problem

Box = tuple[float, float, float, float]

SMALL = gapless.table_problem([[9, 2], [1, 8]], ["cpu", "gpu"], network="net")
SMALL_PLAN = plan((0, 1, "gpu"), (1, 2, "cpu"))
PAIR = workload_problem(
    {"one": [[1000, 4000]], "two": [[9000, 1000]]}, ["one", "two"], slowdown=[[0, 500], [500, 0]]
)


@pytest.fixture(autouse=True)
def no_screen() -> Iterator[None]:
    mpl.use("Agg")
    yield
    pyplot.close("all")


def boxes(axes: Axes, gid: str) -> list[Box]:
    """Return (left, bottom, width, height) of what is marked with an id, in the order of drawing."""
    found = [patch for patch in axes.patches if patch.get_gid() == gid and isinstance(patch, Rectangle)]
    return [(p.get_x(), p.get_y(), p.get_width(), p.get_height()) for p in found]


def spans(axes: Axes, gid: str) -> list[tuple[int, Any, Any]]:
    """Return (row, start, end) of the bars of a horizontal chart."""
    rows = ((round(y + height / 2), x, x + width) for x, y, width, height in boxes(axes, gid))
    return [(row, pytest.approx(start), pytest.approx(end)) for row, start, end in rows]


def numbers(values: object) -> list[Any]:
    found: list[Any] = np.asarray(values, float).tolist()
    return found


def words(axes: Axes) -> list[str]:
    return [text.get_text() for text in axes.texts]


def labels(axes: Axes) -> list[str]:
    legend = axes.get_legend()
    return [] if legend is None else [text.get_text() for text in legend.get_texts()]


def ticks(axes: Axes) -> list[str]:
    return [label.get_text() for label in axes.get_yticklabels()]


def test_a_trace_is_drawn_to_scale() -> None:
    axes = plot_trace(gapless.simulate(SMALL, SMALL_PLAN, requests=2))
    assert ticks(axes) == ["gpu", "cpu"]
    assert spans(axes, "work") == [(0, 0, 2), (0, 2, 4), (1, 2, 3), (1, 4, 5)]
    assert spans(axes, "bubble") == [(1, 3, 4)]
    assert words(axes) == ["0", "1", "0", "1"]
    assert labels(axes) == ["bubble"]
    assert axes.get_title() == "Predicted: 2 requests in 5.00 ms"
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("time (ms)", "unit")


def test_the_same_request_has_the_same_colour_everywhere() -> None:
    axes = plot_trace(gapless.simulate(SMALL, SMALL_PLAN, requests=2))
    colours = [p.get_facecolor() for p in axes.patches if p.get_gid() == "work"]
    assert colours[0] == colours[2] != colours[1] == colours[3]


def test_a_few_requests_are_drawn_from_zero_on() -> None:
    trace = gapless.simulate(SMALL, SMALL_PLAN, requests=9)
    axes = plot_trace(trace, requests=range(5, 6), title="one")
    assert spans(axes, "work") == [(0, 0, 2), (1, 2, 3)]
    assert words(axes) == ["5", "5"]
    assert axes.get_title() == "one"
    with pytest.raises(InvalidInputError, match="has 9 requests, numbered from 0"):
        plot_trace(trace, requests=range(9, 12))


def test_lost_time_is_crossed_out_at_the_end_of_a_chunk() -> None:
    best = gapless.plan(PAIR).plan
    assert best is not None
    trace = gapless.requests.simulate_workload(PAIR, best)
    lost = {(e.unit, e.end_us / 1000): e.slowdown_us / 1000 for e in trace.events if e.slowdown_us}
    assert lost
    axes = plot_trace(trace)
    rows = ticks(axes)
    drawn = {
        (rows[round(y + h / 2)], round(x + w, 6)): round(w, 6) for x, y, w, h in boxes(axes, "slowed down")
    }
    assert drawn == lost
    assert labels(axes)[:3] == ["one", "two", "slowed down"]


def test_a_measured_trace_has_a_row_for_each_unit() -> None:
    def event(start: int, unit: str, request: int) -> Interval:
        return Interval(
            start_ns=start,
            engine_ns=(start, start + 1_000_000),
            end_ns=start + 1_000_000,
            stream=0,
            request=request,
            chunk=0 if unit == "gpu" else 1,
            unit=unit,
        )

    events = (event(7_000_000, "gpu", 3), event(8_000_000, "cpu", 3), event(9_000_000, "gpu", 4))
    axes = plot_trace(executed(deploy(SMALL_PLAN), events))
    assert ticks(axes) == ["gpu", "cpu"]
    assert spans(axes, "work") == [(0, 0, 1), (0, 2, 3), (1, 1, 2)]
    assert axes.get_title() == "Measured: 2 requests in 3.00 ms"


def test_measured_requests_of_a_workload_are_called_by_their_names() -> None:
    streams = tuple(
        Stream(name=f"{n}#1", chunks=plan((0, 1, u), network=n).chunks) for n, u in (("a", "x"), ("b", "y"))
    )
    events = tuple(
        Interval(
            start_ns=0,
            engine_ns=(0, 9),
            end_ns=9,
            stream=index,
            request=0,
            chunk=0,
            unit=s.chunks[0].unit,
        )
        for index, s in enumerate(streams)
    )
    axes = plot_trace(executed(Deployment(streams=streams), events))
    assert words(axes) == ["a#1", "b#1"]
    assert labels(axes) == ["a", "b"]


@pytest.mark.slow
def test_text_that_does_not_fit_is_left_out() -> None:
    axes = plot_trace(gapless.simulate(SMALL, SMALL_PLAN, requests=300))
    assert len(boxes(axes, "work")) == 600
    assert words(axes) == []


def test_busy_times_and_bubbles_fill_the_period() -> None:
    other = plan((0, 2, "cpu"))
    axes = plot_busy(SMALL, {"two": SMALL_PLAN, "one": other})
    heights = [height for *_, height in boxes(axes, "busy")]
    assert heights == [1, 2, 10, 0]  # cpu and gpu of the first plan, then of the second
    ((left, bottom, _, height),) = boxes(axes, "bubble")
    assert (round(left, 6), bottom, height) == (-0.4, 1, 1)
    assert labels(axes) == ["two", "one", "bubble"]


def test_long_names_of_units_do_not_run_into_each_other() -> None:
    units = [f"core{number}@onnxruntime" for number in range(4)]
    wide = gapless.table_problem([[1, 1, 1, 1]] * 4, units, network="net")
    axes = plot_busy(wide, plan((0, 4, units[0])))
    axes.figure.canvas.draw()
    assert [label.get_rotation() for label in axes.get_xticklabels()] == [15] * 4
    assert [label.get_rotation() for label in plot_busy(SMALL, SMALL_PLAN).get_xticklabels()] == [0, 0]


def test_marks_of_many_series_are_drawn_hollow_and_filled() -> None:
    marks = (Mark(x=1, y=1), Mark(x=2, y=2, hollow=True))
    series = tuple(Series(name=str(number), marks=marks) for number in range(8))
    axis = Axis(name="x", low=0, high=3)
    chart = Plane(kind=Kind.LINES, title="", across=axis, upwards=axis, series=series)
    axes = pyplot.subplots()[1]
    draw_plane(chart, axes)  # a warning of matplotlib would be an error here
    assert len(axes.collections) == 16


def test_busy_times_of_a_workload_are_those_of_its_trace() -> None:
    best = gapless.plan(PAIR).plan
    assert best is not None
    trace = gapless.requests.simulate_workload(PAIR, best)
    axes = plot_busy(PAIR, best)
    for height, unit in zip((box[3] for box in boxes(axes, "busy")), trace.units, strict=True):
        assert height == pytest.approx(sum(e.end_us - e.start_us for e in trace.on(unit)) / 1000)
    lost = sum(event.slowdown_us for event in trace.events) / 1000
    assert sum(box[3] for box in boxes(axes, "slowed down")) == pytest.approx(lost)
    assert "until all requests are done" in axes.get_title()


def test_no_plan_is_no_picture() -> None:
    with pytest.raises(InvalidInputError, match="there is no plan to draw"):
        plot_busy(SMALL, {})


def test_a_heat_map_shows_each_time_and_frames_the_plan() -> None:
    problem = gapless.table_problem({"conv": [9, 2], "fc": [1, None]}, ["cpu", "gpu"], network="net")
    axes = plot_layer_times(problem, plan=SMALL_PLAN)
    (image,) = axes.images
    array = image.get_array()
    assert array is not None
    assert np.ma.filled(array, -1).tolist() == [[9, 1], [2, -1]]
    assert sorted(boxes(axes, "frame")) == [(-0.5, 0.5, 1, 1), (0.5, -0.5, 1, 1)]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["conv", "fc"]
    assert "hatched: cannot run" in axes.get_title()
    assert "hatched" not in plot_layer_times(SMALL).get_title()


def test_requests_that_cut_a_network_differently_have_their_own_frames() -> None:
    network = Network(name="n", layers=tuple(Layer(name=f"l{index}") for index in range(4)))
    problem = Problem(
        platform=Platform(name="p", units=tuple(ProcessingUnit(name=name) for name in "ab")),
        networks=(network,),
        costs=CostTable(units=("a", "b"), networks=(NetworkCosts(network="n", layer_us=((10, 20),) * 4),)),
        objective=Objective.parse("makespan"),
        data=Workload(requests=tuple(Request(name=name, network="n") for name in ("r0", "r1"))),
    )
    parts = (("r0", 0, 2, "a"), ("r0", 2, 4, "b"), ("r1", 0, 3, "a"), ("r1", 3, 4, "b"))
    chunks = tuple(Chunk(request=r, network="n", start=i, stop=j, unit=u) for r, i, j, u in parts)
    axes = plot_layer_times(problem, plan=Plan(order=("r0", "r1"), chunks=chunks))
    frames = {
        (patch.get_x(), patch.get_y(), patch.get_width())
        for patch in axes.patches
        if isinstance(patch, Rectangle) and patch.get_gid() == "frame"
    }
    assert frames == {(-0.5, -0.5, 2), (-0.5, -0.5, 3), (1.5, 0.5, 2), (2.5, 0.5, 1)}


def test_many_layers_are_numbered() -> None:
    problem = gapless.table_problem([[1.0]] * 300, ["cpu"])
    axes = plot_layer_times(problem)
    assert len(axes.get_xticklabels()) < 20
    assert axes.get_xlabel() == "layer (number)"


def test_one_network_of_several_is_named() -> None:
    with pytest.raises(InvalidInputError, match="several networks; name one of one, two"):
        plot_layer_times(PAIR)
    with pytest.raises(InvalidInputError, match="no network is called 'three'; the problem has one, two"):
        plot_layer_times(PAIR, network="three")
    assert "of two" in plot_layer_times(PAIR, network="two").get_title()


def test_slowdowns_are_percent_by_who_suffers() -> None:
    problem = workload_problem({"one": [[1, 1]]}, ["one"], slowdown=[[0, 500], [30, 0]])
    axes = plot_slowdown(problem)
    assert words(axes) == ["-", "50 %", "3 %", "-"]
    assert axes.get_ylabel() == "unit that suffers"
    with pytest.raises(InvalidInputError, match="no interference to draw"):
        plot_slowdown(SMALL)


def test_answers_show_objective_bound_status_and_failures() -> None:
    found = gapless.compare(SMALL, backends=["native", "exhaustive"])
    failure = BackendFailure(backend="broken", error=BackendUnavailableError("it is\nnot installed"))
    axes = plot_comparison(replace(found, failures=(failure,)))
    assert ticks(axes) == ["native", "exhaustive", "broken"]
    assert [box[2] for box in boxes(axes, "optimal")] == [2, 2]
    marks = [numbers(line.get_xdata()) for line in axes.lines if line.get_gid() == "bound"]
    assert marks == [[2, 2], [2, 2]]
    assert all(text.startswith("2.000 ms, optimal, ") for text in words(axes)[:2])
    assert words(axes)[2] == "no answer: it is not installed"
    assert axes.get_xlabel() == "period (ms), less is better"


def test_answers_under_rules_can_be_infeasible() -> None:
    free, pinned = gapless.plan(SMALL), gapless.plan(SMALL, rules=[pin(0, unit="cpu")])
    none = gapless.plan(SMALL, rules=[pin(0, unit="cpu"), avoid("cpu")])
    axes = plot_answers({"free": free, "pinned": pinned, "none": none})
    assert [box[2] for box in boxes(axes, "optimal")] == [2, 9]
    assert boxes(axes, "infeasible")[0][2] == 0
    assert words(axes)[2].startswith("infeasible, ")


def test_an_open_gap_is_said_and_drawn() -> None:
    answer = gapless.plan(SMALL)
    open_answer = replace(answer, status=SolveStatus.FEASIBLE, bound=1500, proven=0, exhausted=False)
    axes = plot_answers({"open": open_answer})
    assert ", feasible, gap 25.0 %, " in words(axes)[0]
    assert [numbers(line.get_xdata()) for line in axes.lines] == [[1.5, 1.5]]


@pytest.mark.parametrize(
    ("objective", "label"),
    [("peak_memory", "peak memory (MiB)"), ("idle", "idle share (%)"), ("latency", "unqueued latency (ms)")],
)
def test_each_objective_has_its_unit(objective: str, label: str) -> None:
    axes = plot_answers({"best": gapless.plan(SMALL, objective=objective)})
    assert axes.get_xlabel() == f"{label}, less is better"


def test_answers_to_different_questions_are_not_compared() -> None:
    answers = {"a": gapless.plan(SMALL), "b": gapless.plan(SMALL, objective="latency")}
    with pytest.raises(InvalidInputError, match="of the objectives latency, period"):
        plot_answers(answers)
    with pytest.raises(InvalidInputError, match="the answers are not there"):
        plot_answers({})


def test_times_of_backends_are_drawn() -> None:
    found = gapless.compare(SMALL, backends=["native", "exhaustive"])
    axes = plot_solve_times(found)
    widths = [patch.get_width() for patch in axes.patches if isinstance(patch, Rectangle)]
    assert widths == [max(result.runtime_s, 1e-4) for result in found.results]
    assert axes.get_xscale() == "log"
    texts = [label.get_text() for label in axes.get_xticklabels()]
    assert list(map(float, texts)) == pytest.approx(numbers(axes.get_xticks()))
    with pytest.raises(InvalidInputError, match="no backend answered"):
        plot_solve_times(replace(found, results=()))


def test_predictions_and_measurements_of_a_race() -> None:
    problem, truth = (gapless.load_problem("pixel7a/alexnet-sparse", costs=c) for c in ("isolated", "heavy"))
    result = tune_simulated(problem, truth, top=4).result
    axes = plot_predicted(result)
    drawn = {
        (round(x, 6), round(y, 6))
        for group in axes.collections
        if isinstance(group, PathCollection)
        for x, y in numbers(group.get_offsets())
    }
    assert drawn == {
        (
            round((row.candidate.predicted("isolated") or 0) / 1000, 6),
            round((row.comparable_us or 0) / 1000, 6),
        )
        for row in result.rows
    }
    assert labels(axes) == ["plan", "baseline", "ideal"]
    (ideal,) = axes.lines
    assert numbers(ideal.get_xdata()) == numbers(ideal.get_ydata())
    assert "isolated" in axes.get_xlabel()
    (note,) = (text for text in axes.texts if isinstance(text, Annotation))
    assert note.get_text() == "winner"
    assert note.xy[1] == pytest.approx(min(y for _, y in drawn))
    with pytest.raises(InvalidInputError, match="there are predictions with: isolated, heavy"):
        plot_predicted(result, table="wrong")
    _check_candidates(plot_candidates(result), result)


def _check_candidates(axes: Axes, result: TuningResult) -> None:
    plans = [row for row in result.rows if row.candidate.kind is CandidateKind.PLAN]
    widths = [width for *_, width, _ in boxes(axes, "plan")]
    assert widths == [pytest.approx((row.comparable_us or 0) / 1000) for row in plans]
    assert [tick.endswith("(winner)") for tick in ticks(axes)] == [True] + [False] * (len(result.rows) - 1)
    assert sum(line.get_gid() == "spread" for line in axes.lines) == len(result.rows)
    with pytest.raises(InvalidInputError, match="nothing was measured"):
        plot_candidates(replace(result, rows=(), ties=()))


def test_given_axes_are_drawn_into_and_returned() -> None:
    _, (left, right) = pyplot.subplots(1, 2)
    assert plot_layer_times(SMALL, ax=left) is left
    assert plot_busy(SMALL, SMALL_PLAN, ax=right) is right
    assert len(pyplot.get_fignums()) == 1


def test_without_matplotlib_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(InvalidInputError, match=r"matplotlib.*pip install 'gapless\[plots\]'"):
        plot_layer_times(SMALL)


@pytest.mark.slow
def test_importing_the_plots_does_not_load_matplotlib() -> None:
    code = "import sys, gapless.plots; print('matplotlib' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


def test_a_dollar_in_a_name_begins_no_formula() -> None:
    problem = gapless.table_problem([[9, 2], [1, 8]], ["c$pu^{$", "g$_\\frac$"], network="n$et$")
    axes = plot_layer_times(problem)
    axes.figure.canvas.draw()
    assert "c$pu^{$" in [label.get_text() for label in axes.get_yticklabels()]
