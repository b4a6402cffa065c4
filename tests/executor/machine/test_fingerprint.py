"""What tells machines apart, how much memory they have, how busy they are, what may be counted."""

from __future__ import annotations

import errno
import json
import os
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from gapless.executor.machine.counters import counters_availability, explain_errno
from gapless.executor.machine.kernel_files import boot_id, started_at
from gapless.executor.machine.state import fingerprint, machine_load, total_bytes, usable_bytes
from tests.executor.machine.machines import pixel, silent, write

GIB = 2**30
X86 = "processor\t: 0\nmodel name\t: Some Processor 3000\ncpu cores\t: 2\n"
ARM = "processor\t: 0\nCPU part\t: 0xd05\nprocessor\t: 1\nCPU part\t: 0xd44\nSerial\t\t: 00000000deadbeef\n"


def machine(root: Path, *, cpuinfo: str, memory_kib: int = 8_000_000) -> Path:
    """Return a root with what /proc says of a machine."""
    write(root / "proc/cpuinfo", cpuinfo)
    write(root / "proc/meminfo", f"MemTotal:       {memory_kib} kB\nMemFree:  1 kB")
    return root


def test_a_fingerprint_is_one_line_and_stays(tmp_path: Path) -> None:
    root = machine(tmp_path, cpuinfo=X86)
    first = fingerprint(topology=pixel(tmp_path / "sys"), root=root)
    assert first.model == "Some Processor 3000"
    assert first.cores == tuple(range(8))
    text = str(first)
    assert "big 6-7 (capacity 1024, 2.85 GHz)" in text
    assert "7.6 GiB" in text
    assert text.endswith(f"[{first.digest}]")
    assert "\n" not in text
    assert len(first.digest) == 12
    assert fingerprint(root=root).architecture == first.architecture


def test_the_digest_changes_with_the_hardware_and_not_with_the_software(tmp_path: Path) -> None:
    root = machine(tmp_path, cpuinfo=X86)
    first = fingerprint(topology=pixel(tmp_path / "a"), root=root)
    assert replace(first, system="Linux 99", python="3.99").digest == first.digest
    assert replace(first, memory_bytes=(first.memory_bytes or 0) - 10_000_000).digest == first.digest
    changed = [
        replace(first, model="another"),
        replace(first, memory_bytes=16 * GIB),
        replace(first, memory_bytes=None),
        fingerprint(topology=pixel(tmp_path / "b", usable=range(7)), root=root),
        fingerprint(topology=silent(tmp_path / "c", 8), root=root),
    ]
    assert first.digest not in {other.digest for other in changed}


def test_processors_are_named_by_what_the_kernel_says(tmp_path: Path) -> None:
    root = machine(tmp_path, cpuinfo=ARM)
    assert fingerprint(root=root).model == "part 0xd05 + part 0xd44"
    write(root / "proc/device-tree/model", "Some Board Rev 1.4\0")
    assert fingerprint(root=root).model == "Some Board Rev 1.4"


def test_nothing_in_it_is_private(tmp_path: Path) -> None:
    found = json.dumps(asdict(fingerprint())) + str(fingerprint())
    secrets = [os.uname().nodename, *(path.read_text().strip() for path in _identities())]
    assert [secret for secret in secrets if len(secret) > 3 and secret in found] == []
    assert "deadbeef" not in str(fingerprint(root=machine(tmp_path, cpuinfo=ARM)))


def _identities() -> list[Path]:
    files = ["/etc/machine-id", "/proc/sys/kernel/random/boot_id", "/sys/class/dmi/id/product_uuid"]
    return [Path(name) for name in files if os.access(name, os.R_OK)]


def test_an_unknown_machine_has_a_fingerprint(tmp_path: Path) -> None:
    found = fingerprint(topology=silent(tmp_path, 2), root=tmp_path)
    assert found.memory_bytes is None
    assert found.model
    assert "cores 0-1" in str(found)


def test_memory_is_the_whole_less_a_reserve(tmp_path: Path) -> None:
    assert usable_bytes(root=tmp_path) is None
    machine(tmp_path, cpuinfo=X86, memory_kib=8 * 2**20)
    assert total_bytes(root=tmp_path) == 8 * GIB
    assert usable_bytes(root=tmp_path) == 7 * GIB


