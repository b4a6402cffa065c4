"""Problems with too many sets of devices: a bound on the rate, and plans that are best in parts.

**Bound.** If all pipelines together finish R items a microsecond, every layer is served at the rate R, and
no device works for more than all of the time. So for any prices y of the layers that add up to 1

    R <= sum over devices of max over layers of y[l] / t[d][l]

(the dual of the linear program over shares of layers, without messages, cuts and memory); the prices are
improved step by step, the bound is computed in fractions.

**Plans.** The devices are split into parts that the programs solve at once. Then some pipelines are taken
apart again and again, and their devices, with some that are free, planned anew in the best way.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator
from fractions import Fraction

import numpy as np

from ...formulations.pipelines.plans import Pipe, Pipes, ordered
from ...formulations.pipelines.quantities import PipelineValues
from ...formulations.pipelines.tables import Cluster, cluster_of
from ...formulations.problem import Problem
from ...formulations.terms import Term
from ..protocol import Deadline, TimeIsUpError
from .arrays import NEVER, KindArrays
from .relaxed import Relaxation

PART = 10
"""Devices that are planned together."""

_ROUNDS = 60
"""How often devices are planned anew without a time limit."""

_STEPS, _RATE = 400, 0.3
"""Steps in which prices are improved, and how far the first one goes."""


def interval_bound(problem: Problem) -> int | None:
    """Return a lower bound on the interval of all plans, nanoseconds; None: there is none by prices."""
    cluster = cluster_of(problem)
    times = _layer_us(cluster)
    known = (times > 0).all(axis=0) & np.isfinite(times).any(axis=0)
    if not known.any():
        return None
    times = times[:, known]
    prices = 1 / np.where(np.isfinite(times), 1 / times, 0).sum(axis=0)
    best, best_prices = np.inf, prices
    for step in range(_STEPS):
        prices = prices / prices.sum()
        worth = prices / times
        chosen = worth.argmax(axis=1)
        total = float(worth[np.arange(len(times)), chosen].sum())
        if total < best:
            best, best_prices = total, prices
        served = np.zeros(len(prices))
        np.add.at(served, chosen, 1 / times[np.arange(len(times)), chosen])
        prices = prices * np.exp(-_RATE / (1 + step) ** 0.5 * (served / max(total, 1e-300) - 1))
    whole = [max(1, int(price * 10**9)) for price in best_prices]
    rate = sum(
        max(Fraction(price, int(time)) for price, time in zip(whole, row, strict=True) if np.isfinite(time))
        for row in times.tolist()
        if np.isfinite(row).any()
    )
    if not rate:
        return None
    # Rates are rounded down, but a pipeline has at least 1 (`Cluster.rate`).
    return cluster.interval_ns(int(cluster.scale * rate // sum(whole)) + cluster.device_count)


def _layer_us(cluster: Cluster) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Return what each layer takes of each device at least, whole microseconds; infinite where it cannot run.

    A device that is a pipeline itself takes at least an equal share of each of its units.
    """
    rows = []
    types = cluster.data.typed(cluster.devices)
    for number, name in enumerate(cluster.devices):
        table = [row[number] for row in cluster.chain.layer_us]
        one = cluster.data.inner_of(name, types)
        if one is not None:
            units = len(one.platform.units)
            least = [min((t for t in row if t is not None), default=None) for row in one.costs.layer_us]
            table = [None if time is None else time // units for time in least]
        rows.append([np.inf if time is None else float(time) for time in table])
    return np.asarray(rows)


class Parts:
    """Plans of pipelines that are best for parts of the devices."""

    def __init__(self, problem: Problem, arrays: KindArrays, deadline: Deadline, seed: int) -> None:
        self._problem, self._arrays, self._deadline = problem, arrays, deadline
        self._cluster, self._rng = cluster_of(problem), random.Random(seed)
        self._terms = problem.objective.terms

    def plans(self) -> Iterator[Pipes]:
        """Yield plans, valid or not, until the deadline."""
        found: list[Pipes] = []
        try:
            for split in self._splits():
                found.append(())
                for devices in split:
                    pipes = self._best(devices, self._cluster.most_pipelines)
                    if pipes:
                        yield ordered(pipes)
                        found[-1] += pipes
                if found[-1] and self._terms[0] == Term.THROUGHPUT:
                    found[-1] = self._fastest(found[-1])
                    yield ordered(found[-1])
            if self._terms[0] == Term.THROUGHPUT and any(found):
                yield from self._improved(max(found, key=self._rate))
        except TimeIsUpError:
            return

    def _splits(self) -> Iterator[list[list[int]]]:
        """Yield parts of the devices by speed: neighbours, and fast with slow ones."""
        times, count = self._arrays.compute_us, len(self._arrays.kind_of)
        usual = np.where(times >= NEVER, 0, times).sum(axis=(1, 2))
        fastest = sorted(range(count), key=lambda device: float(usual[self._arrays.kind_of[device]]))
        parts = -(-count // PART)
        yield [fastest[at::parts] for at in range(parts)]
        yield [fastest[at : at + PART] for at in range(0, count, PART)]

    def _best(self, devices: Collection[int], most: int) -> Pipes:
        """Return the best pipelines on some devices, none if there are none."""
        limits = self._problem.limits
        relaxation = Relaxation(
            self._cluster,
            self._arrays.only(devices),
            most=most,
            most_us=limits.max_period_us,
            most_devices=limits.max_units,
            deadline=self._deadline,
        )
        best = relaxation.optimum(self._terms)
        return () if best is None or best.pipes is None else best.pipes

    def _improved(self, pipes: Pipes) -> Iterator[Pipes]:
        """Yield better and better plans: some pipelines are taken apart, their devices planned anew."""
        count, rounds = len(self._arrays.kind_of), 0
        while self._deadline.left_s is not None or rounds < _ROUNDS:
            rounds += 1
            apart: list[Pipe] = []
            for pipe in self._rng.sample(pipes, len(pipes)):
                if sum(map(len, (*apart, pipe))) <= PART:
                    apart.append(pipe)
            used = {device for pipe in pipes for *_, device in pipe}
            devices = [device for pipe in apart for *_, device in pipe]
            free = [device for device in range(count) if device not in used]
            devices += self._rng.sample(free, min(len(free), PART - len(devices)))
            kept = tuple(pipe for pipe in pipes if pipe not in apart)
            new = self._best(devices, self._cluster.most_pipelines - len(kept))
            if self._rate(new) > self._rate(tuple(apart)):
                yield ordered(kept + new)
            if self._rate(new) >= self._rate(tuple(apart)):
                pipes = kept + new

    def _fastest(self, pipes: Pipes) -> Pipes:
        """Return as many pipelines as are allowed, those with the highest rates."""
        ranked = sorted(pipes, key=lambda pipe: self._rate((pipe,)), reverse=True)
        return tuple(ranked[: self._cluster.most_pipelines])

    def _rate(self, pipes: Pipes) -> int:
        return PipelineValues(self._cluster, pipes).rate if pipes else 0


def highest(bounds: Collection[int | None]) -> int | None:
    """Return the best of some lower bounds, None if there is none."""
    return max((bound for bound in bounds if bound is not None), default=None)
