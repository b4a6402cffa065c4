"""Which units can run which operators of a model, and the sections and chunks that follow (Band, 4.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

from ..executor.graph.inspection import divided as divided_by
from ..executor.graph.inspection import operator_text
from ..formulations.coordination.sections import Section, Session, chunks_of, sessions_of
from ..formulations.coordination.sessions import Loaded, loaded_within
from ..formulations.coordination.setting import Setting
from ..formulations.coordination.times import chunk_times
from ..formulations.costs import CostTable, NetworkCosts
from ..formulations.errors import ConversionError, ExecutionError, InvalidInputError, PlacementError
from ..formulations.files import PLATFORM, load
from ..formulations.hardware import Platform, ProcessingUnit, UnitKind
from ..formulations.network import Network
from ..formulations.operators import excluded
from ..formulations.validation import meant, shown
from ..profiler.analytic.costs import network_costs
from ..profiler.analytic.model import AnalyticModel
from .coordination import divided
from .device import this_device

if TYPE_CHECKING:
    from ..executor.engine import Artifact, Engine
    from ..executor.graph.onnx_model import OnnxModel
    from ..executor.model import Piece

TRIALS = "trials"
"""Asks the engine of this machine instead of rules."""

_MOST_PLACEMENTS = 10**15


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorSupport:
    """One operator."""

    name: str  # as in the file
    operator: str  # in words: "Conv[kernel=3]"
    units: tuple[str, ...]  # names of the units that can run it


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionSupport:
    """One section."""

    start: int
    stop: int
    """Its layers [start, stop)."""
    operators: tuple[str, ...]  # names of its operators
    units: tuple[str, ...]  # names of the units that can run all of them


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkSupport:
    """One chunk: a session for each unit that can run it."""

    start: int
    stop: int
    """Its sections [start, stop)."""
    units: tuple[str, ...]  # names of these units
    bytes: int  # weights and tensors of one session


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSupport:
    """Who can run what of a model."""

    network: str
    platform: str
    units: tuple[str, ...]
    """Names."""
    operators: tuple[OperatorSupport, ...]
    sections: tuple[SectionSupport, ...]
    chunks: tuple[ChunkSupport, ...]
    """In order: of the file, and of the layers."""
    placements: int | None  # number of ways to give each operator a unit; None: more than 10^15
    file_order_sections: int
    file_order_chunks: int
    """How many there would be if neighbours were those in the file, as in MNN and Mace."""
    session_bytes: int  # what a session for each chunk and unit needs, all together
    loaded: Loaded | None  # the sessions that are worth being loaded; None: times are not known


def model_support(
    model: OnnxModel,
    where: str | Path,
    *,
    sections: int | None = None,
    session_bytes: int | None = None,
    engine: str = "mnn",
) -> ModelSupport:
    """Return which units can run which operators of a model, and its sections and chunks.

    Parameters
    ----------
    model
        The model; its layers are made anew, none of which has operators of different units.
    where
        A shipped phone, a platform file whose units say what they lack (`unsupported`), or "trials": what
        the engine of this machine can prepare.
    sections
        Divide it into this number of sections if there are fewer; None: no further borders.
    session_bytes
        What all its sessions may need together. Needs times: a shipped phone.
    engine
        Whom "trials" asks.

    Raises
    ------
    InvalidInputError
        There is no such platform; an operator runs nowhere; or the sessions do not fit.
    """
    place = _trials(model, engine) if where == TRIALS else _place(model, where)
    network, grouping = divided_by(
        model.graph, place.able, name=model.network.name, source=model.network.source
    )
    setting = Setting(
        platform=place.platform,
        networks=(network,),
        costs=CostTable(
            units=place.platform.unit_names, networks=(_costs(network, grouping.operators, place),)
        ),
    )
    if sections is not None:
        setting = divided(setting, sections)
    names = [operator.name for operator in model.graph.operators]
    found = [[names[index] for index in group] for group in grouping.operators]
    return _summary(model, place, setting, found, session_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where a model is to run: the units that can run each operator, and how fast they are, if known."""

    platform: Platform
    able: list[frozenset[int]]
    speeds: AnalyticModel | None = None


def _place(model: OnnxModel, where: str | Path) -> _Place:
    from ..profiler.coordination.catalog import setting_model, setting_names, setting_platform

    if str(where) in setting_names():
        speeds = setting_model(str(where))
        rules = [unit.unsupported for unit in speeds.units]
        platform = setting_platform(str(where))
        return _Place(platform=platform, able=_by_rules(model, rules), speeds=speeds)
    if not Path(where).is_file():
        known = (*setting_names(), TRIALS)
        hint = meant(str(where), known)
        raise InvalidInputError(f"{shown(str(where))} is neither a platform file nor a shipped phone; {hint}")
    platform = load(where, PLATFORM)
    return _Place(platform=platform, able=_by_rules(model, [unit.unsupported for unit in platform.units]))


