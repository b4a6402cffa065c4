"""Requests in flight: periods by their number, and longer periods in which requests wait less."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gapless.formulations.cycles import cycle_of
from gapless.formulations.errors import InvalidPlanError
from gapless.formulations.flight import Turns, cycle_for, flight_of, saturated, steady_visits
from gapless.formulations.plan import Chunk
from gapless.formulations.streams import Stream
from tests.formulations.test_cycles import VGG16, lines

THERE_AND_BACK = ([6000, 300, 5000], ["npu", "cpu", "npu"])
"""The npu is never idle: a request that was on the cpu for 0.3 ms waits for the rest of the period."""


def test_periods_by_requests_in_flight() -> None:
    times, units = [time for _, time in VGG16], [unit for unit, _ in VGG16]
    found = flight_of(times, units)
    assert (found.period_us, found.in_flight) == (144_000, 4)
    assert [pace.in_flight for pace in found.paces] == [1, 2, 4, 8]
    assert [pace.period_us for pace in found.paces[2:]] == [144_000, 144_000]
    assert found.paces[0].period_us == sum(times) > found.paces[1].period_us > 144_000


def test_the_planned_number_is_among_them() -> None:
    found = flight_of([100, 100, 100], ["a", "b", "c"])
    assert [(pace.in_flight, pace.period_us) for pace in found.paces] == [
        (1, 300),
        (2, 150),
        (3, 100),
        (4, 100),
        (8, 100),
    ]
    assert found.calmer is None, "nobody waits where each unit has one chunk"


def test_a_stream_has_one_slot_more_than_its_cycle_needs() -> None:
    """With exactly as many, a request that is late lets no other one in, and units stand still."""
    times, units = zip(*((time, unit) for unit, time in VGG16), strict=True)
    chunks = tuple(
        Chunk(network="vgg16", start=index, stop=index + 1, unit=unit) for index, unit in enumerate(units)
    )
    stream = Stream(name="vgg16", chunks=chunks, cycle=cycle_of(times, units))
    assert (stream.cycle and stream.cycle.in_flight, stream.slots) == (4, 5)
    assert replace(stream, task_slots=2).slots == 2


def test_a_longer_period_pays_where_requests_wait_much_less() -> None:
    found = flight_of(*THERE_AND_BACK)
    assert (found.period_us, found.latency_us, found.in_flight) == (11_000, 22_000, 2)
    assert found.calmer is not None
    assert (found.calmer.period_us, found.calmer.latency_us) == (11_550, 11_300)
    assert found.calmer.in_flight == 1


@settings(max_examples=15, deadline=None)
@given(lines(), st.integers(0, 40))
def test_cycles_of_longer_periods_keep_them(line: tuple[list[int], list[str]], percent: int) -> None:
    times, units = line
    least = cycle_of(times, units, rounds=5).period_us
    period_us = least * (100 + percent) // 100
    cycle = cycle_of(times, units, period_us=period_us, rounds=5)
    turns = Turns(units=tuple(units), cycle=cycle)
    reached_us, _ = steady_visits(times, cycle.in_flight, turns)
    assert least <= reached_us <= period_us + 1e-6


@pytest.mark.parametrize(
    ("times", "names", "reached_us", "oldest_us"),
    [
        ([1100, 1000, 200, 1100, 800], "ababa", 2300, 2950),
        ([1100, 800, 200, 600, 200], "babab", 2000, 2000),  # its cycle would have a period of 2100 us
    ],
)
def test_fewer_slots_get_a_cycle_of_their_own_where_it_is_faster(
    times: list[int], names: str, reached_us: float, oldest_us: float
) -> None:
    units = list(names)
    least, chosen = cycle_of(times, units), cycle_for(times, units, 2)
    assert least.in_flight == 3
    found = [steady_visits(times, 2, Turns(units=tuple(units), cycle=each))[0] for each in (chosen, least)]
    assert found == [reached_us, oldest_us]
    assert flight_of(times, units).paces[1].period_us == reached_us


@settings(max_examples=5, deadline=None)
@given(lines().filter(lambda line: len(line[0]) < 7), st.integers(2, 3))
@example(([101, 3140, 5211, 100, 4706, 100], list("dadbab")), 3)  # early at first, then 14 us slower
def test_fewer_slots_are_never_slower_than_the_oldest_first(
    line: tuple[list[int], list[str]], slots: int
) -> None:
    times, units = line
    names = tuple(units)
    least, chosen = cycle_of(times, units), cycle_for(times, units, slots)
    reached_us, oldest_us = (
        steady_visits(times, slots, Turns(units=names, cycle=cycle))[0] for cycle in (chosen, least)
    )
    assert reached_us <= oldest_us
    assert replace(chosen, eager=False) == least or chosen.in_flight <= slots < least.in_flight


WAITS = ([100, 500, 300, 300, 500, 600, 700], list("acabcab"))
"""Units that never wait for the chunk whose turn it is are 5 % slower."""


@settings(max_examples=30, deadline=None)
@given(lines())
def test_nothing_is_later_than_in_the_schedule_that_is_deployed(line: tuple[list[int], list[str]]) -> None:
    times, units = line
    cycle = cycle_for(times, units, None)
    visits = saturated(times, cycle.in_flight + 1, 50, Turns(units=tuple(units), cycle=cycle))
    ends = [visit.end_us for visit in visits if visit.station == len(times) - 1]
    due_us = [place * cycle.period_us + cycle.latency_us for place in range(50)]
    assert all(end <= due for end, due in zip(ends, due_us, strict=True))


def test_units_wait_for_the_chunk_in_turn_only_where_they_must() -> None:
    cycle = cycle_for(*WAITS, None)
    assert (cycle.eager, cycle.order(9).patience_us) == (False, cycle.period_us)
    hasty = Turns(units=tuple(WAITS[1]), cycle=replace(cycle, eager=True))
    assert steady_visits(WAITS[0], cycle.in_flight + 1, hasty)[0] == 1.05 * cycle.period_us
    freely = cycle_for(*THERE_AND_BACK, None)
    assert (freely.eager, freely.order(9).patience_us) == (True, 0)


def test_a_period_below_the_largest_load_is_refused() -> None:
    with pytest.raises(InvalidPlanError, match="a cycle of 10999 us: the busiest unit is busy for 11000 us"):
        cycle_of(*THERE_AND_BACK, period_us=10_999)
