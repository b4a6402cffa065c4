"""What a request takes of a group that serves a chunk: at once, or in steps one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .splitting import Rows

Devices = tuple[int, ...]
"""The devices of a group by index, ascending."""

Part = tuple[int, int, Devices]
"""A chunk: first layer, one past the last, and the group that serves it."""


@dataclass(frozen=True, kw_only=True)
class Service:
    """A chunk and the group that serves it: what a request takes of them."""

    part: Part  # the chunk
    leader: int  # index of the device that takes the inputs, sends them to the others and gathers results
    rows: Rows
    """Rows of the result that each device of the group computes, from the first row on; in steps: of the last
    step that all compute together."""
    compute_us: tuple[int, ...]  # by device of the group
    message_us: int  # all messages between the leader and the others
    extra: tuple[tuple[int, int], ...]
    """By device of the group, the operations that others do, too (halos), and all that it does."""
    weight_bytes: tuple[int, ...]  # by device of the group, the weights that it holds: those of the chunk
    memory_bytes: tuple[int, ...]  # by device of the group, weights included
    energy_nj: int  # of computing, beyond what waiting takes
    ways: tuple[Service, ...] = ()  # the steps, in order; empty: all is computed at once

    @property
    def steps(self) -> tuple[Service, ...]:
        """What is done one after the other: itself, or its steps."""
        return self.ways or (self,)

    @property
    def extra_permille(self) -> tuple[int, ...]:
        """By device of the group, what of its operations others do, too."""
        return tuple(-(-1000 * more // max(1, done)) for more, done in self.extra)

    @property
    def extra_flops(self) -> int:
        """What all devices together compute twice."""
        return sum(more for more, _ in self.extra)

    @property
    def time_us(self) -> int:
        """How long all devices compute for one request: in each step the slowest."""
        return sum(max(step.compute_us) for step in self.steps)


def in_steps(group: Devices, steps: Sequence[Service]) -> Service:
    """Return some steps of a group, one after the other, as one service; nobody sends anything.

    The first device is called the leader. What devices keep for all steps counts for each of them.
    """
    whole = max(steps, key=lambda step: (len(step.part[2]), step.part[1]))

    def own(name: str) -> list[list[Any]]:
        """Return by device the values of the steps that it takes part in."""
        pairs = [dict(zip(step.part[2], getattr(step, name), strict=True)) for step in steps]
        return [[values[device] for values in pairs if device in values] for device in group]

    return Service(
        part=(steps[0].part[0], steps[-1].part[1], group),
        leader=group[0],
        rows=whole.rows,
        compute_us=tuple(map(sum, own("compute_us"))),
        message_us=0,
        extra=tuple((sum(more), sum(done)) for more, done in (zip(*e, strict=True) for e in own("extra"))),
        weight_bytes=tuple(map(sum, own("weight_bytes"))),
        memory_bytes=tuple(map(sum, own("memory_bytes"))),
        energy_nj=sum(step.energy_nj for step in steps),
        ways=tuple(steps) if len(steps) > 1 else (),
    )


def together(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Return chunks, in order of their layers, of which those that share devices are one."""
    found: list[Part] = []
    for part in parts:
        at = next((place for place, own in enumerate(found) if set(own[2]) & set(part[2])), len(found))
        joined = [*found[at:], part]
        devices = part[2] if len(joined) == 1 else tuple(sorted({d for own in joined for d in own[2]}))
        found[at:] = [(joined[0][0], max(own[1] for own in joined), devices)]
    return tuple(found)
