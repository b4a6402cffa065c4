"""Repeating and summing up, with a clock that does as it is told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, count, repeat
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gapless.formulations.errors import ProfilingError
from gapless.profiler.sampling import MAX_REPETITIONS, Effort, Samples, collect
from gapless.profiler.summary import Summary, Timing, defects, steadiest, timing

from .fakes import PLATFORM, FakeEngine, FakeModel, FakeSession, receipt_for

MS = 1_000_000


class TimedSession(FakeSession):
    """Lets a clock go on by given times while it works."""

    def __init__(self, runs_ns: Iterator[int]) -> None:
        (artifact,) = FakeEngine().prepare(FakeModel([4, 2]).pieces(0, 1))
        super().__init__(artifact, PLATFORM.units[0])
        self.now = 0
        self.runs_ns = runs_ns

    def copy_in(self, arrays: Sequence[NDArray[Any]]) -> None:
        super().copy_in(arrays)
        self.now += 10

    def run(self) -> None:
        super().run()
        self.now += next(self.runs_ns)

    def copy_out(self, arrays: Sequence[NDArray[Any]]) -> None:
        super().copy_out(arrays)
        self.now += 3


def sampled(runs_ns: Iterator[int], effort: Effort) -> Samples:
    session = TimedSession(runs_ns)
    arrays = ([np.ones(4, "float32")], [np.ones(2, "float32")])
    return collect(session, *arrays, effort, clock=lambda: session.now)


def test_parts_are_timed_apart_and_the_warm_up_does_not_count() -> None:
    samples = sampled(count(100), Effort(min_repetitions=4, min_seconds=0, warm_up_repetitions=3))
    assert samples.copy_in_ns == (10,) * 4
    assert samples.run_ns == (103, 104, 105, 106)
    assert samples.copy_out_ns == (3,) * 4
    assert samples.busy_ns == (116, 117, 118, 119)


@pytest.mark.parametrize(
    ("run_ms", "expected"),
    [
        (1, 60),  # the least time counts
        (4, 30),  # the least number counts
        (100, 10),  # the longest time counts
        (900, 3),  # even that is not enough for a few runs
        (0.001, MAX_REPETITIONS),
    ],
)
def test_how_often_something_is_run(run_ms: float, expected: int) -> None:
    effort = Effort(min_repetitions=30, min_seconds=0.06, max_seconds=1.0)
    found = len(sampled((round(run_ms * MS) - 13 for _ in count()), effort).run_ns)
    assert found == expected


def test_steady_times_are_those_after_the_drift() -> None:
    """Clocks fall for three seconds; without settling, the first runs would count."""
    drifting = [round(100 * MS * (1 + run / 20)) for run in range(20)]
    effort = Effort(min_repetitions=4, min_seconds=0, warm_up_repetitions=1, steady=True)
    last = drifting[-1]
    assert sampled(chain(drifting, repeat(last)), effort).run_ns == (last,) * 4
    assert sampled(chain(drifting, repeat(last)), replace(effort, steady=False)).run_ns[0] == drifting[1]


def test_what_never_settles_is_measured_in_the_end() -> None:
    wild = (MS * (100 + 100 * (run // 5 % 2)) for run in count())
    assert len(sampled(wild, Effort(min_repetitions=4, min_seconds=0, steady=True)).run_ns) == 4


def summed(runs_ns: Sequence[int], *, quota: int | None = None) -> Timing:
    samples = Samples(
        copy_in_ns=(0,) * len(runs_ns), run_ns=tuple(runs_ns), copy_out_ns=(5000,) * len(runs_ns)
    )
    (artifact,) = FakeEngine().prepare(FakeModel([4, 2]).pieces(0, 1))
    return timing(samples, replace(receipt_for(artifact, PLATFORM.units[0]), quota_permille=quota))


def test_the_median_is_deaf_to_disturbances() -> None:
    found = summed([1000] * 27 + [90_000] * 3)
    assert found.run.typical_us == 1
    assert found.busy.typical_us == 6
    assert found.copy_out.typical_us == 5
    assert (found.run.p95_us, found.run.least_us, found.run.count) == (90, 1, 30)


def test_an_emulated_unit_counts_with_its_pauses() -> None:
    """Half of the time is taken away: most runs see nothing of it, every fourth one waits."""
    runs = [MS, MS, MS, 5 * MS] * 60
    assert summed(runs).run.typical_us == 1000
    emulated = summed(runs, quota=500)
    assert emulated.run.typical_us == pytest.approx(2000, rel=0.02)
    assert emulated.run.spread < 0.05
    assert emulated.run.count == 240
    assert summed([MS], quota=500).run.typical_us == 1000


@pytest.mark.parametrize(
    ("runs", "message"),
    [([], "gave no samples"), ([5, 0], r"run\[1\] is 0 ns"), ([5, 6, -1], r"run\[2\] is -1 ns")],
)
def test_times_that_cannot_be_are_refused(runs: list[int], message: str) -> None:
    with pytest.raises(ProfilingError, match=message):
        summed(runs)


def summary(**changes: float) -> Summary:
    even = Summary(
        typical_us=100, least_us=99, q1_us=99, q3_us=101, p95_us=110, early_us=100, late_us=100, count=30
    )
    return replace(even, **changes)  # type: ignore[arg-type]


def test_unsteady_measurements_are_told() -> None:
    assert defects(summary()) == ()
    assert defects(summary(q1_us=90, q3_us=120)) == (
        "the middle half of its runs spreads over 30% of the median",
    )
    assert defects(summary(late_us=80)) == ("its second half differs by -20% from the first",)


@pytest.mark.parametrize(
    ("spreads", "retries", "taken", "kept"),
    [([1, 50], 3, 1, 1), ([50, 40, 5, 1], 3, 3, 5), ([50, 30, 40, 60], 3, 4, 30), ([50, 1], 0, 1, 50)],
)
def test_unsteady_things_are_measured_again(spreads: list[int], retries: int, taken: int, kept: int) -> None:
    waiting = iter(spreads)
    even = summed([1000] * 30)
    found = steadiest(lambda: replace(even, busy=summary(q3_us=99 + next(waiting))), retries=retries)
    assert found.busy.q3_us == 99 + kept
    assert len(list(waiting)) == len(spreads) - taken
