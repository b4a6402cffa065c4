"""The machine at hand as a platform: units made of its usable cores, and what else an engine reaches.

* One unit for each cluster ("big", "medium", "little", ...), one for each core ("core0", ...), and one for
  all cores ("all"), each with as many threads as cores. Units that share a core exclude each other in plans.
* Of the logical cores of one physical core (SMT) only the first is used, everywhere: the others add little
  to dense kernels, and what they add depends on what their sibling does.
* Two units of the same cores are one. A cluster's name that tells its speed is kept before "core7", that
  before "all", and that before the name of one cluster among equals.
* Where there would be more than `MAX_CORE_UNITS` units of one core, cores are taken together by 2, 4, 8, ...
  within their cluster ("cores0-3"). Of more units than a platform may have, the last are left out.
* Engine backends that are not the processor become one unit for each kind (GPU, NPU): two backends that
  drive the same GPU must not be planned side by side, so the first that the engine names is taken.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...executor.machine.cores import Topology, pinning, read_topology
from ...executor.machine.quota import quota_availability
from ...executor.machine.state import fingerprint, usable_bytes
from ...formulations.errors import InvalidInputError, PlacementError
from ...formulations.hardware import MAX_UNITS, EngineSettings, Platform, ProcessingUnit, UnitKind
from ...formulations.validation import meant

MAX_CORE_UNITS = 16
"""Most units of single cores: with more, plans are many and differ little."""

BACKEND_KINDS = {
    "cuda": UnitKind.GPU,
    "gpu": UnitKind.GPU,
    "gpu.1": UnitKind.GPU,
    "metal": UnitKind.GPU,
    "opencl": UnitKind.GPU,
    "opengl": UnitKind.GPU,
    "vulkan": UnitKind.GPU,
    "coreml": UnitKind.NPU,
    "hiai": UnitKind.NPU,
    "nn": UnitKind.NPU,
    "nnapi": UnitKind.NPU,
    "npu": UnitKind.NPU,
    "qnn": UnitKind.NPU,
}
"""What the backends of engines run on; others are of kind "other"."""


def detect_platform(
    *,
    topology: Topology | None = None,
    backends: Sequence[str] = ("cpu",),
    emulate: Mapping[str, int] | None = None,
) -> Platform:
    """Return this machine as a platform.

    `topology`: its usable cores; None: as `read_topology` finds them. `backends`: backends of an engine that
    really work here, in order of preference. `emulate`: slower units by name: the share of the time of their
    cores (permille) that they may use. Every other unit with one of these cores is left out: at full speed it
    would contradict them.
    Raises InvalidInputError: there is no unit of a name, it is not made of cores, or two emulated units share
    a core.
    """
    pinnable = pinning()
    if not pinnable.ok:
        raise PlacementError(pinnable.reason)
    found = read_topology() if topology is None else topology
    device = fingerprint(topology=found)
    units = (*_limited(_processor_units(found)), *_other_units(backends))
    platform = Platform(
        name=_safe_name(device.model),
        units=units,
        memory_bytes=usable_bytes(),
        source=f"detected on {device}",
    )
    return _emulated(platform, emulate) if emulate else platform


def select_units(platform: Platform, names: Sequence[str]) -> Platform:
    """Return a platform with some of its units only, in the order of `names`.

    Raises InvalidInputError: the platform has no unit of a name.
    """
    _require_units(platform, names)
    units = {unit.name: unit for unit in platform.units}
    return replace(platform, units=tuple(units[name] for name in names))


def _processor_units(topology: Topology) -> list[ProcessingUnit]:
    """Return clusters and cores, fast to slow, then all cores together; each set of cores once."""
    physical = frozenset(topology.physical)
    parts = [tuple(core for core in cluster.cores if core in physical) for cluster in topology.clusters]
    clusters = [_cpu_unit(cluster.name, part) for cluster, part in zip(topology.clusters, parts, strict=True)]
    cores = [_cpu_unit(_group_name(group), group) for group in _groups(parts)]
    whole = _cpu_unit("all", tuple(sorted(physical)))
    told_apart = topology.clusters[-1].speed_rank > 0
    by_preference = (*clusters, *cores, whole) if told_apart else (*cores, whole, *clusters)
    kept: dict[tuple[int, ...], ProcessingUnit] = {}
    for unit in by_preference:
        kept.setdefault(unit.cores, unit)
    return [unit for unit in (*clusters, *cores, whole) if kept[unit.cores] is unit]


def _cpu_unit(name: str, cores: tuple[int, ...]) -> ProcessingUnit:
    return ProcessingUnit(name=name, kind=UnitKind.CPU, cores=cores, threads=len(cores))


def _groups(parts: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Return the cores of each part in groups: of one, or of so many that the groups are few enough."""
    size, largest = 1, max(map(len, parts))
    while size < largest and sum(-(-len(part) // size) for part in parts) > MAX_CORE_UNITS:
        size *= 2
    return [part[start : start + size] for part in parts for start in range(0, len(part), size)]


def _group_name(cores: tuple[int, ...]) -> str:
    return f"core{cores[0]}" if len(cores) == 1 else f"cores{cores[0]}-{cores[-1]}"


def _limited(units: list[ProcessingUnit]) -> list[ProcessingUnit]:
    """Return units of which there are not too many, nor too few to use all cores (the last unit)."""
    room = MAX_UNITS - len(UnitKind)
    return units if len(units) <= room else [*units[: room - 1], units[-1]]


def _other_units(backends: Sequence[str]) -> list[ProcessingUnit]:
    chosen: dict[UnitKind, str] = {}
    for backend in backends:
        if backend != "cpu":
            chosen.setdefault(BACKEND_KINDS.get(backend, UnitKind.OTHER), backend)
    return [
        ProcessingUnit(name=backend, kind=kind, engine=EngineSettings(backend=backend))
        for kind, backend in chosen.items()
    ]


def _emulated(platform: Platform, emulate: Mapping[str, int]) -> Platform:
    _require_units(platform, tuple(emulate))
    slow = [
        replace(unit, quota_permille=emulate[unit.name]) for unit in platform.units if unit.name in emulate
    ]
    _require_emulable(slow)
    permitted = quota_availability()
    if not permitted.ok:
        raise PlacementError(f"{', '.join(emulate)} cannot be emulated: {permitted.reason}")
    taken = {core for unit in slow for core in unit.cores}
    slowed = {unit.name: unit for unit in slow}
    kept = [
        slowed.get(unit.name, unit)
        for unit in platform.units
        if unit.name in slowed or taken.isdisjoint(unit.cores)
    ]
    names = {unit.name for unit in kept}
    dropped = [name for name in platform.unit_names if name not in names]
    notes = [f"emulated: {unit.name} with {unit.quota_permille} permille of its time" for unit in slow]
    if dropped:
        notes.append(f"left out, because they hold emulated cores at full speed: {', '.join(dropped)}")
    return replace(platform, units=tuple(kept), source="; ".join([platform.source, *notes]))


def _require_emulable(units: Sequence[ProcessingUnit]) -> None:
    problems = [f"unit {unit.name!r} is not made of cores" for unit in units if not unit.cores]
    problems += [
        f"units {a.name!r} and {b.name!r} share cores"
        for position, a in enumerate(units)
        for b in units[position + 1 :]
        if not set(a.cores).isdisjoint(b.cores)
    ]
    if problems:
        raise InvalidInputError("these units cannot be emulated:", problems)


def _require_units(platform: Platform, names: Sequence[str]) -> None:
    known = platform.unit_names
    problems = [f"{name!r}; {meant(name, known)}" for name in names if name not in known]
    if problems:
        raise InvalidInputError(
            f"platform {platform.name!r} has the units {', '.join(known)}, but not:", problems
        )


def _safe_name(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "this-machine"
