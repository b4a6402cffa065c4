"""Networks that a coordinator holds: their sections, their chunks as sessions, and their task slots."""

from __future__ import annotations

import heapq
import os
import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from ...formulations.chain import Chain, build_chain
from ...formulations.coordination.expected import Key, largest_chunks
from ...formulations.coordination.sections import Section, sections_of, sessions_of
from ...formulations.coordination.sessions import Loaded
from ...formulations.costs import NetworkCosts
from ...formulations.errors import InvalidInputError, InvalidPlanError, LayerNotRunnableError
from ...formulations.hardware import Platform
from ...formulations.operators import excluded
from ...formulations.plan import Chunk
from ...formulations.validation import meant, shown
from ..engine import Engine
from ..model import Model, Piece
from ..pipeline.blueprint import SessionSpec, session_spec, slot_tensors
from ..pipeline.shared import SharedMemory, SlotLayout
from .worker import NetworkSettings

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Tensors = Mapping[str, NDArray[Any]]

Span = tuple[int, int]
"""A chunk of sections: the first one, and one past the last."""

Cannot = Mapping[str, Collection[str]]
"""By unit, rules about the operators that it cannot run (`formulations.operators`)."""

Routes = Sequence[Sequence[Chunk]]
"""Chunks of a plan, one or several ways through a network; a request takes one of them. Empty: all chunks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What a network could be served by."""

    sections: tuple[Section, ...]
    bytes: Mapping[Key, int]
    """What each chunk on each unit needs, where that is possible; with a plan only the chunks of the plan."""
    planned: bool  # whether they are those of a plan
    content: tuple[str, ...]  # what tells whether two networks are the same: all sections, and the outputs

    def largest(self, model: Model, platform: Platform) -> dict[int, Key]:
        """Return, by index of unit, its chunk of most work."""
        return largest_chunks(model.network, self.sections, self.bytes.keys(), platform.units)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldNetwork:
    """A network as it is held."""

    model: Model  # what it is
    sections: tuple[Section, ...]
    keys: frozenset[Key]  # its chunks: first section, one past the last, and index of the unit
    pieces: Mapping[Span, tuple[Piece, ...]]  # what those chunks are made of
    sessions: Mapping[Key, tuple[SessionSpec, ...]]  # the sessions of each chunk
    layout: SlotLayout  # of its task slots
    offer: Offer  # all chunks that it could have; `keys` are some of them
    loaded: Loaded | None = None  # how these were chosen; None: they are all, or those of a plan

    @property
    def name(self) -> str:
        """Name of the network."""
        return self.model.network.name

    def layers(self, start: int, stop: int) -> tuple[int, int]:
        """Return the layers [start, stop) of a chunk of sections."""
        return self.sections[start].start, self.sections[stop - 1].stop

    def largest(self, platform: Platform) -> dict[int, Key]:
        """Return, by index of unit, its chunk of most work."""
        return largest_chunks(self.model.network, self.sections, self.keys, platform.units)

    def settings(self, index: int, unit: int, memory: SharedMemory) -> NetworkSettings:
        """Return what the worker of a unit is told about it."""
        sessions = {key[:2]: self.sessions[key] for key in sorted(self.keys) if key[2] == unit}
        return network_settings(index, sessions, self.layout, memory)


def network_settings(
    index: int, sessions: Mapping[Span, Sequence[SessionSpec]], layout: SlotLayout, memory: SharedMemory
) -> NetworkSettings:
    """Return what a worker in reach of task slots is told about the chunks of a network."""
    offsets = {spec.name: at for spec, at in zip(layout.tensors, layout.offsets, strict=True)}
    return NetworkSettings(
        network=index,
        parent=os.getpid(),
        descriptor=memory.descriptor,
        size=memory.size,
        slot_size=layout.size,
        chunks=[
            (
                *span,
                [
                    {
                        "artifact": asdict(spec.artifact),
                        "inputs": [offsets[name] for name in spec.inputs],
                        "outputs": [offsets[name] for name in spec.outputs],
                    }
                    for spec in specs
                ],
            )
            for span, specs in sessions.items()
        ],
    )


