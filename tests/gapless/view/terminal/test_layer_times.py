"""Heat maps of layer times: right numbers, readable without colours, in any width, folded when long."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console, Group

from gapless.answers.charts import HeatMap
from gapless.answers.layers import MAX_ROWS_SHOWN, layer_map
from gapless.api.problems import table_problem
from gapless.formulations.errors import InvalidInputError
from gapless.formulations.plan import Plan
from gapless.formulations.problem import Problem
from gapless.view.terminal.heat_map import _MOST_COLUMNS, blend, heat_view, layer_svg
from tests.executor.pipeline.test_pipeline import stream
from tests.instances import problems


def table(layers: int, units: int = 2) -> Problem:
    rows = [[1.0 + unit for unit in range(units)] for _ in range(layers)]
    return table_problem(rows, [f"u{unit}" for unit in range(units)], network="net")


def map_of(problem: Problem, layers: range | None = None, plan: Plan | None = None) -> HeatMap:
    return layer_map(problem.network, problem.costs, layers=layers, plan=plan)


def lines(found: HeatMap, width: int = 100, **options: object) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=width, markup=False, highlight=False, **options).print(Group(*heat_view(found)))  # type: ignore[arg-type]
    return out.getvalue().splitlines()


def test_a_map_says_who_is_best_without_colours() -> None:
    problem = table_problem(
        {"conv": [12.5, 2.5, 2.5], "norm": [1.0, None, 3.0], "fc": [0.5, 60.0, 0.01]},
        ["cpu", "gpu", "npu"],
        network="net",
    )
    plan = Plan(chunks=stream("net", (1, "gpu"), (3, "npu")).chunks)
    assert lines(map_of(problem, plan=plan)) == [
        "  layer                     cpu            gpu           npu",
        "  0 conv           12.500 x5.0    [2.500 best]   2.500 best ",
        "  1 norm            1.000 best     cannot run   [3.000 x3.0]",
        "  2 fc              0.500 x50     60.000 x1k+   [0.010 best]",
        "  0-2 all layers   14.000 x2.5     cannot run    5.510 best ",
        "  milliseconds; x2.0: twice as long as on the best unit of the layer; [ ]: where the plan runs it",
    ]


def test_colours_are_an_addition() -> None:
    found = map_of(table(3))
    coloured = lines(found, force_terminal=True, color_system="truecolor")
    assert "48;2;90;180;110" in coloured[1]  # green ground for the fastest
    assert [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in coloured] == lines(found)
    assert all(line.isascii() for line in lines(found))


def test_long_maps_are_folded_and_layers_can_be_chosen() -> None:
    problem = table(150)
    folded = map_of(problem)
    assert [row.name.split()[0] for row in folded.rows][:2] == ["0-2", "3-5"]
    assert len(folded.rows) <= MAX_ROWS_SHOWN + 1
    assert [cell.text for cell in folded.rows[0].cells] == ["3.000", "6.000"]
    assert "  3 layers a row; --layers 0-59 shows single ones" in lines(folded)
    chosen = map_of(problem, range(148, 200))
    assert [row.name.split()[0] for row in chosen.rows] == ["148", "149", "0-149"]
    assert [cell.text for cell in chosen.rows[-1].cells] == ["150.000", "300.000"]
    assert "  ... and 148 more layers (--json shows all)" in lines(chosen)
    with pytest.raises(
        InvalidInputError, match="there are no layers 150 to 159: 'net' has the layers 0 to 149"
    ):
        map_of(problem, range(150, 160))


def test_many_units_stand_in_several_tables() -> None:
    found = map_of(table(2, units=_MOST_COLUMNS + 3))
    shown = lines(found, 60)
    heads = [line for line in shown if "layer " in line]
    assert len(heads) > 1
    assert re.findall(r"u\d+", " ".join(heads)) == [f"u{unit}" for unit in range(_MOST_COLUMNS)]
    assert max(map(len, shown)) <= 60
    assert "  ... and 3 more units (--json shows all)" in shown


@pytest.mark.slow
@given(problem=problems(), width=st.integers(20, 200))
@settings(max_examples=60)
def test_every_map_tells_every_time(problem: Problem, width: int) -> None:
    rows = problem.costs.of(problem.network.name).layer_us
    found = map_of(problem)
    shown = "\n".join(lines(found, max(width, 60)))
    known = [time for row in rows for time in row if time is not None]
    assert all(f"{time / 1000:.3f}" in shown for time in known)
    for row in found.rows:
        marks = [cell.mark for cell in row.cells if cell.level is not None]
        assert not marks or "best" in marks
    lines(found, width)


def test_a_picture_has_a_cell_for_each_time_and_frames_the_plan() -> None:
    problem = table(30)
    plan = Plan(chunks=stream("net", (10, "u0"), (30, "u1")).chunks)
    grid = layer_map(problem.network, problem.costs, plan=plan, title="a & <b>")
    root = ElementTree.fromstring(layer_svg([grid], ["from <here>"]))
    boxes = [e for e in root.iter() if e.tag.endswith("rect") and e.find("{*}title") is not None]
    assert len(boxes) == 62, "30 layers, and all of them together"
    assert [box.get("class") for box in boxes].count("framed") == 30
    colours = {
        title.text.rpartition(", ")[2]: box.get("fill")
        for box in boxes
        if (title := box.find("{*}title")) is not None and title.text
    }
    assert colours["best"] == blend(-1), "the fastest unit is as green as it gets"
    texts = [e.text for e in root.iter() if e.tag.endswith("text")]
    assert "a & <b>" in texts
    assert "milliseconds; outlined: what the plan runs where" in texts
    bare = layer_svg([map_of(problem)], [])
    assert "outlined" not in bare
    assert 'class="framed"' not in bare


def test_weights_are_shown_where_they_are_known() -> None:
    problem = table(2)
    layer = replace(problem.network.layers[0], weight_bytes=2048)
    network = replace(problem.network, layers=(layer, problem.network.layers[1]))
    shown = lines(layer_map(network, problem.costs))
    assert shown[0].endswith("weights")
    assert shown[1].endswith("2.0 KiB")
    assert shown[2].endswith("      -")
    assert "weights" not in lines(map_of(problem))[0]
