"""Work stealing: aligned columns, and never a longer plan."""

from __future__ import annotations

import numpy as np

from gapless.solvers.flow_shop.arrays import FORBIDDEN
from gapless.solvers.flow_shop.stealing import Alignment

from .tables import arrays_of, lognormal_arrays, random_arrays, slice_all


def test_columns_are_the_longest_chunks_with_equal_position_plus_unit() -> None:
    arrays = arrays_of([[4, 4], [3, 3]])
    alignment = Alignment([arrays] * 2, [np.array([0, 1, 2]), np.array([0, 2, 2])])
    assert alignment.times.tolist() == [[4, 3], [8, 0]]
    assert alignment.columns_us == 4 + max(3, 8) + 0


def test_chunks_shrink_to_the_critical_one_of_their_column() -> None:
    heavy, light = arrays_of([[4, 9], [4, 9]]), arrays_of([[2] * 6, [1] * 6])
    alignment = Alignment([heavy, light], [np.array([0, 1, 2]), np.array([0, 6, 6])])
    assert alignment.columns_us == 4 + max(9, 12) + 0
    alignment.steal()
    assert alignment.places[1].tolist() == [0, 4, 6]  # 8 beside the critical 9
    assert alignment.columns_us == 4 + max(9, 8) + 2


def test_an_alignment_that_makes_the_columns_longer_is_dropped() -> None:
    heavy, light = arrays_of([[4, 9], [4, 9]]), arrays_of([[2] * 6, [8] * 6])
    alignment = Alignment([heavy, light], [np.array([0, 1, 2]), np.array([0, 6, 6])])
    alignment.steal()
    assert alignment.places[1].tolist() == [0, 6, 6]
    assert alignment.columns_us == 4 + max(9, 12) + 0


def test_stealing_never_makes_the_columns_longer() -> None:
    shorter = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        units = int(rng.integers(2, 5))
        arrays = [lognormal_arrays(rng, units) for _ in range(int(rng.integers(2, 9)))]
        places = slice_all(arrays)
        assert places is not None
        alignment = Alignment(arrays, places)
        before = alignment.columns_us
        alignment.steal()
        assert alignment.columns_us == Alignment(arrays, alignment.places).columns_us <= before
        shorter += alignment.columns_us < before
    assert shorter >= 15


def test_no_unit_gets_what_it_cannot_run() -> None:
    rng, tried = np.random.default_rng(8), 0
    for _ in range(200):
        arrays = [random_arrays(rng, copies=True, unsupported=True) for _ in range(3)]
        units = arrays[0].unit_count
        places = slice_all([one for one in arrays if one.unit_count == units])
        if places is None or len(places) < 2:
            continue
        alignment = Alignment([one for one in arrays if one.unit_count == units], places)
        alignment.steal()
        assert alignment.times.max() < FORBIDDEN
        tried += 1
    assert tried > 20
