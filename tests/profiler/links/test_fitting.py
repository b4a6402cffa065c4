"""Eq. 3: what is fitted is what was put in, small messages count, what cannot be told apart is not told."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gapless.formulations.errors import InvalidInputError
from gapless.profiler.links.fitting import WINDOW, LinkFit, checks_by_size, checks_in_short, fit_link
from gapless.profiler.links.platform import cluster_platform
from gapless.profiler.links.samples import CHECK_SIZES, Load, MeasuredLink, MessageSample, Purpose
from tests.profiler.links.messages import LATENCY_US, US_A_BYTE, links, measured, sent


def later(fit: LinkFit, factor: float, *, size: int = 200_000) -> list[MessageSample]:
    """Return messages of one size that take another time than before."""
    return [MessageSample(size=size, latency_us=factor * fit.predict_us(size)) for _ in range(WINDOW)]


def test_what_was_put_in_is_fitted() -> None:
    fit = fit_link(measured())
    weights = fit.weights
    assert weights.w2 is not None
    assert weights.w3 is not None
    assert weights.w4 is not None
    assert 1e6 / fit.bytes_per_second + weights.w1.value == pytest.approx(US_A_BYTE, rel=1e-4)
    found = [weight.value for weight in (weights.e, weights.w2, weights.w3, weights.w4)]
    assert found == pytest.approx([LATENCY_US, 0.5, 0.02, 0.003], rel=1e-3)
    assert fit.usual_error < 1e-4


def test_small_and_large_messages_that_were_not_fitted_are_predicted_within_the_noise() -> None:
    fit = fit_link(measured(noise=0.03))
    for size in (1500, *CHECK_SIZES):
        assert fit.predict_us(size) == pytest.approx(sent(size).latency_us, rel=0.03)
    small = sent(2048)
    assert abs(fit.bandwidth_error(small)) > 0.8  # bandwidth alone knows no latency


def test_a_few_messages_that_were_held_up_change_little() -> None:
    link = measured(noise=0.02)
    held_up = [replace(one, latency_us=20 * one.latency_us) for one in link.samples[::9]]
    fit = fit_link(replace(link, samples=(*link.samples, *held_up)))
    for size in CHECK_SIZES:
        assert fit.predict_us(size) == pytest.approx(sent(size).latency_us, rel=0.12)


def test_confidence_holds_what_was_put_in_and_grows_with_noise() -> None:
    calm, noisy = (fit_link(measured(noise=noise)).weights.e for noise in (0.01, 0.1))
    assert calm.low <= calm.value <= calm.high
    assert noisy.high - noisy.low > 2 * (calm.high - calm.low)
    assert noisy.low < LATENCY_US < noisy.high


def test_without_traffic_only_w1_and_e_are_fitted() -> None:
    weights = fit_link(measured(loaded=False)).weights
    assert (weights.w2, weights.w3, weights.w4) == (None, None, None)
    assert weights.e.value == pytest.approx(LATENCY_US, rel=1e-3)


def test_the_printed_form_cannot_tell_w1_from_w3_while_nothing_runs() -> None:
    """Erratum E8: with x_now = 0, the columns of w1 (x) and of w3 (x_now - x) are multiples of each other."""
    idle = measured(loaded=False).samples

    def printed(samples: tuple[MessageSample, ...]) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
        return np.array([[one.size, one.traffic_bytes - one.size, 1.0] for one in samples])

    assert np.linalg.matrix_rank(printed(idle)) == 2
    both = printed(idle) @ [0.01, 0.0, 700], printed(idle) @ [0.06, 0.05, 700]
    np.testing.assert_allclose(*both)
    assert np.linalg.matrix_rank(printed(measured(loaded=True).samples)) == 3


def test_the_key_needs_the_queue() -> None:
    """Erratum E7: messages of the same printed key took different times, by what waited before them."""
    keys = [(one.size, one.traffic_bytes, one.mean_traffic_bytes) for one in measured().of(Purpose.FIT)]
    slow, quick = sent(4096, queue_us=4000.0), sent(4096, queue_us=10.0)
    assert slow.latency_us > 2 * quick.latency_us
    assert len(set(keys)) < len(keys)
    fit = fit_link(measured())
    assert fit.predict_us(4096, queue_us=4000) == pytest.approx(slow.latency_us, rel=0.01)


def test_a_link_needs_two_sizes_alone() -> None:
    link = MeasuredLink(source="a", target="b", samples=tuple(sent(1024) for _ in range(9)))
    with pytest.raises(InvalidInputError, match="from a to b cannot be fitted: messages of two sizes"):
        fit_link(link)


@pytest.mark.parametrize("factor", [0.5, 1.3, 3.0])
def test_drift_is_noticed_and_followed(factor: float) -> None:
    fit = fit_link(measured(noise=0.03))
    recent = later(fit, factor)
    assert fit.drifted(recent)
    updated = fit.update(recent)
    assert not updated.drifted(recent)
    for size in (200_000, 20_000):  # the size that was seen, and one that was not
        assert updated.predict_us(size) == pytest.approx(factor * fit.predict_us(size), rel=0.05)


def test_noise_and_a_few_messages_are_no_drift() -> None:
    fit = fit_link(measured(noise=0.03))
    steady = later(fit, 1.02)
    assert not fit.drifted(steady)
    assert not fit.drifted(later(fit, 3.0)[1:])
    assert not fit.drifted([*steady[:20], *later(fit, 3.0)[:12]])
    assert fit.update(steady).seen == tuple(steady)


def test_planners_get_whole_numbers_of_latency_and_speed() -> None:
    link = fit_link(measured()).link()
    assert (link.source, link.target) == ("a", "b")
    assert link.bytes_per_second == pytest.approx(20_000_000, rel=0.001)
    assert link.time_us(1_000_000) == pytest.approx(50_700, rel=0.01)


def test_the_platform_has_each_link_and_device() -> None:
    platform = cluster_platform(links("a", "b", "c"))
    assert platform.devices == ("a", "b", "c")
    assert len(platform.links) == 6
    assert platform.pipelines().links[0].latency_us == pytest.approx(LATENCY_US, abs=2)


def test_checks_say_how_wrong_both_predictions_are() -> None:
    found = links("a", "b", noise=0.02)
    fits = [fit_link(one) for one in found.links]
    short = {(one.load, one.purpose): one for one in checks_in_short(found, fits)}
    alone = short[Load.IDLE, Purpose.CHECK]
    assert alone.messages == 2 * 3 * len(CHECK_SIZES)
    assert alone.fit.median < 0.03
    assert alone.fit.far == 0
    assert alone.bandwidth.p90 > 0.5
    sizes = [one.size for one in checks_by_size(found, fits) if one.load is Load.IDLE]
    assert sizes == sorted({one.size for one in found.links[0].samples if one.load is Load.IDLE})
