"""Computed costs: affine in the batch, exact where a total is known, none where a unit cannot."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.phone_platforms.fitting import fit_rates
from gapless.formulations.errors import InvalidInputError, InvalidProblemError
from gapless.formulations.files import dump, parse
from gapless.formulations.network import Layer, Network, Tensor
from gapless.profiler.analytic.costs import batched, network_costs, time_of, works_of
from gapless.profiler.analytic.model import ANALYTIC, AnalyticModel, KnownTotal, UnitModel

UNIT = UnitModel(
    unit="cpu",
    flops_per_us=1000,
    product_flops_per_us=500,
    bytes_per_us=100,
    launch_us=7,
    copy_us=20,
    copy_bytes_per_us=50,
)
NETWORK = Network(
    name="net",
    layers=(
        Layer(name="conv", weight_bytes=400, flops=9_000, op_types=("Conv", "Relu")),
        Layer(name="mish", weight_bytes=0, flops=100, op_types=("Softplus", "Tanh", "Mul")),
        Layer(name="fc", weight_bytes=80_000, flops=40_000, op_types=("Gemm",)),
        Layer(name="look", weight_bytes=1_000_000, flops=0, op_types=("Gather",)),
    ),
    tensors=(
        Tensor(name="x", bytes=300, source=-1, targets=(0,)),
        Tensor(name="a", bytes=1000, source=0, targets=(1, 2)),
        Tensor(name="b", bytes=1000, source=1, targets=(2,)),
        Tensor(name="c", bytes=40, source=2, targets=(3,)),
        Tensor(name="y", bytes=200, source=3, targets=(4,)),
    ),
)


def model_of(*units: UnitModel) -> AnalyticModel:
    return AnalyticModel(units=units, source="a paper", notes="the rest is guessed.")


def known(total_us: int, *, network: str = "net", printed: bool = True) -> KnownTotal:
    return KnownTotal(network=network, total_us=total_us, printed=printed, source="Table 1")


def test_the_work_of_layers() -> None:
    conv, mish, fc, look = works_of(NETWORK)
    assert (conv.flops, conv.moved_bytes, conv.weight_bytes, conv.product) == (9_000, 1300, 400, False)
    assert (mish.moved_bytes, mish.product) == (2000, False)
    assert (fc.moved_bytes, fc.weight_bytes, fc.product) == (2040, 80_000, True)
    assert look.weight_bytes == 200  # no more of the table than is returned


def test_times_by_hand() -> None:
    costs = network_costs(NETWORK, model_of(UNIT))
    exact = [7 + 4 + 9 + 13, 7 + 0.1 + 20, 7 + 800 + 80 + 20.4, 7 + 2 + 2.4]
    ends = [round(sum(exact[: stop + 1])) for stop in range(4)]
    assert [row[0] for row in costs.layer_us] == [b - a for a, b in zip([0, *ends], ends, strict=False)]
    assert costs.transfer_in_us == ((26,), (40,), (60,), (21,), (24,))
    time = time_of(NETWORK, UNIT)
    assert time is not None
    assert time.of(1) == pytest.approx(sum(exact) + 26)


def test_operations_that_are_not_known_cannot_be_computed() -> None:
    unknown = replace(NETWORK, layers=(replace(NETWORK.layers[0], flops=None), *NETWORK.layers[1:]))
    with pytest.raises(InvalidInputError, match="how many operations 'conv' has is not known"):
        network_costs(unknown, model_of(UNIT))


def test_layers_that_a_unit_cannot_run_have_no_cost() -> None:
    npu = replace(UNIT, unit="npu", unsupported=("Softplus", "Erf"))
    costs = network_costs(NETWORK, model_of(npu, UNIT))
    assert [row[0] is None for row in costs.layer_us] == [False, True, False, False]
    assert all(row[1] is not None for row in costs.layer_us)
    assert time_of(NETWORK, npu) is None
    with pytest.raises(InvalidInputError, match="'npu' is given, which cannot run all of its layers"):
        network_costs(NETWORK, model_of(replace(npu, totals=(known(5000),))))


@given(st.integers(1000, 10**7))
def test_a_known_total_comes_out_exactly(total_us: int) -> None:
    costs = network_costs(NETWORK, model_of(replace(UNIT, totals=(known(total_us),))))
    assert sum(row[0] or 0 for row in costs.layer_us) + costs.transfer_in_us[0][0] == total_us


@given(st.integers(2, 1000))
def test_batches_are_affine(batch: int) -> None:
    unit = replace(UNIT, totals=(known(4000),))
    time = time_of(NETWORK, unit)
    assert time is not None
    costs = network_costs(NETWORK, model_of(unit), batch=batch)
    total_us = sum(row[0] or 0 for row in costs.layer_us) + costs.transfer_in_us[0][0]
    assert total_us == pytest.approx(time.fixed_us + batch * time.each_us, abs=2)
    assert time.batch_for(time.of(batch)) == batch
    assert time.of(batch) < batch * time.of(1)  # weights are read and layers launched once


def test_a_batch_is_a_network_of_its_own() -> None:
    four = batched(NETWORK, 4)
    assert four.name == "net*4"
    assert network_costs(NETWORK, model_of(UNIT), batch=4).network == four.name
    assert [layer.weight_bytes for layer in four.layers] == [layer.weight_bytes for layer in NETWORK.layers]
    assert four.layers[0].flops == 36_000
    assert four.boundary_bytes == tuple(4 * alive for alive in NETWORK.boundary_bytes)
    assert batched(NETWORK, 1) is NETWORK


def test_at_least_one_inference_is_in_a_batch() -> None:
    time = time_of(NETWORK, UNIT)
    assert time is not None
    assert time.batch_for(1.0) == 1


def single(name: str, flops: int, kind: str) -> Network:
    return Network(
        name=name, layers=(Layer(name="only", weight_bytes=50_000, flops=flops, op_types=(kind,)),)
    )


CONVOLUTION, PRODUCT = single("convolution", 2 * 10**9, "Conv"), single("product", 3 * 10**9, "MatMul")


def printed(unit: UnitModel, networks: list[Network], factors: list[float]) -> UnitModel:
    """Return a unit with rates forgotten and the times that it takes, times a factor, printed."""
    times = [time_of(network, unit) for network in networks]
    totals = [
        known(round(factor * time.of(1)), network=network.name)
        for network, time, factor in zip(networks, times, factors, strict=True)
        if time is not None
    ]
    return replace(unit, flops_per_us=3, product_flops_per_us=6, totals=tuple(totals))


def test_rates_are_found_again() -> None:
    networks = [CONVOLUTION, PRODUCT]
    fitted = fit_rates(printed(UNIT, networks, [1.0, 1.0]), networks)
    assert (fitted.flops_per_us, fitted.product_flops_per_us) == (1000, 500)
    assert [total.network for total in fitted.totals] == ["convolution", "product"]


def test_contradictory_times_are_met_in_the_geometric_mean() -> None:
    twin = single("twin", 2 * 10**9, "Conv")
    networks = [CONVOLUTION, twin]
    fitted = fit_rates(printed(UNIT, networks, [0.5, 2.0]), networks)
    assert fitted.flops_per_us == pytest.approx(1000, rel=0.01)
    assert fitted.product_flops_per_us == pytest.approx(2000, rel=0.01)  # keeps its ratio: nothing says more


def test_derived_totals_are_not_fitted() -> None:
    networks = [CONVOLUTION, PRODUCT]
    unit = printed(UNIT, networks, [1.0, 1.0])
    derived = replace(unit, totals=(unit.totals[0], replace(unit.totals[1], printed=False, total_us=1)))
    assert fit_rates(derived, networks).product_flops_per_us == 2000


@pytest.mark.parametrize("total_us", [100, 10**12])
def test_times_that_no_rate_meets_are_refused(total_us: int) -> None:
    unit = replace(UNIT, totals=(known(total_us, network="convolution"),))
    with pytest.raises(InvalidInputError, match="no rate of 'cpu' meets its printed times"):
        fit_rates(unit, [CONVOLUTION])


def test_models_are_files() -> None:
    model = model_of(
        replace(UNIT, unsupported=("Erf",), totals=(known(4000), known(9, network="b", printed=False)))
    )
    assert parse(dump(model, ANALYTIC).encode(), ANALYTIC, name="model") == model
    with pytest.raises(InvalidInputError, match="bytes_per_us is 0, must be at least 1"):
        parse(
            dump(model, ANALYTIC).replace('"bytes_per_us": 100', '"bytes_per_us": 0').encode(),
            ANALYTIC,
            name="m",
        )
    with pytest.raises(InvalidProblemError, match="totals must be unique"):
        replace(UNIT, totals=(known(1), known(2)))


def test_what_is_printed_is_told_from_what_is_not() -> None:
    unit = replace(UNIT, totals=(known(4000), known(9, network="b", printed=False)))
    told = model_of(unit).provenance
    assert told.estimated
    assert told.notes == "Printed: net on cpu 4 ms (Table 1). the rest is guessed."
    assert model_of(UNIT).provenance.notes == "Printed: nothing. the rest is guessed."
