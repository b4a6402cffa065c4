"""Modulo schedules: no two chunks of a unit overlap, and requests that follow them keep the period."""

from __future__ import annotations

from itertools import accumulate, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gapless.formulations.cycles import Cycle, _Circles, cycle_of
from gapless.formulations.errors import InvalidPlanError
from gapless.formulations.flight import Turns, Visit, saturated, served_in_turns, steady_visits

VGG16 = (("a", 61_000), ("b", 144_000), ("c", 90_000), ("a", 50_000), ("c", 54_000), ("a", 33_000))
"""Six chunks whose units are all busy for the whole period."""


@st.composite
def lines(draw: st.DrawFn) -> tuple[list[int], list[str]]:
    """Draw chunks in a row, neighbours on different units."""
    units = ["abcd"[draw(st.integers(0, 3))]]
    for _ in range(draw(st.integers(1, 9))):
        units.append(draw(st.sampled_from([unit for unit in "abcd" if unit != units[-1]])))
    return [draw(st.integers(100, 6000)) for _ in units], units


def played(times: list[int], units: list[str], slots: int, requests: int) -> tuple[Cycle, list[Visit]]:
    cycle = cycle_of(times, units, rounds=5)
    return cycle, saturated(times, slots, requests, Turns(units=tuple(units), cycle=cycle))


@settings(max_examples=25)
@given(lines())
def test_chunks_of_a_unit_never_overlap_on_the_circle(line: tuple[list[int], list[str]]) -> None:
    times, units = line
    cycle = cycle_of(times, units, rounds=5)
    loads = {unit: sum(t for t, u in zip(times, units, strict=True) if u == unit) for unit in units}
    assert cycle.period_us == max(loads.values())
    assert cycle.latency_us == cycle.starts_us[-1] + times[-1]
    ends = [start + time for start, time in zip(cycle.starts_us, times, strict=True)]
    assert all(end <= start for end, start in zip(ends, cycle.starts_us[1:], strict=False))
    for unit in loads:
        own = sorted(
            (s % cycle.period_us, t)
            for s, t, u in zip(cycle.starts_us, times, units, strict=True)
            if u == unit
        )
        round_trip = [*own, (own[0][0] + cycle.period_us, 0)]
        assert all(start + time <= following for (start, time), (following, _) in pairwise(round_trip))


@settings(max_examples=25)
@given(lines())
def test_with_the_planned_number_on_their_way_results_come_as_in_the_schedule(
    line: tuple[list[int], list[str]],
) -> None:
    times, units = line
    slots = cycle_of(times, units, rounds=5).in_flight
    cycle, visits = played(times, units, slots, 100)
    outputs = [visit.end_us for visit in visits if visit.station == len(times) - 1]
    late = [end - number * cycle.period_us - cycle.latency_us for number, end in enumerate(outputs)]
    assert max(late) <= 0


@settings(max_examples=25)
@given(lines(), st.integers(1, 6))
def test_each_request_passes_each_chunk_once_in_order_and_units_do_one_thing_at_a_time(
    line: tuple[list[int], list[str]], slots: int
) -> None:
    times, units = line
    _, visits = played(times, units, slots, 30)
    assert sorted((v.request, v.station) for v in visits) == [
        (r, c) for r in range(30) for c in range(len(times))
    ]
    done = {(v.request, v.station): v for v in visits}
    assert all(v.start_us >= done[v.request, v.station - 1].end_us for v in visits if v.station)
    for unit in set(units):
        own = [v for v in visits if units[v.station] == unit]
        assert all(a.end_us <= b.start_us for a, b in pairwise(own))


def test_one_that_comes_alone_waits_only_for_news_of_others() -> None:
    times, units = [time for _, time in VGG16], [unit for unit, _ in VGG16]
    cycle = cycle_of(times, units)
    arrivals = (0, 10**7, 2 * 10**7)
    visits = served_in_turns(times, arrivals, 8, Turns(units=tuple(units), cycle=cycle))
    late = [
        v.end_us - arrivals[v.request] - end for v, end in zip(visits, [*accumulate(times)] * 3, strict=True)
    ]
    assert all(0 <= us <= 6 * cycle.order(8).news_us for us in late)
    assert 6 * cycle.order(8).news_us < cycle.period_us // 8


def test_units_that_are_busy_all_the_time_need_few_on_their_way() -> None:
    times, units = [time for _, time in VGG16], [unit for unit, _ in VGG16]
    cycle = cycle_of(times, units)
    assert cycle.period_us == 144_000
    assert cycle.in_flight == 4
    assert steady_visits(times, 4, Turns(units=tuple(units), cycle=cycle))[0] == 144_000
    visits = saturated(times, 4, 1000, Turns(units=tuple(units), cycle=cycle))
    outputs = [visit.end_us for visit in visits if visit.station == 5]
    assert {b - a for a, b in pairwise(outputs[50:950])} == {144_000}


@settings(max_examples=25)
@given(lines())
def test_no_schedule_waits_less_than_the_bound(line: tuple[list[int], list[str]]) -> None:
    """The search ends at the bound, so one that is too high would let it end below."""
    times, units = line
    loads = {unit: sum(t for t, u in zip(times, units, strict=True) if u == unit) for unit in units}
    circles = _Circles(times, units, max(loads.values()))
    least = sum(times) + circles.least_waits()
    assert circles.latency(circles.best(40)) >= least >= sum(times)


def test_a_bound_that_is_attained_ends_the_search() -> None:
    """On a unit that is never idle c follows a or another chunk, so b makes a request wait."""
    circles = _Circles([6, 4, 5], ["npu", "cpu", "npu"], 11)
    assert circles.least_waits() == 7
    assert circles.latency(circles.best(0)) == 15 + 7


def test_a_cycle_goes_forward() -> None:
    with pytest.raises(InvalidPlanError, match="starts that ascend"):
        Cycle(period_us=10, starts_us=(0, 20, 10), latency_us=30)
