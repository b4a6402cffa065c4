"""Periods of seconds: rates with many digits stay within what solvers compute with."""

from __future__ import annotations

import pytest

import gapless
from gapless.formulations.cluster import Pipelines
from gapless.formulations.pipelines.quantities import interval_excess
from gapless.formulations.pipelines.tables import cluster_of
from gapless.formulations.problem import Problem

SECONDS_OF_MANY = 4_000_000


def problem_of_seconds() -> Problem:
    times_ms = [[SECONDS_OF_MANY / 1000 + layer + device for device in range(3)] for layer in range(3)]
    table = gapless.table_problem(times_ms, ["a", "b", "c"])
    return Problem(
        platform=table.platform, networks=table.networks, costs=table.costs, data=Pipelines()
    ).with_objective("throughput")


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["cpsat", "pulp"])
def test_exact_backends_take_periods_of_seconds(backend: str) -> None:
    problem = problem_of_seconds()
    right, found = gapless.plan(problem, backend="exhaustive"), gapless.plan(problem, backend=backend)
    assert (str(found.status), found.objective) == ("optimal", right.objective)


@pytest.mark.parametrize("interval_ns", [0, 1, 10**3, 10**9, 10**13])
def test_no_interval_needs_more_than_64_bits(interval_ns: int) -> None:
    cluster = cluster_of(problem_of_seconds())
    excess = interval_excess(cluster, interval_ns)
    for rate in (0, 1, cluster.scale // 10**6, cluster.device_count * cluster.scale):
        value = excess.evaluate(lambda _, rate=rate: rate)  # type: ignore[misc] # mypy sees no default
        assert abs(value) < 2**63
        assert (value <= 0) == (rate * interval_ns >= 1000 * cluster.scale and interval_ns > 0)
