"""Branches of a network: runs of layers without one, which of them are side by side, and how many at most."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .bit_sets import members
from .network import Network


def runs_of(network: Network) -> tuple[tuple[int, ...], ...]:
    """Return the runs of layers that each read from the one before alone, which nobody else reads from."""
    count = len(network.layers)
    readers: list[set[int]] = [set() for _ in network.layers]
    makers: list[set[int]] = [set() for _ in network.layers]
    for tensor in network.tensors:
        for target in tensor.targets if tensor.source >= 0 else ():
            readers[tensor.source].add(target)
            if target < count:
                makers[target].add(tensor.source)
    run_of: dict[int, list[int]] = {}
    for layer in range(count):
        before = next(iter(makers[layer])) if len(makers[layer]) == 1 else None
        goes_on = before is not None and readers[before] == {layer}
        run = run_of[before] if goes_on and before is not None else []
        run.append(layer)
        run_of[layer] = run
    return tuple({id(run): tuple(run) for run in run_of.values()}.values())


def is_line(network: Network) -> bool:
    """Return whether the layers can run in no other order, as far as is known."""
    if not network.tensors:
        return True
    read = {(tensor.source, target) for tensor in network.tensors for target in tensor.targets}
    return all((layer, layer + 1) in read for layer in range(len(network.layers) - 1))


def order_words(networks: Iterable[Network]) -> str:
    """Return that chunks keep the given order of the layers, where there are others, and recurrences."""
    known = tuple(networks)
    order = "" if all(map(is_line, known)) else ", in the given order of the layers"
    return f"{order}, that cut no recurrence" if any(network.states for network in known) else order


def later_runs(network: Network, runs: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Return for each run all runs that need what it makes, directly or not: a set of bits."""
    run_of = {layer: number for number, run in enumerate(runs) for layer in run}
    after: list[set[int]] = [set() for _ in runs]
    for tensor in network.tensors:
        for target in tensor.targets if tensor.source >= 0 else ():
            if target in run_of:
                after[run_of[tensor.source]].add(run_of[target])
    later = [0] * len(runs)
    for number in sorted(range(len(runs)), key=lambda number: runs[number][0], reverse=True):
        for other in after[number] - {number}:
            later[number] |= later[other] | 1 << other
    return tuple(later)


def width_of(later: Sequence[int]) -> int:
    """Return the most nodes of an acyclic graph of which none comes after another.

    That is the least number of paths that cover the graph: its nodes without the largest matching of nodes
    with later ones (Dilworth 1950; Fulkerson 1956).

    `later`: for each node all nodes after it, as a set of bits.
    """
    chosen: dict[int, int] = {}
    taken_by: dict[int, int] = {}
    for node in range(len(later)):
        _match(node, later, chosen, taken_by)
    return len(later) - len(chosen)


def _match(node: int, later: Sequence[int], chosen: dict[int, int], taken_by: dict[int, int]) -> None:
    """Give a node a later one, if others can take other ones: along the first path that allows it."""
    waiting, unseen, came_from = [node], -1, dict[int, int]()
    while waiting:
        asking = waiting.pop()
        fresh = later[asking] & unseen
        unseen &= ~fresh
        for other in members(fresh):
            came_from[other] = asking
            if other in taken_by:
                waiting.append(taken_by[other])
                continue
            free: int | None = other
            while free is not None:
                giver = came_from[free]
                before = chosen.get(giver)
                chosen[giver], taken_by[free] = free, giver
                free = before
            return
