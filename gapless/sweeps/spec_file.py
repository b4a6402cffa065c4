"""Sweep files: JSON, or Python that makes a `Sweep` and problems of its own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..files.rules_file import run_python
from ..formulations.errors import GaplessError, InvalidInputError
from ..formulations.json_files import load
from ..formulations.nearness import python_hint
from ..formulations.plugins import line_in
from ..formulations.problem import Problem
from .spec import SWEEP, Sweep, SweepModel, SweepPlatform

GivenProblem = Problem | tuple[str, Problem]
"""A problem that Python made; with a name, which its platform gets in tables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepFile:
    """A sweep, and the problems that Python made for it: (name of the platform or "", problem)."""

    sweep: Sweep
    problems: tuple[tuple[str, Problem], ...] = ()


def load_sweep(path: str | Path) -> SweepFile:
    """Read a sweep file; names of files in it are looked for in its folder first.

    A Python file is code, and reading it runs it: use only files that you trust. Its name `sweep` is a
    `Sweep`; a function `problems` without parameters returns or yields problems, or pairs of a name and a
    problem. One of both is enough.
    """
    path = Path(path)
    if path.suffix != ".py":
        return SweepFile(sweep=_beside(load(path, SWEEP), path.parent))
    module = vars(run_python(path, "sweep file"))
    found, make = module.get("sweep"), module.get("problems")
    if found is None and make is None:
        raise InvalidInputError(
            f"{path} defines neither `sweep`, a gapless.studies.Sweep, nor a function `problems` that yields "
            "problems"
        )
    if found is not None and not isinstance(found, Sweep):
        raise InvalidInputError(f"{path}: sweep is a {type(found).__name__}, must be a gapless.studies.Sweep")
    if make is not None and not callable(make):
        raise InvalidInputError(f"{path}: problems is a {type(make).__name__}, must be a function")
    sweep = _beside(found or Sweep(), path.parent)
    return SweepFile(sweep=sweep, problems=() if make is None else _made(make, path))


def given_problems(problems: Iterable[GivenProblem]) -> tuple[tuple[str, Problem], ...]:
    """Return problems with their names."""
    found = []
    for number, each in enumerate(problems):
        match each:
            case Problem():
                found.append(("", each))
            case (str(name), Problem() as problem):
                found.append((name, problem))
            case _:
                raise InvalidInputError(
                    f"problems[{number}] is {each!r:.80}, must be a problem, or a pair of a name and one"
                )
    return tuple(found)


def _made(make: Any, path: Path) -> tuple[tuple[str, Problem], ...]:
    try:
        return given_problems(make())
    except GaplessError:
        raise
    except Exception as error:
        where = f"{path}, line {line_in(error, str(path)) or 1}"
        hint = python_hint(error, make.__globals__ if hasattr(make, "__globals__") else {})
        raise InvalidInputError(f"{where}: {type(error).__name__}: {error}{hint}") from error


def _beside(sweep: Sweep, folder: Path) -> Sweep:
    """Return a sweep with the names of files that lie in a folder as paths."""

    def at(name: str) -> str:
        try:
            return str(folder / name) if (folder / name).is_file() else name
        except (OSError, ValueError):  # a name that no file can have
            return name

    def model(given: str | SweepModel) -> str | SweepModel:
        return at(given) if isinstance(given, str) else replace(given, name=at(given.name))

    def platform(given: str | SweepPlatform) -> str | SweepPlatform:
        return at(given) if isinstance(given, str) else replace(given, name=at(given.name))

    def backend(given: str) -> str:
        file, sign, name = given.rpartition(":")
        return f"{at(file)}:{name}" if sign and file.endswith(".py") else given

    files = ("problem", "platform", "contention")
    return replace(
        sweep,
        models=tuple(map(model, sweep.models)),
        platforms=tuple(map(platform, sweep.platforms)),
        problems=tuple(
            at(given)
            if isinstance(given, str)
            else {key: at(text) if key in files else text for key, text in given.items()}
            for given in sweep.problems
        ),
        limits=tuple(
            replace(one, label=one.words, rules=at(one.rules) if one.rules else "") for one in sweep.limits
        ),
        backends=tuple(map(backend, sweep.backends)),
    )
