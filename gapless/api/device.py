"""The device we run on, as a platform to plan for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..executor.engine import Engine
from ..executor.engines.registry import get_engine
from ..executor.model import Model
from ..formulations.errors import InvalidInputError
from ..formulations.hardware import EngineSettings, MemoryMode, Platform, Precision

DEFAULT_ENGINE = "mnn"

_ENGINES = {"onnx": DEFAULT_ENGINE, "callable": "callable"}
"""Who runs a kind of content when nothing is said."""


def engine_for(model: Model) -> str:
    """Return the name of the engine that runs a model when nothing is said.

    Raises
    ------
    InvalidInputError
        Its parts need different engines.
    """
    kinds = {piece.content.kind for piece in model.pieces(0, len(model.network.layers))}
    if len(kinds) != 1:
        raise InvalidInputError(
            f"{model.network.name!r} joins {' and '.join(sorted(kinds))} models, which no single engine runs"
        )
    return _ENGINES[kinds.pop()]


def common_engine(models: Sequence[Model]) -> str:
    """Return the name of the engine that runs all of some models when nothing is said.

    Raises
    ------
    InvalidInputError
        They need different engines, or there are none.
    """
    engines = sorted({engine_for(model) for model in models})
    if len(engines) != 1:
        raise InvalidInputError(
            f"the networks need the engines {', '.join(engines) or '(none)'}; name networks of one engine"
        )
    return engines[0]


def this_device(
    *,
    units: Sequence[str] = (),
    emulate: Mapping[str, int] | None = None,
    engine: str | Engine = DEFAULT_ENGINE,
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
        Whose backends count: a unit that is not made of cores is there only if the engine reaches it.
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

    found = get_engine(engine) if isinstance(engine, str) else engine
    platform = detect_platform(backends=found.backends(), emulate=emulate or {})
    chosen = select_units(platform, units) if units else platform
    exactness, trade = Precision(precision), MemoryMode(memory)
    return replace(
        chosen,
        units=tuple(
            replace(
                unit, engine=EngineSettings(backend=unit.engine.backend, precision=exactness, memory=trade)
            )
            for unit in chosen.units
        ),
    )
