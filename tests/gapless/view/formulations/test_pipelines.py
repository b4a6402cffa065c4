"""How plans of pipelines are shown: devices and links, who sets the pace, rows and headings of charts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from rich.console import Console

import gapless
from gapless.answers.blocks import Block
from gapless.answers.plans import simulation_blocks
from gapless.answers.traces import row_names
from gapless.formulations.judge import check, score
from gapless.formulations.operation import operation_of
from gapless.formulations.plan import Chunk, Plan
from gapless.formulations.problem import Problem
from gapless.formulations.simulate import simulate
from gapless.view.formulations.pipelines import PRESENTER
from gapless.view.page.page import report_page
from gapless.view.page.subject import Subject
from gapless.view.page.subjects import subject
from gapless.view.page.timeline import timeline
from gapless.view.page.utilisation import chunk_table, utilisation
from gapless.view.plots.pictures import plot_trace
from gapless.view.presenter import presenter_of
from gapless.view.terminal.blocks import blocks_view
from tests.pipeline_boards import TWO, one_board, six_devices

ROWS = (
    "xavier", "xavier -> nano-1", "nano-1", "pi-1", "pi-1 -> nano-2", "nano-2", "nano-2 -> pi-2", "pi-2",
)  # fmt: skip


def shown(*parts: Block, width: int = 80) -> list[str]:
    console = Console(width=width)
    with console.capture() as capture:
        console.print(blocks_view(parts))
    lines = capture.get().splitlines()
    assert all(len(line) <= width for line in lines)
    return [line.rstrip() for line in lines]


def reported(problem: Problem, plan: Plan) -> Subject:
    return subject(problem, plan, explained=None)


def test_the_presenter_is_found_by_its_name() -> None:
    assert presenter_of(six_devices()) is PRESENTER
    assert not check(six_devices(), TWO)


def test_a_plan_is_shown_device_by_device() -> None:
    problem = six_devices()
    lines = shown(*PRESENTER.plan_parts(problem, TWO, score(problem, TWO)))
    assert lines[0] == "2 pipelines over 5 of 6 devices: 222.2 items/s"
    cells = [line.split() for line in lines[2:9]]
    assert cells[0] == ["device", "layers", "computes", "messages", "share", "memory"]
    assert cells[1][:7] == ["1", "xavier", "0-2", "6.000", "ms", "1.300", "ms"]
    assert cells[4][:6] == ["nano-2", "1-1", "9.000", "ms", "12.100", "ms"]
    assert cells[4][6:8] == ["67.2", "%"]
    assert cells[6][:4] == ["pi-3", "not", "used"]


def test_who_sets_the_pace_is_a_device_or_a_link() -> None:
    problem = six_devices()
    words = PRESENTER.pace_words(problem, TWO)
    assert words.startswith("Pipeline 1: xavier and nano-1 set the pace with 6.000 ms; the link xavier ->")
    assert "Pipeline 2: pi-2 sets the pace with 18.000 ms; " in words
    slow = tuple(replace(link, bytes_per_second=link.bytes_per_second // 4) for link in problem.data.links)
    slower = replace(problem, data=replace(problem.data, links=slow))
    assert (
        "the link pi-1 -> nano-2 and the link nano-2 -> pi-2 set the pace with 48.100 ms; pi-2 comes next"
        in PRESENTER.pace_words(slower, TWO)
    )
    words = PRESENTER.pace_words(six_devices(overlap=False), TWO)
    assert "pi-1 with its messages sets the pace with 24.100 ms; nano-2 with its messages comes next" in words


def test_devices_that_run_everything_are_told_together() -> None:
    problem = six_devices()
    whole = [Chunk(network="net", start=0, stop=4, unit=unit) for unit in problem.platform.unit_names]
    alone = Plan(chunks=(whole[0],))
    assert PRESENTER.pace_words(problem, alone) == "xavier runs the whole network, one item every 8.000 ms."
    names = tuple(f"pipeline {number}" for number in range(1, 6))
    pairs = zip(whole, names, strict=False)
    several = Plan(chunks=tuple(replace(chunk, request=name) for chunk, name in pairs), order=names)
    words = PRESENTER.pace_words(problem, several)
    assert words == "xavier, nano-1, nano-2 and 2 more run the whole network each."


def test_the_latency_says_where_an_item_is() -> None:
    words = PRESENTER.pace_words(six_devices().with_objective("latency"), TWO)
    assert words == (
        "Of the 63.200 ms that an item takes, it spends 28.5 % on pi-2, 19.0 % on pi-1, 14.2 % on nano-2 "
        "and 1 more."
    )


def test_alike_devices_in_each_others_place_look_alike() -> None:
    problem = six_devices()
    swapped = {"nano-1": "nano-2", "nano-2": "nano-1", "pi-1": "pi-3"}
    other = replace(TWO, chunks=tuple(replace(c, unit=swapped.get(c.unit, c.unit)) for c in TWO.chunks))
    assert other != TWO
    assert PRESENTER.shape(problem, other) == PRESENTER.shape(problem, TWO)
    pi = replace(
        TWO, chunks=tuple(replace(c, unit="pi-3" if c.unit == "nano-2" else c.unit) for c in TWO.chunks)
    )
    assert PRESENTER.shape(problem, pi) != PRESENTER.shape(problem, TWO)


def test_a_chart_has_rows_for_links_and_headings_for_pipelines() -> None:
    problem = six_devices()
    lines = shown(*simulation_blocks(problem, simulate(problem, TWO, requests=8)))
    names = [line[:11].strip() for line in lines[2:12]]
    assert names == [
        "pipeline 1", "xavier", "-> nano-1", "nano-1",
        "pipeline 2", "pi-1", "-> nano-2", "nano-2", "-> pi-2", "pi-2",
    ]  # fmt: skip
    text = "\n".join(lines)
    assert "pipeline 2: period" in text
    assert "bubbles of pi-1" in text
    assert re.search(r"bubbles of pi-3 +not used", text)


def test_rows_of_links_are_called_by_their_target_below_their_sender() -> None:
    assert row_names(ROWS) == (
        "xavier", "-> nano-1", "nano-1", "pi-1", "-> nano-2", "nano-2", "-> pi-2", "pi-2",
    )  # fmt: skip
    assert row_names(("a", "a -> b", "b"), headed=(1,)) == ("a", "a -> b", "b")


def test_the_page_has_the_same_rows() -> None:
    found = timeline(reported(six_devices(), TWO))
    assert found is not None
    (band,) = found.bands
    rows = [row for _, row in band.rows]
    assert tuple(row.unit for row in rows) == ROWS
    assert [row.heading for row in rows if row.heading] == ["pipeline 1", "pipeline 2"]
    assert [row.unit for row in rows if row.link] == [row for row in ROWS if " -> " in row]
    assert all(not row.idle_ns for row in rows if row.link)
    places = [y for y, _ in band.rows]
    assert all(later - earlier >= 26 for earlier, later in pairwise(places))
    assert places[3] - places[2] > 26, "a heading has room of its own"
    assert "on 5 units and 3 links" in found.text


def test_the_page_says_how_busy_devices_and_links_are() -> None:
    found = reported(six_devices(), TWO)
    bars = utilisation(found)
    assert bars is not None
    units = {row.name: row for row in bars.rows}
    assert list(units)[:6] == list(six_devices().platform.unit_names)
    assert {name for name, row in units.items() if row.tag == "busiest"} == {"xavier", "nano-1", "pi-2"}
    assert units["nano-2 -> pi-2"].tracks[0].end == 67.222
    assert not units["pi-3"].tracks
    titles = [column.title for column in chunk_table(found).columns]
    assert titles[-3:] == ["sends to", "message", "share of its period"]
    board = chunk_table(reported(*whole_board()))
    assert "message" not in [column.title for column in board.columns]


def whole_board() -> tuple[Problem, Plan]:
    problem = one_board()
    plan = gapless.plan(problem, backend="exhaustive").plan
    assert plan is not None
    return problem, plan


def test_the_page_is_about_all_pipelines_together() -> None:
    page = report_page([reported(six_devices(), TWO)])
    assert "2 pipelines of net over 5 of 6 devices, on xavier, nano-1, pi-1, nano-2 and pi-2 of shelf" in page
    assert re.search(r"give a result every 4\.500\sms", page)
    assert "222.2 requests/s" in page


def test_pictures_know_what_devices_do() -> None:
    times = PRESENTER.unit_times(six_devices(), TWO)
    assert [(one.busy, one.idle) for one in times] == [
        (6.0, 0.0), (6.0, 0.0), (9.0, 9.0), (12.0, 6.0), (18.0, 0.0), (0.0, 0.0),
    ]  # fmt: skip
    axes = plot_trace(simulate(six_devices(), TWO, requests=4))
    assert [label.get_text() for label in axes.get_yticklabels()] == [*row_names(ROWS, (0, 3))]
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()][:2] == ["pipeline 1", "pipeline 2"]


def test_problems_say_what_joins_their_devices() -> None:
    problem = six_devices(overlap=False, host="xavier")
    facts = dict(PRESENTER.facts(problem))
    assert facts["pipelines"] == "any number of pipelines, each on devices of its own"
    assert "only then" in facts["messages"]
    assert "inputs come from xavier" in facts["messages"]
    lines = shown(*PRESENTER.problem_parts(problem))
    assert any(line.split() == ["nano", "pi", "1", "MB/s", "0.100", "ms"] for line in lines)
    board = dict(PRESENTER.facts(one_board()))
    assert board["messages"].startswith("no links")


def test_messages_from_the_host_have_rows_of_their_own() -> None:
    problem = six_devices(host="pi-3")
    trace = simulate(problem, TWO, requests=4)
    rows: Sequence[str] = trace.used_units
    assert rows[0] == "pi-3 -> xavier"
    assert "nano-1 -> pi-3" in rows
    whole = Plan(chunks=(Chunk(network="net", start=0, stop=4, unit="xavier"),))
    deployment = operation_of(problem).arrange(problem, whole)
    (state,) = operation_of(problem).steady(problem, deployment)
    assert state.period_us == 12_100, "its input and its result are on their way while it computes"
