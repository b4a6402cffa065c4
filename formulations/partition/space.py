"""Every partition of a small graph: what the oracle walks, and what is a small change away.

Units are given to layers one by one; what makes units wait for each other is left out at once. Neither
down-sets nor blocks are used, so that what searches and encodings make of them can be compared with it.
"""

from __future__ import annotations

from collections.abc import Iterator

from .tables import Code, LayerGraph, chain_of


def count_codes(graph: LayerGraph) -> int:
    """Return an upper bound on the number of partitions."""
    return int(graph.unit_count**graph.layer_count)


def all_codes(graph: LayerGraph) -> Iterator[Code]:
    """Yield every partition whose parts can be ordered."""
    before: list[list[int]] = [[] for _ in graph.layers]
    for layer, later in graph.edges:
        low, high = sorted((layer, later))
        before[high].append(low if layer == low else ~low)
    yield from _extended(graph, before, [], [0] * graph.unit_count)


def _extended(
    graph: LayerGraph, before: list[list[int]], code: list[int], reached: list[int]
) -> Iterator[Code]:
    """Yield all that begin with some units.

    `before`: for each layer the layers with a smaller index that it has an edge with; ~i: the edge goes to i.
    `reached`: for each unit the units that its part comes before, directly or not, as bits.
    """
    if len(code) == graph.layer_count:
        yield tuple(code)
        return
    for unit in range(graph.unit_count):
        own = list(reached)
        for other in before[len(code)]:
            source, target = (code[other], unit) if other >= 0 else (unit, code[~other])
            if source != target:
                more = own[target] | 1 << target
                own = [
                    each | more if index == source or each >> source & 1 else each
                    for index, each in enumerate(own)
                ]
        if not any(own[index] >> index & 1 for index in range(graph.unit_count)):
            code.append(unit)
            yield from _extended(graph, before, code, own)
            code.pop()


def near_codes(graph: LayerGraph, code: Code) -> Iterator[Code]:
    """Yield partitions in which one block is on another unit, or two units are in each other's place."""
    units = range(graph.unit_count)
    for block in graph.blocks.members:
        for unit in units:
            if unit != code[block[0]]:
                moved = list(code)
                for layer in block:
                    moved[layer] = unit
                if chain_of(graph, moved) is not None:
                    yield tuple(moved)
    for one in units:
        for other in range(one + 1, graph.unit_count):
            swap = {one: other, other: one}
            if one in code or other in code:
                yield tuple(swap.get(unit, unit) for unit in code)
