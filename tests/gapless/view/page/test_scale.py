"""Scales: ticks are round, in order, and within the chart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless.view.page.scale import Axis, nice_step, share, span, time_ticks

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
    axis = Axis.around(values)
    places = [axis.at(value) for value in sorted(values)]
    assert places == sorted(places)
    assert all(0 <= place <= 100 for place in places)
    assert all(-0.001 <= tick.at <= 100.001 for tick in axis.ticks())
    assert axis.logarithmic is (max(values) / min(values) >= 6)


def test_values_that_differ_much_are_on_a_logarithmic_axis() -> None:
    axis = Axis.around([1_000.0, 100_000.0])
    assert axis.logarithmic
    assert axis.at(10_000.0) == pytest.approx(50, abs=0.01)
    assert "10 ms" in [tick.text for tick in axis.ticks()]


def test_shares_and_spans() -> None:
    assert share(1, 3) == 33.333
    assert share(1, 0) == 0.0
    part = span(10, 30, 90)
    assert (part.x, part.width) == (11.111, 22.222)
    assert span(0, 90, 90).width == 100.0
