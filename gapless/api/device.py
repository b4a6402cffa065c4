"""The device we run on, as a platform to plan for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..executor.engine import Engine
from ..executor.engines.registry import get_engine
from ..executor.model import Model
from ..formulations.hardware import EngineSettings, MemoryMode, Platform, Precision

DEFAULT_ENGINE = "mnn"

_ENGINES = {"onnx": DEFAULT_ENGINE, "callable": "callable"}
"""Who runs a kind of content when nothing is said."""


def common_engine(models: Sequence[Model], asked: str | None = None) -> str:
    """Return the name of the engine that runs all of some models.

    Where models and Python functions are mixed, that is two of them, such as "mnn+callable".

    Parameters
    ----------
    models
        At least one.
    asked
        Who shall run what it takes; None: whoever runs it when nothing is said.
    """
    whole = (piece for model in models for piece in model.pieces(0, len(model.network.layers)))
    kinds = dict.fromkeys(piece.content.kind for piece in whole)
    if asked is None:
        return "+".join(sorted({_ENGINES[kind] for kind in kinds}, reverse=True))
    engine = get_engine(asked)
    taken = [kind for kind in kinds if engine.takes(kind)]
    left = {_ENGINES[kind] for kind in kinds if kind not in taken} if taken else ()
    return "+".join([asked, *sorted(left)])


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
