"""The recursions over the cuts of one network, against every cut."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gapless.solvers.flow_shop.arrays import ChainArrays
from gapless.solvers.flow_shop.ways import UNREACHABLE, Ways

from .cutting import every_cut, networks

PRICES = st.lists(st.lists(st.integers(0, 9), min_size=3, max_size=3), min_size=1, max_size=4)
GAPS = st.lists(st.integers(0, 60), min_size=6, max_size=6)


def staircase(steps: list[int]) -> ChainArrays:
    """Return a network whose chunks on unit 0 are limited to a window, as by memory; unit 1 runs all."""
    size = len(steps)
    times = np.array([[0, *np.cumsum(steps)], [0, *np.cumsum(steps[::-1])]])
    last = np.array([np.minimum(np.arange(size + 1) + 3, size), np.full(size + 1, size)])
    return ChainArrays(cuts=np.arange(size + 1), head=-times, tail=times, last=last)


def check_priced(arrays: ChainArrays, prices: list[list[int]]) -> None:
    ways, every = Ways(arrays), list(every_cut(arrays))
    rows = np.array(prices)[:, : arrays.unit_count]
    sums, places = ways.least_priced(rows)
    for row, found, where in zip(rows.tolist(), sums.tolist(), places.tolist(), strict=True):
        paid = [sum(p * t for p, t in zip(row, times, strict=True)) for _, times in every]
        if not paid:
            assert found >= UNREACHABLE
            continue
        assert found == min(paid)
        assert ways.allows(where)
        assert sum(p * t for p, t in zip(row, ways.times_us(tuple(where)), strict=True)) == found


@given(arrays=networks(), prices=PRICES)
def test_cheapest_cuts(arrays: ChainArrays, prices: list[list[int]]) -> None:
    check_priced(arrays, prices)


@given(steps=st.lists(st.integers(1, 9), min_size=1, max_size=12), prices=PRICES)
def test_cheapest_cuts_within_windows(steps: list[int], prices: list[list[int]]) -> None:
    check_priced(staircase(steps), prices)


def end_of(times: tuple[int, ...], ready: list[int], after: list[int], arrival: int) -> tuple[int, int]:
    """Return when the request is done, and the end of the plan."""
    at, end = arrival, 0
    for work, free, behind in zip(times, ready, after, strict=False):
        if work:
            at = max(at, free) + work
            end = max(end, at + behind)
    return at, end


@given(arrays=networks(), gaps=GAPS, arrival=st.integers(0, 30), limit=st.integers(1, 300))
def test_earliest_end_within_a_limit(arrays: ChainArrays, gaps: list[int], arrival: int, limit: int) -> None:
    ways = Ways(arrays)
    ready, after = gaps[: arrays.unit_count], gaps[3 : 3 + arrays.unit_count]
    ends = [end_of(times, ready, after, arrival) for _, times in every_cut(arrays)]
    best = min((done for done, end in ends if end <= limit), default=UNREACHABLE)
    found = int(ways.earliest(np.array([ready]), np.array([after]), arrival, limit)[0])
    assert found == best
    if best < UNREACHABLE:
        places = ways.places_within(ready, after, arrival, limit)
        assert ways.allows(places)
        done, end = end_of(ways.times_us(places), ready, after, arrival)
        assert (done, end <= limit) == (best, True)


@given(arrays=networks(), rates=st.lists(st.integers(1000, 1999), min_size=3, max_size=3))
def test_a_chunk_of_no_layers_takes_no_less_than_no_time_when_slowed(
    arrays: ChainArrays, rates: list[int]
) -> None:
    slowed = Ways(arrays).slowed(rates[: arrays.unit_count])
    assert (slowed.head + slowed.tail >= 0).all()
