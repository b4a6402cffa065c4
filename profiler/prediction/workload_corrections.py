"""Corrections of the costs of several networks at once, learned from executed plans of their workload.

Requests of a workload share the units, so that a chunk is measured in company. It is compared with what the
simulation says of it in the same company; what is left belongs to the network and the unit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from math import exp, log

from ...formulations.judge import score
from ...formulations.operation import operation_of
from ...formulations.problem import Problem
from .corrections import Corrections, FloatRows
from .executions import ExecutedPlan

_IMAGINARY = 0.5
"""For this share of one batch each unit, and each network on it, did exactly what was predicted."""

_Evidence = tuple[str, int, float, float]
"""Network and unit of a chunk, log(measured / predicted), and how much it says: its share of the batch."""


def fit_workload(problem: Problem, executed: Sequence[ExecutedPlan]) -> Corrections:
    """Learn corrections of the costs of a workload from executed plans of it.

    1. One factor a unit: the mean of log(measured / predicted) over its chunks, weighted by the share of the
       batch (or of the period) that a chunk takes, shrunk to 0.
    2. One factor for each network on each unit from what is left, in the same way.
    3. One factor for all, so that what plans take as a whole is foretold.
    """
    evidence = [one for each in executed for one in _evidence(problem, each)]
    count = range(len(problem.platform.units))
    units = [_mean([(ratio, says) for _, unit, ratio, says in evidence if unit == u]) for u in count]
    left: dict[tuple[str, int], list[tuple[float, float]]] = defaultdict(list)
    for network, unit, ratio, says in evidence:
        left[network, unit].append((ratio - units[unit], says))
    rows: FloatRows = tuple(
        tuple(exp(_mean(left[costs.network, unit])) for unit in count)
        for costs in problem.costs.networks
        for _ in costs.layer_us
    )
    found = Corrections(unit_factor=tuple(map(exp, units)), layer_factor=rows)
    corrected, pace = found.applied(problem), operation_of(problem).pace(problem)
    wholes = [(log(one.period_us / score(corrected, one.plan).value(pace)), 1.0) for one in executed]
    common = _mean(wholes)
    return Corrections(unit_factor=tuple(exp(factor + common) for factor in units), layer_factor=rows)


def _evidence(problem: Problem, one: ExecutedPlan) -> list[_Evidence]:
    predicted = _predicted_us(problem, one)
    return [
        (
            chunk.network,
            problem.platform.index_of(chunk.unit),
            log(took / predicted[chunk.request, chunk.start]),
            took / one.period_us,
        )
        for chunk, took in zip(one.plan.chunks, one.chunk_us, strict=False)
        if predicted[chunk.request, chunk.start]
    ]


def _predicted_us(problem: Problem, one: ExecutedPlan) -> dict[tuple[str, int], float]:
    """Return how long each chunk takes in one round of the plan, by its request and its first layer."""
    operation = operation_of(problem)
    deployment = operation.deploy(problem, one.plan)
    (steady,) = operation.steady(problem, deployment)
    found = {}
    for event in steady.events:
        stream = deployment.streams[event.stream]
        found[stream.name, stream.chunks[event.chunk].start] = (event.end_ns - event.start_ns) / 1000
    return found


def _mean(evidence: Sequence[tuple[float, float]]) -> float:
    """Return the weighted mean, shrunk to 0."""
    whole = sum(says for _, says in evidence)
    return sum(value * says for value, says in evidence) / (whole + _IMAGINARY)
