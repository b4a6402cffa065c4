"""Traces as Gantt charts: names and colours, and what is idle."""

from __future__ import annotations

import gapless
from gapless.answers.charts import Block, Row
from gapless.answers.traces import trace_chart
from tests.pipeline_boards import TWO, six_devices
from tests.solvers.fakes import plan
from tests.workload_instances import workload_problem


def test_requests_of_one_network_have_colours_and_numbers() -> None:
    small = gapless.table_problem([[9, 2], [1, 8]], ["cpu", "gpu"], network="net")
    chart = trace_chart(gapless.simulate(small, plan((0, 1, "gpu"), (1, 2, "cpu")), requests=12))
    blocks = chart.rows[0].blocks
    assert [block.colour for block in blocks] == list(range(12))
    assert [block.label for block in blocks][9:] == ["9", "10", "11"]
    assert [block.short for block in blocks][9:] == ["9", "0", "1"]
    assert (chart.legend, chart.letters) == ((), ())


def test_colours_stand_for_networks_where_there_are_several() -> None:
    problem = workload_problem({"one": [[1000, 4000]], "two": [[9000, 1000]]}, ["one", "two", "one"])
    best = gapless.plan(problem).plan
    assert best is not None
    chart = trace_chart(gapless.requests.simulate_workload(problem, best))
    assert chart.legend == ((0, "one"), (1, "two"))
    blocks = [block for row in chart.rows for block in row.blocks]
    assert {(block.colour, block.label[:3]) for block in blocks} == {(0, "one"), (1, "two")}
    assert len({block.short for block in blocks}) == 3, "letters stand for requests"


def test_streams_side_by_side_have_headings_and_links_are_never_idle() -> None:
    chart = trace_chart(gapless.simulate(six_devices(), TWO, requests=4))
    assert [row.heading for row in chart.rows if row.heading] == ["pipeline 1", "pipeline 2"]
    assert [name for _, name in chart.legend] == ["pipeline 1", "pipeline 2"]
    assert {row.link for row in chart.rows} == {False, True}
    assert all(row.name.startswith("->") or " -> " in row.unit for row in chart.rows if row.link)


def test_idle_is_what_no_block_covers() -> None:
    spans = ((0, 10), (2, 4), (6, 12), (15, 20), (20, 21))
    blocks = tuple(Block(start_ns=start, end_ns=end, label="", colour=0) for start, end in spans)
    assert Row(unit="u", name="u", blocks=blocks).idle_ns == ((12, 15),)
    assert Row(unit="u", name="u", blocks=blocks, link=True).idle_ns == ()
    assert Row(unit="u", name="u", blocks=()).idle_ns == ()
