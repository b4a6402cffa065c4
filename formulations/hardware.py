"""Hardware: the processing units of one device, and what they share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from heapq import heappop, heappush

from .errors import InvalidInputError, InvalidProblemError
from .operators import rule_problems
from .validation import Defects, FileContent, meant, shown


class UnitKind(StrEnum):
    """What a processing unit is made of."""

    CPU = "cpu"
    GPU = "gpu"
    NPU = "npu"
    DSP = "dsp"
    OTHER = "other"


class Precision(StrEnum):
    """How exact an engine computes.

    HIGH
        32-bit floating point throughout.
    NORMAL
        What the engine does when nothing is said.
    LOW
        16-bit floating point where the unit has it.
    """

    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"


class MemoryMode(StrEnum):
    """What an engine trades memory for."""

    NORMAL = "normal"
    LOW = "low"
    HIGH = "high"


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings(FileContent):
    """What an engine is asked for on one unit."""

    name: str = ""
    """Name of the engine that runs everything on this unit. Empty: whichever is asked for."""
    backend: str = "cpu"
    """Name of the engine's backend in lower case, e.g. "cpu", "opencl", "vulkan", "nnapi"."""
    precision: Precision = Precision.HIGH
    memory: MemoryMode = MemoryMode.NORMAL
    """See `Precision` and `MemoryMode`."""

    def __post_init__(self) -> None:
        defects = Defects("engine settings")
        if self.name:
            defects.check_name("name", self.name)
        defects.check_name("backend", self.backend)
        defects.raise_as(InvalidProblemError)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessingUnit(FileContent):
    """A resource that runs one chunk at a time, together with its thread setting."""

    name: str
    """Name of the unit, unique on its platform."""
    kind: UnitKind = UnitKind.OTHER
    """What it is made of."""
    cores: tuple[int, ...] = ()
    """Identifiers of the processor cores it occupies. Two units with a core in common exclude each other in a
    plan. Empty for units that are not made of cores: of these, two accelerators of one kind exclude each
    other where they name different engines, which drive the same hardware."""
    resource: str = ""
    """What it is, where several units take turns in one place: two engines on one core, say. Where units may
    have several chunks (passage "any"), those of one resource do not exclude each other, and their loads are
    added up. Empty: it is a resource of its own."""
    threads: int | None = None
    """Threads that an engine may use on it, or None when that has no meaning."""
    memory_bytes: int | None = None
    """Its own capacity for weights and live tensors in bytes, or None for no limit of its own."""
    engine: EngineSettings = EngineSettings()
    """What an engine is asked for on this unit."""
    quota_permille: int | None = None
    """Share of the time of its cores that it may use: a slower unit that is *emulated*. None: all."""
    unsupported: tuple[str, ...] = ()
    """Rules about the operators that it cannot run: "Resize", "ConvTranspose[stride>=4]"
    (`formulations.operators`)."""
    power_mw: int | None = None
    idle_mw: int | None = None
    """Its power at work, and at most that while it waits, milliwatts; None: not known. What several units
    share (of a platform with overlapping sets of cores, say) one of them has in its idle power, and the
    others have not: idle powers of all units are added up."""
    workers: int = 1
    """How many requests as they come may run on it at the same time, each by a worker with sessions of its
    own (Band, 4.1). Plans run one chunk at a time, however many there are."""
    sharing_permille: tuple[int, ...] = ()
    """How long one of 1, 2, 3, ... requests at the same time takes on it, in permille of its time alone: what
    `gapless profile --most-workers` measured. Empty: not known."""
    worker_of: str = ""
    """The unit of which it is one worker (`Platform.by_worker`). Empty: it is a unit."""

    def __post_init__(self) -> None:
        defects = Defects(f"processing unit {self.name!r}")
        defects.check_name("name", self.name)
        defects.check_counts("cores", self.cores)
        defects.check_unique("cores", self.cores)
        if self.resource:
            defects.check_name("resource", self.resource)
        if self.threads is not None:
            defects.check_count("threads", self.threads, least=1)
        if self.memory_bytes is not None:
            defects.check_count("memory_bytes", self.memory_bytes)
        if self.quota_permille is not None and not 1 <= self.quota_permille <= 1000:
            defects.add(f"quota_permille is {self.quota_permille}, must be between 1 and 1000")
        if defects.check_count("workers", self.workers, least=1) and self.workers > MAX_WORKERS:
            defects.add(f"workers is {self.workers}, more than the largest allowed {MAX_WORKERS}")
        if self.workers > 1 and self.quota_permille is not None:
            defects.add("a unit with a quota has one worker: each would have a quota of its own")
        check_sharing(defects, self.sharing_permille)
        for field in ("power_mw", "idle_mw"):
            power = getattr(self, field)
            if power is not None and defects.check_count(field, power) and power > MAX_POWER_MW:
                defects.add(f"{field} is {power}, more than the largest allowed {MAX_POWER_MW}")
        if self.idle_mw is not None and (self.power_mw is None or self.power_mw < self.idle_mw):
            defects.add(f"idle_mw is {self.idle_mw}, needs a power_mw of at least that")
        for problem in rule_problems(self.unsupported):
            defects.add(problem)
        defects.raise_as(InvalidProblemError)

    @property
    def drives_accelerator(self) -> bool:
        """Whether it is a GPU or the like that is reached through an engine which it names."""
        return self.kind in _ACCELERATORS and not self.cores and bool(self.engine.name)

    @property
    def emulated(self) -> bool:
        """Whether its speed is emulated by a quota of processor time."""
        return self.quota_permille is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform(FileContent):
    """All processing units of one device.

    Attributes
    ----------
    name
        Name of the device.
    units
        Its units. Their order is part of the canonical order of plans (ties go to earlier units).
    memory_bytes
        Capacity that all units share, in bytes, or None for no limit.
    source
        Where the description comes from.
    """

    name: str
    units: tuple[ProcessingUnit, ...]
    memory_bytes: int | None = None
    source: str = ""

    def __post_init__(self) -> None:
        defects = Defects(f"platform {self.name!r}")
        defects.check_name("name", self.name)
        defects.check_size("units", len(self.units), most=MAX_UNITS)
        defects.check_unique("unit names", self.unit_names)
        if self.memory_bytes is not None:
            defects.check_count("memory_bytes", self.memory_bytes)
        for unit, first in zip(self.units, self.resources, strict=True):
            one = self.units[first]
            if (unit.kind, set(unit.cores), unit.quota_permille) != (
                one.kind,
                set(one.cores),
                one.quota_permille,
            ):
                defects.add(
                    f"units {one.name!r} and {unit.name!r} are one resource, {unit.resource!r}, but differ "
                    "in kind, cores or quota: only what runs in the same place can take turns there"
                )
        defects.raise_as(InvalidProblemError)

    @property
    def resources(self) -> tuple[int, ...]:
        """For each unit the first unit of its resource: itself, if it is one of its own."""
        first: dict[str, int] = {}
        return tuple(
            first.setdefault(unit.resource, index) if unit.resource else index
            for index, unit in enumerate(self.units)
        )

    @property
    def unit_names(self) -> tuple[str, ...]:
        """Names of the units, in platform order."""
        return tuple(unit.name for unit in self.units)

    @property
    def conflicts(self) -> tuple[tuple[int, int], ...]:
        """Pairs of unit indices (lower first) that exclude each other: they share cores or an accelerator."""
        return _conflicts(
            tuple(unit.cores for unit in self.units),
            self.places,
            tuple((unit.kind, unit.engine.name) if unit.drives_accelerator else None for unit in self.units),
        )

    @property
    def places(self) -> tuple[int, ...]:
        """For each unit the first worker of the unit that it is a worker of: itself, if it is none."""
        first: dict[str, int] = {}
        return tuple(
            first.setdefault(unit.worker_of, index) if unit.worker_of else index
            for index, unit in enumerate(self.units)
        )

    @property
    def worker_units(self) -> tuple[int, ...]:
        """For each unit of `by_worker` the unit here that it is from."""
        return tuple(index for index, unit in enumerate(self.units) for _ in range(unit.workers))

    def by_worker(self) -> Platform:
        """Return the same platform with a unit for each worker: of two on "npu", "npu" and "npu.2"."""
        units = tuple(
            replace(
                unit,
                name=f"{unit.name}.{number}" if number > 1 else unit.name,
                workers=1,
                worker_of=unit.name if unit.workers > 1 else unit.worker_of,
            )
            for unit in self.units
            for number in range(1, unit.workers + 1)
        )
        return replace(self, units=units)

    def index_of(self, unit: str) -> int:
        """Return the index of a unit.

        Raises
        ------
        InvalidInputError
            There is none of this name.
        """
        if unit not in self.unit_names:
            raise InvalidInputError(f"no unit is called {shown(unit)}; {meant(unit, self.unit_names)}")
        return self.unit_names.index(unit)

    def without_turns(self) -> Platform:
        """Return the same platform whose units take turns with none."""
        return replace(self, units=tuple(replace(unit, resource="") for unit in self.units))

    def turns(self, units: Iterable[str]) -> tuple[str, ...]:
        """Return for each of some units who takes turns with it: the first unit of its resource, by name."""
        names, first = self.unit_names, self.resources
        known = {unit: names[first[index]] for index, unit in enumerate(names)}
        return tuple(known.get(unit, unit) for unit in units)

    @property
    def exclusive(self) -> tuple[frozenset[int], ...]:
        """For each unit the units that exclude it (`conflicts`)."""
        found: list[set[int]] = [set() for _ in self.units]
        for u, v in self.conflicts:
            found[u].add(v)
            found[v].add(u)
        return tuple(map(frozenset, found))

    @property
    def most_at_once(self) -> int:
        """Largest number of units of which no two exclude each other."""
        excluded = [0] * len(self.units)
        for u, v in self.conflicts:
            excluded[u] |= 1 << v
            excluded[v] |= 1 << u
        return _largest_free_set((1 << len(self.units)) - 1, tuple(excluded))


