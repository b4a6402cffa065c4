"""Parts of a simulated device: its name, noise, receipts, and how long it plays."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

from ..formulations.deployment import Deployment
from ..formulations.errors import InvalidInputError
from ..formulations.plan import Chunk
from ..formulations.problem import Problem
from .engine import SIMULATED, PlacementReceipt
from .runner import Budget

MOST_REQUESTS = 20_000
"""Most requests of a stream that one measurement plays; its window is shorter where this binds."""

BLOCKS = 10
"""Blocks into which the window of a measurement is divided."""

IMPOSSIBLE = frozenset({"support", "conflict", "cut", "link", "unit_memory", "device_memory", "switch"})
"""What a device cannot do with a well-formed plan; limits and rules are wishes, which it does not know."""


class Noise:
    """Random factors on what things take, the same for the same seed.

    `permille`: standard deviation of a random factor on each request, and of another one on each measurement
    as a whole (on real devices repetitions differ more than the requests of one repetition); `seed`: decides
    the noise, together with what is measured and how often it has been measured before.
    Raises InvalidInputError: it is out of range.
    """

    def __init__(self, permille: int, *, seed: int) -> None:
        if not 0 <= permille <= 500:
            raise InvalidInputError(f"noise_permille is {permille}, must be between 0 and 500")
        self._deviation = permille / 1000
        self._seed = seed
        self._visits: dict[str, int] = {}

    def visit(self, key: str) -> Iterator[float]:
        """Return the factors of all requests of the next measurement of something, without end."""
        count = self._visits[key] = self._visits.get(key, 0) + 1
        return self._factors(random.Random(f"{self._seed} {key} {count}"))

    def _factors(self, rng: random.Random) -> Iterator[float]:
        shared = self._factor(rng)
        while True:
            yield shared * self._factor(rng)

    def _factor(self, rng: random.Random) -> float:
        return math.exp(rng.gauss(0.0, self._deviation)) if self._deviation else 1.0


def charged_for(problem: Problem, deployment: Deployment) -> Problem:
    """Return the problem with the costs that hold in a deployment (`Operation.charged`), if it can run."""
    operation = problem.formulation.operation
    return problem if operation is None else operation.charged(problem, deployment)


def device_name(problem: Problem) -> str:
    """Return what a device that obeys the costs of a problem is called."""
    method = problem.costs.provenance.method
    return f"simulated {problem.platform.name}{f' (costs: {method})' if method else ''}"


def requests_within(budget: Budget, period_us: float) -> int:
    """Return how many requests a budget allows, at least one."""
    limits = [MOST_REQUESTS]
    if budget.seconds is not None:
        limits.append(math.ceil(budget.seconds * 1e6 / period_us))
    if budget.requests is not None:
        limits.append(budget.requests)
    return max(1, min(limits))


def simulated_receipt(chunk: Chunk) -> PlacementReceipt:
    """Return a receipt that says that nothing was granted."""
    return PlacementReceipt(
        unit=chunk.unit,
        piece=f"{chunk.network}[{chunk.start}:{chunk.stop})",
        engine=SIMULATED,
        asked_backend=SIMULATED,
        granted_backend=SIMULATED,
        asked_threads=None,
        granted_threads=None,
        asked_cores=(),
        granted_cores=None,
    )
