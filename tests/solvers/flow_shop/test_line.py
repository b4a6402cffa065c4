"""Putting one request back among others, against every place and every cut."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless.formulations.play import Job, play
from gapless.solvers.flow_shop.arrays import ChainArrays
from gapless.solvers.flow_shop.draft import Row, Sides, end_us, heads, put_back, tails
from gapless.solvers.flow_shop.ways import Ways

from .cutting import every_cut, networks

ROWS = st.lists(st.tuples(*[st.one_of(st.just(0), st.integers(1, 20))] * 3), min_size=0, max_size=4)
ARRIVALS = st.lists(st.sampled_from([0, 0, 7, 30]), min_size=5, max_size=5)


def played(rows: list[Row], arrivals: list[int]) -> int:
    """Return the makespan by the one simulation."""
    jobs = [
        Job(
            chunks=tuple((unit, unit + 1, unit) for unit, work in enumerate(row) if work),
            works_us=tuple(filter(None, row)),
            marks=((0, 0),) * len(row),
            entry_us=arrival,
        )
        for row, arrival in zip(rows, arrivals, strict=True)
        if any(row)
    ]
    order = [index for index, job in enumerate(jobs) for _ in job.chunks]
    return max((run.end_us for run in play(jobs, order, 3, None)), default=0) if jobs else 0


def nothing(units: int) -> Sides:
    return Sides(ready_us=(0,) * units, after_us=(0,) * units)


@given(rows=ROWS, arrivals=ARRIVALS, data=st.data())
def test_a_stretch_between_its_sides_ends_with_the_whole_plan(
    rows: list[Row], arrivals: list[int], data: st.DataObject
) -> None:
    arrivals = [at if any(row) else 0 for row, at in zip(rows, arrivals, strict=False)]
    start = data.draw(st.integers(0, len(rows)))
    stop = data.draw(st.integers(start, len(rows)))
    ready = heads(rows[:start], arrivals[:start], (0, 0, 0))[-1]
    after, late = tails(rows[stop:], arrivals[stop:], nothing(3))[0]
    sides = Sides(ready_us=ready, after_us=after, late_us=late)
    assert end_us(rows[start:stop], arrivals[start:stop], sides) == played(rows, arrivals)


@pytest.mark.slow
@given(arrays=networks(), rows=ROWS, arrivals=ARRIVALS, limit=st.integers(1, 255))
def test_the_best_place_and_cuts(
    arrays: ChainArrays, rows: list[Row], arrivals: list[int], limit: int
) -> None:
    ways, units, own = Ways(arrays), arrays.unit_count, arrivals[-1]
    rows = [row[:units] for row in rows]
    arrivals = arrivals[: len(rows)]
    sides = nothing(units)

    def end(index: int, row: Row) -> int:
        return end_us([*rows[:index], row, *rows[index:]], [*arrivals[:index], own, *arrivals[index:]], sides)

    ends = [end(index, times) for index in range(len(rows) + 1) for _, times in every_cut(arrays)]
    for known in range(3):  # nothing, then the best cuts here, then some others as well
        spot = put_back(ways, own, (rows, arrivals), sides, limit_us=limit, rng=random.Random(0))
        if min(ends, default=limit + 1) > limit:
            assert spot is None
        else:
            assert spot is not None
            assert end(spot.index, ways.times_us(spot.places)) == spot.limit_us == min(ends)
        for places, _ in list(every_cut(arrays))[:known]:
            ways.remember(places)


@pytest.mark.slow
@given(arrays=networks(), rows=ROWS, arrivals=ARRIVALS)
def test_the_ends_of_known_cuts_are_those_of_the_plan(
    arrays: ChainArrays, rows: list[Row], arrivals: list[int]
) -> None:
    ways, units, own = Ways(arrays), arrays.unit_count, arrivals[-1]
    rows, arrivals = [row[:units] for row in rows], arrivals[: len(rows)]
    cuts = list(every_cut(arrays))[:60]
    for places, _ in cuts:
        ways.remember(places)
    before = np.array(heads(rows, arrivals, (0,) * units))
    behind = tails(rows, arrivals, nothing(units))
    after = np.array([needed for needed, _ in behind])
    base = np.maximum((before + after).max(axis=1), [late for _, late in behind])
    known, ends = ways.known_ends(before, after, own)
    for column, places in enumerate(known):
        row = ways.times_us(places)
        for index in range(len(rows) + 1):
            every = [*rows[:index], row, *rows[index:]], [*arrivals[:index], own, *arrivals[index:]]
            assert end_us(*every, nothing(units)) == max(base[index], ends[index, column])
    assert len(known) == min(len({places for places, _ in cuts}), 48)
    assert not ways.slowed([1500] * units).known_ends(before, after, own)[0]
