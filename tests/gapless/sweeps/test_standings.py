"""Standings and profiles, against numbers that were worked out by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from gapless.solvers.sources import Source
from gapless.sweeps.standings import LEAST_S, cases, profiles, shifted_mean, standings

from .answers import EXACT, FOUND, HEURISTIC, answer


def test_standings_of_an_exact_backend_and_a_heuristic() -> None:
    exact, mine = standings(FOUND)
    assert (exact.backend, exact.answered, exact.failed, exact.proven) == (EXACT, 3, 0, 2)
    assert (mine.backend, mine.answered, mine.failed, mine.proven) == (HEURISTIC, 2, 1, 0)
    assert (exact.best, exact.near) == (1, 1)
    assert (mine.best, mine.near) == (1, 2)  # 101 is within 1 % of 100
    assert exact.above == pytest.approx((0 + 10 / 50) / 2)
    assert mine.above == pytest.approx((0.01 + 0) / 2)
    # Gaps are to the bounds of all: 100 on a, 40 on b.
    assert exact.gap_to_best_bound == pytest.approx((0 + 20 / 60) / 2)
    assert mine.gap_to_best_bound == pytest.approx((1 / 101 + 10 / 50) / 2)
    # The bound on b was handed over: only that on a is its own.
    assert (exact.own_gap, exact.own_bounds) == (0.0, 1)
    assert (mine.own_gap, mine.own_bounds) == (None, 0)


def test_times_are_shifted_geometric_means_with_the_horizon_for_who_did_not_get_there() -> None:
    exact, mine = standings(FOUND)
    # a: 4 s; b: never, so 10 s; c: proved after 0.2 s that there is none.
    assert exact.time_s == pytest.approx((4.1 * 10.1 * 0.3) ** (1 / 3) - 0.1)
    assert exact.proof_s == pytest.approx((4.1 * 10.1 * 0.3) ** (1 / 3) - 0.1)
    assert mine.time_s == pytest.approx((0.6 * 0.2 * 10.1) ** (1 / 3) - 0.1)
    assert mine.proof_s == pytest.approx(10.0)
    assert shifted_mean([]) is None
    assert shifted_mean([1.0, 1.0]) == pytest.approx(1.0)
    assert shifted_mean([0.0, 3.0], shift_s=1.0) == pytest.approx(math.sqrt(4.0) - 1.0)


def test_primal_integrals_are_shares_of_the_horizon() -> None:
    exact, mine = standings(FOUND)
    # a: 1 s of nothing, 3 s at half; b: 2 s of nothing, 8 s at 1 - 50/60. On c nobody has plans.
    assert exact.primal == pytest.approx(((1 + 3 * 0.5) / 10 + (2 + 8 * (10 / 60)) / 10) / 2)
    assert mine.primal == pytest.approx(((0.1 + 0.4 * 10 / 110 + 9.5 / 101) / 10 + 0.1 / 10) / 2)


def test_profiles_rise_by_ratio_to_the_best() -> None:
    time, value, proof = profiles(FOUND)
    assert time.lines[EXACT] == ((1.0, 1 / 3), (8.0, 2 / 3))  # c alone, a in 4 s and not in 0.5 s
    assert time.lines[HEURISTIC] == ((1.0, 2 / 3),)
    assert time.most == 8.0
    assert value.lines == {EXACT: ((1.0, 1 / 3), (1.2, 2 / 3)), HEURISTIC: ((1.0, 1 / 3), (1.01, 2 / 3))}
    assert proof.lines == {EXACT: ((1.0, 2 / 3),), HEURISTIC: ()}


def test_times_below_a_millisecond_are_equal() -> None:
    found = replace(
        FOUND, answers=(answer("a", EXACT, (1e-6, 5, None)), answer("a", HEURISTIC, (LEAST_S, 5, None)))
    )
    assert list(profiles(found)[0].lines.values()) == [((1.0, 1.0),)] * 2


def test_a_refuted_bound_measures_nothing() -> None:
    lie = answer("a", EXACT, (1.0, None, 70), status="no_solution")
    found = replace(FOUND, answers=(lie, answer("a", HEURISTIC, (1.0, 50, None))))
    (case,) = cases(found)
    assert (case.best, case.bound) == (50, None)
    assert standings(found)[1].gap_to_best_bound is None
    assert found.disagreements


def test_values_of_zero_have_no_ratio_to_others() -> None:
    found = replace(FOUND, answers=(answer("a", EXACT, (1.0, 0, 0)), answer("a", HEURISTIC, (1.0, 3, None))))
    exact, mine = standings(found)
    assert (exact.above, mine.above) == (0.0, None)
    assert profiles(found)[1].lines == {EXACT: ((1.0, 1.0),), HEURISTIC: ()}


def test_without_a_time_limit_the_last_answer_is_the_horizon() -> None:
    assert [case.horizon_s for case in cases(replace(FOUND, time_limit_s=None))] == [4.0, 10.0, 0.2]


def test_a_plan_that_was_given_counts_for_nobody() -> None:
    given = [
        replace(one, row=replace(one.row, plan_source=Source.START)) if one.backend == HEURISTIC else one
        for one in FOUND.answers
    ]
    found = standings(replace(FOUND, answers=tuple(given)))[1]
    assert (found.given, found.best, found.near, found.above) == (2, 0, 0, None)
    assert standings(FOUND)[1].given == 0
    assert profiles(replace(FOUND, answers=tuple(given)))[1].lines[HEURISTIC] == ()
