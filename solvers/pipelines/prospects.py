"""Whether rules can still hold when a plan is not finished: intervals of the quantities that they name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from ...formulations.chain import Part
from ...formulations.expr import Interval, IntVar, Variable
from ...formulations.pipelines.plans import Pipe, Pipes
from ...formulations.pipelines.quantities import PipelineQuantity as Q
from ...formulations.pipelines.tables import Cluster
from ...formulations.rules import Rule
from .bounds import Begun, Done

_SO_FAR: dict[str, str] = {
    Q.LATENCY: "latency_us",
    Q.GAPNESS: "gapness_us",
    Q.ENERGY: "energy_nj",
    Q.TRAFFIC: "traffic_bytes",
}


class Completed(NamedTuple):
    """Some pipelines, and what is left.

    `pipes`, `done`: the pipelines in the order in which they were found, and their numbers.
    """

    pipes: Pipes
    done: Done
    used: frozenset[int]  # their devices
    state: int  # the devices that are free, as the bounds count them
    order: tuple[int, tuple[object, ...]]
    """What orders the last pipeline: the kind that it begins with, and its chunks by kind."""


class Head(NamedTuple):
    """A pipeline that was begun.

    `parts`, `begun`: its chunks that are followed by others, and their numbers; `device`, `place`: what takes
    the layers from a place on.
    """

    parts: Pipe
    begun: Begun
    device: int
    place: int
    used: frozenset[int]  # the devices of it and of the pipelines before
    state: int  # the devices that are free, that one included, as the bounds count them


class Prospects:
    """What rules allow of plans that are not finished."""

    def __init__(self, cluster: Cluster, rules: Sequence[Rule]) -> None:
        self._cluster, self._rules = cluster, rules

    def hopeless(self, plan: Completed, head: Head) -> bool:
        """Return whether some rule is broken however a plan is finished."""
        if not self._rules:
            return False
        known = _Known(self._cluster, plan, head)
        return any(rule.expr.bounds(known)[1] <= 0 for rule in self._rules)


class _Known:
    """What is known of the quantities of a plan that is not finished."""

    def __init__(self, cluster: Cluster, plan: Completed, head: Head) -> None:
        self._cluster, self._plan, self._head = cluster, plan, head
        self._boundary = cluster.chain.cuts[head.place]
        rows = [*plan.pipes, head.parts]
        self._chunk: Mapping[int, Part] = {part[2]: part for row in rows for part in row}
        self._row = {part[2]: number for number, row in enumerate(rows) for part in row}
        self._row[head.device] = len(plan.pipes)
        self._next: dict[int, int | None] = {}
        for row in plan.pipes:
            self._next |= {part[2]: later[2] for part, later in pairwise(row)}
            self._next[row[-1][2]] = None
        path = [*(part[2] for part in head.parts), head.device]
        self._next |= dict(pairwise(path))
        self._last_pipe = len(plan.pipes) + 1 >= cluster.most_pipelines

    def __call__(self, variable: Variable) -> Interval:
        """Return the least and the greatest value that a quantity can still take."""
        known = self._exactly(variable.name, variable.args)
        if known is not None:
            return known, known
        high = variable.high if isinstance(variable, IntVar) else 1
        return min(high, self._at_least(variable.name)), high

    def _exactly(self, name: str, args: tuple[int, ...]) -> int | None:
        if name == Q.ON:
            return self._on(*args)
        if name == Q.USES:
            return 1 if args[0] in self._row else None
        if name == Q.SENDS:
            return self._sends(*args)
        if name == Q.WITH:
            return self._with(*args)
        if name in (Q.BUSY, Q.MEMORY) and args[0] in self._chunk:
            start, stop, device = self._chunk[args[0]]
            if name == Q.BUSY:
                return self._cluster.compute_us(start, stop, device)
            return self._cluster.memory_bytes(start, stop)
        return None

    def _on(self, layer: int, device: int) -> int | None:
        if device in self._chunk:
            start, stop, _ = self._chunk[device]
            return int(start <= layer < stop)
        if device == self._head.device:
            return int(layer == self._boundary) if layer <= self._boundary else None
        return 0 if self._last_pipe and layer <= self._boundary else None

    def _sends(self, one: int, other: int) -> int | None:
        if one in self._next:
            return int(self._next[one] == other)
        return 0 if other in self._row else None  # who sends to it is known, and is not this one

    def _with(self, one: int, other: int) -> int | None:
        rows = [self._row.get(one), self._row.get(other)]
        if None not in rows:
            return int(rows[0] == rows[1])
        known = next((row for row in rows if row is not None), None)
        return 0 if known is not None and known < len(self._plan.pipes) else None

    def _at_least(self, name: str) -> int:
        done, begun = self._plan.done, self._head.begun
        if name == Q.PIPELINES:
            return done.pipelines + 1
        if name == Q.DEVICES:
            return done.devices + begun.devices + 1
        if name == Q.PEAK:
            return done.peak_bytes + begun.memory_bytes
        if name == Q.RATE:
            return done.rate
        if name == Q.PERIOD:
            return max(done.period_us, begun.longest_us)
        if name in _SO_FAR:
            before, own = (int(getattr(numbers, _SO_FAR[name])) for numbers in (done, begun))
            return max(before, own)
        return 0
