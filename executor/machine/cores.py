"""The processor cores of this machine: which may be used, how fast they are, and what they share.

Everything comes from the scheduler (`sched_getaffinity`) and from files under `/sys` and `/proc`. Virtual
machines, containers and phones leave out many of them: what is not said is `None`, and a core about
which nothing is said is still a core.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...formulations.availability import Availability
from .kernel_files import format_cores, parse_cores, read_cores, read_number, read_text

SAME_SPEED_PERMILLE = 55
"""Cores are equally fast when neither capacity nor top frequency differs by more.

The favoured cores of desktop processors reach some 5 % more than their equals; clusters of phones that
are told apart differ by 6 % and more.
"""

SPEED_NAMES = {
    1: ("cluster",),
    2: ("big", "little"),
    3: ("big", "medium", "little"),
    4: ("prime", "big", "medium", "little"),
}
"""Names of clusters, fast to slow, by the number of different speeds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreCache:
    """A cache, as one core sees it."""

    level: int
    kind: str  # "data", "instruction" or "unified"
    size_bytes: int | None
    cores: tuple[int, ...]  # the cores that share it, whether they may be used or not


@dataclass(frozen=True, slots=True, kw_only=True)
class Core:
    """One logical core, by its number.

    `package`, `node`: socket, and memory node.
    """

    number: int  # as the scheduler counts
    capacity: int | None = None  # speed relative to the fastest core, which has 1024
    max_khz: int | None = None  # top frequency in kHz
    package: int | None = None
    node: int | None = None
    siblings: tuple[int, ...] = ()
    """Logical cores of the same physical core (SMT), itself among them, ascending."""
    caches: tuple[CoreCache, ...] = ()  # its caches, lowest level first

    @property
    def last_cache(self) -> CoreCache | None:
        """The cache nearest to memory."""
        return self.caches[-1] if self.caches else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Usable cores that are equally fast, in one package, and share their last cache.

    `capacity`, `max_khz`, `package`: of its fastest core.
    """

    name: str
    """See `SPEED_NAMES`; more than four speeds are "speed0", "speed1", ...; several clusters of one speed are
    counted: "little0", "little1"."""
    speed_rank: int  # 0 for the fastest, 1 for the next speed, ...
    cores: tuple[int, ...]  # numbers, ascending
    capacity: int | None
    max_khz: int | None
    package: int | None

    def __str__(self) -> str:
        known = [
            f"capacity {self.capacity}" if self.capacity is not None else "",
            f"{self.max_khz / 1e6:.2f} GHz" if self.max_khz is not None else "",
        ]
        speed = ", ".join(filter(None, known))
        return f"{self.name} {format_cores(self.cores)}" + (f" ({speed})" if speed else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """The cores that this process may use."""

    cores: tuple[Core, ...]  # by ascending number
    clusters: tuple[Cluster, ...]  # the same cores, grouped; fast to slow

    @property
    def physical(self) -> tuple[int, ...]:
        """The first usable logical core of each physical core."""
        usable = {core.number for core in self.cores}
        return tuple(
            core.number
            for core in self.cores
            if core.number == min(usable.intersection(core.siblings), default=core.number)
        )


def pinning() -> Availability:
    """Return whether processes can be pinned to cores here."""
    if hasattr(os, "sched_setaffinity"):
        return Availability(ok=True)
    return Availability(
        ok=False,
        reason="this system cannot pin processes to cores; plans run on Linux and Android, "
        "elsewhere gapless plans for described platforms (`gapless list problems`)",
    )


def usable_cores() -> tuple[int, ...]:
    """Return the numbers of the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return tuple(sorted(os.sched_getaffinity(0)))
    return tuple(range(os.cpu_count() or 1))


def read_topology(*, root: Path = Path("/sys"), usable: Iterable[int] | None = None) -> Topology:
    """Return the usable cores with everything that the kernel says about them.

    `root`: where the kernel's `sysfs` lies. `usable`: numbers of the cores to look at; None: those that this
    process may use. Cores that are offline are left out.
    """
    folder = root / "devices/system/cpu"
    numbers = sorted(usable_cores() if usable is None else set(usable))
    online = [number for number in numbers if read_number(folder / f"cpu{number}/online") != 0]
    cores = tuple(_read_core(folder / f"cpu{number}", number) for number in online)
    return Topology(cores=cores, clusters=group_cores(cores))


