"""Engines that are asked for: one, or several that compete, so that each unit has a variant for each of them.

Variants of a unit stand on the same cores, so they exclude one another in every plan. A chunk on one of them
has its engine, and costs what that engine takes: all formulations and backends know that already.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from ..executor.engine import Engine
from ..executor.engines.registry import EngineByKind, engine_names, get_engine
from ..executor.model import Model
from ..formulations.errors import InvalidInputError
from ..formulations.hardware import MAX_UNITS, Platform, ProcessingUnit
from ..formulations.plugins import require_trusted, trust
from ..formulations.problem import Problem
from ..question.values import names_in

EngineChoice = str | Engine | Sequence[str | Engine] | None
"""An engine or its name; several that compete, or their names with commas between; None: what models need."""

DEFAULT_ENGINE = "mnn"

_ENGINES: Mapping[str, tuple[str, ...]] = {"onnx": (DEFAULT_ENGINE, "onnxruntime"), "callable": ("callable",)}
"""Who runs a kind of content when nothing is said; those that are installed compete."""


def engines_for(*models: Model) -> tuple[str, ...]:
    """Return the names of the engines that run all of some models when nothing is said, the usual one first.

    Where models and Python functions are mixed that is one of each, such as "mnn+callable".
    """
    kinds = _kinds_of(models)
    if not kinds:
        raise InvalidInputError("the networks need the engines (none); name at least one network")
    if len(kinds) > 1:
        return ("+".join(_installed(kind)[0] for kind in kinds),)
    return _installed(kinds[0])


def _kinds_of(models: Sequence[Model]) -> list[str]:
    """Return the kinds of content of some models, in the order of `_ENGINES`."""
    wholes = (piece for model in models for piece in model.pieces(0, len(model.network.layers)))
    found = {piece.content.kind for piece in wholes}
    return [kind for kind in _ENGINES if kind in found]


def _installed(kind: str) -> tuple[str, ...]:
    names = _ENGINES[kind]
    return tuple(name for name in names if get_engine(name).availability().ok) or names[:1]


def _completed(engine: Engine, kinds: Sequence[str]) -> Engine:
    """Return an engine together with the usual ones for those kinds of content that it does not take."""
    left = [kind for kind in kinds if not engine.takes(kind)]
    if len(left) in (0, len(kinds)):
        return engine
    return EngineByKind([engine, *(get_engine(_installed(kind)[0]) for kind in left)])


def resolve_engines(engine: EngineChoice, *models: Model) -> tuple[Engine, ...]:
    """Return the engines that are asked for, or those that the models need, each once."""
    asked = engines_for(*models) if engine is None else _listed(engine)
    kinds = _kinds_of(models)
    given = [get_engine(one) if isinstance(one, str) else one for one in asked]
    trust(*(one.name for one in given))
    found = tuple(_completed(one, kinds) for one in given)
    names = [one.name for one in found]
    if not names or len(set(names)) < len(names):
        raise InvalidInputError(f"engines must be named, and each once; got {', '.join(names) or 'none'}")
    return found


def resolve_engine(engine: EngineChoice, *models: Model) -> Engine:
    """Return the one engine that is asked for, or that the models need."""
    if engine is None:
        return get_engine(engines_for(*models)[0])
    found = resolve_engines(engine, *models)
    if len(found) > 1:
        raise InvalidInputError(
            f"engines compete where one network is profiled, tuned or run; here one of "
            f"{', '.join(one.name for one in found)} must be chosen"
        )
    return found[0]


def _listed(engine: str | Engine | Sequence[str | Engine]) -> Sequence[str | Engine]:
    if isinstance(engine, str):
        return names_in("engine", engine)
    return engine if isinstance(engine, Sequence) else [engine]


def with_engines(platform: Platform, engines: Sequence[Engine]) -> Platform:
    """Return a platform whose units name the engine that runs everything on them.

    With one engine, that of all units. With several, each unit has a variant for each engine that drives it:
    that of the first one keeps the name of the unit, "core0"; others are called "core0@onnxruntime".
    Variants of one set of cores take turns on them.
    """
    names = [engine.name for engine in engines]
    if len(engines) == 1:
        return replace(platform, units=tuple(_named(unit, names[0]) for unit in platform.units))
    named = {unit.engine.name for unit in platform.units}
    if named <= set(names):
        return platform
    if named != {""}:
        raise InvalidInputError(
            f"the units of {platform.name!r} are for the engines {', '.join(sorted(filter(None, named)))}: "
            f"they cannot be for {', '.join(names)}, too; leave out the engines, or name one for all units"
        )
    return variants([(engine, _driven(platform, engine)) for engine in engines])


def variants(platforms: Sequence[tuple[Engine, Platform]]) -> Platform:
    """Return one platform of the units that several engines see of one device, each with its engine.

    Variants of one set of cores are one resource, on which they take turns.
    """
    room = MAX_UNITS // len(platforms)
    taken: dict[str, ProcessingUnit] = {}
    for engine, platform in platforms:
        units = platform.units
        for unit in units if len(units) <= room else (*units[: room - 1], units[-1]):
            named = _named(unit, engine.name)
            if unit.cores and len(platforms) > 1:
                named = replace(named, resource=unit.name)
            if unit.name in taken:
                # Idle powers are added up, and the first variant has that of the hardware.
                idle_mw = None if unit.idle_mw is None else 0
                named = replace(named, name=f"{unit.name}@{_short(engine.name)}", idle_mw=idle_mw)
            taken[named.name] = named
    return replace(platforms[0][1], units=tuple(taken.values()))


def selected(platform: Platform, names: Sequence[str]) -> tuple[str, ...]:
    """Return names of units, each followed by those of its variants."""
    return tuple(
        dict.fromkeys(
            unit
            for name in names
            for unit in (name, *(own for own in platform.unit_names if own.startswith(f"{name}@")))
        )
    )


def _driven(platform: Platform, engine: Engine) -> Platform:
    """Return the units that an engine drives: the processor, and backends that it has."""
    if all(unit.engine.backend == "cpu" for unit in platform.units):
        return platform
    backends = engine.backends()
    return replace(platform, units=tuple(u for u in platform.units if u.engine.backend in backends))


def _named(unit: ProcessingUnit, engine: str) -> ProcessingUnit:
    return replace(unit, engine=replace(unit.engine, name=engine))


def _short(name: str) -> str:
    """Return the name of an engine as part of that of a unit: of "file.py:Class", the class."""
    return name.rpartition(":")[2]


def engines_of(problem: Problem, engine: EngineChoice, *models: Model) -> tuple[Engine, Platform]:
    """Return who runs a plan of a problem, on units that name no engine, and the platform that it runs on.

    Without `engine`, the engine that each unit names, or else that of the measurements, or else what the
    models need.
    """
    if engine is None:
        return get_engine(measured_with(problem) or engines_for(*models)[0]), problem.platform
    found = resolve_engines(engine)
    names = {unit.engine.name for unit in problem.platform.units}
    if len(found) > 1 and not names <= {one.name for one in found}:
        asked = ", ".join(one.name for one in found)
        raise InvalidInputError(
            f"the units of this problem were not profiled for {asked} each: profile with --engine "
            f"{asked.replace(' ', '')}, or name one engine for all units"
        )
    return found[0], with_engines(problem.platform, found)


def measured_with(problem: Problem, units: Collection[str] | None = None) -> str:
    """Return the name of the one engine that times of some units (None: all) were measured with; or nothing.

    It is empty where several engines were at work, or nothing is known.
    """
    chosen = problem.platform.unit_names if units is None else units
    named = {unit.engine.name for unit in problem.platform.units if unit.name in chosen}
    if named != {""}:
        name = named.pop() if len(named) == 1 else ""
        require_trusted(name, "the engine that the problem was measured with")
        return name
    told = problem.costs.provenance.engine.partition(" ")[0]
    return told if told in engine_names() else ""
