"""The Gantt chart: its numbers are those of the traces, and everything lies on the page."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import pairwise

import pytest

from gapless.answers.charts import Block, Span
from gapless.answers.words import millis
from gapless.formulations.flow_shop.tables import workload_of
from gapless.formulations.history import Interval
from gapless.view.page.page import report_page
from gapless.view.page.played import Lane, lanes_of, played, together, unlike
from gapless.view.page.subject import Subject
from gapless.view.page.timeline import Timeline, covered, timeline
from tests.gapless.view.page import samples


def chart(subject: Subject) -> Timeline:
    found = timeline(subject)
    assert found is not None
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", ["small", "measured", "long", "workload", "steady", "unexecutable"])
def test_bubbles_are_those_of_the_trace(name: str) -> None:
    subject = samples.SAMPLES[name]()
    trace = played(subject)[0]
    band = chart(subject).bands[0]
    assert band.chart.title == trace.title == "predicted"
    for _, row in band.rows:
        events = trace.on(row.unit)
        assert [(block.start_ns, block.end_ns) for block in row.blocks] == [
            (event.start_ns, event.end_ns) for event in events
        ]
        gaps = [(before.end_ns, after.start_ns) for before, after in pairwise(events)]
        assert list(row.idle_ns) == [(start, end) for start, end in gaps if end > start]


@pytest.mark.slow
@pytest.mark.parametrize("name", list(samples.SAMPLES))
def test_everything_lies_within_the_chart(name: str) -> None:
    found = chart(samples.SAMPLES[name]())
    places: list[Span] = []
    for band in found.bands:
        places += [found.place(*hot) for hot in band.chart.hot_ns]
        for _, row in band.rows:
            places += [found.place(block.start_ns, block.end_ns) for block in row.blocks]
            places += [found.place(*idle) for idle in row.idle_ns]
    assert places
    for place in places:
        assert 0 <= place.x <= 100
        assert place.width >= 0
        assert place.x + place.width <= 100.002
    rows = [y for band in found.bands for y, _ in band.rows]
    assert rows == sorted(set(rows))
    assert found.axis_y >= rows[-1] + 26
    assert found.blocks == sum(len(row.blocks) for band in found.bands for row in band.chart.rows)


def test_all_requests_of_both_traces_are_there() -> None:
    subject = samples.long()
    found = chart(subject)
    assert subject.measured is not None
    assert found.blocks == 2 * 300 * 8
    assert found.dense
    assert not chart(samples.small()).dense
    assert [band.chart.title for band in found.bands] == ["predicted", "measured"]
    assert found.end_ns == max(event.end_ns for event in subject.measured.events)


def test_one_request() -> None:
    subject = samples.small()
    assert subject.predicted is not None
    first = tuple(event for event in subject.predicted.events if event.request == 0)
    trace = replace(subject.predicted, arrivals_us=(0,), events=first)
    found = chart(replace(subject, predicted=trace))
    assert found.blocks == 4
    assert all(not row.idle_ns for row in found.bands[0].chart.rows)


def test_nothing_is_known() -> None:
    assert timeline(replace(samples.small(), predicted=None)) is None


@pytest.mark.parametrize("name", ["measured", "long", "workload", "replicas"])
def test_what_the_script_shows_is_in_the_order_of_the_blocks(name: str) -> None:
    subject = samples.SAMPLES[name]()
    found = chart(subject)
    data = json.loads(json.dumps(found.data))
    for band, shown in zip(found.bands, data["bands"], strict=True):
        for row, numbers in zip(band.chart.rows, shown["rows"], strict=True):
            assert len(numbers) == shown["size"] * len(row.blocks)
            for block, start in zip(row.blocks, numbers[2 :: shown["size"]], strict=True):
                assert block.start_ns / 1000 == pytest.approx(start, abs=0.06)
    assert len(data["chunks"]) == sum(len(stream.chunks) for stream in subject.deployment.streams)


def test_a_request_has_one_colour_in_both_traces_and_neighbours_differ() -> None:
    found = chart(samples.measured())
    colours = [[b.colour for b in row.blocks] for band in found.bands for _, row in band.rows]
    assert all(row == colours[0] for row in colours)
    assert colours[0][:9] == [0, 1, 2, 3, 4, 5, 6, 7, 0]


def test_lost_time_is_at_the_end_of_its_block() -> None:
    subject = samples.workload()
    found = chart(subject)
    assert subject.predicted is not None
    assert found.slowed
    lost = [block for _, row in found.bands[0].rows for block in row.blocks if block.lost_ns]
    assert len(lost) == sum(event.slowdown_us > 0 for event in subject.predicted.events)
    assert sum(block.lost_ns for block in lost) == sum(e.slowdown_ns for e in subject.predicted.events)
    assert all(block.lost_ns <= block.end_ns - block.start_ns for block in lost)
    drawn = re.findall(r'class="lost" x="([\d.]+)%" width="([\d.]+)%"', report_page([subject]))
    ends = [found.place(0, block.end_ns).width for block in lost]
    assert [float(x) + float(width) for x, width in drawn] == pytest.approx(ends, abs=0.002)


def test_contention_is_when_two_requests_of_high_contention_run() -> None:
    lanes = [Lane(name=name, chunks=(), colour=0, high=(name != "low",)) for name in ("a", "b", "low")]

    def work(start_us: int, end_us: int, stream: int) -> Interval:
        return Interval(
            start_ns=1000 * start_us, end_ns=1000 * end_us, stream=stream, request=0, chunk=0, unit="u"
        )

    works = [work(0, 10, 0), work(5, 8, 1), work(0, 20, 2), work(10, 20, 1), work(10, 12, 0)]
    assert list(together(works, lanes)) == [(5, 8), (10, 12)]
    found = chart(samples.workload())
    assert found.strip
    assert found.bands[0].chart.hot_ns
    assert not chart(samples.measured()).strip


def test_requests_of_a_workload_have_names_and_the_colours_of_their_arrival() -> None:
    subject = samples.workload()
    names = workload_of(subject.problem).names
    assert [(colour, name) for colour, name, _ in chart(subject).legend] == list(enumerate(names))
    lanes = lanes_of(subject)
    assert all(lanes[lane].name == name for _, name, lane in chart(subject).legend)
    assert {lane.name: lane.colour for lane in lanes_of(subject)} == {
        name: place for place, name in enumerate(workload_of(subject.problem).names)
    }


@pytest.mark.slow
def test_of_a_batch_the_typical_round_is_shown() -> None:
    subject = samples.workload()
    trace = played(subject)[1]
    assert trace.title == "measured"
    assert "of 40, the one with the median makespan" in trace.note
    assert len(trace.events) == sum(len(stream.chunks) for stream in subject.deployment.streams)
    assert trace.events[0].start_us == 0
    steady = played(samples.steady())[1]
    assert steady.note == ""
    (state,) = samples.steady().steady
    words = f"steady state: 40 periods of {millis(round(state.period_us))}"
    assert [trace.note for trace in played(samples.steady())] == [words, ""]
    assert {work.request for work in steady.events} == set(range(40))


def test_a_trace_that_is_unlike_the_measurement_says_so() -> None:
    subject = samples.measured()
    assert subject.measured is not None
    slower = replace(
        subject.measured,
        events=tuple(
            replace(
                event,
                start_ns=2 * event.start_ns,
                engine_ns=tuple(2 * at for at in event.engine_ns),
                end_ns=2 * event.end_ns,
            )
            for event in subject.measured.events
        ),
    )
    assert unlike(subject) == ""
    assert "of the execution" in unlike(replace(subject, measured=slower))
    assert "of the execution" in chart(replace(subject, measured=slower)).bands[1].chart.note


def test_blocks_that_lie_under_others_are_counted() -> None:
    def row(*spans: tuple[float, float]) -> list[Block]:
        places = [(round(1000 * x), round(1000 * (x + width))) for x, width in spans]
        return [Block(start_ns=start, end_ns=end, colour=0, label="") for start, end in places]

    assert covered(row((0, 50), (50, 50)), 100_000) == 0
    assert covered(row((0, 0.01), (0.02, 0.01), (0.05, 0.01)), 100_000) == 2  # all in the first pixel
    assert covered(row((0, 0.1), (0.1, 40), (90, 0.01)), 100_000) == 1
    assert covered(row((10, 5), (10, 30)), 100_000) == 1  # at once on one unit, drawn one over the other
    assert covered(row((10, 30), (10, 5)), 100_000) == 0  # its end is seen
    assert covered(row((10, 30), (10, 15), (25, 20)), 100_000) == 1  # two cover it together
    assert covered([], 100_000) == 0
    assert "not seen" not in chart(samples.small()).text
    subject = samples.small()
    assert subject.predicted is not None
    times = [
        (request, 1000 * request, 1000 * request + 900, event)
        for request in range(3000)
        for event in subject.predicted.events[:1]
    ]
    many = tuple(
        replace(event, request=request, start_ns=start, end_ns=end) for request, start, end, event in times
    )
    shown = chart(replace(subject, predicted=replace(subject.predicted, events=many)))
    (only,) = (row for band in shown.bands for _, row in band.rows)
    assert covered(only.blocks, shown.end_ns) == 3000 - 640
    words = "2,360 blocks not seen at a width of 640 pixels, where others lie over them: zoom in."
    assert words in shown.text
