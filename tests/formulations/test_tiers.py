"""Tiers of predicted values."""

from __future__ import annotations

from gapless.formulations.tiers import tiers


def test_tiers_of_the_paper() -> None:
    """BetterTogether's Table V, predicted: two tiers."""
    assert tiers([5.65, 5.86, 5.86, 5.86, *[7.95] * 6]) == (1, 1, 1, 1, *[2] * 6)


def test_a_tier_reaches_from_its_least_value() -> None:
    """No chain: each is within 5 % of the one before, and the third starts a tier of its own."""
    assert tiers([104, 100, 108]) == (1, 1, 2)


def test_equal_values_and_zero() -> None:
    assert tiers([7, 0, 0, 7], tolerance=0) == (2, 1, 1, 2)
    assert tiers([]) == ()
