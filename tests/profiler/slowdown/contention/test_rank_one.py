"""The rank-one model finds the truth where there is one, and says what it does not know."""

from __future__ import annotations

from math import log

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gapless.formulations.costs import Provenance
from gapless.formulations.errors import InvalidInputError
from gapless.profiler.slowdown.contention.rank_one import fit_rank_one, judged

from .coruns import corun, world

BASE = {("u", "v"): 0.1, ("v", "u"): 0.05}
SENSITIVITY = {"a": 2.0, "b": 1.0, "c": 0.5}
INTENSITY = {"a": 0.8, "b": 0.625, "c": 2.0}


def test_an_exact_world_is_found_exactly() -> None:
    model = fit_rank_one(world(BASE, SENSITIVITY, INTENSITY))
    assert [pair.slowdown for pair in model.pairs] == pytest.approx([0.1, 0.05], rel=1e-3)
    for name in "abc":
        assert model.of(name).sensitivity == pytest.approx(SENSITIVITY[name], rel=0.01)
        assert model.of(name).intensity == pytest.approx(INTENSITY[name], rel=0.01)
    assert model.explained == pytest.approx(1.0, abs=1e-3)
    assert model.slowdown("a", "u", "c", "v") == pytest.approx(0.4, rel=0.01)
    assert model.clipped == ()


def test_noise_does_not_bend_it() -> None:
    bases = []
    for seed in range(10):
        model = fit_rank_one(world(BASE, SENSITIVITY, INTENSITY, noise=0.03, seed=seed))
        bases.append(model.pairs[0].slowdown)
        assert abs(log(model.of("c").intensity / 2.0)) < 0.5
    assert sum(bases) / 10 == pytest.approx(0.1, rel=0.1)


def test_nothing_but_noise_is_no_contention() -> None:
    model = fit_rank_one([corun("a", "b", beside=(999.0,)), corun("b", "a", beside=(1000.0,))])
    assert model.pairs[0].slowdown == 0.0
    assert model.clipped == ("a on u beside b on v", "b on u beside a on v")
    assert model.of("a").intensity == model.of("b").sensitivity == 1.0
    assert model.interference(("u", "v"), provenance=Provenance()).slowdown_permille == ((0, 0), (0, 0))


def test_negative_ones_among_others_are_clipped_and_reported() -> None:
    runs = [*world(BASE, SENSITIVITY, INTENSITY), corun("c", "d", beside=(990.0,))]
    model = fit_rank_one(runs)
    assert model.clipped == ("c on u beside d on v",)
    assert 0 < model.of("d").intensity < 0.5
    assert model.of("c").intensity > 1.5


def test_what_is_not_observed_is_typical() -> None:
    model = fit_rank_one([corun("a", "b", beside=(1200.0,))])
    assert model.of("a").intensity == pytest.approx(1.0)
    assert model.of("never seen").sensitivity == 1.0
    assert model.slowdown("a", "v", "b", "u") == 0.0
    assert model.explained is None


def test_leaving_networks_out_keeps_what_it_says_of_the_others() -> None:
    model = fit_rank_one(world(BASE, SENSITIVITY, INTENSITY))
    rest = model.without(["c"])
    assert [factors.network for factors in rest.networks] == ["a", "b"]
    assert rest.slowdown("a", "u", "b", "v") == pytest.approx(model.slowdown("a", "u", "b", "v"))
    assert rest.of("a").intensity * rest.of("b").intensity == pytest.approx(1.0)
    assert model.without(["a", "b", "c"]).networks == ()


def test_it_is_judged_by_other_coruns_too() -> None:
    model = judged(fit_rank_one([corun("a", "b", beside=(1200.0,))]), [corun("a", "b", beside=(1100.0,))])
    assert model.mean_error == pytest.approx(0.1)
    assert model.worst_ratio == pytest.approx(1.0)


def test_interference_in_integers() -> None:
    model = fit_rank_one(world(BASE, SENSITIVITY, INTENSITY))
    found = model.interference(("v", "w", "u"), provenance=Provenance(source="x"), high_from_permille=1500)
    assert found.slowdown_permille == ((0, 0, 50), (0, 0, 0), (100, 0, 0))
    assert found.is_high("c")
    assert not found.is_high("a")
    assert found.slowdown_of("a", 2, "c", 0) == pytest.approx(400, abs=4)


def test_nothing_cannot_be_fitted() -> None:
    with pytest.raises(InvalidInputError, match="at least one"):
        fit_rank_one([])


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(st.sampled_from("abcd"), st.sampled_from("abcd"), st.floats(0.3, 30)),
        min_size=1,
        max_size=12,
    )
)
def test_any_observations_give_finite_positive_factors(rows: list[tuple[str, str, float]]) -> None:
    model = fit_rank_one([corun(a, b, beside=(1000 * factor,)) for a, b, factor in rows])
    for factors in model.networks:
        assert 1e-6 < factors.intensity < 1e6
        assert 1e-6 < factors.sensitivity < 1e6
    assert 0 <= model.pairs[0].slowdown < 1e3
