"""How the answers of exact backends are compared on drawn problems, whatever they are about."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from gapless.formulations.problem import Problem
from gapless.solvers.exact import base
from gapless.solvers.families import Start
from gapless.solvers.protocol import SolveOptions
from gapless.solvers.registry import get_backend
from gapless.solvers.session import solve


def without_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give third-party solvers no plan and no bound of the native algorithms: they find their own."""

    def nothing(problem: Problem, options: SolveOptions) -> Iterator[Start]:
        return iter(())

    monkeypatch.setattr(base, "starts_for", nothing)


def answer(problem: Problem, backend: str, top: int) -> object:
    """Return the status, and the values of the plans: of a single one those that are asked."""
    result = solve(problem, backend, SolveOptions(top=top), explain=False)
    terms = problem.objective.terms if top == 1 else problem.ranking
    return result.status, [candidate.score.values(terms) for candidate in result.candidates]


def native_agrees(draw: Callable[[int], Problem], top: int) -> None:
    """Compare 80 problems with the oracle; some of them, and not all, have a plan."""
    solvable = 0
    for seed in range(80):
        problem = draw(seed)
        known = answer(problem, "exhaustive", top)
        assert answer(problem, "native", top) == known, f"seed {seed}"
        solvable += solve(problem, "native", explain=False).best is not None
    assert 20 < solvable < 80


def third_party_agrees(backend: str, draw: Callable[[int], Problem], count: int) -> None:
    """Compare a backend with the native algorithms; where it is not installed the test says so."""
    if not get_backend(backend).availability().ok:
        pytest.skip(f"{backend} is not installed")
    for seed in range(1000, 1000 + count):
        problem = draw(seed)
        assert answer(problem, backend, 1) == answer(problem, "native", 1), f"seed {seed}"
