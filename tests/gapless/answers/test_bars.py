"""Bars as data: of sweeps, and of who works when."""

from __future__ import annotations

from dataclasses import replace

import pytest

import gapless
from gapless.answers.charts import Tone
from gapless.answers.coordination import in_time_chart, rates_chart, record_chart
from gapless.answers.sweeps import growth_chart, outcomes_chart, platforms_chart
from gapless.formulations.coordination.record import Record
from gapless.sweeps.findings import contests, growths
from tests.gapless.sweeps.rows import row


def test_platforms_are_shares_of_the_best() -> None:
    (contest,) = contests([row(platform="a", value=1000), row(platform="b", value=4000)])
    found = platforms_chart(contest, "EUR")
    assert [(bar.name, bar.tracks[0].end, bar.strong) for bar in found.rows] == [
        ("a", 100, True),
        ("b", 25, False),
    ]


def test_a_device_more_is_what_was_reached_before_and_what_is_new() -> None:
    (growth,) = growths(
        [row(value=4000, available=1), row(value=1000, available=2), row(value=2000, available=3)]
    )
    found = growth_chart(growth)
    parts = [[(part.start, part.length, part.colour) for part in bar.tracks[0].parts] for bar in found.rows]
    assert parts == [
        [(0, 0, Tone.PREDICTED), (0, 25, Tone.MEASURED)],
        [(0, 25, Tone.PREDICTED), (25, 75, Tone.MEASURED)],
        [(0, 50, Tone.PREDICTED), (50, 0, Tone.MEASURED)],
    ]


def test_what_came_of_tasks_adds_up_to_all_of_them() -> None:
    rows = [row(), row(), row(status="feasible", bound=1, gap=0.5), row(status="failed", value=None)]
    (bar,) = outcomes_chart(rows).rows
    assert [(part.name, part.start, part.length) for part in bar.tracks[0].parts] == [
        ("proved best", 0, 50),
        ("found, not proved", 50, 25),
        ("failed", 75, 25),
    ]


@pytest.fixture(scope="module")
def record() -> Record:
    scenario = replace(gapless.coordination.shipped_scenario("distream"), duration_us=300_000)
    return gapless.coordinate(scenario, "galaxy-s20", ["lst"]).records[0]


def test_a_record_is_drawn_to_scale_and_cut_at_the_ends_of_the_window(record: Record) -> None:
    found = record_chart(record, 20_000.0, 60_000.0)
    assert [bar.name for bar in found.rows] == list(record.units)
    assert (found.across.low, found.across.high) == (20, 60)
    for unit, bar in enumerate(found.rows):
        ran = [each for each in record.ran if each.unit == unit]
        inside = sum(max(0, min(e.end_us, 60_000) - max(e.start_us, 20_000)) for e in ran)
        assert sum(part.length for part in bar.tracks[0].parts) == pytest.approx(inside / 1000)
        assert all(20 <= part.start < part.start + part.length <= 60.001 for part in bar.tracks[0].parts)
    used = {part.colour for bar in found.rows for part in bar.tracks[0].parts}
    assert [colour for colour, _ in found.legend] == sorted(used)


def test_the_best_policy_stands_out(record: Record) -> None:
    served = tuple(request for request in record.requests if request.end_us is not None)
    all_of_them = replace(record, frames=(), requests=served[:20])
    half = replace(all_of_them, requests=served[:10])
    found = rates_chart([half, all_of_them])
    assert [bar.strong for bar in found.rows] == [False, True]
    assert [bar.tracks[0].end / found.across.high for bar in found.rows] == [0.5, 1]
    assert in_time_chart([record]) is None, "nothing has a deadline"