MAX_WORKERS = 8
"""Most workers of one unit."""


def check_sharing(defects: Defects, permille: Sequence[int]) -> None:
    """Add what is wrong with how long one of 1, 2, 3, ... at the same time takes."""
    if any(share < 1000 for share in permille):
        defects.add("sharing_permille has less than 1000: company makes nothing faster")
    if permille and permille[0] != 1000:
        defects.add(f"sharing_permille begins with {permille[0]}, alone is 1000")


MAX_POWER_MW = 10_000_000
"""Largest power of one unit: 10 kW."""

_ACCELERATORS = frozenset({UnitKind.GPU, UnitKind.NPU, UnitKind.DSP})

MAX_UNITS = 64
"""Most units of one platform: far above any device, low enough for bit sets."""


@cache
def _largest_free_set(left: int, excluded: tuple[int, ...]) -> int:
    """Return how many of some units (a bit set) can be taken without one that excludes another."""
    taken = 0
    while left:
        by_rivals = sorted(_members(left), key=lambda unit: (excluded[unit] & left).bit_count())
        least, worst = by_rivals[0], by_rivals[-1]
        if (excluded[least] & left).bit_count() > 1:
            without = left & ~(1 << worst)
            with_it = 1 + _largest_free_set(without & ~excluded[worst], excluded)
            return taken + max(with_it, _largest_free_set(without, excluded))
        # Whoever has at most one rival can be taken: the rival alone would do no better.
        left &= ~(1 << least) & ~excluded[least]
        taken += 1
    return taken


