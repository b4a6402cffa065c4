"""The shortest way through the sections of a request, against all ways."""

from __future__ import annotations

from itertools import pairwise
from random import Random

from gapless.formulations.coordination.times import NetworkTimes, Times, shortest_latency_us, soonest


def all_ways(times: Times, done: int, waits: list[int | None]) -> list[tuple[int, int, int]]:
    """Return (latency, first stop, first unit) of every sequence of chunks on units."""
    count, found = times.sections(0), []

    def follow(at: int, ready: int, first: tuple[int, int] | None) -> None:
        if at == count:
            assert first is not None
            found.append((ready, *first))
            return
        for stop, unit, time_us in times.options(0, at):
            wait = waits[unit]
            if wait is not None:
                follow(stop, max(wait, ready) + time_us, first or (stop, unit))

    follow(done, 0, None)
    return found


def test_equal_to_the_best_of_all_ways() -> None:
    random = Random(7)
    for _ in range(300):
        sections, units = random.randint(1, 4), random.randint(1, 3)
        table = {
            (start, stop, unit): random.randint(1, 30)
            for start in range(sections)
            for stop in range(start + 1, sections + 1)
            for unit in range(units)
            if unit == 0 or random.random() < 0.6
        }
        times = Times([str(u) for u in range(units)], [NetworkTimes(sections=sections, chunk_us=table)])
        waits = [None if random.random() < 0.15 else random.randint(0, 25) for _ in range(units)]
        done = random.randrange(sections)
        ways = all_ways(times, done, waits)
        found = soonest(times, 0, done, waits)
        if found is None:
            assert not ways
            continue
        assert found.latency_us == min(ways)[0]
        assert (found.latency_us, found.first.stop, found.first.unit) in ways
        assert found.units >> found.first.unit & 1


def test_expectations_follow_what_is_observed() -> None:
    times = Times(["cpu"], [NetworkTimes(sections=1, chunk_us={(0, 1, 0): 1000})], smoothing=0.1)
    seen = [times.options(0, 0)[0].time_us]
    for _ in range(40):
        times.observe(0, 0, 1, 0, 2000)
        seen.append(times.options(0, 0)[0].time_us)
    assert seen[:3] == [1000, 1100, 1190]  # a new + (1 - a) old, a = 0.1
    assert all(before < after for before, after in pairwise(seen[:20]))
    assert shortest_latency_us(times, 0) == times.chunk_us(0, 0, 1, 0) == seen[-1]


def test_distorted_expectations_stay_distorted() -> None:
    times = Times(["cpu"], [NetworkTimes(sections=1, chunk_us={(0, 1, 0): 1000})], distortion=lambda *_: 1.3)
    assert times.chunk_us(0, 0, 1, 0) == 1300
    times.observe(0, 0, 1, 0, 1000)
    assert times.options(0, 0)[0].time_us == 1300
