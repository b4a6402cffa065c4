"""Who is measured beside whom, and what follows from it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gapless.executor.progress import Step
from gapless.formulations.costs import Interference, NetworkContention
from gapless.formulations.errors import InvalidInputError, ProfilingError
from gapless.formulations.files import dump, parse
from gapless.formulations.hardware import Platform
from gapless.profiler.sampling import TimeBase
from gapless.profiler.slowdown.contention.measure import _measured_parts, measure_contention
from gapless.profiler.slowdown.contention.parts import PartContention, choose_parts, with_slices
from gapless.profiler.slowdown.contention.probe import PROBE
from gapless.profiler.slowdown.contention.result import CONTENTION, Calibration, ContentionOptions, Part
from gapless.profiler.slowdown.contention.ridge import Form
from gapless.profiler.slowdown.corun import unit_pairs
from gapless.profiler.slowdown.turns import CoRun
from tests.profiler.fakes import FakeEngine, FakeModel, Shelf

from .worlds import INTENSITY, SENSITIVITY, THREE, WorldBench, measured, network

OPTIONS = ContentionOptions(rounds=2, seconds_per_item=0.001)
ON_CORES = replace(THREE, units=THREE.units[:2])


def test_units_that_share_cores_are_not_measured_together() -> None:
    assert unit_pairs(THREE) == [
        ("big", "little"),
        ("big", "gpu"),
        ("little", "big"),
        ("little", "gpu"),
        ("gpu", "big"),
        ("gpu", "little"),
        ("gpu", "all"),
        ("all", "gpu"),
    ]
    units = {(one.victim_unit, one.aggressor_unit) for one in measured(WorldBench(), OPTIONS).coruns}
    assert units == set(unit_pairs(THREE))


def test_the_model_of_the_world_is_found() -> None:
    found = measured(WorldBench(), OPTIONS, platform=ON_CORES)
    base = found.interference.slowdown_permille
    assert base[0][0] == base[1][1] == 0
    assert base[0][1] == base[1][0] == pytest.approx(60, abs=1)
    for name in ("one", "two"):
        entry = found.interference.of(name)
        assert entry.intensity_permille == pytest.approx(1000 * INTENSITY[name], rel=0.01)
        assert entry.sensitivity_permille == pytest.approx(1000 * SENSITIVITY[name], rel=0.01)
    assert found.interference.is_high("two")
    assert not found.interference.is_high("one")
    assert found.pair_fit is not None
    assert found.pair_fit.explained == pytest.approx(1.0, abs=1e-3)
    assert found.caused("two") == pytest.approx(0.1 * 0.6 * 2.0, rel=1e-3)
    assert found.suffered("one") == pytest.approx(0.1 * 0.6 * 2.0 * 6.0, rel=1e-3)
    assert "100% of the variance" in found.interference.provenance.notes


def test_the_probe_alone_tells_nearly_the_same_in_fewer_coruns() -> None:
    bench, all_pairs = WorldBench(), WorldBench()
    found = measured(bench, replace(OPTIONS, pairs=False), platform=ON_CORES)
    measured(all_pairs, OPTIONS, platform=ON_CORES)
    assert len(bench.asked) < len(all_pairs.asked)
    assert found.pair_fit is None
    assert not any({one.victim, one.aggressor} == {"one", "two"} for one in found.coruns)
    said = found.interference.slowdown_of("one", 0, "two", 1)
    assert said == pytest.approx(1000 * 0.1 * 0.6 * 2.0 * 2.0, rel=0.02)
    assert found.interference.provenance.method == "co-runs with a memory probe"


def test_each_corun_is_measured_between_two_measurements_alone() -> None:
    bench = WorldBench()
    found = measured(bench, replace(OPTIONS, rounds=3), platform=ON_CORES)
    assert {len(one.alone_us) for one in found.coruns} == {6}
    jobs = bench.asked[len(ON_CORES.units) * 3 :]  # the first ones try out who can run what
    beside = [index for index, (_, _, load) in enumerate(jobs) if load]
    assert all(jobs[index - 1] == jobs[index + 1] == (*jobs[index][:2], ()) for index in beside)
    assert len(beside) == 2 * 3 * len(found.coruns)
    victims = {(one.victim, one.victim_unit) for one in found.coruns}
    assert len(jobs) == 2 * len(beside) + 3 * len(victims)  # times alone serve on both sides


def test_what_a_ledger_holds_is_not_measured_again() -> None:
    shelf, first, again = Shelf(), WorldBench(shares=(1.0, 0.95)), WorldBench()
    found = measured(first, OPTIONS, platform=ON_CORES, ledger=shelf)
    kept = measured(again, OPTIONS, platform=ON_CORES, ledger=shelf)
    assert kept.coruns == found.coruns
    assert "measurements kept from earlier" in kept.interference.provenance.notes
    assert len(again.asked) == len(ON_CORES.units) * 3  # it is tried out again who can run what


def test_cores_are_timed_by_the_time_that_they_worked() -> None:
    bench = WorldBench()
    measured(bench, OPTIONS)
    bases = {unit: effort.time_base for unit, effort in bench.efforts}
    assert bases["big"] is bases["all"] is TimeBase.BUSY
    assert bases["gpu"] is TimeBase.WALL


def test_the_probe_runs_on_cores_only() -> None:
    found = measured(WorldBench(), OPTIONS)
    places = {one.victim_unit for one in found.coruns if one.victim == PROBE}
    places |= {one.aggressor_unit for one in found.coruns if one.aggressor == PROBE}
    assert places == {"big", "little", "all"}
    assert [one.unit for one in found.calibrations] == ["big", "little", "all"]


def test_without_cores_networks_are_measured_beside_each_other_anyway() -> None:
    gpus = replace(THREE, units=(THREE.units[2], replace(THREE.units[2], name="npu")))
    found = measured(WorldBench(), replace(OPTIONS, pairs=False), platform=gpus)
    assert found.probe_fit is None
    assert found.calibrations == ()
    assert found.interference.slowdown_permille[0][1] > 0


def test_a_unit_that_cannot_run_a_network_is_left_out_and_named() -> None:
    found = measured(WorldBench(unable={"little": ["two"]}), OPTIONS, platform=ON_CORES)
    assert "unit 'little' cannot run 'two': two is not for little" in found.warnings
    places = {(one.victim, one.victim_unit) for one in found.coruns} | {
        (one.aggressor, one.aggressor_unit) for one in found.coruns
    }
    assert ("two", "big") in places
    assert ("two", "little") not in places
    with pytest.raises(ProfilingError, match=r"cannot run 'one'.*cannot run 'two'"):
        measured(
            WorldBench(unable={unit: ["one", "two", PROBE] for unit in ("big", "little")}),
            OPTIONS,
            platform=ON_CORES,
        )
    with pytest.raises(ProfilingError, match="cannot run 'one'"):
        measured(
            WorldBench(unable={unit: ["one", "two"] for unit in ("big", "little")}),
            OPTIONS,
            platform=ON_CORES,
        )


def test_parts_are_measured_against_the_probe() -> None:
    found = measured(WorldBench(), replace(OPTIONS, parts=2), platform=ON_CORES)
    assert [part.label for part in found.parts] == ["one[0:3)", "one[3:5)", "two[0:2)", "two[2:3)"]
    for part in found.parts:
        assert found.caused(part.label) == pytest.approx(found.caused(part.network))
        assert found.suffered(part.label) == pytest.approx(found.suffered(part.network))
    for entry in found.interference.networks:  # the parts of this world are all alike
        assert {(own.intensity_permille, own.sensitivity_permille) for own in entry.slices} == {
            (entry.intensity_permille, entry.sensitivity_permille)
        }
        assert [(own.start, own.stop) for own in entry.slices] == [
            (part.start, part.stop) for part in found.parts if part.network == entry.network
        ]
    assert {factors.network for factors in (found.probe_fit or found.pair_fit).networks} == {"one", "two"}  # type: ignore[union-attr]


def test_slices_have_what_their_parts_cause_and_suffer_and_the_mean_of_their_network() -> None:
    known = Interference(
        units=("a", "b"),
        slowdown_permille=((0, 100), (100, 0)),
        networks=(
            NetworkContention(network="one", intensity_permille=1500, sensitivity_permille=800),
            NetworkContention(network="two"),
        ),
    )
    first, second = (Part(network="one", start=start, stop=start + 2) for start in (0, 2))
    parts = [
        PartContention(part=first, time_us=30.0, causes=0.1, suffers=0.0),
        PartContention(part=second, time_us=10.0, causes=0.3, suffers=-0.02),
    ]
    one, two = with_slices(known, parts).networks
    # A mean of (30 x 0.1 + 10 x 0.3) / 40 = 0.15 stands for 1500.
    assert [own.intensity_permille for own in one.slices] == [1000, 3000]
    assert [own.sensitivity_permille for own in one.slices] == [800, 800]  # none stands out
    assert (one.intensity_permille, one.sensitivity_permille) == (1500, 800)
    assert two.slices == ()
    assert with_slices(known, [replace(parts[0], part=Part(network="new", start=0, stop=1))]) == known


def test_a_network_with_a_part_that_no_unit_runs_has_no_slices() -> None:
    found = measured(WorldBench(unable={"big": ["one"], "little": ["one"]}), replace(OPTIONS, parts=2))
    by_name = {entry.network: entry for entry in found.interference.networks}
    assert len(by_name["two"].slices) == 2
    beside = CoRun(
        victim="one[0:3)",
        aggressor=PROBE,
        victim_unit="big",
        aggressor_unit="gpu",
        alone_us=(10.0,),
        beside_us=(12.0,),
    )
    felt = replace(beside, victim=PROBE, aggressor="one[0:3)", victim_unit="gpu", aggressor_unit="big")
    parts = [Part(network="one", start=0, stop=3), Part(network="one", start=3, stop=5)]
    assert _measured_parts(parts, [beside, felt]) == []
    (whole,) = _measured_parts(parts[:1], [beside, felt])
    assert (whole.time_us, whole.causes, whole.suffers) == pytest.approx((10.0, 0.2, 0.2))


def test_parts_that_nobody_notices_are_told() -> None:
    options = replace(OPTIONS, parts=2)
    assert not any("parts of" in text for text in measured(WorldBench(), options, platform=ON_CORES).warnings)
    found = measured(WorldBench(base=1e-5), options, platform=ON_CORES)
    assert [text.split(":")[0] for text in found.warnings if "parts of" in text] == [
        "parts of one",
        "parts of two",
    ]


def test_parts_have_about_as_many_operations() -> None:
    model = FakeModel([4] * 11, forbidden=[6, 7])
    parts = choose_parts(model.network, count=3)  # layer i has i + 1 operations
    assert [(part.start, part.stop) for part in parts] == [(0, 5), (5, 8), (8, 10)]
    assert choose_parts(model.network, count=0) == ()
    assert len(choose_parts(model.network, count=50)) == 8


def test_counters_feed_a_regression() -> None:
    found = measured(WorldBench(counting=True), OPTIONS, platform=ON_CORES)
    assert [(entry.network, entry.unit) for entry in found.counted] == [
        ("one", "big"),
        ("two", "big"),
        ("one", "little"),
        ("two", "little"),
    ]
    assert found.regression is not None
    assert found.regression.error is not None
    light, heavy, *_ = found.regression.predict([entry.features.row for entry in found.counted])
    assert 0 < light < heavy < (found.caused("two") or 0) + 0.01


def test_without_counters_it_says_why_once() -> None:
    found = measured(WorldBench(), OPTIONS, platform=ON_CORES)
    assert [w for w in found.warnings if "counters" in w] == [
        "performance counters are not used on big, little: cycles cannot be counted: there are none"
    ]


def test_progress_is_told_and_counts_to_its_end() -> None:
    steps: list[Step] = []
    found = measured(WorldBench(), OPTIONS, platform=ON_CORES, steps=steps)
    victims = {(one.victim, one.victim_unit) for one in found.coruns}
    assert steps[-1].done == steps[-1].total == 2 * (len(victims) + 4 * len(found.coruns))
    assert steps[2].text.endswith("on big beside little")


def test_an_aggressor_that_others_hold_up_counts_as_if_it_always_ran() -> None:
    right = measured(WorldBench(), OPTIONS, platform=ON_CORES)
    held_up = measured(WorldBench(shares=(0.4, 0.9, 0.25)), OPTIONS, platform=ON_CORES)
    for one, other in zip(right.coruns, held_up.coruns, strict=True):
        assert other.slowdown == pytest.approx(0.9 * one.slowdown, rel=0.01)  # 0.9 is all it can have here
    assert any("of the cores of what ran in a loop" in words for words in held_up.warnings)
    assert not any("in a loop" in words for words in right.warnings)


def test_an_unsteady_probe_is_a_warning() -> None:
    steady = Calibration(unit="u", bytes_a_sweep=1000, sweeps_us=(10.0, 10.0, 10.0, 10.0))
    assert steady.bytes_per_s == pytest.approx(1e8)
    assert steady.spread == 0.0
    assert replace(steady, sweeps_us=(10.0, 14.0, 10.0, 15.0)).spread > 0.3
    assert replace(steady, sweeps_us=(10.0,)).spread == 0.0


@pytest.mark.slow
def test_what_was_measured_survives_its_file() -> None:
    for counting in (True, False):
        found = measured(WorldBench(counting=counting), replace(OPTIONS, parts=2))
        assert parse(dump(found, CONTENTION).encode(), CONTENTION, name="x") == found


@pytest.mark.parametrize(
    ("names", "units", "message"),
    [
        ((), THREE.units, "no network is given"),
        (("a", "b", "a"), THREE.units, "a name of its own, which 'a' is not"),
        ((PROBE,), THREE.units, f"which '{PROBE}' is not"),
        (("a",), THREE.units[:1], "no two of the units big can run at once"),
        (("a",), (THREE.units[0], THREE.units[3]), "no two of the units big, all"),
    ],
)
def test_what_cannot_be_measured_is_refused(
    names: tuple[str, ...], units: tuple[object, ...], message: str
) -> None:
    platform = Platform(name="some", units=units)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match=message):
        measure_contention([network(name, 3) for name in names], platform, FakeEngine())


@pytest.mark.parametrize(
    "wrong",
    [{"rounds": 0}, {"rounds": 1001}, {"seconds_per_item": 0.0}, {"parts": -1}, {"percentile": 101}],
)
def test_options_have_ranges(wrong: dict[str, int]) -> None:
    with pytest.raises(InvalidInputError, match=next(iter(wrong))):
        ContentionOptions(**wrong)  # type: ignore[arg-type]


def test_a_network_that_was_not_measured_is_estimated_from_counters() -> None:
    """What it slows the probe by is linear in the features here, so that its intensity comes out."""
    bench = WorldBench(counting=True)
    found = measured(bench, OPTIONS, platform=ON_CORES, estimated=["new"])
    assert found.networks == ("one", "two")
    assert found.estimated == ("new",)
    assert not any("new" in (one.victim, one.aggressor) for one in found.coruns)
    assert found.interference.of("new").intensity_permille == pytest.approx(1000 * INTENSITY["new"], rel=0.2)
    assert parse(dump(found, CONTENTION).encode(), CONTENTION, name="estimated") == found


def test_without_counters_nothing_is_estimated() -> None:
    with pytest.raises(ProfilingError, match=r"'new' cannot be estimated.*cycles cannot be counted"):
        measured(WorldBench(), OPTIONS, platform=ON_CORES, estimated=["new"])


def test_the_printed_form_can_be_asked_for() -> None:
    found = measured(WorldBench(counting=True), replace(OPTIONS, form=Form.PRINTED), platform=ON_CORES)
    assert found.regression is not None
    assert found.regression.offset == 0.0
