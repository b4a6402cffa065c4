"""Plans that give each layer of a network to a unit: which units, and what is wrong with the plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from .plan import Chunk, Plan
from .scores import Violation
from .terms import UNIT, Index, QuantityInfo

LAYER = Index(name="layer", allowed=lambda tables, *_: range(len(tables.layers)))


def placed_quantities(busy: str, most_us: Callable[..., int]) -> tuple[QuantityInfo, ...]:
    """Return which unit runs what, and its time and bytes: of numbers with a method `unit_of` of a layer.

    `busy`: what a unit is busy with, in words.
    """
    return (
        QuantityInfo(
            "on",
            "the unit runs the layer",
            (LAYER, UNIT),
            read=lambda plan, layer, unit: int(plan.unit_of(layer) == unit),
        ),
        QuantityInfo(
            "uses",
            "the unit runs at least one layer",
            (UNIT,),
            read=lambda plan, unit: int(unit in plan.busy_us),
        ),
        QuantityInfo("busy_us", busy, (UNIT,), most=most_us),
        QuantityInfo(
            "memory_bytes",
            "bytes of the layers of the unit",
            (UNIT,),
            most=lambda tables, *_: tables.weights.whole,
        ),
    )


def units_of_layers(plan: Plan, tables: Any) -> tuple[list[int], list[Violation]]:
    """Return the index of the unit of each layer, and why that is none: it is -1 or the last of several then.

    `tables`: those of the problem, with the names of the network, its layers and the units.
    """
    layers, units = tables.layers, tables.units
    unit_of = [-1] * len(layers)
    wrong = [*_unknown(plan, tables.network, len(layers), units)]
    if not wrong:
        covered = [0] * len(layers)
        for chunk in plan.chunks:
            for layer in range(chunk.start, chunk.stop):
                covered[layer] += 1
                unit_of[layer] = units.index(chunk.unit)
        wrong += _gaps(layers, covered)
    return unit_of, wrong


def chunks_of_layers(unit_of: Sequence[int], tables: Any) -> tuple[Chunk, ...]:
    """Return the layers of each unit as chunks: runs of the given order."""
    chunks, start = [], 0
    for unit, run in groupby(unit_of):
        stop = start + sum(1 for _ in run)
        chunks.append(Chunk(network=tables.network, start=start, stop=stop, unit=tables.units[unit]))
        start = stop
    return tuple(chunks)


def too_full(memory_bytes: Mapping[int, int], tables: Any) -> Iterator[Violation]:
    """Yield the units whose layers do not fit, and the device if all of them do not; bytes by unit in use."""
    for unit, needs in sorted(memory_bytes.items()):
        capacity = tables.unit_memory[unit]
        if capacity is not None and needs > capacity:
            text = f"the layers of unit {tables.units[unit]!r} take {needs} bytes, it has {capacity}"
            yield Violation(rule="unit_memory", message=text)
    whole = sum(memory_bytes.values())
    if tables.device_memory is not None and whole > tables.device_memory:
        text = f"all layers take {whole} bytes, the device has {tables.device_memory}"
        yield Violation(rule="device_memory", message=text)


def _unknown(plan: Plan, network: str, layers: int, units: Sequence[str]) -> Iterator[Violation]:
    for chunk in plan.chunks:
        where = f"layers [{chunk.start}, {chunk.stop}) on {chunk.unit!r}"
        if chunk.network != network:
            text = f"network {chunk.network!r}; the problem has {network!r}"
            yield Violation(rule="names", message=f"{where}: {text}")
        if chunk.unit not in units:
            text = f"no such unit; the platform has {', '.join(units)}"
            yield Violation(rule="names", message=f"{where}: {text}")
        if chunk.stop > layers:
            yield Violation(rule="names", message=f"{where}: the network has only {layers} layers")


def _gaps(layers: Sequence[str], covered: Sequence[int]) -> Iterator[Violation]:
    for what, wrong in (
        ("no unit", [layer for layer, times in enumerate(covered) if not times]),
        ("several units", [layer for layer, times in enumerate(covered) if times > 1]),
    ):
        if wrong:
            named = ", ".join(repr(layers[layer]) for layer in wrong[:5])
            more = f" and {len(wrong) - 5} more" if len(wrong) > 5 else ""
            yield Violation(rule="coverage", message=f"{what} for layer {named}{more}")
