"""Times of layers as data."""

from __future__ import annotations

import gapless
from gapless.answers.layers import layer_chart
from tests.solvers.fakes import plan


def test_what_only_some_requests_run_is_told_from_what_all_run() -> None:
    problem = gapless.table_problem({"conv": [9, 1], "fc": [4, None]}, ["cpu", "gpu"], network="net")
    streams = [plan((0, 2, "cpu")).chunks, plan((0, 1, "gpu"), (1, 2, "cpu")).chunks]
    chart = layer_chart(problem.network, ["cpu", "gpu"], problem.costs.of("net").layer_us, streams)
    assert [[cell.framed for cell in row.cells] for row in chart.rows] == [["some", "some"], ["all", ""]]
    assert [[cell.level for cell in row.cells] for row in chart.rows] == [[1, 1 / 3], [2 / 3, None]]
    assert (chart.low, chart.high, chart.totals) == ("1.000 ms", "9.000 ms", ("13.000", "1 cannot run"))
