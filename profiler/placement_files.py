"""Layer graphs in the JSON format of device placement as problems of convex parts.

The format is that of Tarnawski et al. (NeurIPS 2020; github.com/msr-fiddle/dnn-partitioning, README): nodes
with `cpuLatency`, `fpgaLatency`, `size`, `supportedOnFpga`, `isBackwardNode` and `colorClass`, edges with
`sourceId`, `destId` and `cost`, and `maxFPGAs` accelerators with `maxSizePerFPGA` bytes each beside `maxCPUs`
CPUs, which have no limit and send at no cost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil, floor, isclose, isfinite
from pathlib import Path
from typing import Any, ClassVar

from ..formulations.costs import Provenance
from ..formulations.errors import InvalidInputError
from ..formulations.hardware import ProcessingUnit, UnitKind
from ..formulations.json_files import load_foreign
from ..formulations.partitions import GraphNode, graph_problem
from ..formulations.problem import Problem
from ..formulations.validation import MAX_COUNT, MAX_NAME_LENGTH, Defects

_PARTLY: dict[str, Any] = {"extra": "ignore"}
"""Files hold further keys for people."""

_MICROSECONDS = 1_000_000
"""The format does not say in what its times are: they are read as seconds, so that none is lost."""

_MOST_UNITS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementNode:
    """A node of the format."""

    __pydantic_config__: ClassVar[Any] = _PARTLY

    id: int
    supportedOnFpga: bool
    cpuLatency: float
    fpgaLatency: float
    size: float
    isBackwardNode: bool = False
    colorClass: int | None = None
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementEdge:
    """An edge of the format: what its source makes is sent at a cost, that of all its edges."""

    __pydantic_config__: ClassVar[Any] = _PARTLY

    sourceId: int
    destId: int
    cost: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementFile:
    """A file of the format."""

    __pydantic_config__: ClassVar[Any] = _PARTLY

    maxSizePerFPGA: float
    maxFPGAs: int
    maxCPUs: int
    nodes: tuple[PlacementNode, ...]
    edges: tuple[PlacementEdge, ...]


def is_placement(tree: Mapping[str, Any]) -> bool:
    """Return whether a JSON object says that it is in the format."""
    return "format" not in tree and {"maxFPGAs", "maxCPUs", "nodes", "edges"} <= set(tree)


def import_placement(path: str | Path) -> Problem:
    """Return the problem of a file: accelerators that are alike, CPUs, and the least largest load.

    Times are read as seconds and rounded to microseconds; a time below one counts as one, and what takes no
    time anywhere takes none. A node that is not supported on accelerators runs on a CPU. Parts are convex on
    CPUs, too, in the forward pass; the backward pass follows it, whichever way its edges point.

    Parameters
    ----------
    path
        The file.

    Raises
    ------
    InvalidInputError
        The file is not in the format, or its numbers are not valid; all defects are listed.
    """
    file = load_foreign(path, PlacementFile, called="a layer graph of device placement")
    defects = Defects(f"layer graph {path}")
    sends_us = _sends(file, defects)
    for field, least in (("maxFPGAs", 0), ("maxCPUs", 0)):
        if not least <= getattr(file, field) <= _MOST_UNITS:
            defects.add(f"{field} is {getattr(file, field)}, must be between {least} and {_MOST_UNITS}")
    if file.maxFPGAs + file.maxCPUs < 1:
        defects.add("maxFPGAs and maxCPUs are 0: there is nothing to run on")
    defects.check_unique("ids of nodes", [node.id for node in file.nodes])
    names = _names(file)
    parts, sizes, room = _sizes(file, defects)
    nodes = [
        _node(file, node, defects, name=names[node.id], sends_us=sends_us.get(node.id, 0), size=size)
        for node, size in zip(file.nodes, sizes, strict=True)
    ]
    for edge in file.edges:
        for end in (edge.sourceId, edge.destId):
            if end not in names:
                defects.add(f"an edge names node {end}, which is not there")
    defects.raise_as(InvalidInputError)
    accelerators = [
        ProcessingUnit(name=f"accelerator{number}", memory_bytes=room) for number in range(file.maxFPGAs)
    ]
    cpus = [ProcessingUnit(name=f"cpu{number}", kind=UnitKind.CPU) for number in range(file.maxCPUs)]
    return graph_problem(
        nodes,
        [(names[edge.sourceId], names[edge.destId]) for edge in file.edges],
        [*accelerators, *cpus],
        network=Path(path).stem[:MAX_NAME_LENGTH] or "graph",
        platform="device placement",
        provenance=Provenance(
            source=Path(path).name[:MAX_NAME_LENGTH],
            method="JSON of device placement",
            notes=f"times are read as seconds{_short(file)}"
            + f"; bytes are 1/{parts} of those of the file" * (parts > 1),
        ),
    )


def _names(file: PlacementFile) -> dict[int, str]:
    """Return a name for each node: its own if that is fit and unique."""
    own = [node.name for node in file.nodes]
    return {
        node.id: node.name
        if node.name.strip()
        and node.name.isprintable()
        and len(node.name) <= MAX_NAME_LENGTH
        and own.count(node.name) == 1
        else f"node {node.id}"
        for node in file.nodes
    }


def _node(
    file: PlacementFile, node: PlacementNode, defects: Defects, *, name: str, sends_us: int, size: int
) -> GraphNode:
    cpu, accelerator = (
        _time_us(value, f"{field} of node {node.id}", defects)
        for field, value in (("cpuLatency", node.cpuLatency), ("fpgaLatency", node.fpgaLatency))
    )
    on_accelerator = accelerator if node.supportedOnFpga else None
    accelerators, cpus = (max(0, min(count, _MOST_UNITS)) for count in (file.maxFPGAs, file.maxCPUs))
    return GraphNode(
        name=name,
        times_us=(on_accelerator,) * accelerators + (cpu,) * cpus,
        sends_us=(sends_us,) * accelerators + (0,) * cpus,
        bytes=size,
        colour=node.colorClass,
        backward=node.isBackwardNode,
    )


def _sends(file: PlacementFile, defects: Defects) -> dict[int, int]:
    """Return what it costs to send what each node makes; its edges have to say the same."""
    found: dict[int, int] = {}
    for edge in file.edges:
        cost = _time_us(edge.cost, f"cost of the edge {edge.sourceId} -> {edge.destId}", defects)
        if found.setdefault(edge.sourceId, cost) != cost:
            defects.add(f"edges from node {edge.sourceId} have different costs; it makes one tensor")
    return found


def _time_us(value: float, field: str, defects: Defects) -> int:
    if not isfinite(value) or not 0 <= value * _MICROSECONDS <= MAX_COUNT:
        defects.add(f"{field} is {value!r}, must be between 0 and {MAX_COUNT // _MICROSECONDS} seconds")
        return 0
    return max(1, round(value * _MICROSECONDS)) if value else 0


def _sizes(file: PlacementFile, defects: Defects) -> tuple[int, list[int], int]:
    """Return into how many parts bytes are divided, the sizes of all nodes, and the room of an accelerator.

    Where memory may be short and sizes are fractions they count: no node needs less than what is written.
    """
    sizes, room = [node.size for node in file.nodes], file.maxSizePerFPGA
    fields = {f"size of node {node.id}": node.size for node in file.nodes} | {"maxSizePerFPGA": room}
    wrong = {name: value for name, value in fields.items() if not 0 <= value <= MAX_COUNT}
    for field, value in wrong.items():
        defects.add(f"{field} is {value!r}, must be between 0 and {MAX_COUNT} bytes")
    if wrong:
        return 1, [0] * len(sizes), 0
    whole = sum(sizes)
    if whole <= room or all(size == int(size) for size in sizes):
        return 1, list(map(int, sizes)), int(room)
    parts = max((10**k for k in range(7) if max(whole, room) * 10**k < MAX_COUNT), default=1)
    return parts, [_rounded(size * parts, ceil) for size in sizes], _rounded(room * parts, floor)


def _rounded(value: float, way: Callable[[float], int]) -> int:
    """Return a number that is nearly whole as a whole one, others rounded in a way."""
    return round(value) if isclose(value, round(value), rel_tol=1e-12) else way(value)


def _short(file: PlacementFile) -> str:
    times = [value for node in file.nodes for value in (node.cpuLatency, node.fpgaLatency)]
    times += [edge.cost for edge in file.edges]
    count = sum(0 < value < 1 / _MICROSECONDS for value in times)
    return f"; {count} below a microsecond count as one" if count else ""
