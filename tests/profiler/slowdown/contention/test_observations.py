"""Co-runs: ratios of neighbours, medians, noise."""

from __future__ import annotations

import pytest

from gapless.formulations.errors import InvalidInputError
from gapless.profiler.slowdown.turns import CoRun

from .coruns import corun


def test_the_slowdown_is_the_median_of_ratios_and_deaf_to_drift_and_to_a_disturbance() -> None:
    alone = (100.0, 200.0, 400.0, 100.0, 100.0)
    found = corun("a", "b", alone=alone, beside=(110.0, 220.0, 440.0, 900.0, 110.0))
    assert found.slowdown == pytest.approx(0.1)
    assert found.noise == pytest.approx(0.0)


def test_noise_follows_the_quartiles_and_shrinks_with_more_measurements() -> None:
    wild = (1.0, 1.1, 1.2, 1.3, 1.4)
    few = corun("a", "b", alone=(1.0,) * 5, beside=wild)
    many = corun("a", "b", alone=(1.0,) * 20, beside=wild * 4)
    assert few.slowdown == pytest.approx(many.slowdown) == pytest.approx(0.2)
    assert few.noise == pytest.approx(1.2533 / 1.349 * 0.2 / 5**0.5)
    assert (many.noise or 1) < 0.6 * (few.noise or 0)


def test_two_measurements_say_nothing_of_noise() -> None:
    assert corun("a", "b", alone=(1.0, 1.0), beside=(1.1, 1.9)).noise is None


def test_an_aggressor_that_ran_half_of_the_time_counts_twice() -> None:
    found = CoRun(
        victim="a",
        victim_unit="u",
        aggressor="b",
        aggressor_unit="v",
        alone_us=(100.0,) * 3,
        beside_us=(110.0, 120.0, 105.0),
        shares=(0.5, 1.0, 0.25),
    )
    assert found.slowdown == pytest.approx(0.2)
    assert found.noise == pytest.approx(0.0)


def test_faster_beside_load_is_negative() -> None:
    assert corun("a", "b", alone=(10.0,), beside=(8.0,)).slowdown == pytest.approx(-0.2)


def test_all_defects_are_named() -> None:
    with pytest.raises(InvalidInputError) as caught:
        CoRun(
            victim="a",
            victim_unit="u",
            aggressor="b",
            aggressor_unit="u",
            alone_us=(1.0, float("nan")),
            beside_us=(0.0,),
        )
    text = str(caught.value)
    for words in (
        "a on u beside b on u",
        "alone_us has 2",
        "alone_us[1] is nan",
        "beside_us[0] is 0.0",
        "same unit",
    ):
        assert words in text.replace("both run on unit 'u'", "same unit"), words
    with pytest.raises(InvalidInputError, match="is not valid"):
        corun("a", "b", alone=(), beside=())
