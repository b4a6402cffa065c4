"""A layer graph as arrays over blocks, and the best cuts of one linear order, exactly.

best[c + k][i] = min over j < i of max(best[c][j], load_k[j][i])

A segment pays for a tensor unless it holds none of its pins or all of them. Both are sums over rectangles of
the square of segments, so that the messages of all segments are two cumulative sums.
"""

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
from ..topological_orders import Order

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


MOST_CELLS = 1_200_000
"""Boundaries of a program are chosen such that one matrix of loads has at most this number of entries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """An order with cuts."""

    value: int  # the largest load, or the sum of what was added up
    order: Order  # the blocks
    cuts: tuple[int, ...]  # where parts begin in it, and its length
    kinds: tuple[int, ...]  # the kind of unit of each part

    @property
    def parts(self) -> list[tuple[int, Order]]:
        """Kind and blocks of each part."""
        return [
            (kind, self.order[start:stop])
            for kind, start, stop in zip(self.kinds, self.cuts[:-1], self.cuts[1:], strict=True)
        ]


class Measure:
    """What a segment adds to the objective, and how segments come together."""

    def __init__(self, *, compute: int, messages: int, parts: int, largest: bool) -> None:
        self.compute, self.messages, self.parts = compute, messages, parts
        self.join = np.maximum if largest else np.add
        self.largest = largest


LOAD = Measure(compute=1, messages=1, parts=0, largest=True)
"""The largest load."""


def most_boundaries(arrays: Arrays) -> int:
    """Return how many boundaries a program may have."""
    return int(min(MOST_CELLS, 40 * MOST_CELLS // max(1, len(arrays.states))) ** 0.5)


def best_cuts(
    arrays: Arrays, order: Order, boundaries: Sequence[int] | None = None, measure: Measure = LOAD
) -> Line | None:
    """Return the best cuts of an order at some boundaries; None: no cuts do.

    `order`: a topological order of the blocks. `boundaries`: where parts may begin or end, with 0 and the
    number of blocks; None: anywhere.
    """
    places = np.arange(len(order) + 1) if boundaries is None else np.array(sorted(set(boundaries)))
    loads = [_measured(arrays, order, places, kind, measure) for kind in range(len(arrays.kinds))]
    start = np.full(len(places), NEVER)
    start[0] = 0
    zero = arrays.states[0]
    best: dict[Counts, Ints] = {zero: start}
    origin: dict[Counts, tuple[Ints, Ints]] = {}
    for state in arrays.states[1:]:
        values, kinds = np.full(len(places), NEVER), np.zeros(len(places), dtype=np.int64)
        sources = np.zeros(len(places), dtype=np.int64)
        for kind, used in enumerate(state):
            if used:
                before = best[_less(state, kind)]
                joined = measure.join(before[:, None], loads[kind])
                chosen = joined.argmin(axis=0)
                found = joined[chosen, np.arange(len(places))]
                better = found < values
                values[better], sources[better], kinds[better] = found[better], chosen[better], kind
        best[state], origin[state] = np.minimum(values, NEVER), (kinds, sources)
    ends = [state for state in origin if sum(state) >= arrays.least_parts and best[state][-1] < NEVER]
    if not ends:
        return None
    state = min(ends, key=lambda counts: (best[counts][-1], sum(counts), counts))
    value = int(best[state][-1])
    cuts, chosen_kinds, place = [len(places) - 1], [], len(places) - 1
    while place:
        kind, place = int(origin[state][0][place]), int(origin[state][1][place])
        cuts.append(place)
        chosen_kinds.append(kind)
        state = _less(state, kind)
    return Line(
        value=value,
        order=order,
        cuts=tuple(int(places[cut]) for cut in reversed(cuts)),
        kinds=tuple(reversed(chosen_kinds)),
    )


def _less(state: Counts, kind: int) -> Counts:
    return (*state[:kind], state[kind] - 1, *state[kind + 1 :])


def _measured(arrays: Arrays, order: Order, places: Ints, kind: int, measure: Measure) -> Ints:
    """Return what each segment [places[j], places[i]) adds on a kind of units; NEVER where j >= i."""

    def along(amounts: Ints) -> Ints:
        total = np.concatenate(([0], np.cumsum(amounts[order])))[places]
        return total[None, :] - total[:, None]

    found = measure.compute * along(arrays.time[kind]) + measure.parts
    if measure.messages and arrays.tensor_count and arrays.cost[kind].any():
        found += _messages(arrays, order, places, kind)
    found[along(arrays.barred[kind].astype(np.int64)) > 0] = NEVER
    capacity = arrays.capacity[kind]
    if capacity is not None:
        held = along(np.array(arrays.weights.own, dtype=np.int64))
        for size, blocks in arrays.weights.shared:
            held += size * (along(np.isin(np.arange(arrays.block_count), blocks).astype(np.int64)) > 0)
        found[held > capacity] = NEVER
    found[np.tri(len(places), dtype=bool)] = NEVER
    return found


def _messages(arrays: Arrays, order: Order, places: Ints, kind: int) -> Ints:
    """Return what each segment [places[j], places[i]) sends and receives."""
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    where = place[arrays.pin_block]
    sorted_pins = np.lexsort((where, arrays.pin_tensor))
    where, tensor = where[sorted_pins], arrays.pin_tensor[sorted_pins]
    first = np.flatnonzero(np.concatenate(([True], tensor[1:] != tensor[:-1])))
    last = np.append(first[1:], len(tensor)) - 1
    cost, count = arrays.cost[kind], len(places)
    # Without pins: behind one pin (or from the start) and up to the next one (or the end).
    behind = np.concatenate((where + 1, np.zeros(len(first), dtype=np.int64)))
    following = np.empty(len(where), dtype=np.int64)
    following[:-1], following[last] = where[1:], len(order)
    ahead = np.concatenate((following, where[first]))
    owner = np.concatenate((tensor, tensor[first]))
    low = np.searchsorted(places, behind, side="left")
    high = np.searchsorted(places, ahead, side="right") - 1
    inside = low <= high
    none = np.zeros((count, count), dtype=np.int64)
    np.add.at(none, (low[inside], high[inside]), cost[owner[inside]])
    none = np.cumsum(np.cumsum(none, axis=0)[:, ::-1], axis=1)[:, ::-1]
    # With all pins: from the first pin or before it to the last one or behind it.
    local = ~arrays.outside[tensor[first]]
    every = np.zeros((count, count), dtype=np.int64)
    begin = np.searchsorted(places, where[first][local], side="right") - 1
    end = np.searchsorted(places, where[last][local] + 1, side="left")
    np.add.at(every, (begin, end), cost[tensor[first]][local])
    every = np.cumsum(np.cumsum(every[::-1], axis=0)[::-1], axis=1)
    paid: Ints = cost.sum() - none - every
    return paid
