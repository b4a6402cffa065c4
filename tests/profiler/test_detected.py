"""The machine at hand as a platform, for machines that exist in files only, and for this one."""

from __future__ import annotations

from pathlib import Path

import pytest

from gapless.executor.machine.cores import read_topology, usable_cores
from gapless.formulations.availability import Availability
from gapless.formulations.errors import InvalidInputError, PlacementError
from gapless.formulations.hardware import MAX_UNITS, Platform, UnitKind
from gapless.profiler.platforms import detected
from gapless.profiler.platforms.detected import MAX_CORE_UNITS, detect_platform, select_units
from tests.executor.machine.machines import add_core, desktop, pixel, server, silent, snapdragon


def cores(platform: Platform) -> dict[str, tuple[int, ...]]:
    """Return the cores of each unit, in order."""
    return {unit.name: unit.cores for unit in platform.units}


@pytest.fixture
def permitted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretend that quotas are permitted."""
    monkeypatch.setattr(detected, "quota_availability", lambda: Availability(ok=True))


def test_a_phone_has_clusters_then_cores_then_all(tmp_path: Path) -> None:
    platform = detect_platform(topology=pixel(tmp_path))
    assert platform.unit_names == (
        *("big", "medium", "little"),
        *("core6", "core7", "core4", "core5", "core0", "core1", "core2", "core3"),
        "all",
    )
    assert cores(platform)["little"] == (0, 1, 2, 3)
    assert all(unit.threads == len(unit.cores) for unit in platform.units)
    assert {unit.kind for unit in platform.units} == {UnitKind.CPU}


def test_units_that_share_a_core_exclude_each_other(tmp_path: Path) -> None:
    platform = detect_platform(topology=pixel(tmp_path))
    pairs = {(platform.unit_names[u], platform.unit_names[v]) for u, v in platform.conflicts}
    assert ("big", "core6") in pairs
    assert ("big", "all") in pairs
    assert ("big", "little") not in pairs
    assert ("core6", "core7") not in pairs


def test_a_cluster_of_one_core_keeps_the_name_of_its_speed(tmp_path: Path) -> None:
    found = cores(detect_platform(topology=snapdragon(tmp_path)))
    assert found["big"] == (7,)
    assert "core7" not in found
    assert len(set(found.values())) == len(found)


@pytest.mark.parametrize(
    ("count", "expected"),
    [(1, ["core0"]), (2, ["core0", "core1", "all"]), (3, ["core0", "core1", "core2", "all"])],
)
def test_a_machine_of_equal_cores_has_no_unit_twice(tmp_path: Path, count: int, expected: list[str]) -> None:
    assert list(cores(detect_platform(topology=silent(tmp_path, count)))) == expected


def test_packages_of_one_core_are_cores(tmp_path: Path) -> None:
    for number in range(2):
        add_core(tmp_path, number, package=number)
    topology = read_topology(root=tmp_path, usable=range(2))
    assert list(cores(detect_platform(topology=topology))) == ["core0", "core1", "all"]


def test_groups_that_share_a_cache_are_units(tmp_path: Path) -> None:
    found = cores(detect_platform(topology=desktop(tmp_path)))
    assert found["cluster1"] == (4, 5, 6, 7)
    assert list(found)[-1] == "all"


def test_one_thread_of_each_physical_core_is_used(tmp_path: Path) -> None:
    found = cores(detect_platform(topology=server(tmp_path, cores=4)))
    assert found["all"] == tuple(range(8))
    assert found["cluster0"] == (0, 1, 2, 3)
    assert "core8" not in found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("a_package", "group"), [(8, "core0"), (9, "cores0-1"), (32, "cores0-3"), (96, "cores0-15")]
)
def test_the_cores_of_a_server_are_taken_together(tmp_path: Path, a_package: int, group: str) -> None:
    platform = detect_platform(topology=server(tmp_path, cores=a_package))
    single = [unit for unit in platform.units if unit.name.startswith("core")]
    assert single[0].name == group
    assert len(single) <= MAX_CORE_UNITS
    assert sorted(core for unit in single for core in unit.cores) == list(range(2 * a_package))


def test_there_are_never_too_many_units(tmp_path: Path) -> None:
    for number in range(200):
        add_core(tmp_path, number, package=number // 2, siblings=[number])
    topology = read_topology(root=tmp_path, usable=range(200))
    platform = detect_platform(topology=topology, backends=("cpu", "opencl", "nnapi", "fpga"))
    assert len(platform.units) <= MAX_UNITS
    assert cores(platform)["all"] == tuple(range(200))
    assert platform.unit_names[-3:] == ("opencl", "nnapi", "fpga")


def test_backends_become_one_unit_for_each_kind(tmp_path: Path) -> None:
    platform = detect_platform(topology=silent(tmp_path, 1), backends=("cpu", "vulkan", "opencl", "nnapi"))
    core, gpu, npu = platform.units
    assert (gpu.name, gpu.kind, gpu.cores, gpu.threads) == ("vulkan", UnitKind.GPU, (), None)
    assert gpu.engine.backend == "vulkan"
    assert (npu.name, npu.kind) == ("nnapi", UnitKind.NPU)
    assert core.engine.backend == "cpu"
    assert platform.conflicts == ()


@pytest.mark.usefixtures("permitted")
def test_an_emulated_unit_drives_out_what_contradicts_it(tmp_path: Path) -> None:
    platform = detect_platform(
        topology=pixel(tmp_path), backends=("cpu", "opencl"), emulate={"core6": 500, "little": 250}
    )
    assert platform.unit_names == ("medium", "little", "core6", "core7", "core4", "core5", "opencl")
    quotas = {unit.name: unit.quota_permille for unit in platform.units if unit.emulated}
    assert quotas == {"core6": 500, "little": 250}
    assert "core6 with 500 permille" in platform.source
    assert "full speed: big, core0, core1, core2, core3, all" in platform.source


@pytest.mark.usefixtures("permitted")
@pytest.mark.parametrize(
    ("emulate", "message"),
    [
        ({"core9": 500, "core77": 1}, r"(?s)has the units big.*'core9'; did you mean.*'core77'"),
        ({"big": 500, "core6": 500}, "units 'big' and 'core6' share cores"),
        ({"vulkan": 500}, "'vulkan' is not made of cores"),
        ({"core6": 0}, "quota_permille is 0, must be between 1 and 1000"),
        ({"core6": 1001}, "quota_permille is 1001"),
    ],
)
def test_what_cannot_be_emulated_is_refused(tmp_path: Path, emulate: dict[str, int], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        detect_platform(topology=pixel(tmp_path), backends=("cpu", "vulkan"), emulate=emulate)


def test_emulation_without_permission_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    denied = Availability(ok=False, reason="cannot make /cg/x: run gapless as root")
    monkeypatch.setattr(detected, "quota_availability", lambda: denied)
    with pytest.raises(PlacementError, match="core1 cannot be emulated: cannot make /cg/x: run gapless as"):
        detect_platform(topology=silent(tmp_path, 2), emulate={"core1": 500})


def test_units_are_selected_by_name(tmp_path: Path) -> None:
    platform = detect_platform(topology=pixel(tmp_path))
    chosen = select_units(platform, ["core7", "little"])
    assert chosen.unit_names == ("core7", "little")
    assert chosen.memory_bytes == platform.memory_bytes
    with pytest.raises(InvalidInputError, match=r"(?s)has the units big, .*'litle'; did you mean little\?"):
        select_units(platform, ["core7", "litle"])


def test_this_machine_is_a_platform() -> None:
    platform = detect_platform()
    assert {core for unit in platform.units for core in unit.cores} <= set(usable_cores())
    assert platform.name.isascii()
    assert platform.source.startswith("detected on ")
    assert detect_platform() == platform


def test_a_system_without_pinning_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detected, "pinning", lambda: Availability(ok=False, reason="cannot pin"))
    with pytest.raises(PlacementError, match="cannot pin"):
        detect_platform()