def _by_rules(model: OnnxModel, rules: Sequence[Sequence[str]]) -> list[frozenset[int]]:
    texts = list(map(operator_text, model.graph.operators))
    lacking = [set(excluded(texts, lacks)) for lacks in rules]
    return [frozenset(unit for unit, lacks in enumerate(lacking) if text not in lacks) for text in texts]


def _trials(model: OnnxModel, engine: str) -> _Place:
    """Ask the engine for the whole model, and where it does not run on some unit for each of its layers."""
    from ..executor.engines.registry import get_engine

    asked, platform = get_engine(engine), this_device(engine=engine)
    count = len(model.network.layers)
    (whole,) = model.pieces(0, count)
    everywhere = _units_that_run(asked, whole, platform)
    able = [everywhere] * len(model.graph.operators)
    if len(everywhere) < len(platform.units):
        for layer, members in enumerate(model.cutter.layers):
            (piece,) = model.pieces(layer, layer + 1)
            alone = _units_that_run(asked, piece, platform)
            for index in members:
                able[index] = alone
    return _Place(platform=platform, able=able)


def _units_that_run(engine: Engine, piece: Piece, platform: Platform) -> frozenset[int]:
    """Return the units on which an engine opens a piece; what it can prepare it runs on cores."""
    try:
        (artifact,) = engine.prepare([piece])
    except ConversionError:
        return frozenset()
    return frozenset(
        index
        for index, unit in enumerate(platform.units)
        if unit.kind is UnitKind.CPU or _opens(engine, artifact, unit)
    )


def _opens(engine: Engine, artifact: Artifact, unit: ProcessingUnit) -> bool:
    try:
        engine.open(artifact, unit).close()
    except (PlacementError, ExecutionError):
        return False
    return True


def _costs(network: Network, groups: Sequence[Sequence[int]], place: _Place) -> NetworkCosts:
    """Return computed costs, or, where speeds are not known, operations: only who can run what matters."""
    if place.speeds is not None:
        return network_costs(network, place.speeds)
    units = range(len(place.platform.units))
    rows = []
    for layer, members in zip(network.layers, groups, strict=True):
        able = frozenset(units).intersection(*(place.able[index] for index in members))
        time_us = max(1, (layer.flops or 0) // 1000)
        rows.append(tuple(time_us if unit in able else None for unit in units))
    return NetworkCosts(network=network.name, layer_us=tuple(rows))


def _summary(
    model: OnnxModel,
    place: _Place,
    setting: Setting,
    found: Sequence[Sequence[str]],
    limit_bytes: int | None,
) -> ModelSupport:
    (chain,), (parts,) = setting.chains, setting.sections
    sessions = sessions_of(chain, parts)
    in_file = _runs(place.able)
    placements = prod(map(len, place.able))

    def named(units: frozenset[int]) -> tuple[str, ...]:
        return tuple(chain.units[unit] for unit in sorted(units))

    return ModelSupport(
        network=chain.network,
        platform=place.platform.name,
        units=chain.units,
        operators=tuple(
            OperatorSupport(name=operator.name, operator=operator_text(operator), units=named(units))
            for operator, units in zip(model.graph.operators, place.able, strict=True)
        ),
        sections=tuple(
            SectionSupport(
                start=part.start,
                stop=part.stop,
                operators=tuple(name for names in found[part.start : part.stop] for name in names),
                units=named(part.units),
            )
            for part in parts
        ),
        chunks=tuple(
            ChunkSupport(
                start=start,
                stop=stop,
                units=named(units),
                bytes=chain.memory_bytes(parts[start].start, parts[stop - 1].stop),
            )
            for start, stop, possible in chunks_of(parts)
            if (units := frozenset(unit for unit in possible if (start, stop, unit) in sessions))
        ),
        placements=placements if placements <= _MOST_PLACEMENTS else None,
        file_order_sections=len(in_file),
        file_order_chunks=len(chunks_of(in_file)),
        session_bytes=sum(sessions.values()),
        loaded=_loaded(setting, sessions, limit_bytes, timed=place.speeds is not None),
    )


def _loaded(
    setting: Setting,
    sessions: Mapping[Session, int],
    limit_bytes: int | None,
    *,
    timed: bool,
) -> Loaded | None:
    if not timed:
        if limit_bytes is not None:
            raise InvalidInputError(
                f"which sessions are worth their memory depends on times, and those of "
                f"{setting.platform.name!r} are not known; name a shipped phone, e.g. pixel4"
            )
        return None
    (chain,), (parts,) = setting.chains, setting.sections
    return loaded_within(chunk_times(chain, parts), sessions, limit_bytes)


def _runs(able: Sequence[frozenset[int]]) -> tuple[Section, ...]:
    """Return the sections there would be if operators were neighbours where the file says so."""
    starts = [place for place in range(len(able)) if not place or able[place] != able[place - 1]]
    stops = [*starts[1:], len(able)]
    return tuple(
        Section(start=start, stop=stop, units=able[start]) for start, stop in zip(starts, stops, strict=True)
    )
