"""Sections and chunks: Figures 9 and 10 of Band, borders, and where layers fall back."""

from __future__ import annotations

import pytest

from gapless.formulations.coordination.sections import Fallback, Section, chunks_of, legs_of, sections_of
from gapless.formulations.errors import InvalidInputError

from .cases import FIGURE_9, setting

CPU, GPU, NPU = 0, 1, 2


def figure_9() -> tuple[Section, ...]:
    return setting(("cpu", "gpu", "npu"), {"net": FIGURE_9}).sections[0]


def test_figure_10a_sections() -> None:
    found = [(part.start, part.stop, set(part.units)) for part in figure_9()]
    assert found == [(0, 2, {CPU, GPU, NPU}), (2, 3, {CPU, NPU}), (3, 4, {CPU})]


def test_figure_10b_chunks() -> None:
    found = {(start, stop): set(units) for start, stop, units in chunks_of(figure_9())}
    assert found == {
        (0, 1): {CPU, GPU, NPU},
        (1, 2): {CPU, NPU},
        (2, 3): {CPU},
        (0, 2): {CPU, NPU},
        (1, 3): {CPU},
        (0, 3): {CPU},
    }


def test_borders_divide_sections_and_have_to_be_cuts() -> None:
    chain = setting(("cpu", "gpu", "npu"), {"net": FIGURE_9}).chains[0]
    assert [(part.start, part.stop) for part in sections_of(chain, (1,))] == [(0, 1), (1, 2), (2, 3), (3, 4)]
    with pytest.raises(InvalidInputError, match="cannot be cut at 9; it can at 1, 2, 3"):
        sections_of(chain, (9,))


@pytest.mark.parametrize(
    ("unit", "fallback", "legs"),
    [
        (NPU, Fallback.REST, ((0, 2, NPU), (2, 3, CPU))),
        (GPU, Fallback.REST, ((0, 1, GPU), (1, 3, CPU))),
        (GPU, Fallback.BACK_AND_FORTH, ((0, 1, GPU), (1, 3, CPU))),
        (CPU, Fallback.REST, ((0, 3, CPU),)),
    ],
)
def test_figure_9_placements(unit: int, fallback: Fallback, legs: tuple[tuple[int, int, int], ...]) -> None:
    assert legs_of(figure_9(), unit, fallback, CPU) == legs


def test_back_and_forth_returns_and_rest_does_not() -> None:
    parts = setting(("cpu", "npu"), {"net": ((9, 1), (9, None), (9, 1))}).sections[0]
    assert legs_of(parts, 1, Fallback.BACK_AND_FORTH, 0) == ((0, 1, 1), (1, 2, 0), (2, 3, 1))
    assert legs_of(parts, 1, Fallback.REST, 0) == ((0, 1, 1), (1, 3, 0))


def test_layers_that_no_unit_can_run_are_named() -> None:
    with pytest.raises(InvalidInputError, match=r"can run the layers 1 \('layer1'\) to 1"):
        setting(("cpu", "npu"), {"net": ((9, 1), (None, None))})
