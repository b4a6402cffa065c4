"""A layer graph and its units as plain integers by index: where judge, encodings and searches start."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

from ..blocks import Blocks, blocks_of
from ..limits import capped
from ..partitions import Partition
from ..problem import Problem
from ..weights import Weights

Code = tuple[int, ...]
"""A plan by index: the unit of each layer."""


@dataclass(frozen=True, slots=True)
class Pins:
    """A tensor as a hyperedge: each part that holds some of its pins but not all pays for it once."""

    layers: tuple[int, ...]  # who makes it, if a layer does, then who reads it
    outside: bool  # whether it comes into the network or leaves it: then no part holds all pins
    us: tuple[int, ...]  # what it takes each unit


@dataclass(frozen=True, kw_only=True, eq=False)
class LayerGraph:
    """The tables of one problem.

    `network`, `layers`, `units`: names, to come back from indices; `unit_memory`, `device_memory`: capacities
    in bytes, or None.
    """

    network: str
    layers: tuple[str, ...]
    units: tuple[str, ...]
    layer_us: tuple[tuple[int | None, ...], ...]  # time by [layer][unit]; None: cannot run there
    weights: Weights  # bytes that layers take of the memory of their unit
    edges: tuple[tuple[int, int], ...]
    """(a, b): the part of b is that of a or a later one. Layers of the forward pass, and gradients that no
    forward layer of their colour places."""
    tensors: tuple[Pins, ...]  # the tensors that cost something
    together: tuple[tuple[int, ...], ...]  # sets of layers that are in one part
    unit_memory: tuple[int | None, ...]
    device_memory: int | None
    exclusive: tuple[frozenset[int], ...]  # for each unit the set of the units that it excludes

    @property
    def layer_count(self) -> int:
        """Number of layers."""
        return len(self.layers)

    @property
    def unit_count(self) -> int:
        """Number of units."""
        return len(self.units)

    @cached_property
    def most_us(self) -> int:
        """An upper bound on the load of any unit, and on the sum of all loads."""
        times = sum(max((time or 0 for time in row), default=0) for row in self.layer_us)
        return times + sum(max(pins.us) * min(len(pins.layers), self.unit_count) for pins in self.tensors)

    @cached_property
    def blocks(self) -> Blocks:
        """What is never divided, and the order between it: what encodings and searches place."""
        return blocks_of(self.layer_count, self.edges, self.together)

    @cached_property
    def condensed(self) -> LayerGraph:
        """The same graph with further layers together: some best plan has them so, as far as the period goes.

        A block that takes no time and has one neighbour, which holds all its tensors and whose unit can run
        it, can always be in the part of that neighbour, unless memory may be short: that part pays for these
        tensors already.
        """
        room = min((capacity for capacity in self.unit_memory if capacity is not None), default=None)
        if room is not None and self.weights.whole > room:
            return self
        if self.device_memory is not None and self.weights.copied > self.device_memory:
            return self
        pairs = [
            (self.blocks.members[block][0], self.blocks.members[other][0])
            for block, other in _leaves(self.blocks, self.block_us, self.block_pins)
        ]
        if not pairs:
            return self
        return replace(self, together=(*self.together, *pairs)).condensed

    @cached_property
    def block_us(self) -> tuple[tuple[int | None, ...], ...]:
        """Time by [block][unit]; None: cannot run there."""
        found = []
        for members in self.blocks.members:
            columns = zip(*(self.layer_us[layer] for layer in members), strict=True)
            found.append(tuple(None if None in times else sum(map(int, times)) for times in columns))
        return tuple(found)

    @cached_property
    def block_weights(self) -> Weights:
        """Bytes of blocks."""
        return self.weights.grouped(self.blocks.of, self.blocks.count)

    @cached_property
    def block_pins(self) -> tuple[Pins, ...]:
        """The tensors between blocks: who makes each stands first; those with equal pins are one."""
        found: dict[tuple[tuple[int, ...], bool], tuple[int, ...]] = {}
        for pins in self.tensors:
            first, *others = dict.fromkeys(self.blocks.of[layer] for layer in pins.layers)
            if others or pins.outside:
                key = (first, *sorted(others)), pins.outside
                known = found.get(key, (0,) * self.unit_count)
                found[key] = tuple(map(int.__add__, known, pins.us))
        return tuple(Pins(layers=own, outside=out, us=us) for (own, out), us in found.items())

    def alike(self) -> tuple[tuple[int, ...], ...]:
        """Return the units in sets that nothing tells apart, each in the order of the platform."""
        found: dict[object, list[int]] = {}
        columns = list(zip(*self.layer_us, strict=True))
        costs = list(zip(*(pins.us for pins in self.tensors), strict=True)) or [()] * self.unit_count
        for unit in range(self.unit_count):
            own = unit if self.exclusive[unit] else None
            found.setdefault((columns[unit], costs[unit], self.unit_memory[unit], own), []).append(unit)
        return tuple(map(tuple, found.values()))


def _leaves(
    blocks: Blocks, times: Sequence[Sequence[int | None]], tensors: Sequence[Pins]
) -> Iterator[tuple[int, int]]:
    """Yield (block, its neighbour) of blocks that take no time and whose tensors all have one neighbour."""
    holders: dict[int, set[int]] = {}
    for pins in tensors:
        for block in pins.layers:
            holders[block] = holders.get(block, {*pins.layers}) & {*pins.layers}
    for block, row in enumerate(times):
        near = (*blocks.before[block], *blocks.after[block])
        if not any(row) and len(near) == 1 and near[0] in holders.get(block, near):
            pairs = zip(row, times[near[0]], strict=True)
            if all(own is not None or other is None for own, other in pairs):
                yield block, near[0]


def chain_of(graph: LayerGraph, code: Sequence[int]) -> tuple[int, ...] | None:
    """Return the units in use in an order in which the forward pass can run through their parts.

    Of several the one whose part has the first layer comes first. None: some wait for each other, so that
    the parts are not convex or cannot be ordered.
    """
    first: dict[int, int] = {}
    for layer, unit in enumerate(code):
        first.setdefault(unit, layer)
    before: dict[int, set[int]] = {unit: set() for unit in first}
    for layer, later in graph.edges:
        if code[layer] != code[later]:
            before[code[later]].add(code[layer])
    found: list[int] = []
    while before:
        ready = [unit for unit, others in before.items() if not others]
        if not ready:
            return None
        unit = min(ready, key=first.__getitem__)
        found.append(unit)
        del before[unit]
        for others in before.values():
            others.discard(unit)
    return tuple(found)


def build_graph(problem: Problem) -> LayerGraph:
    """Return the tables of a problem."""
    network, data = problem.network, partition_of(problem)
    platform = capped(problem.platform, problem.limits)
    units, instant = range(len(platform.units)), set(data.instant)
    layer_us = tuple(
        tuple(None if time is None else 0 for time in row) if layer in instant else row
        for layer, row in enumerate(problem.costs.of(network.name).layer_us)
    )
    costs = data.tensor_us or ((0,) * len(units),) * len(network.tensors)
    together = data.colours + tuple((cut - 1, cut) for cut in network.forbidden_cuts)
    return LayerGraph(
        network=network.name,
        layers=network.layer_names,
        units=platform.unit_names,
        layer_us=layer_us,
        weights=network.weights,
        edges=tuple(sorted(_edges(problem, together))),
        tensors=tuple(
            pins
            for tensor, us in zip(network.tensors, costs, strict=True)
            if any((pins := _pins(tensor.source, tensor.targets, us, len(network.layers))).us)
            and len(pins.layers) + pins.outside > 1
        ),
        together=together,
        unit_memory=tuple(unit.memory_bytes for unit in platform.units),
        device_memory=platform.memory_bytes,
        exclusive=platform.exclusive,
    )


def _pins(source: int, targets: Sequence[int], us: tuple[int, ...], count: int) -> Pins:
    layers = tuple(layer for layer in dict.fromkeys((source, *targets)) if 0 <= layer < count)
    return Pins(layers=layers, outside=source < 0 or count in targets, us=us)


def _edges(problem: Problem, together: tuple[tuple[int, ...], ...]) -> set[tuple[int, int]]:
    """Return which layer's part is not before which other's.

    The forward pass is ordered. A gradient is where a forward layer of its colour is, whatever its edges say;
    those without one are ordered by the edges between gradients.
    """
    backward, count = set(partition_of(problem).backward), len(problem.network.layers)
    edges = {
        (tensor.source, target)
        for tensor in problem.network.tensors
        for target in tensor.targets
        if tensor.source >= 0 and target < count
    }
    forward = {edge for edge in edges if backward.isdisjoint(edge)}
    if not backward:
        return forward
    plain = blocks_of(count, forward, together)
    led = {block for layer, block in enumerate(plain.of) if layer not in backward}
    own = {edge for edge in edges if backward.issuperset(edge) and not {plain.of[e] for e in edge} <= led}
    for way in ({(reader, maker) for maker, reader in own}, own):
        blocks = blocks_of(count, forward | way, together)
        if len({blocks.of[plain.members[block][0]] for block in led}) == len(led):
            return forward | way
    return forward  # neither way goes with the forward pass


def partition_of(problem: Problem) -> Partition:
    """Return what a problem asks of its parts."""
    return cast("Partition", problem.data)


def graph_of(problem: Problem) -> LayerGraph:
    """Return the tables of a problem, which keeps them."""
    return cast("LayerGraph", problem.tables)


def graph_to_search(problem: Problem, *, one: bool, known: Code | None = None) -> LayerGraph:
    """Return the graph that a search has to look at: the condensed one, where that leaves a best plan.

    `known`: a plan that has to be among those of the graph, or None.
    """
    graph = graph_of(problem)
    plain = problem.ranking == ("period",) and not problem.rules and problem.limits.min_units is None
    if not (one and plain):
        return graph
    found = graph.condensed
    apart = known is not None and any(
        len({known[layer] for layer in own}) > 1 for own in found.blocks.members
    )
    return graph if apart else found