@pytest.mark.parametrize(
    ("mount", "own", "limits", "expected"),
    [
        ("- cgroup2 cgroup2 rw", "0::/a/b", {"a/memory.max": 2 * GIB, "a/b/memory.max": "max"}, 2 * GIB),
        ("- cgroup2 cgroup2 rw", "0::/a/b", {"a/memory.max": 20 * GIB}, 7 * GIB),
        ("- cgroup cgroup rw,memory", "4:memory:/a/b", {"a/b/memory.limit_in_bytes": GIB}, GIB),
        ("- cgroup cgroup rw,memory", "4:memory:/a/b", {"memory.limit_in_bytes": 2**63 - 4096}, 7 * GIB),
    ],
)
def test_the_limit_of_a_container_counts(
    tmp_path: Path, mount: str, own: str, limits: dict[str, object], expected: int
) -> None:
    root = machine(tmp_path, cpuinfo=X86, memory_kib=8 * 2**20)
    write(root / "proc/self/mountinfo", f"36 31 0:33 / /cg rw {mount}")
    write(root / "proc/self/cgroup", own)
    write(root / "cg/a/b/cgroup.controllers", "cpu memory")
    for name, value in limits.items():
        write(root / "cg" / name, value)
    assert usable_bytes(root=root) == expected


def test_load_is_the_busy_share_of_the_usable_cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moments = [
        "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 100 0 10 500 5 0 0 0 0 0\ncpu1 7 0 0 7 0 0 0 0 0 0",
        "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 120 0 20 560 10 0 1 4 20 0\ncpu1 99 0 0 7 0 0 0 0 0 0",
    ]

    def pass_time(seconds: float) -> None:
        write(tmp_path / "stat", moments[1])

    write(tmp_path / "stat", moments[0])
    monkeypatch.setattr("gapless.executor.machine.state.time.sleep", pass_time)
    assert machine_load(cores=[0], proc=tmp_path) == pytest.approx(35 / 100)


def test_a_system_that_hides_its_load_says_nothing(tmp_path: Path) -> None:
    assert machine_load(interval_s=0, proc=tmp_path) is None
    write(tmp_path / "stat", "cpu0 1 1 1 1 1 1 1 1 0 0")
    assert machine_load(interval_s=0, cores=[0], proc=tmp_path) is None  # no time has passed


@pytest.mark.skipif(machine_load(interval_s=0.01) is None, reason="this system hides its load")
def test_the_load_of_this_machine_is_a_share() -> None:
    assert 0.0 <= (machine_load(interval_s=0.05) or 0.0) <= 1.0


def test_counters_are_there_or_a_reason_is() -> None:
    found = counters_availability()
    assert found.ok != bool(found.reason)


def test_refused_counters_say_what_to_do(tmp_path: Path) -> None:
    write(tmp_path / "sys/kernel/perf_event_paranoid", 4)
    assert "perf_event_paranoid is 4; `sudo sysctl" in explain_errno(errno.EACCES, proc=tmp_path)
    assert "perf_event_paranoid is unknown" in explain_errno(errno.EPERM, proc=tmp_path / "none")
    assert "virtual machines" in explain_errno(errno.ENOENT)
    assert "EMFILE" in explain_errno(errno.EMFILE)


def test_a_process_is_told_from_a_later_one(tmp_path: Path) -> None:
    assert (started_at(os.getpid()) or 0) > 0
    assert started_at(2**22 + 1) is None
    write(tmp_path / "7/stat", "7 (a) b) S 1 7 7 0 -1 4 1 2 3 4 5 6 7 8 20 0 1 0 4711 99 3")
    assert started_at(7, proc=tmp_path) == 4711
    write(tmp_path / "7/stat", "7 (a) Z 1 7 7 0 -1 4 1 2 3 4 5 6 7 8 20 0 1 0 4711 99 3")
    assert started_at(7, proc=tmp_path) is None
    assert boot_id() == boot_id()
    assert boot_id(proc=tmp_path) is None
