"""Problems with too many sets of devices: plans that use a part of the devices, each part in the best way."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...formulations.judge import examined
from ...formulations.pipelines.plans import Pipes, ordered
from ...formulations.pipelines.tables import cluster_of
from ...formulations.problem import Problem
from ..protocol import Deadline
from .arrays import NEVER, KindArrays
from .program import TimeIsUpError
from .relaxed import Relaxation

PART = 10
"""Devices that are planned together."""


def partial_plans(problem: Problem, arrays: KindArrays, deadline: Deadline) -> Iterator[Pipes]:
    """Yield plans of pipelines that stay within parts of the devices, valid or not, until the deadline.

    The devices are put in order of their speed and split into parts, once by neighbours and once so that
    each part has fast and slow ones. What is best for each part is one plan together, and one by itself.
    """
    cluster, count = cluster_of(problem), len(arrays.kind_of)
    usual = np.where(arrays.compute_us >= NEVER, 0, arrays.compute_us).sum(axis=(1, 2))
    fastest = sorted(range(count), key=lambda device: float(usual[arrays.kind_of[device]]))
    parts = -(-count // PART)
    for split in (
        [fastest[at : at + PART] for at in range(0, count, PART)],
        [fastest[at::parts] for at in range(parts)],
    ):
        found: list[Pipes] = []
        for devices in split:
            relaxed = Relaxation(
                cluster,
                arrays.only(devices),
                most_us=problem.limits.max_period_us,
                most_devices=problem.limits.max_units,
                deadline=deadline,
            )
            try:
                best = relaxed.optimum(problem.objective.terms)
            except TimeIsUpError:
                return
            if best is not None and best.pipes is not None:
                yield best.pipes
                found.append(best.pipes)
        pipes = [pipe for plan in found for pipe in plan]
        rated = sorted(pipes, key=lambda pipe: examined(problem, (pipe,))[0].term("period"))
        if rated:
            yield ordered(tuple(rated[: cluster.most_pipelines]))
