"""Charts as data: ticks are round, in order, and within the chart."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless.answers.charts import Axis, Kind, Mark, Plane, Series, nice_step, share, span, time_ticks

TIMES = st.floats(min_value=0.5, max_value=1e10)


@pytest.mark.parametrize(
    ("length", "most", "step"),
    [(10, 5, 2), (10, 10, 1), (172.78, 8, 50), (0.9, 4, 0.5), (7, 8, 1), (0, 3, 1)],
)
def test_steps_are_one_two_or_five(length: float, most: int, step: float) -> None:
    assert nice_step(length, most) == pytest.approx(step)


def test_ticks_of_a_time_line() -> None:
    assert [(tick.at, tick.text) for tick in time_ticks(20_000, most=4)] == [
        (0.0, "0 ms"),
        (25.0, "5 ms"),
        (50.0, "10 ms"),
        (75.0, "15 ms"),
        (100.0, "20 ms"),
    ]
    assert time_ticks(1_500)[-1].text == "1400 us"
    assert time_ticks(3_000_000)[-1].text == "3 s"


@given(TIMES, st.integers(2, 12))
def test_ticks_lie_within_the_chart(end: float, most: int) -> None:
    ticks = time_ticks(end, most)
    assert 1 <= len(ticks) <= most + 1
    assert len(ticks) >= 2 or most < 3
    assert [tick.at for tick in ticks] == sorted(tick.at for tick in ticks)
    assert all(0 <= tick.at <= 100 for tick in ticks)
    assert len({tick.text for tick in ticks}) == len(ticks)


@given(st.lists(TIMES, min_size=1, max_size=8))
def test_an_axis_shows_all_its_values_in_order(values: list[float]) -> None:
    axis = Axis.around("time", values)
    places = [axis.at(value) for value in sorted(values)]
    assert places == sorted(places)
    assert all(0 <= place <= 100 for place in places)
    assert all(axis.at(tick.value) == tick.at for tick in axis.ticks())
    assert axis.at(axis.low / 2) == 0
    assert axis.at(2 * axis.high) == 100
    assert axis.logarithmic is (max(values) / min(values) >= 6)


def test_values_that_differ_much_are_on_a_logarithmic_axis() -> None:
    axis = Axis.around("time", [1_000.0, 100_000.0], unit="ms")
    assert axis.label == "time (ms, logarithmic)"
    assert axis.at(10_000.0) == pytest.approx(50, abs=0.01)
    assert "10,000" in [tick.text for tick in axis.ticks()]
    assert Axis.around("count", [1.0, 2.0]).label == "count"


@pytest.mark.parametrize(
    ("high", "texts"),
    [
        (1.05, ["1", "1.01", "1.02", "1.03", "1.04", "1.05"]),
        (8.0, ["1", "2", "3", "4", "5", "6", "7", "8"]),
        (30.0, ["1", "2", "5", "10", "20"]),
        (1e4, ["1", "10", "100", "1,000", "10,000"]),
    ],
)
def test_a_logarithmic_axis_has_ticks_over_any_range(high: float, texts: list[str]) -> None:
    axis = Axis(name="ratio", low=1.0, high=high, logarithmic=True)
    assert [tick.text for tick in axis.ticks()] == texts


@given(st.lists(TIMES, min_size=1, max_size=8))
def test_texts_of_ticks_do_not_touch_each_other(values: list[float]) -> None:
    ticks = Axis.around("time", values).ticks()
    for width, shown in ((500, ticks), (260, [tick for tick in ticks if tick.narrow])):
        for one, other in pairwise(shown):
            apart = (other.at - one.at) * width / 100
            assert apart >= 6 * (len(one.text) + len(other.text)) / 2


def test_keys_go_through_marks_from_left_to_right() -> None:
    series = [
        Series(name=name, marks=tuple(Mark(x=x, y=y) for x, y in marks))
        for name, marks in (("a", [(3, 1), (1, 2)]), ("b", [(2, 5), (1, 2)]))
    ]
    axis = Axis(name="", low=0, high=9)
    plane = Plane(kind=Kind.SCATTER, title="", across=axis, upwards=axis, series=tuple(series))
    assert [(number, mark.x) for number, mark in plane.marks] == [(0, 1), (1, 1), (1, 2), (0, 3)]


def test_shares_and_spans() -> None:
    assert share(1, 3) == 33.333
    assert share(1, 0) == 0.0
    part = span(10, 30, 90)
    assert (part.x, part.width) == (11.111, 22.222)
    assert span(0, 90, 90).width == 100.0


def test_an_axis_that_counts_has_whole_numbers() -> None:
    counted = Axis.around("units", [1, 2, 4])
    assert [tick.text for tick in counted.ticks()] == ["1", "2", "3", "4"]
    measured = Axis.around("period", [1, 2, 4], unit="ms")
    assert "1.5" in [tick.text for tick in measured.ticks()]
