"""The recursions over the cuts of one network, against every cut."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless.solvers.flow_shop.arrays import ChainArrays, Ints
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
    """Compare with every cut: without and with a discount, and with a unit that has to run a chunk."""
    rows, every = np.array(prices)[:, : arrays.unit_count], list(every_cut(arrays))
    for required in (frozenset[int](), frozenset({0}), frozenset({arrays.unit_count - 1})):
        ways = Ways(arrays, required)
        own = [entry for entry in every if ways.allows(entry[0])]
        assert ways.runs == bool(own)
        for discounts in (None, rows[::-1]) if own else ():
            sums, places = ways.least_priced(rows, discounts)
            less = np.zeros_like(rows) if discounts is None else discounts
            for row, off, found, where in zip(rows, less, sums.tolist(), places.tolist(), strict=True):
                assert found == min(priced(row, off, *entry) for entry in own)
                assert ways.allows(where)
                assert found == priced(row, off, where, ways.times_us(tuple(where)))


def priced(prices: Ints, discounts: Ints, places: Sequence[int], times: Sequence[int]) -> int:
    return int(prices @ np.array(times) - discounts @ (np.diff(np.array(places)) > 0))


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
@given(arrays=networks(), rates=st.lists(st.integers(1000, 1999), min_size=3, max_size=3))
def test_a_chunk_of_no_layers_takes_no_less_than_no_time_when_slowed(
    arrays: ChainArrays, rates: list[int]
) -> None:
    slowed = Ways(arrays).slowed(rates[: arrays.unit_count])
    assert (slowed.head + slowed.tail >= 0).all()
