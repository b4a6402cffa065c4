"""Cores and clusters, on machines that exist in files only."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from gapless.executor.machine.cores import (
    Core,
    Topology,
    group_cores,
    pinning,
    read_topology,
    threads_of_process,
    usable_cores,
)
from gapless.executor.machine.kernel_files import format_cores, parse_cores, read_cores, read_number
from tests.executor.machine.machines import add_core, desktop, pixel, server, silent, snapdragon, write


def clusters(topology: Topology) -> dict[str, str]:
    """Return the cores of each cluster, fast to slow."""
    return {cluster.name: format_cores(cluster.cores) for cluster in topology.clusters}


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (pixel, {"big": "6-7", "medium": "4-5", "little": "0-3"}),
        (snapdragon, {"big": "7", "medium": "4-6", "little": "0-3"}),
        (server, {"cluster0": "0-7,16-23", "cluster1": "8-15,24-31"}),
        (desktop, {"cluster0": "0-3", "cluster1": "4-7"}),
        (lambda root: silent(root, 4), {"cluster": "0-3"}),
    ],
)
def test_clusters_are_named_by_speed(
    tmp_path: Path, build: Callable[[Path], Topology], expected: dict[str, str]
) -> None:
    found = clusters(build(tmp_path))
    assert found == expected
    assert list(found) == list(expected)


def test_what_the_kernel_says_of_a_core_is_kept(tmp_path: Path) -> None:
    add_core(tmp_path, 3, capacity=498, khz=2_348_000, package=0, siblings=(3, 7), last_cache=(3, 7), level=2)
    (tmp_path / "devices/system/cpu/cpu3/node1").mkdir()
    (core,) = read_topology(root=tmp_path, usable=[3]).cores
    assert (core.number, core.capacity, core.max_khz, core.package, core.node) == (3, 498, 2_348_000, 0, 1)
    assert core.siblings == (3, 7)
    assert [(cache.level, cache.kind, cache.size_bytes) for cache in core.caches] == [
        (1, "data", 32 * 2**10),
        (2, "unified", 2 * 2**20),
    ]
    assert core.last_cache is not None
    assert core.last_cache.cores == (3, 7)


def test_only_cores_that_may_be_used_count(tmp_path: Path) -> None:
    topology = pixel(tmp_path, usable=[1, 2, 6])
    assert clusters(topology) == {"big": "6", "little": "1-2"}
    assert topology.physical == (1, 2, 6)


def test_cores_that_are_offline_are_left_out(tmp_path: Path) -> None:
    pixel(tmp_path)
    for number, online in ((4, 0), (5, 1), (7, 0)):
        write(tmp_path / f"devices/system/cpu/cpu{number}/online", online)
    topology = read_topology(root=tmp_path, usable=range(8))
    assert clusters(topology) == {"big": "6", "medium": "5", "little": "0-3"}


def test_one_thread_stands_for_each_physical_core(tmp_path: Path) -> None:
    assert server(tmp_path / "all").physical == tuple(range(16))
    assert server(tmp_path / "some", usable=[2, 18, 19, 20]).physical == (2, 19, 20)


def test_a_speed_counts_only_where_it_is_known_of_all(tmp_path: Path) -> None:
    pixel(tmp_path)
    (tmp_path / "devices/system/cpu/cpu5/cpu_capacity").unlink()
    assert clusters(read_topology(root=tmp_path, usable=range(8)))["medium"] == "4-5"  # by frequency
    (tmp_path / "devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq").write_text("unknown")
    assert clusters(read_topology(root=tmp_path, usable=range(8))) == {"cluster": "0-7"}


def test_caches_of_one_physical_core_divide_nothing() -> None:
    alone = [Core(number=n, package=0, siblings=(n,)) for n in range(4)]
    assert len(group_cores(alone)) == 1


def test_many_speeds_are_counted(tmp_path: Path) -> None:
    for number in range(10):
        add_core(tmp_path, number, capacity=1024 - 100 * (number // 2), package=0)
    names = clusters(read_topology(root=tmp_path, usable=range(10)))
    assert list(names) == ["speed0", "speed1", "speed2", "speed3", "speed4"]
    assert names["speed4"] == "8-9"


def test_a_cluster_says_its_speed(tmp_path: Path) -> None:
    big, *_ = pixel(tmp_path).clusters
    assert str(big) == "big 6-7 (capacity 1024, 2.85 GHz)"
    assert str(silent(tmp_path / "vm", 2).clusters[0]) == "cluster 0-1"


@pytest.mark.parametrize("text", ["0", "0-3", "0-3,8", "1,3,5-7"])
def test_core_lists_survive_the_journey(text: str) -> None:
    assert format_cores(parse_cores(text)) == text


def test_files_that_say_nothing_are_absent(tmp_path: Path) -> None:
    write(tmp_path / "garbage", "0-x")
    assert read_number(tmp_path / "none") is None
    assert read_number(tmp_path / "garbage") is None
    assert read_cores(tmp_path / "garbage") == ()
    assert format_cores(()) == "none"


def test_cores_of_threads_are_read_from_the_kernel(tmp_path: Path) -> None:
    for thread, cores in ((70, "0-1"), (71, "1")):
        write(
            tmp_path / f"7/task/{thread}/status", f"Name:\tx\nCpus_allowed:\t3\nCpus_allowed_list:\t{cores}"
        )
    (tmp_path / "7/task/72").mkdir()  # ends just now
    assert threads_of_process(7, proc=tmp_path) == {70: (0, 1), 71: (1,)}
    assert threads_of_process(8, proc=tmp_path) == {}


@pytest.mark.skipif(not pinning().ok, reason="this system cannot pin processes")
def test_this_process_was_granted_its_usable_cores() -> None:
    assert usable_cores() == tuple(sorted(os.sched_getaffinity(0)))
    assert set(usable_cores()) <= set().union(*threads_of_process().values())
    topology = read_topology()
    assert tuple(core.number for core in topology.cores) == usable_cores()
    assert sorted(n for cluster in topology.clusters for n in cluster.cores) == list(usable_cores())


def test_a_system_without_pinning_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_setaffinity", raising=False)
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert "cannot pin" in pinning().reason
    assert usable_cores() == tuple(range(os.cpu_count() or 1))
