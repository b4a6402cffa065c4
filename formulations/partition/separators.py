"""What parts pay at least for their messages: separators of a graph, and the cuts between them.

Separators are blocks w_1 < ... < w_m each of which nearly all others have to be before or after. A down-set
that holds w_g but not w_(g+1) ends in *stretch* g; what work it can hold lies between two numbers. A part
that begins in stretch g and ends in a later one h holds w_(g+1) but not w_g, and w_h but not w_(h+1), so it
divides the tensors that are made in both stretches: it pays for the least cut between w_g and w_(g+1), and
for that of h. So with

    done[g] = the most work of parts that end in stretch g

one more part on a unit of price w comes in time T to done[h] = done[g] + w (T - cut[g] - cut[h]), or within
its stretch to done[g] + w T, and never beyond what the stretch can hold.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ..bit_sets import members
from .prices import Work
from .tables import LayerGraph

_LOOSE, _MOST_LOOSE = 0.02, 64
"""What a separator may be neither before nor after: a share of the work of a unit, and how many blocks."""

NEVER = -(2**62)
"""The work of parts that cannot end in a stretch."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Stretches:
    """The parts of a graph between its separators.

    `low`, `high`: by stretch: the least and the most work of a down-set that ends there.
    """

    low: tuple[int, ...]
    high: tuple[int, ...]
    cuts: tuple[tuple[int, ...], ...]
    """By [kind][stretch]: what a part pays at least that begins or ends there."""

    def reversed(self, total: int) -> Stretches:
        """Return the stretches of the graph with all edges turned around."""
        return Stretches(
            low=tuple(total - work for work in self.high[::-1]),
            high=tuple(total - work for work in self.low[::-1]),
            cuts=tuple(row[::-1] for row in self.cuts),
        )

    def further(self, done: Sequence[int], kind: int, price: int, period_us: int) -> list[int]:
        """Return the most work by stretch with one more part, on a unit of a kind.

        `done`: the most work without it, by stretch; `NEVER`: parts cannot end there. `period_us`: the most
        that the part takes.
        """
        found, entered = [], NEVER
        for low, high, cut, own in zip(self.low, self.high, self.cuts[kind], done, strict=True):
            most = min(high, max(own + price * period_us, entered + price * (period_us - cut)))
            found.append(most if most >= low else NEVER)
            entered = max(entered, own - price * cut)
        return found


def stretches_of(graph: LayerGraph, work: Work, most: int) -> Stretches:
    """Return the stretches between the separators of a graph; if there are too many, between some of them."""
    chain = _separators(graph, work)
    chain = chain[:: -(-len(chain) // most) or 1]
    before_work, after_work = [0], [0]
    for found, reached, order in (
        (before_work, graph.blocks.ancestors, chain),
        (after_work, graph.blocks.descendants, chain[::-1]),
    ):
        seen = 0
        for block in order:
            more = (reached[block] | 1 << block) & ~seen
            found.append(found[-1] + sum(work.block[other] for other in members(more)))
            seen |= more
    return Stretches(
        low=tuple(before_work),
        high=tuple(work.total - behind for behind in after_work[::-1]),
        cuts=tuple(zip(*_cuts(graph, chain), strict=True)),
    )


def _separators(graph: LayerGraph, work: Work) -> list[int]:
    """Return blocks, one behind the other, that nearly all others are before or after."""
    before, after = graph.blocks.ancestors, graph.blocks.descendants
    whole = sum(1 << block for block, own in enumerate(work.block) if own)
    most = _LOOSE * work.total / graph.unit_count
    chain: list[int] = []
    for block in range(graph.blocks.count):
        if chain and not before[block] >> chain[-1] & 1:
            continue
        loose = whole & ~(before[block] | after[block] | 1 << block)
        if loose.bit_count() <= _MOST_LOOSE and sum(work.block[b] for b in members(loose)) <= most:
            chain.append(block)
    return chain


def _cuts(graph: LayerGraph, chain: Sequence[int]) -> Iterator[list[int]]:
    """Yield for each stretch by kind what a part pays at least that begins or ends there.

    Each tensor counts in one stretch, that of its first block. At the ends of the graph parts pay nothing.
    """
    kinds = [units[0] for units in graph.alike()]
    first = defaultdict(list)
    for pins in graph.block_pins:
        first[min(pins.layers)].append(pins)
    if chain:
        yield [0] * len(kinds)
    for one, other in pairwise(chain):
        inside = {one, other, *members(graph.blocks.descendants[one] & graph.blocks.ancestors[other])}
        held = [
            (pins, blocks)
            for block in inside - {other}
            for pins in first[block]
            if len(blocks := inside.intersection(pins.layers)) > 1
        ]
        yield [least_cut([(blocks, pins.us[unit]) for pins, blocks in held], one, other) for unit in kinds]
    yield [0] * len(kinds)


def least_cut(tensors: Iterable[tuple[Iterable[int], int]], one: int, other: int) -> int:
    """Return the least cost of tensors that a set of blocks divides which holds one block but not another.

    The maximum flow from one to the other along shortest paths (Edmonds and Karp 1972). A tensor is two
    nodes, between which its cost goes; into the first one and out of the second there is no limit.

    `tensors`: (blocks, cost) of each.
    """
    left: dict[int, dict[int, int]] = defaultdict(dict)
    for number, (blocks, cost) in enumerate(tensors):
        into, out = -2 * number - 1, -2 * number - 2
        left[into][out], left[out][into] = cost, 0
        for block in blocks:
            left[block][into], left[into][block] = -NEVER, 0
            left[out][block], left[block][out] = -NEVER, 0
    total = 0
    while path := _shortest_path(left, one, other):
        flow = min(left[a][b] for a, b in path)
        for a, b in path:
            left[a][b] -= flow
            left[b][a] += flow
        total += flow
    return total


def _shortest_path(left: dict[int, dict[int, int]], one: int, other: int) -> list[tuple[int, int]]:
    """Return the steps of a shortest path with something left on each; empty: there is none."""
    came = {one: one}
    queue = [one]
    for node in queue:
        for following, most in left[node].items():
            if most and following not in came:
                came[following] = node
                queue.append(following)
        if other in came:
            steps = []
            while other != one:
                steps.append((came[other], other))
                other = came[other]
            return steps
    return []
