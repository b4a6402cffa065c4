"""Quotas: where groups are made, what the kernel may refuse, and real ones where they are permitted."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gapless.executor.machine import quota
from gapless.executor.machine.kernel_files import started_at
from gapless.executor.machine.quota import (
    MIN_QUOTA_US,
    CpuGroupsV1,
    CpuGroupsV2,
    CpuQuota,
    choose_period_us,
    find_cpu_groups,
    group_name,
    kernel_tick_us,
    quota_availability,
)
from gapless.executor.workers import Worker
from gapless.formulations.errors import PlacementError
from gapless.formulations.hardware import ProcessingUnit, UnitKind
from tests.executor.machine.machines import write

PERMITTED = quota_availability()
CORE = min(os.sched_getaffinity(0))
GROUP = group_name(7)
CONTROLS = {
    1: {"cgroup.procs": "", "cpu.cfs_quota_us": "-1", "cpu.cfs_period_us": "100", "cpu.stat": ""},
    2: {"cgroup.procs": "", "cgroup.type": "domain", "cpu.max": "max 100", "cpu.stat": ""},
}
V1 = "33 31 0:30 / /cg/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
V2 = "41 31 0:38 / /cg/unified rw shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have groups appear with control files, and vanish with them, as under a real kernel."""
    make = Path.mkdir

    def mkdir(folder: Path, *options: Any, **more: Any) -> None:
        make(folder, *options, **more)
        if folder.name == GROUP:
            for name, value in CONTROLS[1 if "cpuacct" in str(folder) else 2].items():
                (folder / name).write_text(f"{value}\n")

    monkeypatch.setattr(Path, "mkdir", mkdir)
    monkeypatch.setattr(Path, "rmdir", shutil.rmtree)
    yield
    monkeypatch.undo()


def machine(root: Path, *, mounts: str, own: str) -> Path:
    """Return a root with what /proc says of mounts and of the own groups."""
    write(root / "proc/self/mountinfo", "22 1 0:21 / /proc rw - proc proc rw\n" + mounts.strip())
    write(root / "proc/self/cgroup", own)
    return root


def v1_machine(root: Path) -> tuple[CpuGroupsV1, Path]:
    folder = root / "cg/cpu,cpuacct/box"
    folder.mkdir(parents=True)
    groups = find_cpu_groups(root=machine(root, mounts=V2 + V1, own="4:cpu,cpuacct:/box\n0::/"))
    assert isinstance(groups, CpuGroupsV1)
    return groups, folder


def v2_machine(root: Path, *, group: str = "user/scope", controls: str = "") -> tuple[CpuGroupsV2, Path]:
    folder = root / "cg/unified" / group
    write(folder / "cgroup.controllers", "cpuset cpu memory")
    write(folder / "cgroup.subtree_control", controls)
    if group:
        write(folder / "cgroup.type", "domain")
    groups = find_cpu_groups(root=machine(root, mounts=V2, own=f"0::/{group}"))
    assert isinstance(groups, CpuGroupsV2)
    return groups, folder


def test_version_1_is_found_beside_version_2(tmp_path: Path) -> None:
    groups, folder = v1_machine(tmp_path)
    assert groups.folder == folder
    assert groups.mechanism == "cgroup v1"


def test_version_2_is_found_where_it_has_the_controller(tmp_path: Path) -> None:
    groups, folder = v2_machine(tmp_path)
    assert groups.folder == folder
    assert groups.mechanism == "cgroup v2"
    write(folder / "cgroup.controllers", "memory pids")
    with pytest.raises(PlacementError, match="no mounted hierarchy offers it"):
        find_cpu_groups(root=tmp_path)


