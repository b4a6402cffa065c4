"""The best chain of groups over a graph itself, for devices that are all alike: Table 6's search.

A chunk is what one down-set of the operators has beyond another, whatever the pieces are; a tensor may pass
by chunks that do not read it. So the difference to the optimum given the pieces is what finding a chain of
pieces first (Algorithm 1) loses. Exact for the period: a dynamic program over pairs of down-sets and numbers
of devices, without chunks that take longer than a known plan.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil

from gapless.formulations.cooperation.service import Service
from gapless.formulations.cooperation.tables import Groups, groups_of
from gapless.formulations.spatial import SpatialNetwork, SpatialNode
from gapless.solvers.cooperation.over_graph import operator_sets
from gapless.solvers.protocol import TimeIsUpError

from ..group_instances import group_problem

NEVER = 1 << 60

Mask = int
"""A set of operators."""


@dataclass(frozen=True, kw_only=True)
class Optimum:
    """The best chain.

    Attributes
    ----------
    period_us
        The longest chunk.
    services
        What each group does for one request.
    """

    period_us: int
    services: tuple[Service, ...]


class GraphSearch:
    """The best chain of groups over one graph.

    Parameters
    ----------
    network, gflops, devices, mbit_per_second
        What runs where: each device does so many 10^9 operations a second.
    charged
        Whether messages between groups take time.
    known_us
        The period of some plan; only chunks that take no longer are looked at.
    seconds
        When to give up.
    """

    def __init__(
        self,
        network: SpatialNetwork,
        gflops: float,
        devices: int,
        *,
        mbit_per_second: float,
        charged: bool,
        known_us: int,
        seconds: float,
    ) -> None:
        self._network, self._gflops, self._devices = network, gflops, devices
        self._rate, self._charged = mbit_per_second, charged
        self._known_us = known_us + len(
            network.operators
        )  # times are rounded for pieces there, for chunks here
        self._until = time.monotonic() + seconds
        inputs = [index for index, node in enumerate(network.nodes) if node.is_input]
        self._needs = [sum(1 << s for s in node.sources if s not in inputs) for node in network.nodes]
        self._all = sum(1 << index for index in network.operators)
        self._parts: dict[Mask, Groups] = {}

    def run(self) -> Optimum:
        """Search.

        Raises
        ------
        TimeIsUpError
            It did not end in time.
        """
        best: dict[tuple[Mask, int], tuple[int, Mask, int]] = {(0, 0): (0, 0, 0)}
        for begun in operator_sets(self._network, most=1 << 40):
            used = [(n, best[begun, n][0]) for n in range(self._devices) if (begun, n) in best]
            if not used:
                continue
            left = self._devices - used[0][0]
            for further, fewest in self._extensions(begun, left).items():
                for count in range(fewest, left + 1):
                    stage_us = self._stage_us(begun, further, count)
                    for before, period_us in used if stage_us <= self._known_us else ():
                        key, value = (further, before + count), max(period_us, stage_us)
                        if before + count <= self._devices and value < best.get(key, (NEVER,))[0]:
                            best[key] = (value, begun, count)
        ends = [(best[self._all, n][0], n) for n in range(1, self._devices + 1) if (self._all, n) in best]
        period_us, count = min(ends)
        services, at = list[Service | None](), self._all
        while at:
            _, before, own = best[at, count]
            services.insert(0, self._service(at & ~before, own))
            at, count = before, count - own
        return Optimum(period_us=period_us, services=tuple(s for s in services if s is not None))

    def _ready(self, done: Mask) -> Iterator[Mask]:
        """Yield the operators that can come next, each as a set."""
        for index in self._network.operators:
            if not done >> index & 1 and not self._needs[index] & ~done:
                yield 1 << index

    def _extensions(self, begun: Mask, devices: int) -> dict[Mask, int]:
        """Return how few devices compute what down-sets have beyond one in the time that is known."""
        one = self._known_us * self._gflops * 1000
        found, waiting = dict[Mask, int](), [(begun, 0)]
        while waiting:
            done, flops = waiting.pop()
            for each in self._ready(done):
                more = flops + self._network.nodes[each.bit_length() - 1].flops
                fewest = max(1, ceil(more / one))
                if done | each not in found and fewest <= devices:
                    found[done | each] = fewest
                    waiting.append((done | each, more))
        return found

    def _stage_us(self, begun: Mask, further: Mask, count: int) -> int:
        if time.monotonic() > self._until:
            raise TimeIsUpError
        own = further & ~begun
        service = self._service(own, count)
        if service is None:
            return NEVER
        groups = self._parts[own]
        sent = 0 if further == self._all or not self._charged else self._crossing(further)
        return groups.stage_us(service, groups.send_us(0, 1, sent) or 0)

    def _service(self, own: Mask, count: int) -> Service | None:
        if own not in self._parts:
            part = self._part(own)
            labels = tuple(-1 if node.is_input else 0 for node in part.nodes)
            problem = group_problem(
                part,
                labels,
                [self._gflops] * self._devices,
                types=["pi"] * self._devices,
                mbit_per_second=self._rate,
            )
            self._parts[own] = groups_of(problem)
        return self._parts[own].service((0, 1, tuple(range(count))))

    def _crossing(self, done: Mask) -> int:
        """Return the bytes of inputs and results of a down-set that other operators read."""
        readers = self._network.readers
        return sum(
            node.bytes
            for index, node in enumerate(self._network.nodes)
            if (node.is_input or done >> index & 1)
            and any(not done >> reader & 1 for reader in readers[index])
        )

    def _part(self, own: Mask) -> SpatialNetwork:
        """Return some operators as a network of their own; what they read is its input."""
        nodes = self._network.nodes
        members = [index for index in self._network.operators if own >> index & 1]
        outside = sorted({source for index in members for source in nodes[index].sources} - set(members))
        place = {index: number for number, index in enumerate((*outside, *members))}
        inputs = [
            SpatialNode(name=nodes[i].name, op_type="Input", size=nodes[i].size, bytes=nodes[i].bytes)
            for i in outside
        ]
        inner = [
            replace(nodes[index], sources=tuple(place[source] for source in nodes[index].sources))
            for index in members
        ]
        sinks = tuple(place[index] for index in self._network.sinks(members))
        return SpatialNetwork(name="part", nodes=(*inputs, *inner), outputs=sinks)
