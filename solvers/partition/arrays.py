"""A layer graph as arrays over blocks: what the native searches compute with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from typing import Any

import numpy as np
import numpy.typing as npt

from ...formulations.partition.tables import Code, LayerGraph
from ...formulations.problem import Problem
from ...formulations.weights import Weights

Ints = npt.NDArray[np.int64]

NEVER = np.int64(2**60)
"""The load of what is not possible."""

Counts = tuple[int, ...]
"""How many units of each kind are in use."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Arrays:
    """Blocks, the tensors between them, and kinds of units.

    `least_parts`, `most_parts`: how many units have to be used at least, and may be at most; `pin_tensor`,
    `pin_block`: the pins of all tensors: tensor and block of each, tensor by tensor, the maker first.
    """

    graph: LayerGraph  # the tables of the problem
    kinds: tuple[tuple[int, ...], ...]  # the units that nothing tells apart
    least_parts: int
    most_parts: int
    time: Ints  # by [kind][block]; 0 where it cannot run
    barred: npt.NDArray[np.bool_]  # by [kind][block]: whether it cannot run there
    weights: Weights  # bytes of blocks
    capacity: tuple[int | None, ...]  # by kind; None: no limit
    pin_tensor: Ints
    pin_block: Ints
    outside: npt.NDArray[np.bool_]  # by tensor: whether it comes in or leaves
    cost: Ints  # by [kind][tensor]

    @property
    def block_count(self) -> int:
        """Number of blocks."""
        return self.graph.blocks.count

    @property
    def tensor_count(self) -> int:
        """Number of tensors between blocks."""
        return len(self.outside)

    @cached_property
    def pins(self) -> list[list[int]]:
        """The blocks of each tensor."""
        return [list(pins.layers) for pins in self.graph.block_pins]

    @cached_property
    def tensors_of(self) -> list[list[int]]:
        """The tensors of each block."""
        found: list[list[int]] = [[] for _ in range(self.block_count)]
        for tensor, blocks in enumerate(self.pins):
            for block in blocks:
                found[block].append(tensor)
        return found

    @cached_property
    def states(self) -> list[Counts]:
        """All numbers of units in use by kind, fewest units first."""
        exclusive = self.graph.exclusive
        rivals = [
            (one, other)
            for one, other in combinations(range(len(self.kinds)), 2)
            if self.kinds[other][0] in exclusive[self.kinds[one][0]]
        ]
        found = [
            counts
            for counts in product(*(range(len(units) + 1) for units in self.kinds))
            if sum(counts) <= self.most_parts
            and not any(counts[one] and counts[other] for one, other in rivals)
        ]
        return sorted(found, key=lambda counts: (sum(counts), counts))

    def code(self, parts: Sequence[tuple[int, Sequence[int]]]) -> Code:
        """Return a plan by index from (kind, blocks) of its parts."""
        left = [list(units) for units in self.kinds]
        code = [0] * self.graph.layer_count
        for kind, blocks in parts:
            unit = left[kind].pop(0)
            for block in blocks:
                for layer in self.graph.blocks.members[block]:
                    code[layer] = unit
        return tuple(code)


def build_arrays(problem: Problem, graph: LayerGraph) -> Arrays:
    """Return the arrays of a problem, with the graph that is searched."""
    kinds = graph.alike()
    first = [units[0] for units in kinds]
    pins = graph.block_pins
    rows = [[row[unit] for row in graph.block_us] for unit in first]
    whole: Any = [[tensor.us[unit] for tensor in pins] for unit in first]
    return Arrays(
        graph=graph,
        kinds=kinds,
        least_parts=max(1, problem.limits.min_units or 1),
        most_parts=min(graph.unit_count, problem.limits.max_units or graph.unit_count),
        time=np.array([[time or 0 for time in row] for row in rows], dtype=np.int64),
        barred=np.array([[time is None for time in row] for row in rows]),
        weights=graph.block_weights,
        capacity=tuple(graph.unit_memory[unit] for unit in first),
        pin_tensor=np.repeat(np.arange(len(pins)), [len(tensor.layers) for tensor in pins]),
        pin_block=np.array([block for tensor in pins for block in tensor.layers], dtype=np.int64),
        outside=np.array([tensor.outside for tensor in pins], dtype=bool),
        cost=np.array(whole, dtype=np.int64).reshape(len(kinds), len(pins)),
    )