def test_a_container_sees_a_part_of_the_hierarchy(tmp_path: Path) -> None:
    mounts = "33 31 0:30 /docker/a\\040b /cg/my\\040cpu rw - cgroup cgroup rw,cpu\n"
    root = machine(tmp_path, mounts=mounts, own="4:cpu:/docker/a b/inner\n")
    assert find_cpu_groups(root=root).folder == tmp_path / "cg/my cpu/inner"
    write(root / "proc/self/cgroup", "4:cpu:/elsewhere")  # outside what is mounted: its top stands for it
    assert find_cpu_groups(root=root).folder == tmp_path / "cg/my cpu"


def test_a_system_without_groups_is_refused_with_advice(tmp_path: Path) -> None:
    with pytest.raises(PlacementError, match=r"systemd-run --user --scope -p Delegate=yes"):
        find_cpu_groups(root=tmp_path)


@pytest.mark.usefixtures("kernel")
def test_version_1_gets_period_and_quota(tmp_path: Path) -> None:
    groups, folder = v1_machine(tmp_path)
    group = groups.make(GROUP, quota_us=2000, period_us=4000)
    assert group.parent == folder
    assert (group / "cpu.cfs_quota_us").read_text().strip() == "2000"
    assert (group / "cpu.cfs_period_us").read_text().strip() == "4000"
    write(group / "cpu.stat", "nr_periods 5\nnr_throttled 3\nthrottled_time 7654321")
    assert groups.throttled_us(group) == 7654
    groups.remove(group)
    assert not group.exists()
    assert groups.throttled_us(group) is None


@pytest.mark.usefixtures("kernel")
def test_version_2_makes_a_threaded_group_and_undoes_it(tmp_path: Path) -> None:
    groups, folder = v2_machine(tmp_path)
    group = groups.make(GROUP, quota_us=2000, period_us=4000)
    assert (group / "cpu.max").read_text().strip().startswith("2000 4000")
    assert (group / "cgroup.type").read_text().startswith("threaded")
    assert (folder / "cgroup.subtree_control").read_text().startswith("+cpu")
    write(group / "cpu.stat", "usage_usec 5\nthrottled_usec 77")
    assert groups.throttled_us(group) == 77
    groups.remove(group)
    assert (folder / "cgroup.subtree_control").read_text().startswith("-cpu")


@pytest.mark.usefixtures("kernel")
def test_the_root_of_all_groups_is_left_as_it_is(tmp_path: Path) -> None:
    groups, folder = v2_machine(tmp_path, group="", controls="cpu memory")
    group = groups.make(GROUP, quota_us=2000, period_us=4000)
    assert (group / "cgroup.type").read_text().startswith("domain")
    groups.remove(group)
    assert (folder / "cgroup.subtree_control").read_text() == "cpu memory\n"


@pytest.mark.usefixtures("kernel")
def test_groups_of_the_dead_are_swept_and_those_of_the_living_kept(tmp_path: Path) -> None:
    groups, folder = v1_machine(tmp_path)
    pid, start = os.getpid(), started_at(os.getpid())
    for name in (f"gapless-{pid}-1-0", "gapless-4194305-7-0", f"gapless-{pid}-{start}-9", "gapless-else"):
        write(folder / name / "cgroup.procs", "")
    groups.make(GROUP, quota_us=2000, period_us=4000)
    left = {path.name for path in folder.iterdir()}
    assert left == {f"gapless-{pid}-{start}-9", "gapless-else", GROUP}


@pytest.mark.usefixtures("kernel")
def test_what_the_kernel_lacks_is_told_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups, folder = v1_machine(tmp_path)
    monkeypatch.delitem(CONTROLS[1], "cpu.cfs_quota_us")
    with pytest.raises(PlacementError, match=r"write '2000' to .*_quota_us: .*ENOENT.*CONFIG_CFS_BANDWIDTH"):
        groups.make(GROUP, quota_us=2000, period_us=4000)
    assert list(folder.iterdir()) == []


@pytest.mark.usefixtures("kernel")
def test_a_quota_that_reads_back_otherwise_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups, folder = v1_machine(tmp_path)
    monkeypatch.setattr(quota, "write_control", lambda path, text: None)
    with pytest.raises(PlacementError, match=r"asked for .*\(2000, 4000\), but found \(-1, 100\)"):
        groups.make(GROUP, quota_us=2000, period_us=4000)
    assert list(folder.iterdir()) == []