def group_cores(cores: Sequence[Core]) -> tuple[Cluster, ...]:
    """Return cores as clusters, fast to slow.

    Speed is capacity first, then top frequency (see `SAME_SPEED_PERMILLE`); either counts only where it
    is known of every core. Equally fast cores of one package are further split by the last cache, where
    each of these caches serves several physical cores.
    """
    capacity_ranks = _ranks(cores, lambda core: core.capacity)
    frequency_ranks = _ranks(cores, lambda core: core.max_khz)
    groups: dict[tuple[int, int, int], list[Core]] = {}
    for core in cores:
        package = -1 if core.package is None else core.package
        key = capacity_ranks[core.number], frequency_ranks[core.number], package
        groups.setdefault(key, []).append(core)
    parts = [(key[:2], part) for key in sorted(groups) for part in _split_by_cache(groups[key])]
    speeds = sorted({speed for speed, _ in parts})
    ranks = [speeds.index(speed) for speed, _ in parts]
    return tuple(
        _cluster(name, rank, part)
        for name, rank, (_, part) in zip(_cluster_names(ranks), ranks, parts, strict=True)
    )


def threads_of_process(
    pid: int | str = "self", *, proc: Path = Path("/proc")
) -> Mapping[int, tuple[int, ...]]:
    """Return the cores on which each thread of a process may run, by thread number.

    Empty where the system does not say. Threads that end meanwhile are left out.
    """
    found = {}
    for status in (proc / str(pid) / "task").glob("[0-9]*/status"):
        for line in (read_text(status) or "").splitlines():
            key, _, value = line.partition(":")
            if key == "Cpus_allowed_list":
                found[int(status.parent.name)] = parse_cores(value)
    return found


def _read_core(folder: Path, number: int) -> Core:
    topology = folder / "topology"
    siblings = read_cores(topology / "core_cpus_list") or read_cores(topology / "thread_siblings_list")
    nodes = [int(path.name[4:]) for path in folder.glob("node[0-9]*") if path.name[4:].isdigit()]
    caches = filter(None, map(_read_cache, folder.glob("cache/index[0-9]*")))
    package = read_number(topology / "physical_package_id")
    return Core(
        number=number,
        capacity=read_number(folder / "cpu_capacity"),
        max_khz=read_number(folder / "cpufreq/cpuinfo_max_freq"),
        package=package if package is not None and package >= 0 else None,
        node=min(nodes, default=None),
        siblings=siblings or (number,),
        caches=tuple(sorted(caches, key=lambda cache: (cache.level, cache.kind))),
    )


def _read_cache(folder: Path) -> CoreCache | None:
    level, kind = read_number(folder / "level"), read_text(folder / "type")
    cores = read_cores(folder / "shared_cpu_list")
    if level is None or kind is None or not cores:
        return None
    return CoreCache(level=level, kind=kind.lower(), size_bytes=_size_bytes(folder / "size"), cores=cores)


def _size_bytes(path: Path) -> int | None:
    text = read_text(path) or ""
    unit = {"K": 2**10, "M": 2**20, "G": 2**30}.get(text[-1:], 1)
    digits = text.rstrip("KMG")
    return int(digits) * unit if digits.isdigit() else None


def _ranks(cores: Sequence[Core], measure: Callable[[Core], int | None]) -> dict[int, int]:
    """Return the rank of each core's speed by core number, 0 for the fastest."""
    known = {core.number: value for core in cores if (value := measure(core)) is not None}
    if len(known) < len(cores):
        return {core.number: 0 for core in cores}
    ranks: dict[int, int] = {}
    rank, previous = 0, None
    for number, value in sorted(known.items(), key=lambda item: (-item[1], item[0])):
        if previous is not None and value * 1000 < previous * (1000 - SAME_SPEED_PERMILLE):
            rank += 1
        ranks[number], previous = rank, value
    return ranks


def _split_by_cache(cores: list[Core]) -> list[list[Core]]:
    last = [core.last_cache for core in cores]
    parts: dict[tuple[int, ...], list[Core]] = {}
    for core, cache in zip(cores, last, strict=True):
        if cache is None or set(cache.cores) <= set(core.siblings):
            return [cores]
        parts.setdefault(cache.cores, []).append(core)
    return [parts[key] for key in sorted(parts)]


def _cluster_names(ranks: Sequence[int]) -> list[str]:
    """Return a name for each cluster, given the ranks of their speeds in ascending order."""
    speeds = len(set(ranks))
    words = SPEED_NAMES.get(speeds, tuple(f"speed{rank}" for rank in range(speeds)))
    return [
        words[rank] if ranks.count(rank) == 1 else f"{words[rank]}{position - ranks.index(rank)}"
        for position, rank in enumerate(ranks)
    ]


def _cluster(name: str, rank: int, cores: Sequence[Core]) -> Cluster:
    fastest = max(cores, key=lambda core: (core.capacity or 0, core.max_khz or 0))
    return Cluster(
        name=name,
        speed_rank=rank,
        cores=tuple(core.number for core in cores),
        capacity=fastest.capacity,
        max_khz=fastest.max_khz,
        package=fastest.package,
    )
