"""Values of Python as the files that the commands write and read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..api.comparison import Comparison
from ..api.problems import given_problem
from ..formulations.errors import InvalidInputError
from ..formulations.files import dump, dump_plan, dump_plans, dump_problem
from ..formulations.files import save as save_text
from ..formulations.plan import Plan
from ..formulations.problem import Problem
from ..solvers.result import SolveResult
from .documents import comparison_document, json_text
from .formats import FORMATS


def save(value: Any, path: str | Path, *, problem: Problem | str | Path | None = None) -> None:
    """Write a value to a file that commands and the `load_*` functions read.

    Parameters
    ----------
    value
        A `Problem`, `Plan`, `SolveResult` (all its plans), `Platform`, `Deployment`, `Profile`,
        `Measurement`, `Comparison`, `TuningResult`, or what `measure_contention` and
        `measure_interference` return. A run as a whole is written by `save_run`.
    path
        The file; it takes the place of an earlier one only when it is whole.
    problem
        What plans were made for. Given by name or as a file, it is found again by commands that are
        given the plan alone.

    Raises
    ------
    InvalidInputError
        There are no files of such values, plans have no problem, or the file cannot be written.

    Examples
    --------
    >>> import gapless
    >>> result = gapless.plan("pixel7a/alexnet-sparse", top=3)
    >>> gapless.save(result, "plans.json", problem="pixel7a/alexnet-sparse")  # doctest: +SKIP
    """
    save_text(_text(value, problem), path)


def _text(value: Any, problem: Problem | str | Path | None) -> str:
    match value:
        case Plan() | SolveResult():
            return _plans_text(value, problem)
        case Problem():
            return dump_problem(value)
        case Comparison():
            return json_text(comparison_document(value))
    found = (known.schema for known in FORMATS)
    schema = next((schema for schema in found if schema.content is type(value)), None)
    if schema is None:
        raise InvalidInputError(
            f"there are no files of {type(value).__name__}; gapless.save writes problems, plans, platforms, "
            "profiles, measurements and comparisons, gapless.running.save_run what gapless.tune returns"
        )
    return dump(value, schema)


def _plans_text(found: Plan | SolveResult, problem: Problem | str | Path | None) -> str:
    if problem is None:
        raise InvalidInputError("say what the plan was made for: gapless.save(plan, path, problem=...)")
    asked = {} if isinstance(problem, Problem) else {"problem": str(problem)}
    made_for = given_problem(problem)
    if isinstance(found, Plan):
        return dump_plan(found, made_for, asked)
    if made_for.objective != found.asked:
        made_for = made_for.with_objective(found.asked)
        asked |= {"objective": str(found.asked)} if asked else {}
    if made_for.fingerprint != found.fingerprint:
        raise InvalidInputError(
            "these plans were made for another problem: save them with the one that was asked, its rules and "
            "limits included"
        )
    if not found.candidates:
        raise InvalidInputError(f"there is no plan to write: the answer of {found.backend} is {found.status}")
    return dump_plans([candidate.plan for candidate in found.candidates], made_for, asked)
