"""All exact backends answer alike on drawn problems of pipelines over devices.

The third-party solvers get no plan and no bound of the native algorithms to start from: they find their own.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gapless.formulations.problem import Problem
from gapless.solvers.pipelines.samples import random_cluster
from gapless.solvers.protocol import SolveOptions
from gapless.solvers.session import solve
from tests.pipeline_instances import drawn_problem, restricted_problem
from tests.solvers.agreement import native_agrees, third_party_agrees, without_starts


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    without_starts(monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("top", [1, 4])
@pytest.mark.parametrize("draw", [drawn_problem, restricted_problem])
def test_native_agrees_with_the_oracle(draw: Callable[[int], Problem], top: int) -> None:
    native_agrees(draw, top)


def test_lists_hold_devices_of_one_kind_in_every_order() -> None:
    problem = random_cluster(3, [2, 1])
    kinds = problem.tables.kinds
    assert len(set(kinds)) < len(kinds)
    plans = [
        {candidate.plan for candidate in solve(problem, name, SolveOptions(top=5000)).candidates}
        for name in ("native", "exhaustive")
    ]
    assert plans[0] == plans[1]


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["cpsat", "pulp", "z3"])
def test_third_party_solvers_agree_with_native(backend: str) -> None:
    third_party_agrees(backend, restricted_problem, 10)
