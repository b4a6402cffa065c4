"""Ordering (P3) against all permutations, and the paper's assignment against the exact order."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from gapless.formulations.errors import InvalidInputError
from gapless.solvers.flow_shop.columns import MOST_REACH, displacement_of, order_by_contention, violation_of
from gapless.solvers.flow_shop.hetero2pipe import order_by_assignment


def value_of(order: tuple[int, ...], high: list[bool], reach: int) -> tuple[int, int]:
    """Return (violation, displacement)."""
    return violation_of([high[request] for request in order], reach), displacement_of(order)


def draw(rng: np.random.Generator, count: int, share: float = 0.4) -> list[bool]:
    """Return which requests are high."""
    return [bool(rng.random() < share) for _ in range(count)]


def test_no_order_is_better() -> None:
    rng = np.random.default_rng(4)
    for _ in range(120):
        high, reach = draw(rng, int(rng.integers(1, 7)), rng.random()), int(rng.integers(1, 6))
        best = min(value_of(order, high, reach) for order in permutations(range(len(high))))
        assert value_of(order_by_contention(high, reach), high, reach) == best


def test_requests_of_a_kind_keep_their_order() -> None:
    high = draw(np.random.default_rng(5), 60)
    order = order_by_contention(high, 4)
    for kind in (True, False):
        assert sorted(own := [r for r in order if high[r] is kind]) == own
    assert sorted(order) == list(range(60))


def test_nothing_moves_without_a_reason() -> None:
    for high in ([False] * 5, [True] * 5, [True, False, False, True]):
        assert order_by_contention(high, 3) == order_by_assignment(high, 3) == tuple(range(len(high)))
    assert order_by_contention([True, True, False], 1) == (0, 1, 2)


def test_too_many_states_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="exact order"):
        order_by_contention([True, False] * MOST_REACH, MOST_REACH + 1)
    assert len(order_by_contention([True, False] * 5, 64)) == 10


def test_the_assignment_moves_low_requests_between_high_ones() -> None:
    high = [kind == "H" for kind in "LLLLHHLLLL"]
    order = order_by_assignment(high, 3)
    assert "".join("LH"[high[r]] for r in order) == "LLHLLHLLLL"


def test_the_assignment_always_ends_with_a_permutation() -> None:
    rng = np.random.default_rng(6)
    for _ in range(60):
        high, reach = draw(rng, int(rng.integers(1, 25))), int(rng.integers(1, 7))
        assert sorted(order_by_assignment(high, reach)) == list(range(len(high)))
