"""The device we run on, as a platform to plan for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..formulations.hardware import MemoryMode, Platform, Precision
from .engines import DEFAULT_ENGINE, EngineChoice, resolve_engines, selected, variants


def this_device(
    *,
    units: Sequence[str] = (),
    emulate: Mapping[str, int] | None = None,
    engine: EngineChoice = DEFAULT_ENGINE,
    precision: str | Precision = Precision.HIGH,
    memory: str | MemoryMode = MemoryMode.NORMAL,
) -> Platform:
    """Return this device as a platform: its clusters, its cores, all cores, and what else the engine drives.

    Parameters
    ----------
    units
        Names of the units to keep, in this order; empty: all of them.
    emulate
        Slower units by name: the share of processor time (permille) that each may use. Needs the
        permission to make control groups.
    engine
        Whose backends count: a unit that is not made of cores is there only if the engine reaches it. Of
        several engines, each has its own variant of each unit: "core0" is that of the first engine,
        "core0@onnxruntime" the same core with another one. `units` choose all variants, or single ones.
    precision, memory
        How exact the engine shall compute, and what it shall trade memory for.

    Raises
    ------
    InvalidInputError
        There is no unit of a name.
    PlacementError
        Quotas are not permitted here.

    Examples
    --------
    >>> import gapless
    >>> platform = gapless.this_device()
    >>> len(platform.units) >= 1
    True
    """
    from ..profiler.platforms.detected import detect_platform, select_units

    found = resolve_engines(engine)
    seen = [(one, detect_platform(backends=one.backends(), emulate=emulate or {})) for one in found]
    platform = seen[0][1] if len(seen) == 1 else variants(seen)
    chosen = select_units(platform, selected(platform, units)) if units else platform
    how: dict[str, Any] = {"precision": Precision(precision), "memory": MemoryMode(memory)}
    return replace(
        chosen, units=tuple(replace(unit, engine=replace(unit.engine, **how)) for unit in chosen.units)
    )
