"""Down-sets of an acyclic graph: sets of nodes that hold, with a node, all nodes before it."""

from __future__ import annotations

from collections.abc import Sequence

from ..formulations.bit_sets import members

Set = int
"""A set of nodes: bit i is node i."""


class TooManySetsError(Exception):
    """A graph has more down-sets than asked for."""


def down_sets(before: Sequence[Set], most: int) -> tuple[Set, ...]:
    """Return all down-sets of a graph, small ones first."""
    after: list[list[int]] = [[] for _ in before]
    for node, others in enumerate(before):
        for other in members(others):
            after[other].append(node)
    sources = sum(1 << node for node, others in enumerate(before) if not others)
    found: list[Set] = [0]
    last = {0: sources}
    while last:
        following: dict[Set, Set] = {}
        for known, ready in last.items():
            for node in members(ready):
                larger = known | 1 << node
                if larger not in following:
                    freed = sum(1 << n for n in after[node] if before[n] & ~larger == 0)
                    following[larger] = ready & ~(1 << node) | freed
            if len(found) + len(following) > most:
                raise TooManySetsError
        found += sorted(following)
        last = following
    return tuple(found)
