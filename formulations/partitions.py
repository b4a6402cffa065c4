"""Networks whose graph is cut into convex parts: their data, and problems from nodes and edges.

A layer graph with what a chain does not say: what each tensor costs each unit that sends or receives it,
which layers have to stay together, and which belong to the backward pass of training.

Source: Tarnawski, Phanishayee, Devanur, Mahajan and Nina Paravecino, "Efficient Algorithms for Device
Placement of DNN Graph Operators", NeurIPS 2020, sections 3 and 4 and appendix B.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import ClassVar

from .costs import CostTable, NetworkCosts, Provenance
from .errors import InvalidProblemError
from .hardware import Platform, ProcessingUnit
from .network import Layer, Network, Tensor
from .problem import Problem
from .terms import Objective
from .validation import Defects, FileContent


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition(FileContent):
    """What is asked of the parts of a network.

    Attributes
    ----------
    tensor_us
        What it takes a unit to send or receive a tensor, microseconds by [tensor][unit]; a unit that reads
        the memory of the host has zeros. Empty: tensors cost nothing.
    colours
        Sets of layers that are in one part.
    backward
        The layers of the backward pass: they are where the forward layers of their colours are.
    instant
        The layers that take no time, wherever they can run: in the table of costs, which has positive times
        only, what is written for them does not count.
    over_links
        Whether the units are devices that links join.
    """

    data_key: ClassVar[str] = "partition"

    tensor_us: tuple[tuple[int, ...], ...] = ()
    colours: tuple[tuple[int, ...], ...] = ()
    backward: tuple[int, ...] = ()
    instant: tuple[int, ...] = ()
    over_links: bool = False

    def __post_init__(self) -> None:
        defects = Defects("partition")
        for index, row in enumerate(self.tensor_us):
            defects.check_counts(f"tensor_us[{index}]", row)
        defects.check_sets("colours", self.colours, "layers with a colour")
        for field in ("backward", "instant"):
            defects.check_counts(field, getattr(self, field))
            defects.check_unique(field, getattr(self, field))
        defects.raise_as(InvalidProblemError)

    def mismatches(self, platform: Platform, network: Network) -> Iterator[str]:
        """Yield what does not go with the units and the network of a problem."""
        layers, tensors, units = len(network.layers), len(network.tensors), len(platform.units)
        if self.tensor_us and len(self.tensor_us) != tensors:
            yield f"partition: tensor_us has {len(self.tensor_us)} rows for {tensors} tensors"
        for index, row in enumerate(self.tensor_us):
            if len(row) != units:
                yield f"partition: tensor_us[{index}] has {len(row)} entries for {units} units"
        named = {"colours": chain.from_iterable(self.colours), "backward": self.backward}
        for field, indices in {**named, "instant": self.instant}.items():
            strange = sorted(index for index in indices if index >= layers)
            if strange:
                text = ", ".join(map(str, strange[:5]))
                yield f"partition: {field} names {text}; the layers are 0 to {layers - 1}"
        backward = set(self.backward)
        for tensor in network.tensors:
            if tensor.source in backward:
                ahead = [target for target in tensor.targets if target < layers and target not in backward]
                if ahead:
                    yield (
                        f"partition: tensor {tensor.name!r} goes from the backward layer {tensor.source} to "
                        f"layer {ahead[0]} of the forward pass"
                    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphNode:
    """A node of a layer graph."""

    name: str  # unique in the graph
    times_us: tuple[int | None, ...]
    """Its time on each unit; None: cannot run there. One that takes no time takes none on any unit."""
    sends_us: tuple[int, ...] = ()  # what it takes each unit to send or receive what it makes
    bytes: int = 0  # what it takes of the memory of its unit
    output_bytes: int = 0  # size of what it makes
    colour: Hashable | None = None  # nodes of one colour are in one part; None: it has none
    backward: bool = False  # whether it belongs to the backward pass


def graph_problem(
    nodes: Sequence[GraphNode],
    edges: Iterable[tuple[str, str]],
    units: Sequence[ProcessingUnit],
    *,
    network: str = "network",
    platform: str = "platform",
    provenance: Provenance = Provenance(),
) -> Problem:
    """Return the problem of a graph; what a node makes is one tensor, however many read it.

    Its layers are the nodes in a topological order, the one that keeps closest to the given order.

    `edges`: (maker, reader) by name; what is said twice counts once. `units`: the units; each runs at most
    one part.
    Raises InvalidProblemError: names are not unique or not there, edges make a circle, or numbers are not
    valid; all are named.
    """
    readers = _readers(nodes, edges)
    order = _topological(nodes, readers)
    place = {node.name: position for position, node in enumerate(order)}
    makers = [node for node in order if readers[node.name]]
    colours: dict[Hashable, list[int]] = {}
    for position, node in enumerate(order):
        if node.colour is not None:
            colours.setdefault(node.colour, []).append(position)
    sends = any(any(node.sends_us) for node in makers)
    instant = tuple(i for i, node in enumerate(order) if not any(node.times_us) and 0 in node.times_us)
    names = tuple(unit.name for unit in units)
    return Problem(
        platform=Platform(name=platform, units=tuple(units)),
        networks=(
            Network(
                name=network,
                layers=tuple(Layer(name=node.name, weight_bytes=node.bytes) for node in order),
                tensors=tuple(
                    Tensor(
                        name=node.name,
                        bytes=node.output_bytes,
                        source=place[node.name],
                        targets=tuple(sorted(place[reader] for reader in readers[node.name])),
                    )
                    for node in makers
                ),
            ),
        ),
        costs=CostTable(
            units=names,
            networks=(NetworkCosts(network=network, layer_us=tuple(map(_positive, order))),),
            provenance=provenance,
        ),
        objective=Objective(terms=("period",)),
        data=Partition(
            tensor_us=tuple(node.sends_us or (0,) * len(names) for node in makers) if sends else (),
            colours=tuple(tuple(own) for own in colours.values() if len(own) > 1),
            backward=tuple(position for position, node in enumerate(order) if node.backward),
            instant=instant,
        ),
    )


def _positive(node: GraphNode) -> tuple[int | None, ...]:
    return tuple(None if time is None else max(1, time) for time in node.times_us)


def _readers(nodes: Sequence[GraphNode], edges: Iterable[tuple[str, str]]) -> dict[str, dict[str, None]]:
    defects = Defects("layer graph")
    defects.check_size("nodes", len(nodes), most=10**6)
    defects.check_unique("names of nodes", [node.name for node in nodes])
    found: dict[str, dict[str, None]] = {node.name: {} for node in nodes}
    for maker, reader in edges:
        if maker in found and reader in found and maker != reader:
            found[maker][reader] = None
        else:
            what = "goes to itself" if maker == reader else "names a node that is not there"
            defects.add(f"the edge from {maker!r} to {reader!r} {what}")
    defects.raise_as(InvalidProblemError)
    return found


def _topological(nodes: Sequence[GraphNode], readers: Mapping[str, Collection[str]]) -> list[GraphNode]:
    """Return the nodes in a topological order: always the first of the given ones that is ready."""
    index = {node.name: position for position, node in enumerate(nodes)}
    waiting = dict.fromkeys(index, 0)
    for own in readers.values():
        for reader in own:
            waiting[reader] += 1
    ready = [index[name] for name, count in waiting.items() if not count]
    order: list[GraphNode] = []
    while ready:
        node = nodes[heapq.heappop(ready)]
        order.append(node)
        for reader in readers[node.name]:
            waiting[reader] -= 1
            if not waiting[reader]:
                heapq.heappush(ready, index[reader])
    if len(order) < len(nodes):
        stuck = sorted(name for name, count in waiting.items() if count)
        raise InvalidProblemError(
            f"layer graph: edges make a circle, through some of {', '.join(map(repr, stuck[:5]))}"
        )
    return order
