"""Estimated contention: what Eq. (1) says of networks and layers that were not measured."""

from __future__ import annotations

from dataclasses import replace

import pytest

import gapless
from gapless.formulations.errors import InvalidInputError
from gapless.profiler.platforms.phone_estimates import EstimatedPart, estimate_contention
from gapless.profiler.platforms.workloads import phone_network
from gapless.profiler.slowdown.contention.ridge import Form


def layers_of(name: str) -> dict[str, EstimatedPart]:
    return {part.first: part for part in estimate_contention([phone_network(name)]).parts}


def test_fully_connected_and_attention_layers_are_high_and_convolutions_are_not() -> None:
    """Observation 2: of VGG and AlexNet the fully connected layers, of BERT the attention, too."""
    for name in ("vgg16", "alexnet"):
        for layer, part in layers_of(name).items():
            assert part.high == (layer[:2] == "fc" or layer in ("logits", "conv1_1")), layer
    bert = [part for layer, part in layers_of("bert").items() if ".attention." in layer]
    assert len(bert) == 12 * 6
    assert all(part.high for part in bert)
    products = (".attention.scores", ".attention.softmax", ".attention.mixed")
    assert all(part.high for layer, part in layers_of("vit").items() if layer.endswith(products))


def test_a_network_presses_as_its_layers_do_on_average() -> None:
    found = estimate_contention([phone_network("googlenet")])
    (whole,) = found.networks
    mean = sum(part.time_us * part.intensity for part in found.parts) / whole.time_us
    assert whole.intensity == pytest.approx(mean)
    assert whole.high


@pytest.mark.parametrize("parts", [0, 4])
def test_by_slice_a_whole_network_is_as_by_network_on_the_big_cores_only(parts: int) -> None:
    names = ("vgg16", "squeezenet")
    found = estimate_contention([phone_network(name) for name in names], parts=parts).by_slice
    problem = replace(gapless.load_workload(",".join(names), platform="kirin990"), interference=found)
    losses = problem.tables.losses
    npu, big = map(problem.platform.unit_names.index, ("npu", "cpu_big"))
    for chain, rows in enumerate(losses.layer_us):
        intensity = found.of(names[chain]).intensity_permille
        assert losses.mark(chain, 0, len(rows), big)[1] == pytest.approx(intensity, abs=1)
        assert losses.mark(chain, 0, len(rows), npu)[1] > intensity + 50


def test_chunks_are_estimated_too() -> None:
    parts = estimate_contention([phone_network("vgg16")], parts=3).parts
    assert parts[0].start == 0
    assert parts[-1].stop == len(phone_network("vgg16").layers)
    assert 2 <= len(parts) <= 3


def test_the_regression_is_fitted_to_table_ii() -> None:
    known = {"squeezenet": 1.354, "bert": 1.076, "vit": 0.687}
    found = estimate_contention([phone_network(name) for name in known])
    for part in found.networks:
        assert part.intensity == pytest.approx(known[part.network], abs=0.02)


def test_the_printed_form_has_no_intercept_and_calls_every_layer_high() -> None:
    found = estimate_contention([phone_network("vgg16")], form=Form.PRINTED)
    assert found.regression.offset == 0.0
    assert all(part.high for part in found.parts)


@pytest.mark.slow
def test_names_are_enough() -> None:
    found = gapless.costs.estimate_contention(["bert"], platform="snapdragon870")
    assert [part.network for part in found.networks] == ["bert"]
    assert len(gapless.costs.estimate_contention().networks) == 10
    with pytest.raises(InvalidInputError, match="kirin990"):
        gapless.costs.estimate_contention(["bert"], platform="kirin")
    with pytest.raises(InvalidInputError, match="printed, centred"):
        gapless.costs.estimate_contention(["bert"], form="other")
