"""Moves of single blocks between parts, where the graph allows it: what makes the largest load smaller."""

from __future__ import annotations

import random
from collections.abc import Sequence

from ..protocol import Deadline
from .arrays import Arrays
from .line import Line


class Parts:
    """A partition that changes block by block."""

    def __init__(self, arrays: Arrays, line: Line) -> None:
        self._arrays, self.kinds = arrays, line.kinds
        self._time, self._cost = arrays.time.tolist(), arrays.cost.tolist()
        self._barred = arrays.barred.tolist()
        self._outside = arrays.outside.tolist()
        self.part_of = [0] * arrays.block_count
        self.loads = [0] * len(line.kinds)
        self.held: list[set[int]] = [set(blocks) for _, blocks in line.parts]
        self.bytes = [arrays.weights.of(blocks) for blocks in self.held]
        for part, (kind, blocks) in enumerate(line.parts):
            for block in blocks:
                self.part_of[block] = part
                self.loads[part] += self._time[kind][block]
        self._count: list[dict[int, int]] = []
        for tensor, blocks in enumerate(arrays.pins):
            count: dict[int, int] = {}
            for block in blocks:
                count[self.part_of[block]] = count.get(self.part_of[block], 0) + 1
            self._count.append(count)
            if len(count) > 1 or self._outside[tensor]:
                for part in count:
                    self.loads[part] += self._cost[self.kinds[part]][tensor]

    def descend(self, rng: random.Random, deadline: Deadline) -> None:
        """Take blocks from the part with the largest load, as long as that helps."""
        while not deadline.passed:
            fullest = max(range(len(self.loads)), key=self.loads.__getitem__)
            if not self._lighten(fullest, rng):
                return

    def _lighten(self, part: int, rng: random.Random) -> bool:
        """Move blocks out of a part while both loads are below what it had; return whether some were."""
        own = [block for block, other in enumerate(self.part_of) if other == part]
        rng.shuffle(own)
        before = self.loads[part]
        for block in own:
            for target in self._targets(block, part):
                less, more = self._change(block, part, target)
                if max(self.loads[part] + less, self.loads[target] + more) < self.loads[part]:
                    self._move(block, part, target, less, more)
                    break
        return self.loads[part] < before

    def _targets(self, block: int, part: int) -> Sequence[int]:
        """Return the parts that a block can move to: not before what it needs, not behind what needs it."""
        blocks, weights = self._arrays.graph.blocks, self._arrays.weights
        low = max((self.part_of[other] for other in blocks.before[block]), default=0)
        high = min((self.part_of[other] for other in blocks.after[block]), default=len(self.loads) - 1)
        if low == high:
            return ()
        found = []
        for target in range(low, high + 1):
            kind = self.kinds[target]
            capacity = self._arrays.capacity[kind]
            fits = capacity is None or (
                self.bytes[target] + weights.more(block, self.held[target]) <= capacity
            )
            if target != part and fits and not self._barred[kind][block]:
                found.append(target)
        return found

    def _change(self, block: int, part: int, target: int) -> tuple[int, int]:
        """Return by how much the loads of both parts change if a block moves."""
        own, other = self.kinds[part], self.kinds[target]
        less, more = -self._time[own][block], self._time[other][block]
        for tensor in self._arrays.tensors_of[block]:
            count, pins = self._count[tensor], len(self._arrays.pins[tensor])
            here, there = count[part], count.get(target, 0)
            outside = self._outside[tensor]
            paid_here, paid_there = outside or here < pins, there > 0
            pays_here, pays_there = here > 1, outside or there + 1 < pins
            less += (pays_here - paid_here) * self._cost[own][tensor]
            more += (pays_there - paid_there) * self._cost[other][tensor]
        return less, more

    def _move(self, block: int, part: int, target: int, less: int, more: int) -> None:
        self.part_of[block] = target
        self.loads[part] += less
        self.loads[target] += more
        weights = self._arrays.weights
        self.held[part].remove(block)
        self.bytes[part] -= weights.more(block, self.held[part])
        self.bytes[target] += weights.more(block, self.held[target])
        self.held[target].add(block)
        for tensor in self._arrays.tensors_of[block]:
            count = self._count[tensor]
            count[target] = count.get(target, 0) + 1
            count[part] -= 1
            if not count[part]:
                del count[part]
