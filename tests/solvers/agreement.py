"""How the answers of exact backends are compared on many problems, whatever they are about."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pytest

from gapless.formulations.problem import Problem
from gapless.solvers.conformance import Loose
from gapless.solvers.exact import base
from gapless.solvers.families import Start
from gapless.solvers.protocol import Backend, SolveOptions, SolveStatus
from gapless.solvers.registry import get_backend
from gapless.solvers.result import SolveResult
from gapless.solvers.sandbox import call_in_child
from gapless.solvers.session import solve

Answer = tuple[SolveStatus, list[tuple[int, ...]]]
"""The status, and the values of the plans."""


def without_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give third-party solvers no plan and no bound of the native algorithms: they find their own."""

    def nothing(problem: Problem, options: SolveOptions) -> Iterator[Start]:
        return iter(())

    monkeypatch.setattr(base, "starts_for", nothing)


def installed(name: str) -> Backend:
    """Return a backend; where it is not installed the test says so."""
    backend = get_backend(name)
    if not backend.availability().ok:
        pytest.skip(f"{name} is not installed")
    return backend


def solved(problems: Sequence[Problem], name: str, options: SolveOptions | None = None) -> list[SolveResult]:
    """Solve many problems, all of them in one child process where the backend has to run in one."""
    backend = installed(name)
    asked = options or SolveOptions()
    if not backend.capabilities.isolated:
        return [solve(problem, backend, asked, explain=False) for problem in problems]
    loose = Loose(backend)
    return call_in_child(lambda: [solve(each, loose, asked, explain=False) for each in problems], name)


def in_one_child(name: str, check: Callable[[Backend], None]) -> None:
    """Call a check that solves many problems in one child process; it gets the backend to solve them with."""
    loose = Loose(installed(name))

    def told() -> str:
        try:
            check(loose)
        except AssertionError as error:
            return "\n".join([str(error) or repr(error), *getattr(error, "__notes__", ())])
        return ""

    failure = call_in_child(told, name)
    assert not failure, failure


def answers(problems: Sequence[Problem], backend: str, top: int) -> list[Answer]:
    """Return the answer to each problem: of a single plan the values that are asked."""
    found: list[Answer] = []
    for problem, result in zip(problems, solved(problems, backend, SolveOptions(top=top)), strict=True):
        terms = problem.objective.terms if top == 1 else problem.ranking
        found.append((result.status, [candidate.score.values(terms) for candidate in result.candidates]))
    return found


def native_agrees(draw: Callable[[int], Problem], top: int) -> None:
    """Compare 80 problems with the oracle; some of them, and not all, have a plan."""
    problems = [draw(seed) for seed in range(80)]
    known = answers(problems, "exhaustive", top)
    for seed, (found, right) in enumerate(zip(answers(problems, "native", top), known, strict=True)):
        assert found == right, f"seed {seed}"
    solvable = sum(status is SolveStatus.OPTIMAL for status, _ in known)
    assert 20 < solvable < 80


def third_party_agrees(backend: str, draw: Callable[[int], Problem], count: int) -> None:
    """Compare a backend with the native algorithms."""
    problems = [draw(seed) for seed in range(1000, 1000 + count)]
    known = answers(problems, "native", 1)
    for seed, (found, right) in enumerate(zip(answers(problems, backend, 1), known, strict=True), start=1000):
        assert found == right, f"seed {seed}"
