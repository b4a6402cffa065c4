"""The assignment of our own is that of scipy, ties included."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from gapless.solvers.flow_shop.assignment import cheapest_pairs


@given(data=st.data(), most=st.sampled_from((1, 3, 100)))
def test_the_cheapest_pairs_are_those_of_scipy(data: st.DataObject, most: int) -> None:
    rows = data.draw(st.integers(1, 7))
    columns = data.draw(st.integers(rows, 9))
    row = st.lists(st.integers(0, most), min_size=columns, max_size=columns)
    cost = np.array(data.draw(st.lists(row, min_size=rows, max_size=rows)))
    expected = zip(*(side.tolist() for side in linear_sum_assignment(cost)), strict=True)
    assert cheapest_pairs(cost) == list(expected)
