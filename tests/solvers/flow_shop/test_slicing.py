"""Slicing (P1) against all cuts, and its fast recursion where Lemma 1 holds."""

from __future__ import annotations

import numpy as np
import pytest

from gapless.solvers.flow_shop import columns
from gapless.solvers.flow_shop.arrays import FORBIDDEN
from gapless.solvers.flow_shop.columns import (
    bottleneck_by_pointer,
    bottleneck_by_table,
    is_monotone,
    least_bottleneck,
    work_by_table,
    work_by_window,
)

from .tables import all_places, arrays_of, random_arrays

KINDS = [(False, False), (True, False), (False, True), (True, True)]


@pytest.mark.parametrize(("copies", "unsupported"), KINDS)
def test_slicing_is_the_least_bottleneck_and_then_the_least_work(copies: bool, unsupported: bool) -> None:
    rng, impossible = np.random.default_rng(1), 0
    for _ in range(150):
        arrays = random_arrays(rng, copies=copies, unsupported=unsupported)
        times = [arrays.times_us(places) for places in all_places(arrays)]
        sliced, least = least_bottleneck(arrays), work_by_table(arrays)
        if not times:
            impossible += 1
            assert sliced is None
            assert least is None
            continue
        assert sliced is not None
        assert least is not None
        found = arrays.times_us(sliced[1])
        assert sliced[0] == found.max()
        assert (found.max(), found.sum()) == min((t.max(), t.sum()) for t in times)
        assert least[0] == arrays.times_us(least[1]).sum() == min(t.sum() for t in times)
    assert (impossible > 0) == unsupported


@pytest.mark.parametrize(("copies", "unsupported"), KINDS)
def test_windows_and_pointers_find_what_the_tables_find(copies: bool, unsupported: bool) -> None:
    rng, monotone = np.random.default_rng(2), 0
    for _ in range(150):
        arrays = random_arrays(rng, copies=copies, unsupported=unsupported)
        _assert_same(work_by_window(arrays), work_by_table(arrays))
        if is_monotone(arrays):
            monotone += 1
            value = bottleneck_by_pointer(arrays)
            assert value == bottleneck_by_table(arrays)
            if value < FORBIDDEN:
                _assert_same(work_by_window(arrays, value), work_by_table(arrays, value))
    assert monotone == 150 or copies


def _assert_same(one: tuple[int, object] | None, other: tuple[int, object] | None) -> None:
    assert (one is None) == (other is None)
    if one is not None and other is not None:
        assert one[0] == other[0]
        assert np.array_equal(np.array(one[1]), np.array(other[1]))


def test_lemma_1_holds_without_copies_and_with_copies_that_only_fall() -> None:
    times = [[4, 4, 4], [4, 4, 4]]
    assert is_monotone(arrays_of(times))
    assert is_monotone(arrays_of(times, [[0] * 4, [9, 6, 3, 0]]))
    assert is_monotone(arrays_of(times, [[0] * 4, [0, 4, 8, 12]]))
    assert not is_monotone(arrays_of(times, [[0] * 4, [0, 5, 0, 0]]))


def test_long_networks_take_the_fast_recursion_and_get_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    arrays = arrays_of(rng.integers(1, 99, (4, 3 * columns.POINTER_FROM)).tolist())
    fast = least_bottleneck(arrays)
    assert "times" not in vars(arrays)  # the table of all pairs was not built
    monkeypatch.setattr(columns, "POINTER_FROM", arrays.size + 1)
    _assert_same(fast, least_bottleneck(arrays))
    _assert_same(work_by_window(arrays), work_by_table(arrays))
