"""Operators that a runtime runs as one: clusters of the operator graph, contracted without making cycles.

Two neighbours A -> B may always be contracted when B is the only successor of A, or A the only predecessor
of B: no other way leads from A to B, so that no cycle can arise.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

from .op_types import ELEMENTWISE, MOVING
from .quantised import side_of_cut

if TYPE_CHECKING:
    from .flops import OperatorCost
    from .operators import OperatorGraph

_LIGHT = MOVING | ELEMENTWISE
"""Types that a runtime fuses into a neighbour, or does on the way."""

_TINY_SHARE = 0.05


class Clusters:
    """Sets of operators, contracted step by step."""

    def __init__(self, graph: OperatorGraph) -> None:
        count = len(graph.operators)
        self._members: list[list[int]] = [[index] for index in range(count)]
        self._home = list(range(count))
        self.first = list(range(count))
        """The first operator of each cluster."""
        self.successors: list[set[int]] = [set() for _ in range(count)]
        self.predecessors: list[set[int]] = [set() for _ in range(count)]
        made = graph.producers()
        for index, operator in enumerate(graph.operators):
            for name in operator.inputs:
                if name in made:
                    self.successors[made[name]].add(index)
                    self.predecessors[index].add(made[name])

    def merge(self, one: int, other: int) -> int:
        """Contract two clusters and return the number of the result."""
        if len(self._members[one]) < len(self._members[other]):
            one, other = other, one
        for ahead, back in ((self.successors, self.predecessors), (self.predecessors, self.successors)):
            for neighbour in ahead[other]:
                back[neighbour].discard(other)
                back[neighbour].add(one)
            ahead[one] |= ahead[other]
            ahead[other] = set()
        for ahead in (self.successors, self.predecessors):
            ahead[one] -= {one, other}
        for member in self._members[other]:
            self._home[member] = one
        self._members[one] += self._members[other]
        self._members[other] = []
        self.first[one] = min(self.first[one], self.first[other])
        return one

    def home(self, operator: int) -> int:
        """Return the cluster that holds an operator."""
        return self._home[operator]

    def members(self, cluster: int) -> Sequence[int]:
        """Return the operators of a cluster."""
        return self._members[cluster]

    def in_order(self) -> list[tuple[int, ...]]:
        """Return the operators of all clusters, in the topological order nearest to that of the graph."""
        missing = {
            cluster: len(self.predecessors[cluster])
            for cluster, members in enumerate(self._members)
            if members
        }
        ready = [(self.first[cluster], cluster) for cluster, count in missing.items() if not count]
        heapq.heapify(ready)
        found = []
        while ready:
            _, cluster = heapq.heappop(ready)
            found.append(tuple(sorted(self._members[cluster])))
            for successor in self.successors[cluster]:
                missing[successor] -= 1
                if not missing[successor]:
                    heapq.heappush(ready, (self.first[successor], successor))
        return found


def absorb_sources(graph: OperatorGraph, clusters: Clusters) -> None:
    """Join each operator without inputs (constants, random numbers) with its home (`homes_of_sources`)."""
    for index, home in homes_of_sources(graph).items():
        clusters.merge(clusters.home(index), clusters.home(home))


def homes_of_sources(graph: OperatorGraph) -> dict[int, int]:
    """Return where each operator without inputs belongs: to the first that uses it, or to the last of all.

    Every other user comes later in the order of the operators, so that none lies between the two. What nobody
    uses is an output of the model, and is made when it is due.
    """
    users = graph.consumers()
    last = max((index for index, operator in enumerate(graph.operators) if operator.inputs), default=None)
    found = {}
    for index, operator in enumerate(graph.operators):
        if not operator.inputs:
            later = [users[name][0] for name in operator.outputs if name in users]
            home = min(later, default=last)
            if home is not None:
                found[index] = home
    return found


def fuse(
    graph: OperatorGraph,
    clusters: Clusters,
    costs: Sequence[OperatorCost],
    classes: Sequence[Hashable] = (),
) -> None:
    """Contract what a runtime would run as one, and what costs next to nothing on its own.

    Light operators (element by element work, moving data), and clusters whose cost is tiny beside the mean
    of the heavy ones, join a neighbour: the producer that feeds nothing else; or a light cluster that alone
    uses them; or the consumer; or the only producer. Operators of different `classes` stay apart.
    """
    kinds = _with_sources(graph, classes or [None] * len(graph.operators))
    _join_quantised(graph, clusters, kinds)
    light = _Lightness(graph, clusters, costs)
    before, after = clusters.predecessors, clusters.successors

    def feeds_only(cluster: int) -> list[int]:
        return [other for other in before[cluster] if len(after[other]) == 1]

    def light_consumer(cluster: int) -> list[int]:
        return [other for other in after[cluster] if len(after[cluster]) == 1 and light(other)]

    def consumer(cluster: int) -> list[int]:
        return [other for other in after[cluster] if len(after[cluster]) == 1 or len(before[other]) == 1]

    def only_producer(cluster: int) -> list[int]:
        return [other for other in before[cluster] if len(before[cluster]) == 1]

    rules = ((feeds_only, max), (light_consumer, min), (consumer, min), (only_producer, max))
    step = 0
    while step < len(rules):
        partners, nearest = rules[step]
        merged = False
        for index in range(len(graph.operators)):
            cluster = clusters.home(index)
            kind = kinds[clusters.first[cluster]]
            near = partners(cluster) if light(cluster) else ()
            found = [other for other in near if kinds[clusters.first[other]] == kind]
            if found:
                partner = nearest(found, key=clusters.first.__getitem__)
                light.add(cluster, partner, clusters.merge(cluster, partner))
                merged = True
        step = 0 if merged else step + 1


def _join_quantised(graph: OperatorGraph, clusters: Clusters, kinds: Sequence[Hashable]) -> None:
    """Join each DequantizeLinear with the one that reads it, each QuantizeLinear with what it reads.

    Integers then cross the cuts, and a runtime finds what it fuses (see `quantised`).
    """
    sides = [side_of_cut(each.op_type, each.inputs, each.outputs) for each in graph.operators]
    makers = [index for index, side in enumerate(sides) if side == "maker"]
    readers = [index for index, side in enumerate(sides) if side == "reader"]
    for members, near in ((makers, clusters.predecessors), (reversed(readers), clusters.successors)):
        for index in members:
            cluster = clusters.home(index)
            if len(near[cluster]) != 1 or len(clusters.members(cluster)) > 1:  # or of a weight: it is at home
                continue
            (other,) = near[cluster]
            if kinds[clusters.first[cluster]] == kinds[clusters.first[other]]:
                clusters.merge(cluster, other)


def _with_sources(graph: OperatorGraph, classes: Sequence[Hashable]) -> list[Hashable]:
    """Return the classes; operators without inputs have that of the one that they belong to."""
    kinds = list(classes)
    for index, home in reversed(homes_of_sources(graph).items()):
        kinds[index] = kinds[home]
    return kinds


class _Lightness:
    """Which clusters hold nothing that deserves a layer of its own."""

    def __init__(self, graph: OperatorGraph, clusters: Clusters, costs: Sequence[OperatorCost]) -> None:
        heavy = [bool(op.domain) or op.has_subgraphs or op.op_type not in _LIGHT for op in graph.operators]
        effort = [cost.effort for cost in costs]
        efforts = [each for each, counts in zip(effort, heavy, strict=True) if counts]
        self._tiny = _TINY_SHARE * sum(efforts) / max(1, len(efforts))
        members = [clusters.members(cluster) for cluster in range(len(heavy))]
        self._heavy = [any(heavy[index] for index in own) for own in members]
        self._effort = [sum(effort[index] for index in own) for own in members]

    def __call__(self, cluster: int) -> bool:
        return not self._heavy[cluster] or self._effort[cluster] < self._tiny

    def add(self, one: int, other: int, result: int) -> None:
        """Note that two clusters have become one."""
        heavy, effort = self._heavy[one] or self._heavy[other], self._effort[one] + self._effort[other]
        self._heavy[result], self._effort[result] = heavy, effort
