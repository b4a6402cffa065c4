"""What rules forbid of single chunks, so that the programs over sets of devices know it, too."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ...formulations.chain import Part
from ...formulations.expr import Expr, Interval, IntVar, Variable, variables
from ...formulations.pipelines.quantities import PipelineQuantity as Q
from ...formulations.pipelines.tables import Cluster, cluster_of
from ...formulations.problem import Problem
from ..protocol import Deadline
from .arrays import NEVER, KindArrays, build_arrays

_OF_DEVICE = {Q.USES: 0, Q.ON: 1, Q.BUSY: 0, Q.MEMORY: 0}
"""Quantities that a single chunk says all about, and the place of the device in their indices."""


def narrowed(problem: Problem, deadline: Deadline) -> KindArrays:
    """Return arrays without chunks that some rule forbids whatever else runs; each device is a kind.

    Rules that do not name a device forbid no chunk here. At the deadline what is left stays allowed.
    """
    cluster = cluster_of(problem)
    arrays = build_arrays(cluster, tuple(range(cluster.device_count)))
    times, cuts = arrays.compute_us.copy(), arrays.cuts
    named = [(rule.expr, set(_devices(rule.expr))) for rule in problem.expression_rules]
    for device in range(cluster.device_count):
        rules = [expr for expr, devices in named if device in devices]
        for start, stop in np.argwhere(times[device] < NEVER).tolist() if rules else ():
            if deadline.passed:
                break
            known = _OneChunk(cluster, (cuts[start], cuts[stop], device))
            if any(expr.bounds(known)[1] <= 0 for expr in rules):
                times[device, start, stop] = NEVER
    return replace(arrays, compute_us=times)


def _devices(expr: Expr) -> Iterator[int]:
    """Yield the devices that an expression says something about."""
    return (args[_OF_DEVICE[Q(name)]] for name, args in variables(expr) if name in _OF_DEVICE)


class _OneChunk:
    """What is known of the quantities of every plan that has some chunk."""

    def __init__(self, cluster: Cluster, part: Part) -> None:
        self._cluster, self._part = cluster, part

    def __call__(self, variable: Variable) -> Interval:
        """Return the least and the greatest value that a quantity can take."""
        start, stop, device = self._part
        name, args = variable.name, variable.args
        single = self._cluster.most_pipelines == 1
        if name == Q.ON and single and start <= args[0] < stop and args[1] != device:
            return 0, 0
        if name in _OF_DEVICE and args[_OF_DEVICE[Q(name)]] == device:
            value = {
                Q.USES: 1,
                Q.ON: int(start <= args[0] < stop),
                Q.BUSY: self._cluster.compute_us(start, stop, device),
                Q.MEMORY: self._cluster.memory_bytes(start, stop),
            }[Q(name)]
            return value, value
        return 0, variable.high if isinstance(variable, IntVar) else 1
