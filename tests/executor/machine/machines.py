"""Machines in files: what their kernels would say under /sys."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from gapless.executor.machine.cores import Topology, read_topology
from gapless.executor.machine.kernel_files import format_cores


def write(path: Path, value: object) -> None:
    """Write a small file as the kernel does, with a line break, and at once: somebody may be reading it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    new.write_text(f"{value}\n")
    new.replace(path)


def add_core(
    root: Path,
    number: int,
    *,
    capacity: int | None = None,
    khz: int | None = None,
    package: int | None = None,
    siblings: Iterable[int] = (),
    last_cache: Iterable[int] = (),
    level: int = 3,
) -> None:
    """Write the files of one core; a first level cache of its own comes with the last one."""
    folder = root / f"devices/system/cpu/cpu{number}"
    folder.mkdir(parents=True)
    for name, value in (
        ("cpu_capacity", capacity),
        ("cpufreq/cpuinfo_max_freq", khz),
        ("topology/physical_package_id", package),
        ("topology/thread_siblings_list", format_cores(siblings) if siblings else None),
    ):
        if value is not None:
            write(folder / name, value)
    if last_cache:
        for index, rank, kind, size, shared in (
            (0, 1, "Data", "32K", [number]),
            (3, level, "Unified", "2M", last_cache),
        ):
            write(folder / f"cache/index{index}/level", rank)
            write(folder / f"cache/index{index}/type", kind)
            write(folder / f"cache/index{index}/size", size)
            write(folder / f"cache/index{index}/shared_cpu_list", format_cores(shared))


def pixel(root: Path, usable: Iterable[int] = range(8)) -> Topology:
    """Return 4 little, 2 medium and 2 big cores, with one last cache for all."""
    for number in range(8):
        capacity, khz = (
            (160, 1_803_000) if number < 4 else (498, 2_348_000) if number < 6 else (1024, 2_850_000)
        )
        add_core(root, number, capacity=capacity, khz=khz, package=0, last_cache=range(8))
    return read_topology(root=root, usable=usable)


def snapdragon(root: Path) -> Topology:
    """Return 1 prime, 3 medium and 4 little cores; frequencies alone tell the first two apart."""
    for number in range(8):
        capacity, khz = (250, 1_800_000) if number < 4 else (1024, 2_419_000 if number < 7 else 2_841_000)
        add_core(root, number, capacity=capacity, khz=khz, package=0, last_cache=range(8))
    return read_topology(root=root, usable=range(8))


def server(root: Path, *, cores: int = 8, usable: Iterable[int] | None = None) -> Topology:
    """Return a server: 2 packages, each of some physical cores with two threads, numbered as Linux does."""
    for number in range(4 * cores):
        package = number // cores % 2
        inside = [n for n in range(4 * cores) if n // cores % 2 == package]
        pair = (number % (2 * cores), number % (2 * cores) + 2 * cores)
        add_core(root, number, khz=3_500_000, package=package, siblings=pair, last_cache=inside)
    return read_topology(root=root, usable=range(4 * cores) if usable is None else usable)


def desktop(root: Path) -> Topology:
    """Return 8 cores of one speed, two of them favoured, in two groups of 4 with a last cache each."""
    for number in range(8):
        first = number // 4 * 4
        khz = 5_800_000 if number in (1, 6) else 5_500_000
        add_core(root, number, khz=khz, package=0, last_cache=range(first, first + 4))
    return read_topology(root=root, usable=range(8))


def silent(root: Path, cores: int) -> Topology:
    """Return a virtual machine whose kernel says nothing at all."""
    return read_topology(root=root, usable=range(cores))
