"""The three phones of Hetero2Pipe: what the paper prints comes out, and all else is marked as estimated."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest

from benchmarks.phone_platforms.files import describe_hetero2pipe as describe
from benchmarks.phone_platforms.files import hetero2pipe_files as documents
from benchmarks.phone_platforms.hetero2pipe import PAPER_NETWORKS
from gapless.formulations.files import INTERFERENCE, NETWORK
from gapless.formulations.hardware import UnitKind
from gapless.formulations.judge import score
from gapless.formulations.network import Network
from gapless.formulations.plan import Chunk, Plan
from gapless.profiler.analytic.costs import network_costs, time_of
from gapless.profiler.platforms.catalog import read_shipped, shipped_platform
from gapless.profiler.platforms.workloads import (
    phone_model,
    phone_names,
    phone_network_names,
    shipped_workload,
)

PHONES = ("kirin990", "snapdragon778g", "snapdragon870")
PRINTED_US = {
    ("kirin990", "bert", "cpu_big"): 553_910,
    ("kirin990", "bert", "gpu"): 1_109_230,
    ("kirin990", "squeezenet", "cpu_big"): 13_460,
    ("kirin990", "squeezenet", "gpu"): 18_830,
    ("kirin990", "vit", "cpu_big"): 453_370,
    ("kirin990", "vit", "gpu"): 1_474_530,
    ("kirin990", "resnet50", "npu"): 10_000,
    ("snapdragon778g", "mobilenetv2", "cpu_big"): 13_158,
    ("snapdragon778g", "resnet50", "cpu_big"): 33_333,
}
"""Table II; Section I in frames a second."""

FAILS_ON_NPU = ("bert", "vit", "yolov4")


def shipped_text(path: str) -> str:
    return files("gapless.profiler.platforms").joinpath(path).read_text()


@pytest.fixture(scope="module")
def networks() -> list[Network]:
    return [read_shipped(f"phone-networks/{name}.json", NETWORK) for name in PAPER_NETWORKS]


def test_the_ten_networks_and_the_three_phones() -> None:
    assert phone_names() == (*PHONES, "split-kirin990")
    assert phone_network_names() == PAPER_NETWORKS


@pytest.mark.parametrize("phone", PHONES)
def test_units_stand_in_the_order_of_the_paper(phone: str) -> None:
    platform = shipped_platform(phone)
    npu = ("npu",) if phone == "kirin990" else ()
    assert platform.unit_names == (*npu, "cpu_big", "gpu", "cpu_little")
    assert [unit.unit for unit in phone_model(phone).units] == list(platform.unit_names)
    assert [unit.threads for unit in platform.units if unit.kind is UnitKind.CPU] == [4, 4]
    assert "Section VI-A" in platform.source
    assert (platform.memory_bytes is None) == (phone != "kirin990")


@pytest.mark.parametrize(("phone", "network", "unit"), PRINTED_US)
def test_printed_times_come_out_exactly(phone: str, network: str, unit: str) -> None:
    problem = shipped_workload(phone, network)
    chunk = Chunk(request=network, network=network, start=0, stop=len(problem.network.layers), unit=unit)
    judged = score(problem, Plan(chunks=(chunk,), order=(network,)))
    assert judged.violations == ()
    assert judged.values(problem.objective.terms) == (PRINTED_US[phone, network, unit],)
    (total,) = (
        total
        for model in phone_model(phone).units
        for total in model.totals
        if model.unit == unit and total.network == network
    )
    assert total.printed


def test_nothing_else_is_said_to_be_printed() -> None:
    marked = {
        (phone, total.network, unit.unit): total.total_us
        for phone in PHONES
        for unit in phone_model(phone).units
        for total in unit.totals
        if total.printed
    }
    assert marked == PRINTED_US


@pytest.mark.parametrize("phone", PHONES)
def test_costs_are_marked_as_estimated(phone: str) -> None:
    problem = shipped_workload(phone, "alexnet,bert")
    assert problem.costs.provenance.estimated
    assert problem.costs.provenance.method == "analytic"
    assert "Hetero2Pipe" in problem.costs.provenance.source
    assert problem.interference is not None
    assert problem.interference.provenance.estimated


def test_units_are_as_fast_against_each_other_as_the_paper_says(networks: list[Network]) -> None:
    """The NPU by far, then the big cores, which the GPU does not beat; little cores are 3 times as slow."""
    for phone in PHONES:
        units = {unit.unit: unit for unit in phone_model(phone).units}
        for network in networks:
            times = {name: time_of(network, unit) for name, unit in units.items()}
            took = {name: time.of(1) for name, time in times.items() if time is not None}
            assert took["cpu_big"] <= took["gpu"]
            assert 2.5 <= took["cpu_little"] / took["cpu_big"] <= 3.8
            if "npu" in took:
                assert 4 * took["npu"] <= took["cpu_big"]


def test_light_networks_are_20_to_40_times_as_short_as_heavy_ones(networks: list[Network]) -> None:
    """Appendix D, of MobileNetV2 and SqueezeNet against BERT; Table II itself gives 41 for SqueezeNet."""
    big = next(unit for unit in phone_model("kirin990").units if unit.unit == "cpu_big")
    times = {network.name: time_of(network, big) for network in networks}
    bert, light = times["bert"], times["mobilenetv2"]
    assert bert is not None
    assert light is not None
    assert 20 <= bert.of(1) / light.of(1) <= 40


@pytest.mark.parametrize("phone", PHONES)
def test_every_layer_has_a_cost_or_a_reason(phone: str, networks: list[Network]) -> None:
    model = phone_model(phone)
    for network in networks:
        for layer, row in zip(network.layers, network_costs(network, model).layer_us, strict=True):
            for unit, time_us in zip(model.units, row, strict=True):
                assert (time_us is None) == bool(set(unit.unsupported) & set(layer.op_types))
        lacking = {unit.unit for unit in model.units if time_of(network, unit) is None}
        npu = phone == "kirin990" and network.name in FAILS_ON_NPU
        assert lacking == ({"npu"} if npu else set())


def test_contention_is_that_of_table_ii() -> None:
    """Within the error of the rank-one model, 21 %; the pair of the text exactly, in the product."""
    problem = shipped_workload("kirin990", "squeezenet,bert,vit,yolov4")
    found = problem.interference
    assert found is not None
    npu, big, gpu, little = range(4)
    printed = {
        ("squeezenet", big, "bert", gpu): 264,
        ("bert", gpu, "squeezenet", big): 112,
        ("bert", big, "squeezenet", gpu): 210,
        ("squeezenet", gpu, "bert", big): 122,
        ("vit", big, "bert", gpu): 113,
        ("bert", gpu, "vit", big): 56,
        ("bert", big, "vit", gpu): 108,
        ("vit", gpu, "bert", big): 94,
    }
    for (victim, unit, aggressor, other), permille in printed.items():
        assert found.slowdown_of(victim, unit, aggressor, other) == pytest.approx(permille, rel=0.22)
    pair = found.slowdown_of("yolov4", big, "bert", gpu) * found.slowdown_of("bert", gpu, "yolov4", big)
    assert pair == pytest.approx(180 * 210, rel=0.02)
    base = found.slowdown_permille
    assert base[big][little] < base[big][gpu]  # little cores press less, and suffer as much
    assert base[little][gpu] == base[big][gpu]
    assert max(base[npu]) < 30


@pytest.mark.parametrize("phone", PHONES)
def test_classes_are_those_of_the_papers_observations(phone: str) -> None:
    """Observations 2 and 3; ViT presses half as much as SqueezeNet (Table II)."""
    found = read_shipped(f"{phone}/interference.json", INTERFERENCE)
    high = {name for name in PAPER_NETWORKS if found.is_high(name)}
    assert high == {"alexnet", "bert", "googlenet", "squeezenet", "vgg16", "yolov4"}
    assert found.of("vit").intensity_permille < 0.6 * found.of("squeezenet").intensity_permille
    assert {entry.network for entry in found.networks} == set(PAPER_NETWORKS)


def test_the_shipped_files_are_what_is_generated(networks: list[Network]) -> None:
    written = dict(documents(networks))
    assert len(written) == len(PAPER_NETWORKS) + 3 * len((*PHONES, "split-kirin990"))
    assert [path for path, text in written.items() if text != shipped_text(path)] == []


def test_a_network_is_described_from_its_built_in_model(
    networks: list[Network], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("spox")
    monkeypatch.setenv("GAPLESS_CACHE", str(tmp_path / "cache"))
    (shipped,) = (network for network in networks if network.name == "squeezenet")
    assert describe("squeezenet") == shipped
