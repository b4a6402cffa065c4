"""Whether units have become slower: no noise sets it off, it is seen soon, and plans are charged with it."""

from __future__ import annotations

from collections.abc import Iterator
from math import exp, log
from random import Random

import pytest

from gapless.formulations.coordination.times import NetworkTimes, Times
from gapless.solvers.coordination.paces import LEARNED, Paces, imbalance

CHUNK = (0, 0, 1, 0)


def noise(seed: int, *, busy: float = 0.15) -> Iterator[float]:
    """Yield what runs of a chunk of 1 ms take on a core of which others take turns."""
    draw = Random(seed)
    while True:
        slow = draw.random() < busy
        yield 1_000 * exp(draw.gauss(0, 0.05)) + (draw.choice((4_000, 4_000, 12_000)) if slow else 0)


def learned(seed: int, *, busy: float = 0.15) -> tuple[Paces, Iterator[float]]:
    paces, times = Paces(), noise(seed, busy=busy)
    for _ in range(300):
        paces.took(CHUNK, next(times), 900)
    return paces, times


def test_turns_of_others_are_no_change_of_pace() -> None:
    changes = 0
    for seed in range(10):
        paces, times = learned(seed)
        before = paces.version
        for _ in range(1_000):
            paces.took(CHUNK, next(times), 900)
        changes += paces.version != before
    assert changes <= 1  # of 10,000 runs


def runs_until(paces: Paces, times: Iterator[float], slower: float, least: float, most: float) -> int:
    """Return after how many runs the pace is between two."""
    for runs in range(1, 201):
        paces.took(CHUNK, slower * next(times), 900)
        if least <= paces.now(1)[0] <= most:
            return runs
    return 1_000


@pytest.mark.parametrize(
    ("slower", "busy", "most"), [(1.4, 0.0, 10), (2, 0.0, 6), (5, 0.0, 6), (5, 0.15, 20), (0.2, 0.15, 20)]
)
def test_a_change_is_seen_within_few_runs_and_measured(slower: float, busy: float, most: int) -> None:
    for seed in range(10):
        paces, times = learned(seed, busy=busy)
        bounds = (log(1.25), 9.0) if slower > 1 else (-9.0, -log(1.25))
        assert runs_until(paces, times, slower, *bounds) <= most
        for _ in range(LEARNED):
            paces.took(CHUNK, slower * next(times), 900)
        assert paces.now(1)[0] == pytest.approx(log(slower), abs=0.5 if busy else 0.1)
        if not busy:
            assert runs_until(paces, times, 1.0, -log(1.15), log(1.15)) <= 2 * most


def test_pace_is_of_the_unit_whichever_chunks_it_runs() -> None:
    """A chunk that is not learned when a unit is slower is no slower than it is usually."""
    paces = Paces()
    for _ in range(LEARNED):
        paces.took((0, 0, 1, 0), 1_000, 1_000)
    for _ in range(LEARNED):
        paces.took((0, 0, 1, 0), 4_000, 1_000)
    assert list(paces.now(2)) == pytest.approx([log(4), 0.0], abs=0.02)
    for _ in range(2 * LEARNED):
        paces.took((0, 1, 2, 0), 8_000, 2_000)
    assert paces.now(2)[0] == pytest.approx(log(4), abs=0.02)
    for _ in range(8):
        paces.took((0, 1, 2, 0), 2_000, 2_000)
    assert paces.now(2)[0] == pytest.approx(0, abs=0.05)


def test_what_was_learned_while_a_unit_was_slower_is_learned_again_when_it_is_not() -> None:
    """Chunks need not be slower by the same factor: here one by 4, the other by 8 (or by 2)."""
    for factor in (8, 2):
        paces = Paces()
        for time_us in (1_000, 4_000):
            for _ in range(2 * LEARNED):
                paces.took((0, 0, 1, 0), time_us, 1_000)
        for _ in range(2 * LEARNED):
            paces.took((0, 1, 2, 0), factor * 1_000, 1_000)
        for _ in range(LEARNED // 2):
            paces.took((0, 1, 2, 0), factor * 1_000, 1_000)
            paces.took((0, 0, 1, 0), 4_000, 1_000)
        before = paces.version
        for _ in range(8):
            paces.took((0, 0, 1, 0), 1_000, 1_000)
        assert paces.version > before
        for _ in range(2 * LEARNED):
            paces.took((0, 1, 2, 0), 1_000, 1_000)
            paces.took((0, 0, 1, 0), 1_000, 1_000)
        assert paces.now(1)[0] == pytest.approx(0, abs=0.1)
        before = paces.version
        for _ in range(8):
            paces.took((0, 1, 2, 0), 3_000, 1_000)
        assert paces.version > before  # such a chunk gives a change away, too
        assert paces.now(1)[0] == pytest.approx(log(3), abs=0.1)


def test_what_was_half_learned_when_a_pace_changes_is_begun_again() -> None:
    paces = Paces()
    for time_us in (1_000, 4_000):
        for _ in range(2 * LEARNED):
            paces.took((0, 0, 1, 0), time_us, 1_000)
    for _ in range(LEARNED - 1):
        paces.took((0, 1, 2, 0), 8_000, 1_000)
    for _ in range(8):
        paces.took((0, 0, 1, 0), 1_000, 1_000)
    paces.took((0, 1, 2, 0), 1_000, 1_000)
    assert paces.off((0, 1, 2, 0), 1_000) is None
    for _ in range(LEARNED - 1):
        paces.took((0, 1, 2, 0), 1_000, 1_000)
    assert paces.off((0, 1, 2, 0), 1_000) == pytest.approx(0, abs=0.1)


def test_plans_are_charged_with_what_was_measured() -> None:
    chunks = {(0, 1, 0): 1_000, (1, 2, 0): 2_000, (0, 2, 0): 2_500, (0, 1, 1): 700}
    loaded = frozenset({(0, 1, 0), (1, 2, 0), (0, 1, 1)})
    times = Times(["a", "b"], [NetworkTimes(sections=2, chunk_us=chunks, loaded=loaded)], smoothing=0)
    paces = Paces()
    assert paces.off((0, 0, 1, 0), 1_000) is None
    for _ in range(LEARNED):
        paces.took((0, 0, 1, 0), 1_500, 1_000)
    for _ in range(LEARNED):
        paces.took((0, 0, 1, 0), 3_000, 1_000)
    paces.took((0, 1, 2, 0), 9_000, 2_000)  # a single run says nothing
    charged = paces.charged(times)
    assert charged.chunk_us(0, 0, 1, 0) == pytest.approx(3_000, rel=0.03)
    assert charged.chunk_us(0, 1, 2, 0) == pytest.approx(6_000, rel=0.03)
    assert charged.chunk_us(0, 0, 2, 0) == pytest.approx(7_500, rel=0.03)
    assert charged.chunk_us(0, 0, 1, 1) == 700
    assert charged.loaded(0) == loaded
    assert times.chunk_us(0, 0, 1, 0) == 1_000
    assert paces.off((0, 0, 1, 0), 1_000) == pytest.approx(log(3), abs=0.03)


def test_units_that_are_alike_are_in_balance() -> None:
    assert imbalance([0.3, 0.3]) == 0
    assert imbalance([-0.1, 0.2, 0.0]) == pytest.approx(0.3)
    assert imbalance([]) == 0