def free_sets(excluded: Sequence[frozenset[int]], most: int | None = None) -> Iterator[frozenset[int]]:
    """Yield the sets of units of which none excludes another one and to which no unit can be added.

    Largest ones first, those of one size in the order of their units. Only what leads to a set is walked, so
    that the first sets come soon however many there are.

    `excluded`: for each unit the units that exclude it; `most`: units of a set, at most; None: any number.
    """
    bits = tuple(sum(1 << other for other in others) for others in excluded)
    limit = len(bits) if most is None else min(most, len(bits))
    waiting: list[tuple[int, str, int, int, int]] = []

    def add(path: str, chosen: int, left: int, without: int) -> None:
        size = min(limit, chosen.bit_count() + _largest_free_set(left, bits))
        # A unit that was left out and that nothing excludes any more could be added to what comes.
        if size == limit or all(bits[unit] & left for unit in _members(without)):
            heappush(waiting, (-size, path, chosen, left, without))

    add("", 0, (1 << len(bits)) - 1, 0)
    while waiting:
        _, path, chosen, left, without = heappop(waiting)
        if not left or chosen.bit_count() == limit:
            yield frozenset(_members(chosen))
            continue
        unit = min(_members(left))
        left &= ~(1 << unit)
        add(path + "0", chosen | 1 << unit, left & ~bits[unit], without & ~bits[unit])
        add(path + "1", chosen, left, without | 1 << unit)


def _members(units: int) -> Iterator[int]:
    """Yield the units of a bit set."""
    return (unit for unit in range(units.bit_length()) if units >> unit & 1)


@cache
def _conflicts(
    cores: tuple[tuple[int, ...], ...],
    places: tuple[int, ...],
    accelerators: tuple[tuple[UnitKind, str] | None, ...],
) -> tuple[tuple[int, int], ...]:
    return tuple(
        (u, v)
        for u in range(len(cores))
        for v in range(u + 1, len(cores))
        if places[u] != places[v]
        if not set(cores[u]).isdisjoint(cores[v]) or _same_hardware(accelerators[u], accelerators[v])
    )


def _same_hardware(one: tuple[UnitKind, str] | None, other: tuple[UnitKind, str] | None) -> bool:
    """Return whether two engines drive the same accelerator: a device has one of a kind."""
    return one is not None and other is not None and one[0] is other[0] and one[1] != other[1]
