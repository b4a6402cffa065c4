"""What a partition is by index, and what it breaks, in exact integers. Nothing here knows of blocks."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from ..errors import MalformedPlanError
from ..plan import Chunk, Plan
from ..scores import Violation
from .quantities import PartValues
from .tables import Code, LayerGraph, chain_of


def well_formed(graph: LayerGraph, plan: Plan) -> Code:
    """Return the unit of each layer."""
    wrong, code = [*_unknown(graph, plan)], [-1] * graph.layer_count
    if not wrong:
        index = {unit: position for position, unit in enumerate(graph.units)}
        covered = [0] * graph.layer_count
        for chunk in plan.chunks:
            for layer in range(chunk.start, chunk.stop):
                covered[layer] += 1
                code[layer] = index[chunk.unit]
        wrong += _gaps(graph, covered)
    if not wrong and chain_of(graph, code) is None:
        wrong.append(Violation(rule="convexity", message=_circle(graph, code)))
    if wrong:
        raise MalformedPlanError(plan, wrong)
    return tuple(code)


def plan_of(graph: LayerGraph, code: Code) -> Plan:
    """Return a plan by name: for each unit its layers, as runs of the given order."""
    chunks, start = [], 0
    for unit, run in groupby(code):
        stop = start + sum(1 for _ in run)
        chunks.append(Chunk(network=graph.network, start=start, stop=stop, unit=graph.units[unit]))
        start = stop
    return Plan(chunks=tuple(chunks))


def _unknown(graph: LayerGraph, plan: Plan) -> Iterator[Violation]:
    for chunk in plan.chunks:
        where = f"layers [{chunk.start}, {chunk.stop}) on {chunk.unit!r}"
        if chunk.network != graph.network:
            text = f"network {chunk.network!r}; the problem has {graph.network!r}"
            yield Violation(rule="names", message=f"{where}: {text}")
        if chunk.unit not in graph.units:
            text = f"no such unit; the platform has {', '.join(graph.units)}"
            yield Violation(rule="names", message=f"{where}: {text}")
        if chunk.stop > graph.layer_count:
            text = f"the network has only {graph.layer_count} layers"
            yield Violation(rule="names", message=f"{where}: {text}")


def _gaps(graph: LayerGraph, covered: list[int]) -> Iterator[Violation]:
    for what, wrong in (
        ("no unit", [layer for layer, times in enumerate(covered) if not times]),
        ("several units", [layer for layer, times in enumerate(covered) if times > 1]),
    ):
        if wrong:
            named = ", ".join(repr(graph.layers[layer]) for layer in wrong[:5])
            more = f" and {len(wrong) - 5} more" if len(wrong) > 5 else ""
            yield Violation(rule="coverage", message=f"{what} for layer {named}{more}")


def _circle(graph: LayerGraph, code: list[int]) -> str:
    """Say which units wait for each other: two of them, or all that are left."""
    waits = {(code[a], code[b]): (a, b) for a, b in graph.edges if code[a] != code[b]}
    for (one, other), (layer, later) in waits.items():
        if (other, one) in waits:
            back, forth = waits[other, one]
            return (
                f"parts are not convex: {graph.units[other]!r} needs {graph.layers[layer]!r} of "
                f"{graph.units[one]!r} for {graph.layers[later]!r}, and {graph.units[one]!r} needs "
                f"{graph.layers[back]!r} of {graph.units[other]!r} for {graph.layers[forth]!r}"
            )
    names = ", ".join(sorted({repr(graph.units[unit]) for pair in waits for unit in pair}))
    return f"parts cannot be ordered: units {names} wait for each other in a circle"


def broken(values: PartValues) -> Iterator[Violation]:
    """Yield layers that units cannot run, divided colours, conflicts and capacities that a plan breaks."""
    graph, code = values.graph, values.code
    for layer, unit in enumerate(code):
        if graph.layer_us[layer][unit] is None:
            text = f"unit {graph.units[unit]!r} cannot run layer {graph.layers[layer]!r}"
            yield Violation(rule="support", message=text)
    for colour in graph.together:
        if len({code[layer] for layer in colour}) > 1:
            named = ", ".join(repr(graph.layers[layer]) for layer in colour[:5])
            units = ", ".join(sorted({repr(graph.units[code[layer]]) for layer in colour}))
            yield Violation(rule="colour", message=f"layers {named} belong together, but are on {units}")
    used = sorted(values.busy_us)
    for unit in used:
        for other in used:
            if other > unit and other in graph.exclusive[unit]:
                names = f"{graph.units[unit]!r} and {graph.units[other]!r}"
                yield Violation(rule="conflict", message=f"units {names} share cores")
    for unit in used:
        capacity, needs = graph.unit_memory[unit], values.memory_bytes[unit]
        if capacity is not None and needs > capacity:
            text = f"the layers of unit {graph.units[unit]!r} take {needs} bytes, it has {capacity}"
            yield Violation(rule="unit_memory", message=text)
    whole = sum(values.memory_bytes.values())
    if graph.device_memory is not None and whole > graph.device_memory:
        text = f"all layers take {whole} bytes, the device has {graph.device_memory}"
        yield Violation(rule="device_memory", message=text)
