"""The four phones of Band: what the paper prints comes out, and all else is marked as estimated."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import files
from math import log

import pytest

from benchmarks.phone_platforms.band import PAPER_NETWORKS
from benchmarks.phone_platforms.files import band_files as documents
from benchmarks.phone_platforms.files import describe_band as describe
from gapless.formulations.coordination.play import play
from gapless.formulations.coordination.sections import sections_of
from gapless.formulations.coordination.simulation import Conditions
from gapless.formulations.errors import InvalidInputError
from gapless.formulations.files import NETWORK, parse
from gapless.formulations.network import Network
from gapless.profiler.coordination.catalog import (
    coordinated_phone_names,
    scenario_names,
    setting_model,
    setting_names,
    shipped_behaviour,
    shipped_scenario,
    shipped_setting,
)
from gapless.profiler.platforms.workloads import phone_names
from gapless.solvers.coordination.policies import make_policy

TABLE_1_US = {
    ("pixel4", "npu"): 25_290,
    ("pixel4", "dsp"): 25_430,
    ("galaxy-s20", "npu"): 23_980,
    ("galaxy-s20", "gpu"): 115_520,
    ("redmi-k40", "npu"): 20_340,
    ("redmi-k40", "gpu"): 133_360,
    ("mate40pro", "npu"): 10_150,
}


def shipped_text(path: str) -> str:
    return files("gapless.profiler.coordination").joinpath(path).read_text()


@pytest.fixture(scope="module")
def networks() -> list[Network]:
    return [
        parse(shipped_text(path).encode(), NETWORK, name=path)
        for path in (f"networks/{name}.json" for name in PAPER_NETWORKS)
    ]


def test_the_four_phones_have_two_cores_and_accelerators() -> None:
    assert set(coordinated_phone_names()) == {phone for phone, _ in TABLE_1_US}
    assert set(setting_names()) == {*coordinated_phone_names(), *phone_names()}
    for phone in coordinated_phone_names():
        setting = shipped_setting(phone, ["inceptionv4"])
        assert setting.platform.unit_names[:2] == ("cpu0", "cpu1")
        assert [unit.threads for unit in setting.platform.units[:2]] == [1, 1]
        assert setting.platform.unit_names == setting.costs.units
        assert setting.behaviour is not None
        assert [unit.unit for unit in setting.behaviour.units] == list(setting.platform.unit_names)
        rules = [unit.unsupported for unit in setting_model(phone).units]
        assert [unit.unsupported for unit in setting.platform.units] == rules


@pytest.mark.parametrize(("phone", "unit"), TABLE_1_US)
def test_table_1_comes_out_exactly(phone: str, unit: str) -> None:
    (chain,) = shipped_setting(phone, ["inceptionv4"]).chains
    assert chain.busy_us(0, chain.layer_count, chain.units.index(unit)) == TABLE_1_US[phone, unit]


def test_nothing_else_is_said_to_be_printed() -> None:
    marked = {
        (phone, unit.unit): total.total_us
        for phone in coordinated_phone_names()
        for unit in setting_model(phone).units
        for total in unit.totals
        if total.printed
    }
    assert marked == TABLE_1_US
    assert all(shipped_setting(name, ["retinaface"]).costs.provenance.estimated for name in setting_names())


@pytest.mark.parametrize("phone", coordinated_phone_names())
def test_what_falls_back_is_what_the_paper_says(phone: str) -> None:
    names = ["arcface-mobilenet", "arcface-resnet50", "retinaface", "efficientdet-lite0", "fsrnet"]
    counts = {chain.network: len(sections_of(chain)) for chain in shipped_setting(phone, names).chains}
    assert counts["arcface-mobilenet"] == counts["arcface-resnet50"] == 1
    assert 1 < counts["retinaface"] < counts["fsrnet"] < counts["efficientdet-lite0"]  # 6.3.1: least, most


def test_the_transposed_convolution_runs_on_cpu_and_gpu_alone() -> None:
    setting = shipped_setting("pixel4", ["fsrnet"])
    (network,), (costs,) = setting.networks, setting.costs.networks
    up = "ConvTranspose[kernel=4,stride=4]"
    (place,) = (index for index, layer in enumerate(network.layers) if up in layer.op_types)
    assert [time is None for time in costs.layer_us[place]] == [False, False, False, True, True]


def test_company_is_that_of_table_1() -> None:
    behaviour = shipped_behaviour("pixel4")
    assert behaviour.of("npu").shared_permille(2) == round(1000 * 35.86 / 25.29)
    assert behaviour.of("dsp").shared_permille(4) == round(1000 * 61.32 / 25.43)
    assert behaviour.of("cpu0").shared_permille(2) == 2000
    assert shipped_behaviour("redmi-k40").of("npu").shared_permille(2) == 1050
    assert behaviour.of("gpu").cold_permille == 2610
    assert behaviour.of("npu").tail_permille == 1530
    assert behaviour.of("npu").heat is not None
    assert shipped_behaviour("kirin990").units == ()


def test_a_busy_npu_is_lost_after_ten_minutes_for_seven_seconds() -> None:
    npu = shipped_behaviour("pixel4").of("npu")
    heat, busy_mw, idle_mw = npu.heat, npu.busy_mw, npu.idle_mw
    assert heat is not None
    assert busy_mw is not None
    assert idle_mw is not None

    def seconds(power_mw: float, since_c: float, until_c: float) -> float:
        final_c = heat.ambient_c + heat.kelvin_per_w * power_mw / 1000
        return heat.time_s * log((final_c - since_c) / (final_c - until_c))

    assert 600 < seconds(0.95 * busy_mw + 0.05 * idle_mw, heat.ambient_c, heat.limit_c) < 720
    assert seconds(idle_mw, heat.limit_c, heat.back_c) == pytest.approx(7, abs=1)


@pytest.mark.slow
def test_crowded_frames_draw_the_power_of_table_2() -> None:
    scenario = replace(shipped_scenario("eagleeye-crowded"), duration_us=5_000_000)
    setting = shipped_setting("pixel4", scenario.networks)
    for policy, printed_mw in (("lst", 7990), ("tflite-mp", 7600)):
        record = play(setting, scenario, make_policy(policy), Conditions())
        assert record.energy_mj is not None
        assert record.energy_mj * 1e6 / record.end_us == pytest.approx(printed_mw, rel=0.02)


@pytest.mark.slow
def test_the_shipped_files_are_what_is_generated(networks: list[Network]) -> None:
    written = dict(documents(networks))
    assert len(written) == len(PAPER_NETWORKS) + 3 * len(coordinated_phone_names())
    assert [path for path, text in written.items() if text != shipped_text(path)] == []


def test_a_network_is_described_from_its_built_in_model(networks: list[Network]) -> None:
    pytest.importorskip("spox")
    (shipped,) = (network for network in networks if network.name == "retinaface")
    assert describe("retinaface") == shipped


@pytest.mark.parametrize(
    ("platform", "network", "words"),
    [
        ("pixel5", "fsrnet", "no phone for requests is called 'pixel5'; did you mean pixel4"),
        ("pixel4", "fsrn", "did you mean fsrnet"),
        ("pixel4", "resnet18", "no network with costs on phones is called 'resnet18'"),
    ],
)
def test_unknown_names_are_refused_with_near_ones(platform: str, network: str, words: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        shipped_setting(platform, [network])
    assert words in str(caught.value)


def test_a_setting_needs_networks() -> None:
    with pytest.raises(InvalidInputError, match="name at least one"):
        shipped_setting("pixel4", [])


@pytest.mark.parametrize("name", scenario_names())
def test_scenarios_run_on_every_phone(name: str) -> None:
    scenario = shipped_scenario(name)
    assert scenario.name == name
    assert scenario.source
    setting = shipped_setting("pixel4", scenario.networks)
    assert tuple(network.name for network in setting.networks) == scenario.networks


def test_counts_of_frames_are_those_of_the_paper() -> None:
    assert {"four-apps", "overload", "assembly-assistant", "small-apps"} < set(scenario_names())
    printed = {
        "eagleeye": {"retinaface": 6.0, "arcface-mobilenet": 5.2, "fsrnet": 1.5, "arcface-resnet50": 2.3},
        "distream": {"efficientdet-lite0": 5.0, "efficientnet-lite1": 5.6, "efficientnet-lite2": 0.7},
    }
    for name, wanted in printed.items():
        (workflow,) = shipped_scenario(name).workflows
        means: dict[str, float] = {"": 1.0}
        counts = dict.fromkeys(wanted, 0.0)
        for step in workflow.steps:
            means[step.name] = step.mean * means[step.after]
            counts[step.network] += means[step.name]
        assert counts == pytest.approx(wanted, rel=0.001)
    (crowded,) = shipped_scenario("eagleeye-crowded").workflows
    assert crowded.crowded_permille == 100


def test_unknown_scenarios_are_refused_with_near_ones() -> None:
    with pytest.raises(InvalidInputError, match="did you mean eagleeye"):
        shipped_scenario("eagle-eye")
