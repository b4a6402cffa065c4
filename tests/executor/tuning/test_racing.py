"""Who is clearly slower: noise, drift and disturbed visits."""

from __future__ import annotations

import random
from math import comb

import pytest

from gapless.executor.tuning import racing


@pytest.mark.parametrize("count", range(4, 40))
def test_the_lower_limit_errs_in_at_most_one_of_sixteen_cases(count: int) -> None:
    rank = int(racing.lower_limit([float(n) for n in range(1, count + 1)]))

    def chance(k: int) -> float:
        return float(sum(comb(count, j) for j in range(k)) / 2**count)

    assert chance(rank) <= 1 / 16 < chance(rank + 1)


def test_a_single_round_never_decides() -> None:
    assert not racing.clearly_slower([9.0], margin=0.01)


def test_few_rounds_decide_only_what_is_hugely_slower_in_each() -> None:
    assert racing.clearly_slower([1.4, 1.35], margin=0.01)
    assert not racing.clearly_slower([1.25, 9.0], margin=0.01)
    assert not racing.clearly_slower([1.4, 1.4, 1.4], margin=0.5)


def test_one_disturbed_visit_neither_drops_a_good_candidate_nor_saves_much() -> None:
    assert not racing.clearly_slower([2.5, 1.0, 1.0, 0.99], margin=0.01)
    assert racing.clearly_slower([1.05, 1.04, 0.7, 1.06, 1.05, 1.04, 1.05], margin=0.01)


def test_drift_that_hits_whole_rounds_cancels() -> None:
    rng = random.Random(1)
    speed = {"fast": 10.0, "near": 10.4, "slow": 12.0}
    drift = [1 + 0.3 * n for n in range(6)]
    periods = {
        name: {n: own * drift[n] * rng.uniform(0.995, 1.005) for n in range(6)} for name, own in speed.items()
    }
    assert racing.leader(periods, periods) == "fast"
    assert racing.slower_ones(periods, "fast", margin=0.01) == {"near", "slow"}
    assert racing.drift(periods) == pytest.approx(1.5, abs=0.25)
    assert racing.noise(periods, "fast") == pytest.approx(0.003, abs=0.002)


def test_candidates_are_compared_by_the_rounds_that_they_share() -> None:
    periods = {"a": {0: 10.0, 1: 30.0, 2: 5.0}, "b": {0: 11.0, 1: 33.0}}
    assert racing.leader(periods, periods) == "a"
    assert racing.ratios(periods, "b", "a") == pytest.approx([1.1, 1.1])
    apart = {"a": {0: 10.0}, "b": {1: 9.0}}
    assert racing.leader(apart, apart) == "b"
    assert racing.ratios(apart, "a", "b") == []


def test_ties_are_differences_below_the_noise() -> None:
    assert racing.ties([1.0, 1.0, 1.0, 1.0])
    assert racing.ties([0.98, 1.03, 1.0, 1.01])
    assert racing.ties([0.9, 1.2, 1.2, 1.2])
    assert not racing.ties([1.005, 1.006, 1.005, 1.004])  # small, but always there
    assert not racing.ties([])


def test_few_rounds_leave_a_tie_unless_the_difference_is_huge() -> None:
    assert racing.ties([1.2])
    assert racing.ties([1.1, 1.2, 1.1])
    assert not racing.ties([1.4, 1.5])


def test_noise_is_no_drift_and_one_disturbed_round_is_neither() -> None:
    rng = random.Random(3)
    noisy = {name: {n: 10 * rng.uniform(0.98, 1.02) for n in range(10)} for name in "abcd"}
    found = racing.drift(noisy)
    assert found is not None
    assert abs(found) < 0.02
    noise = racing.noise(noisy, "a")
    assert noise == pytest.approx(0.012, abs=0.006)
    disturbed = {name: {**own, 9: 3 * own[9]} for name, own in noisy.items()}
    assert abs(racing.drift(disturbed) or 0) < 0.05
    assert racing.noise(disturbed, "a") == pytest.approx(noise)


def test_who_was_visited_once_knows_neither_noise_nor_drift() -> None:
    once = {"a": {0: 10.0}, "b": {0: 11.0}}
    assert (racing.noise(once, "a"), racing.drift(once), racing.drift({})) == (None, None, None)


def test_equal_candidates_are_seldom_dropped_however_noisy() -> None:
    rng = random.Random(5)
    dropped = 0
    for _ in range(200):
        periods = {name: {n: 10 * rng.gauss(1, 0.1) for n in range(6)} for name in "abcdef"}
        dropped += len(racing.slower_ones(periods, racing.leader(periods, periods), margin=0.01))
    assert dropped < 0.1 * 200 * 5


def test_who_is_expected_to_be_slower_leaves_by_the_margin() -> None:
    few = [1.05, 1.04]
    assert not racing.clearly_slower(few, margin=0.01)
    assert racing.clearly_slower(few, margin=0.01, foretold=True)
    assert not racing.clearly_slower([1.05, 1.005], margin=0.01, foretold=True)
    assert not racing.clearly_slower([1.05], margin=0.01, foretold=True)
    periods = {"a": {0: 100.0, 1: 100.0}, "b": {0: 105.0, 1: 104.0}, "c": {0: 105.0, 1: 104.0}}
    assert racing.slower_ones(periods, "a", margin=0.01, foretold={"b"}) == {"b"}