def prepared(engine: Engine, chunks: Mapping[Span, Sequence[Piece]]) -> dict[Span, tuple[SessionSpec, ...]]:
    """Have an engine prepare chunks, and return the sessions of each."""
    unique = {(piece.digest, piece.name): piece for some in chunks.values() for piece in some}
    artifacts = dict(zip(unique, engine.prepare(tuple(unique.values())), strict=True))
    return {
        span: tuple(session_spec(piece, artifacts[piece.digest, piece.name]) for piece in some)
        for span, some in chunks.items()
    }


def chain_of(model: Model, platform: Platform, costs: NetworkCosts | None, cannot: Cannot) -> Chain:
    """Return what each unit can run of a network, and what it costs there if that is known.

    `costs`: its costs; None: not known, each layer counts 1. `cannot`: rules about operators that units
    cannot run, besides those of the platform.
    """
    names, network = platform.unit_names, model.network
    for unit in cannot:
        if unit not in names:
            raise InvalidInputError(f"no unit {shown(unit)} on {platform.name!r}; {meant(unit, names)}")
    rows = costs.layer_us if costs else ((1,) * len(names),) * len(network.layers)
    rules = [(*unit.unsupported, *cannot.get(unit.worker_of or unit.name, ())) for unit in platform.units]
    layer_us = tuple(
        tuple(
            None if excluded(layer.op_types, lacks) else time_us
            for lacks, time_us in zip(rules, row, strict=True)
        )
        for layer, row in zip(network.layers, rows, strict=True)
    )
    for layer, row in zip(network.layers, layer_us, strict=True):
        if all(time_us is None for time_us in row):
            raise LayerNotRunnableError(
                f"no unit can run layer {layer.name!r} of {network.name!r} "
                f"({', '.join(layer.op_types) or 'operators unknown'}); add a unit that can"
            )
    known = (
        replace(costs, layer_us=layer_us) if costs else NetworkCosts(network=network.name, layer_us=layer_us)
    )
    return build_chain(platform, network, known)


def offer_of(
    model: Model,
    chain: Chain,
    *,
    borders: Collection[int] = (),
    routes: Routes = (),
    places: Sequence[int] = (),
) -> Offer:
    """Return what a network could be served by.

    `places`: for each unit the first worker of its unit; every worker can run what a plan has there.
    `borders`: cuts where a section ends although the same units can run both sides.
    Raises InvalidInputError: a border is no legal cut, or the chunks are not those of a plan that can run.
    """
    ends = {chunk.stop for route in routes for chunk in route} - {chain.layer_count}
    sections = sections_of(chain, {*borders, *ends})
    sizes = sessions_of(chain, sections)
    keys = frozenset[Key]().union(*(_route_keys(chain, sections, route) for route in routes))
    keys |= {(*key[:2], unit) for key in keys for unit, place in enumerate(places) if place == key[2]}
    if tight := sorted(keys - sizes.keys()):
        start, stop, unit = tight[0]
        raise InvalidPlanError(
            f"the plan for network {chain.network!r} needs more memory for layers {sections[start].start} to "
            f"{sections[stop - 1].stop - 1} than unit {chain.units[unit]!r} has"
        )
    for index, section in enumerate(sections):
        if not any(start <= index < stop for start, stop, _ in sizes):
            raise LayerNotRunnableError(
                f"no unit that can run layers {section.start} to {section.stop - 1} of {chain.network!r} has "
                "the memory for them; give a unit more memory, or add one"
            )
    pieces = [piece for section in sections for piece in model.pieces(section.start, section.stop)]
    return Offer(
        sections=sections,
        bytes={key: size for key, size in sizes.items() if not keys or key in keys},
        planned=bool(keys),
        content=(*(piece.digest for piece in pieces), *(spec.name for spec in model.outputs)),
    )


