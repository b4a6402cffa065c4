"""Corrections of a cost model, learned from executed plans (formulations, section 5).

Two kinds, both factors of one table, so that chunks stay sums of their layers and every backend plans with
the same integers: one a unit, and on top of it one for each layer on each unit.

Corrections of the costs of several networks at once, learned from executed plans of their workload. Requests
of a workload share the units, so that a chunk is measured while others run. It is compared with what the
simulation says of it while the same ones run; what is left belongs to the network and the unit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import exp, log

import numpy as np
from numpy.typing import NDArray

from ...formulations.costs import CostRows, CostTable, NetworkCosts, TransferRows
from ...formulations.judge import score
from ...formulations.operation import operation_of
from ...formulations.problem import Problem
from ...formulations.validation import FileContent
from .executions import ExecutedPlan, chain_by_plan, charged_us

Array = NDArray[np.float64]

FloatRows = tuple[tuple[float, ...], ...]

_Times = tuple[tuple[int, float], ...]
"""Index of a chunk in its plan, and what it took, microseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shrinkage:
    """How strongly corrections are held back towards none."""

    unit: float = 1.0  # as many imaginary chunks of each unit took exactly what was predicted
    layer: tuple[float, ...] = (0.0, 0.1, 0.2, 0.4)
    """How far layers on a unit may differ from the factor of the unit: relative standard deviations, of which
    the one is taken that makes the times of the chunks likeliest. (0,): layers are not corrected."""


UNITS_ONLY = Shrinkage(layer=(0.0,))
"""One factor a unit, and none for layers."""

_NOISES = (0.03, 0.06, 0.12)
"""Errors of chunks that are tried: of the longest ones of their plans, shorter ones err more."""

_USUAL_LAYER, _USUAL_NOISE = 0.2, 0.1
"""What outliers are recognised with."""

_LEAST = 0.2
"""Least factor of a layer: the prior is Gaussian, times are positive."""

_TAIL = 4.0
"""Degrees of freedom of the errors: Student's distribution, so that outliers count little."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """Chunks of one unit that were executed."""

    shares: Array  # of each layer in the predicted time, by [chunk][layer]; copies belong to no layer
    ratio: Array  # measured over predicted time, by [chunk]
    weight: Array
    """How much each says, by [chunk]: its time over that of the longest of its plan. Not over the largest of
    its unit: chunks of a unit that is never busy for long are noise, and correct nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrections(FileContent):
    """What to multiply predicted times with."""

    unit_factor: tuple[float, ...]
    """By unit of the platform: layers and copies alike."""
    layer_factor: FloatRows
    """On top of it, by [layer][unit]; of several networks the layers of one after those of the other."""

    def applied(self, problem: Problem) -> Problem:
        """Return the problem with corrected costs: every table, rounded once to whole microseconds."""
        tables = problem.co_run_costs
        return problem.with_costs(
            self._table(problem.costs), None if tables is None else tuple(map(self._table, tables))
        )

    def _table(self, table: CostTable) -> CostTable:
        """Return a table of all units with corrected times."""
        factors = iter(self.layer_factor)
        return replace(
            table,
            networks=tuple(
                NetworkCosts(
                    network=costs.network,
                    layer_us=self._layers(costs.layer_us, factors),
                    transfer_in_us=self._transfers(costs.transfer_in_us),
                    transfer_out_us=self._transfers(costs.transfer_out_us),
                )
                for costs in table.networks
            ),
        )

    def _layers(self, rows: CostRows, factors: Iterator[tuple[float, ...]]) -> CostRows:
        return tuple(
            tuple(
                None if time is None else max(1, round(time * unit * layer))
                for time, unit, layer in zip(row, self.unit_factor, next(factors), strict=True)
            )
            for row in rows
        )

    def _transfers(self, rows: TransferRows) -> TransferRows:
        return tuple(
            tuple(round(time * unit) for time, unit in zip(row, self.unit_factor, strict=True))
            for row in rows
        )


def fit_corrections(
    problem: Problem, executed: Sequence[ExecutedPlan], *, shrinkage: Shrinkage = Shrinkage()
) -> Corrections:
    """Learn corrections of a problem's costs from executed plans of it.

    1. One factor a unit: the mean of log(measured / predicted) over its chunks, weighted by how much of
       the period a chunk takes (short chunks are mostly noise, and no period depends on them), shrunk to 0.
    2. One factor for each layer on each unit, from what is left of the chunks: linear Bayesian regression
       with an independent Gaussian prior of each layer. A chunk that was measured is then nearly predicted,
       others as far as they share its layers. How far layers may differ, and how noisy chunks are, is
       chosen by the marginal likelihood of the same chunks: with few of them, or where layers explain
       nothing, little or nothing is corrected. Errors are Student's: a chunk that nothing explains hardly
       counts.
    3. One factor for all, so that the largest chunk foretells the time between two outputs.

    `executed`: plans with their times. Where those of the chunks are not known, the chunk that is predicted
    to be the longest is taken to have lasted the period; others tell nothing.
    """
    found = _fit(problem, [(one, _known(problem, one)) for one in executed], shrinkage)
    if all(one.chunk_us for one in executed):
        return found
    better = found.applied(problem)  # which chunk is the longest is known better now
    return _fit(problem, [(one, _known(better, one)) for one in executed], shrinkage)


