"""The prior: its covariances are those of the noisy-or, and learning is one Gaussian solve."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless.profiler.prediction.noisy_or import (
    LAYER,
    OTHER_NETWORK,
    SAME_NETWORK,
    Items,
    covariance,
    joined,
    omega_covariance,
    solved,
)

UNITS = 4
LAYERS = 3


def items(rng: np.random.Generator, count: int, *, session: int = 0, network: int = 0) -> Items:
    """Return random chunks."""
    unit = rng.integers(0, UNITS, count)
    company = rng.integers(0, 2, (count, UNITS)).astype(float)
    company[np.arange(count), unit] = 0
    return Items(
        session=np.full(count, session),
        network=np.full(count, network),
        unit=unit,
        company=company,
        slope=rng.normal(size=count),
        own=rng.uniform(size=count),
        shares=rng.dirichlet(np.ones(LAYERS), count),
    )


def test_the_formula_is_that_of_simulated_noisy_ors() -> None:
    sets = np.array([[a, b, c] for a in (0, 1) for b in (0, 1) for c in (0, 1)], float)
    rng = np.random.default_rng(1)
    q = rng.beta(0.5, 0.5, (400_000, 3))
    omega = 1 - np.prod(np.where(sets[None] > 0, 1 - q[:, None, :], 1.0), axis=2)
    assert omega_covariance(sets, sets) == pytest.approx(np.cov(omega.T), abs=2e-3)


def test_the_formula_is_the_one_with_intersection_and_difference() -> None:
    sets = np.array([[1, 1, 0, 0], [0, 1, 1, 1], [1, 0, 0, 0], [0, 0, 0, 0]], float)
    common, size = sets @ sets.T, sets.sum(axis=1)
    either = size[:, None] + size[None, :]
    known = (3 / 8) ** common * 0.5 ** (either - 2 * common) - 0.5**either
    assert omega_covariance(sets, sets) == pytest.approx(known, abs=1e-15)


@given(st.integers(0, 10_000), st.integers(1, 12))
def test_covariances_are_covariances(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    sessions = [(0, 0), (1, 0), (2, 1), (3, 1), (4, 2)]
    mixed = joined([items(rng, count, session=s, network=n) for s, n in sessions])
    found = covariance(mixed, mixed)
    assert found == pytest.approx(found.T)
    assert np.linalg.eigvalsh(found).min() > -1e-9


def test_sessions_share_as_much_as_they_should() -> None:
    rng = np.random.default_rng(0)
    here = items(rng, 1)
    own = covariance(here, here)[0, 0]
    layers = LAYER**2 * float(here.shares[0] @ here.shares[0])
    for network, shared, kept in ((0, SAME_NETWORK, SAME_NETWORK), (1, OTHER_NETWORK, 0.0)):
        there = Items(
            session=np.array([1]),
            network=np.array([network]),
            unit=here.unit,
            company=here.company,
            slope=here.slope,
            own=here.own,
            shares=here.shares,
        )
        assert covariance(here, there)[0, 0] == pytest.approx(shared * (own - layers) + kept * layers)


@given(st.integers(0, 10_000))
def test_what_was_measured_exactly_is_known(seed: int) -> None:
    rng = np.random.default_rng(seed)
    seen, beyond = items(rng, 6), rng.normal(scale=0.1, size=6)
    known = solved(seen, beyond, np.full(6, 1e-4))
    assert known.mean(seen) == pytest.approx(beyond, abs=5e-3)
    assert np.diag(known.covariance(seen)).max() < 1e-6
    unknown = solved(seen, beyond, np.full(6, 1e4))
    assert unknown.mean(seen) == pytest.approx(np.zeros(6), abs=1e-6)
    assert unknown.covariance(seen) == pytest.approx(covariance(seen, seen), abs=1e-6)
