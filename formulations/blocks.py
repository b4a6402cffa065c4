"""Blocks: layers of a graph that are never divided, and the order between them.

Layers that are said to be together are in one block, and so are layers each of which is before the other
then: the strongly connected components of the graph. Between them the graph is acyclic.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True, kw_only=True, eq=False)
class Blocks:
    """An acyclic graph of blocks."""

    members: tuple[tuple[int, ...], ...]
    """The layers of each block, ascending; blocks stand in a topological order."""
    of: tuple[int, ...]  # the block of each layer
    before: tuple[tuple[int, ...], ...]  # for each block the blocks right before it: the transitive reduction
    ancestors: tuple[int, ...]  # all blocks before each one, as a set of bits

    @property
    def count(self) -> int:
        """Number of blocks."""
        return len(self.members)

    @cached_property
    def after(self) -> tuple[tuple[int, ...], ...]:
        """For each block the blocks right after it."""
        found: list[list[int]] = [[] for _ in self.members]
        for block, others in enumerate(self.before):
            for other in others:
                found[other].append(block)
        return tuple(map(tuple, found))

    @cached_property
    def descendants(self) -> tuple[int, ...]:
        """All blocks after each one, as a set of bits."""
        found = [0] * self.count
        for block in range(self.count - 1, -1, -1):
            for other in self.after[block]:
                found[block] |= found[other] | 1 << other
        return tuple(found)


def blocks_of(layers: int, edges: Iterable[tuple[int, int]], together: Iterable[Sequence[int]]) -> Blocks:
    """Return the blocks of a graph of layers."""
    after: list[list[int]] = [[] for _ in range(layers)]
    for one, other in edges:
        after[one].append(other)
    for colour in together:
        for one, other in zip(colour, (*colour[1:], colour[0]), strict=True):
            after[one].append(other)
    components = _components(after)
    members = tuple(tuple(sorted(component)) for component in components)
    of = [0] * layers
    for block, component in enumerate(members):
        for layer in component:
            of[layer] = block
    sources: list[set[int]] = [set() for _ in members]
    for layer, others in enumerate(after):
        for other in others:
            sources[of[other]].add(of[layer])
    before, ancestors = _reduced([found - {block} for block, found in enumerate(sources)])
    return Blocks(members=members, of=tuple(of), before=before, ancestors=ancestors)


def _reduced(sources: Sequence[set[int]]) -> tuple[tuple[tuple[int, ...], ...], tuple[int, ...]]:
    """Return the sources that no other source implies, and all ancestors; blocks are in topological order."""
    before: list[tuple[int, ...]] = []
    ancestors: list[int] = []
    for others in sources:
        reached, direct = 0, []
        for other in sorted(others, reverse=True):
            if not reached >> other & 1:
                direct.append(other)
                reached |= ancestors[other] | 1 << other
        before.append(tuple(reversed(direct)))
        ancestors.append(reached)
    return tuple(before), tuple(ancestors)


def _components(after: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return the strongly connected components in a topological order (Tarjan 1972, without recursion).

    Of the orders that there are it is one that keeps to the given one where components are single layers.
    """
    index, low, on_stack = [-1] * len(after), [0] * len(after), [False] * len(after)
    stack: list[int] = []
    found: list[list[int]] = []
    counter = 0
    for root in range(len(after) - 1, -1, -1):
        if index[root] >= 0:
            continue
        work = [(root, iter(after[root]))]
        index[root] = low[root] = counter
        counter += 1
        stack.append(root)
        on_stack[root] = True
        while work:
            node, others = work[-1]
            for other in others:
                if index[other] < 0:
                    index[other] = low[other] = counter
                    counter += 1
                    stack.append(other)
                    on_stack[other] = True
                    work.append((other, iter(after[other])))
                    break
                if on_stack[other]:
                    low[node] = min(low[node], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    component: list[int] = []
                    while not component or component[-1] != node:
                        component.append(stack.pop())
                        on_stack[component[-1]] = False
                    found.append(component)
    return found[::-1]
