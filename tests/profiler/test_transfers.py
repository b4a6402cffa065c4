"""Copies: what is copied where, and what it costs."""

from __future__ import annotations

import pytest

from gapless.formulations.network import Layer, Network, Tensor
from gapless.profiler.transfers import Load, fit_copies, loads_in, loads_out

MIB = 2**20


def copies(*rows: tuple[float, float, float]) -> list[tuple[Load, float]]:
    return [(Load(tensors=tensors, bytes=mib * MIB), time_us) for tensors, mib, time_us in rows]


def test_exact_copies_are_fitted_exactly() -> None:
    found = fit_copies(copies((1, 1, 120), (1, 0.25, 45), (3, 0.5, 110), (2, 4, 440)))
    assert found.per_tensor_us == pytest.approx(20)
    assert found.per_mebibyte_us == pytest.approx(100)
    assert found.error == pytest.approx(0, abs=1e-9)
    assert found.time_us(Load(tensors=1, bytes=2 * MIB)) == pytest.approx(220)


def test_coefficients_are_never_negative() -> None:
    shrinking = fit_copies(copies((1, 0, 100), (1, 1, 90), (1, 2, 80)))
    assert shrinking.per_mebibyte_us == 0
    assert 80 <= shrinking.per_tensor_us <= 100
    assert shrinking.error > 0.05
    steep = fit_copies(copies((1, 1, 50), (1, 2, 120), (1, 3, 190)))
    assert steep.per_tensor_us == 0
    assert steep.per_mebibyte_us > 0


def test_one_copy_or_none_of_any_length_is_enough() -> None:
    assert fit_copies(copies((1, 1, 100))).time_us(Load(tensors=1, bytes=MIB)) == pytest.approx(100)
    assert fit_copies(copies((1, 0, 0.0), (1, 1, 0.0))).time_us(Load(tensors=1, bytes=MIB)) == 0


def network(*tensors: tuple[int, int, tuple[int, ...]], layers: int = 4) -> Network:
    return Network(
        name="n",
        layers=tuple(Layer(name=f"l{index}") for index in range(layers)),
        tensors=tuple(
            Tensor(name=f"t{index}", bytes=size, source=source, targets=targets)
            for index, (size, source, targets) in enumerate(tensors)
        ),
    )


def test_a_chain_copies_what_is_alive() -> None:
    chain = network((10, -1, (0,)), (20, 0, (1,)), (30, 1, (2,)), (40, 2, (3,)), (50, 3, (4,)))
    assert [load.bytes for load in loads_in(chain, [range(4)])] == [10, 20, 30, 40, 0]
    assert [load.bytes for load in loads_out(chain, [range(4)])] == [0, 20, 30, 40, 50]
    assert [load.tensors for load in loads_in(chain, [range(4)])] == [1, 1, 1, 1, 0]


def test_what_passes_by_counts_with_the_share_of_chunks_that_touch_it() -> None:
    """The skip of 100 bytes goes from layer 0 to layer 3."""
    skip = network((10, -1, (0,)), (20, 0, (1,)), (100, 0, (3,)), (30, 1, (2,)), (40, 2, (3,)), (50, 3, (4,)))
    into = [load.bytes for load in loads_in(skip, [range(4)])]
    # of the chunks from 1, those to 2, 3, 4: one of three reaches layer 3
    assert into[:4] == pytest.approx([10, 20 + 100 / 3, 30 + 100 / 2, 40 + 100])
    out = [load.bytes for load in loads_out(skip, [range(4)])]
    # of the chunks to 2, those from 0, 1: one of two has made it; the last reader does not give it on
    assert out[1:] == pytest.approx([20 + 100, 30 + 100 / 2, 40 + 100 / 3, 50])


def test_models_in_a_row_copy_only_their_own() -> None:
    two = network((10, -1, (0,)), (20, 0, (1,)), (30, 1, (4,)), (7, -1, (2,)), (40, 2, (3,)), (50, 3, (4,)))
    models = [range(2), range(2, 4)]
    assert [load.bytes for load in loads_in(two, models)] == [10, 20, 7, 40, 0]
    assert [load.bytes for load in loads_out(two, models)] == [0, 20, 30, 40, 50]
