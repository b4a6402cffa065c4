"""The corrected counts of Hetero2Pipe's search space (Eqs. 12 to 14)."""

from __future__ import annotations

from math import comb

import pytest

from gapless.formulations.errors import InvalidInputError
from gapless.formulations.flow_shop.space import pipelines, split_points


def test_the_published_example_has_449_pipelines() -> None:
    assert pipelines(4, 4) == 449


def test_one_core_each_by_hand() -> None:
    # P = 2: GPU and NPU; P = 4: both clusters, 4 + 3 + 3; P = 3 has no room for both.
    assert pipelines(1, 1) == 1 + 10
    assert split_points(4, 1, 1) == comb(3, 1) + comb(3, 2) + 11 * comb(3, 3)


def test_mobilenet_v2_has_three_hundred_million_split_points() -> None:
    assert split_points(28, 4, 4) == 299_198_823


def test_one_layer_cannot_be_cut() -> None:
    assert split_points(1, 4, 4) == 0


def test_more_cores_and_layers_never_leave_less() -> None:
    assert pipelines(2, 4) == pipelines(4, 2) < pipelines(3, 4) < pipelines(4, 4)
    assert split_points(27, 4, 4) < split_points(28, 4, 4) < split_points(28, 4, 5)


@pytest.mark.parametrize(("layers", "big", "little"), [(0, 4, 4), (5, 0, 4), (5, 4, 0)])
def test_impossible_numbers_are_refused(layers: int, big: int, little: int) -> None:
    with pytest.raises(InvalidInputError, match="must be at least 1"):
        split_points(layers, big, little)