def _known(problem: Problem, one: ExecutedPlan) -> _Times:
    """Return what is known of chunks; costs say which one is the longest."""
    if one.chunk_us:
        return tuple(enumerate(one.chunk_us))
    busy = charged_us(problem, one)
    return ((busy.index(max(busy)), one.period_us),)


def _fit(
    problem: Problem, executed: Sequence[tuple[ExecutedPlan, _Times]], shrinkage: Shrinkage
) -> Corrections:
    seen = _seen(problem, executed)
    unit = np.array([_unit_factor(one, shrinkage.unit) for one in seen])
    rest = [replace(one, ratio=one.ratio / factor) for one, factor in zip(seen, unit, strict=True)]
    rows = tuple(map(tuple, _layer_factors(rest, shrinkage).tolist()))
    found = Corrections(unit_factor=tuple(unit.tolist()), layer_factor=rows)
    corrected = found.applied(problem)
    ratios = [np.log(one.period_us / max(charged_us(corrected, one))) for one, _ in executed]
    common = np.exp(np.sum(ratios) / (len(ratios) + shrinkage.unit))
    return replace(found, unit_factor=tuple((unit * common).tolist()))


def _seen(problem: Problem, executed: Sequence[tuple[ExecutedPlan, _Times]]) -> list[_Seen]:
    """Return the executed chunks of each unit."""
    layers = len(problem.network.layers)
    rows: list[list[tuple[Array, float, float]]] = [[] for _ in problem.platform.units]
    for one, times in executed:
        chain = chain_by_plan(problem, one)
        parts, charged = chain.parts(one.plan), charged_us(problem, one)
        longest = max(taken for _, taken in times)
        for index, taken in times:
            start, stop, unit = parts[index]
            shares = np.zeros(layers)
            for layer in one.layers_run(start, stop):
                shares[layer] = (chain.layer_us[layer][unit] or 0) / charged[index]
            rows[unit].append((shares, taken / charged[index], taken / longest))
    return [
        _Seen(
            shares=np.array([shares for shares, _, _ in those]).reshape(-1, layers),
            ratio=np.array([ratio for _, ratio, _ in those]),
            weight=np.array([share for _, _, share in those]),
        )
        for those in rows
    ]


def _unit_factor(seen: _Seen, shrinkage: float) -> float:
    share = seen.weight**2
    return float(np.exp(np.sum(share * np.log(seen.ratio)) / max(np.sum(share) + shrinkage, 1e-9)))


def _layer_factors(seen: Sequence[_Seen], shrinkage: Shrinkage) -> Array:
    """Return the factor of each layer, by [layer][unit]."""
    trust = [_trust(one) for one in seen]
    choices = {
        (spread, noise): [
            _posterior(one, spread, noise, trusted) for one, trusted in zip(seen, trust, strict=True)
        ]
        for spread, noise in product(shrinkage.layer, _NOISES)
    }
    likeliest = max(choices, key=lambda choice: sum(evidence for _, evidence in choices[choice]))
    excess = np.array([mean for mean, _ in choices[likeliest]])
    factors: Array = np.maximum(1 + excess.T, _LEAST)
    return factors


def _trust(seen: _Seen) -> Array:
    """Return how much each chunk counts: expected precision under Student's errors, by iteration."""
    trust = np.ones(len(seen.ratio))
    for _ in range(4):
        excess, _ = _posterior(seen, _USUAL_LAYER, _USUAL_NOISE, trust)
        error = (seen.ratio - 1 - seen.shares @ excess) * seen.weight / _USUAL_NOISE
        trust = (_TAIL + 1) / (_TAIL + error**2)
    return trust


def _posterior(seen: _Seen, spread: float, noise: float, trust: Array) -> tuple[Array, float]:
    """Return by how much layers exceed 1 on average, given the chunks, and the log-likelihood of these."""
    errors = (noise / seen.weight) ** 2 / trust
    root = np.linalg.cholesky(spread**2 * seen.shares @ seen.shares.T + np.diag(errors))
    whitened = np.linalg.solve(root, seen.ratio - 1)
    excess = spread**2 * seen.shares.T @ np.linalg.solve(root.T, whitened)
    return excess, float(-0.5 * whitened @ whitened - np.sum(np.log(np.diag(root))))


_IMAGINARY = 0.5
"""For this share of one batch each unit, and each network on it, did exactly what was predicted."""

_Evidence = tuple[str, int, float, float]
"""Network and unit of a chunk, log(measured / predicted), and how much it says: its share of the batch."""


def fit_workload(problem: Problem, executed: Sequence[ExecutedPlan]) -> Corrections:
    """Learn corrections of the costs of a workload from executed plans of it.

    1. One factor a unit: the mean of log(measured / predicted) over its chunks, weighted by the share of the
       batch (or of the period) that a chunk takes, shrunk to 0.
    2. One factor for each network on each unit from what is left, in the same way.
    3. One factor for all, so that what plans take as a whole is predicted.
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
