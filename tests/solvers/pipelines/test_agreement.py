"""All exact backends answer alike on drawn problems of pipelines over devices.

The third-party solvers get no plan and no bound of the native algorithms to start from: they find their own.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks.pipeline_instances import random_cluster
from gapless.formulations.problem import Problem
from gapless.solvers.exact import base
from gapless.solvers.families import Start
from gapless.solvers.protocol import SolveOptions
from gapless.solvers.registry import get_backend
from gapless.solvers.session import solve
from tests.pipeline_instances import drawn_problem, restricted_problem


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(problem: Problem, options: SolveOptions) -> Iterator[Start]:
        return iter(())

    monkeypatch.setattr(base, "starts_for", nothing)


def answer(problem: Problem, backend: str, top: int) -> object:
    """Return the status, and the values of the plans: of a single one those that are asked."""
    result = solve(problem, backend, SolveOptions(top=top), explain=False)
    terms = problem.objective.terms if top == 1 else problem.ranking
    return result.status, [candidate.score.values(terms) for candidate in result.candidates]


@pytest.mark.parametrize("top", [1, 4])
@pytest.mark.parametrize("draw", [drawn_problem, restricted_problem])
def test_native_agrees_with_the_oracle(draw: type, top: int) -> None:
    solvable = 0
    for seed in range(80):
        problem: Problem = draw(seed)
        known = answer(problem, "exhaustive", top)
        assert answer(problem, "native", top) == known, f"seed {seed}"
        solvable += solve(problem, "native", explain=False).best is not None
    assert 20 < solvable < 80


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
    if not get_backend(backend).availability().ok:
        pytest.skip(f"{backend} is not installed")
    for seed in range(1000, 1010):
        problem = restricted_problem(seed)
        assert answer(problem, backend, 1) == answer(problem, "native", 1), f"seed {seed}"