def test_a_missing_permission_is_told_with_path_and_advice(tmp_path: Path) -> None:
    groups = CpuGroupsV1(folder=tmp_path / "gone")
    with pytest.raises(PlacementError, match=r"make .*gone: No such file.*ENOENT"):
        groups.make(GROUP, quota_us=2000, period_us=4000)
    denied = quota.refusal(Path("/cg/x"), PermissionError(13, "Permission denied"))
    assert "cannot make /cg/x: Permission denied (EACCES); run gapless as root" in str(denied)


def test_a_system_without_permission_is_a_reason_not_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> CpuGroupsV1:
        raise PlacementError("no way")

    monkeypatch.setattr("gapless.executor.machine.quota.find_cpu_groups", refuse)
    assert quota_availability().reason == "no way"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert "Linux" in quota_availability().reason


@pytest.mark.parametrize("permille", [1, 7, 100, 250, 333, 500, 999, 1000, 8000])
def test_the_period_leaves_the_least_quota_and_the_longest_period(permille: int) -> None:
    period_us = choose_period_us(permille, tick_us=4000)
    assert permille * period_us // 1000 >= MIN_QUOTA_US
    assert 8000 <= period_us <= 1_000_000
    assert period_us == 8000 or permille * (period_us - 1) // 1000 < MIN_QUOTA_US


def test_the_tick_is_that_of_a_kernel() -> None:
    assert 1000 <= kernel_tick_us() <= 10_000


needs_quota = pytest.mark.skipif(not PERMITTED.ok, reason=f"quotas are not permitted: {PERMITTED.reason}")


@needs_quota
def test_a_worker_is_held_back_for_real() -> None:
    unit = ProcessingUnit(name="slow", kind=UnitKind.CPU, cores=(CORE,), threads=1, quota_permille=300)
    with Worker(unit, "tests.executor.machine.roles:burn", {}) as worker:
        worker.expect("ready")
        worker.send({"kind": "burn", "seconds": 0.3})
        done = worker.expect("done")
        assert any("/gapless-" in line for line in done["groups"])
        assert done["share"] < 0.6
    assert f"gapless-{os.getpid()}-" not in _groups_left()


@needs_quota
def test_the_time_held_back_is_counted() -> None:
    quota = CpuQuota.create(50, cores=1)
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        try:
            quota.add(process.pid)
            until = time.monotonic() + 60
            while not quota.throttled_us() and time.monotonic() < until:
                time.sleep(0.02)
            assert (quota.throttled_us() or 0) > 0
        finally:
            process.kill()
    quota.close()
    quota.close()
    assert quota.throttled_us() is None
    assert (quota.mechanism, quota.quota_us) == (PERMITTED.version, MIN_QUOTA_US)


@needs_quota
def test_a_process_that_is_gone_cannot_be_held_back() -> None:
    quota = CpuQuota.create(500, cores=1)
    try:
        with pytest.raises(PlacementError, match="No such process"):
            quota.add(2**22 + 1)
    finally:
        quota.close()


@needs_quota
def test_groups_of_a_killed_gapless_are_removed_by_the_next() -> None:
    code = (
        "import time\n"
        "from gapless.executor.machine.quota import CpuQuota\n"
        "quota = CpuQuota.create(500, cores=1)\n"
        "print('made', flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "made\n"
        mark = f"gapless-{process.pid}-"
        assert mark in _groups_left()
        process.send_signal(signal.SIGKILL)
    CpuQuota.create(500, cores=1).close()
    assert mark not in _groups_left()


def _groups_left() -> str:
    """Return the names of all groups of gapless processes; others may be at work."""
    return " ".join(path.name for path in find_cpu_groups().folder.glob("gapless-*"))