def hold(
    model: Model,
    engines: Sequence[Engine],
    offer: Offer,
    keys: Collection[Key] = (),
    *,
    loaded: Loaded | None = None,
) -> HeldNetwork:
    """Have engines prepare chunks of a network.

    `engines`: who prepares the chunks of each unit, and opens them later, in its worker; `keys`: which of the
    offer; empty: all of them, or those that are `loaded`.
    """
    sections = offer.sections
    keys = frozenset(keys or (offer.bytes if loaded is None else loaded.sessions))
    pieces = {
        (start, stop): model.pieces(sections[start].start, sections[stop - 1].stop)
        for start, stop in sorted({key[:2] for key in keys})
    }
    sessions: dict[Key, tuple[SessionSpec, ...]] = {}
    for engine in {engine.name: engine for engine in engines}.values():
        own = sorted(key for key in keys if engines[key[2]].name == engine.name)
        made = prepared(engine, {key[:2]: pieces[key[:2]] for key in own})
        sessions |= {key: made[key[:2]] for key in own}
    tensors = [*model.inputs, *model.outputs]
    tensors += [spec for some in pieces.values() for piece in some for spec in slot_tensors(piece)]
    return HeldNetwork(
        model=model,
        sections=sections,
        keys=keys,
        pieces=pieces,
        sessions=sessions,
        layout=SlotLayout.of(tensors, 0),
        offer=offer,
        loaded=loaded,
    )


def _route_keys(chain: Chain, sections: tuple[Section, ...], route: Sequence[Chunk]) -> frozenset[Key]:
    begins = {section.start: index for index, section in enumerate(sections)}
    ends = {section.stop: index + 1 for index, section in enumerate(sections)}
    done, keys = 0, set[Key]()
    for chunk in route:
        unit = chain.units.index(chunk.unit) if chunk.unit in chain.units else None
        if chunk.start != done or unit is None or not chain.runs(chunk.start, chunk.stop, unit):
            raise InvalidPlanError(
                f"network {chain.network!r} cannot be served by layers {chunk.start} to {chunk.stop - 1} on "
                f"{chunk.unit!r}: the chunks of a plan follow each other, and their units can run them"
            )
        keys.add((begins[chunk.start], ends[chunk.stop], unit))
        done = chunk.stop
    if done != chain.layer_count:
        raise InvalidPlanError(
            f"the plan for network {chain.network!r} ends before layer {done} of {chain.layer_count}"
        )
    return frozenset(keys)


class TaskSlots:
    """Task slots of one network: shared memory of which the pages are there once a request has used them.

    `certain`: how many of them have their memory at once; those with the lowest numbers are used first.
    Raises ExecutionError: there is not enough memory.
    """

    def __init__(self, layout: SlotLayout, count: int, *, certain: int) -> None:
        self.layout = layout
        self.memory = SharedMemory.create(layout.size * count, reserved=layout.size * min(count, certain))
        self._free = list(range(count))
        self._tensors: dict[int, Tensors] = {}
        self._lock = threading.Lock()

    def take(self) -> int:
        """Return a slot that nobody uses."""
        with self._lock:
            return heapq.heappop(self._free)

    def give(self, slot: int) -> None:
        """Give a slot back."""
        with self._lock:
            heapq.heappush(self._free, slot)

    def tensors(self, slot: int) -> Tensors:
        """Return the tensors of a slot by name, without a copy."""
        if slot not in self._tensors:
            at = slot * self.layout.size
            self._tensors[slot] = {
                spec.name: self.memory.array(spec, at + offset)
                for spec, offset in zip(self.layout.tensors, self.layout.offsets, strict=True)
            }
        return self._tensors[slot]

    def fill(self, slot: int, tensors: Tensors) -> None:
        """Copy tensors into a slot."""
        own = self.tensors(slot)
        for name, array in tensors.items():
            own[name][...] = array

    def close(self) -> None:
        """Give the memory back. Can be called twice."""
        self._tensors.clear()
        self.memory.close()
