"""The plans that a sweep asks for, one by one."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from ..formulations.canonical import plain
from ..formulations.errors import GaplessError, InvalidInputError
from ..formulations.limits import Limits
from ..formulations.problem import Problem
from ..formulations.registry import formulation_named, formulation_names
from ..formulations.terms import Objective
from ..formulations.validation import meant, shown
from ..question.question import Question
from ..solvers.registry import get_backend
from ..solvers.sources import StartMode
from ..version import __version__
from .spec import MOST_TASKS, Base, LimitSet, Sweep, bases_of, unknown_prices

_FILES = ("problem", "platform", "contention")
"""Options whose values may be files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Solving:
    """How a task is solved.

    `time_limit_s`, `memory_limit_bytes`, `seed`, `threads`, `start`: as in `SolveOptions`.
    """

    backend: str = ""  # its name; empty: the usual one of the problem
    time_limit_s: float | None = None
    memory_limit_bytes: int | None = None
    seed: int = 0
    threads: int = 1
    start: str = StartMode.NATIVE
    isolate: bool = False  # whether it works in a child process of its own, as in `gapless.plan`


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepTask:
    """One plan that is asked for."""

    base: Base  # the problem, before the limits; its options hold the objective and the limits, too
    objective: str  # what is minimised, as it was given; empty: what the problem says
    limits: str  # what plans have to keep, in words
    rules: str  # a file of rules, or empty
    solving: Solving  # how it is solved
    key: str = ""  # hexadecimal digest of everything that the answer depends on: files by their content

    def __str__(self) -> str:
        asked, made = self.base.asked, self.base.made
        model = self.base.model or (made.networks[0].name if made else "")
        model = model or asked.workload or asked.problem or ""
        platform = self.base.board or (made.platform.name if made else "")
        words = [model, f"on {platform}" if platform else "", self.base.devices]
        return " ".join(filter(None, [*words, self.objective, self.limits, self.solving.backend]))


def tasks_of(sweep: Sweep, made: Sequence[tuple[str, Problem]] = ()) -> tuple[SweepTask, ...]:
    """Return all plans that a sweep asks for; no model is opened and nothing is solved.

    `made`: problems that Python made: what their platforms are called, or empty, and the problems.
    """
    defects: list[str] = []
    bases = list(bases_of(sweep, defects))
    bases += [Base(board=board, made=problem) for board, problem in made]
    defects += _defects_of_axes(sweep)
    defects += unknown_prices(sweep, bases) if not defects else ()
    axes = (sweep.objectives or ("",), sweep.limits or (LimitSet(),), sweep.backends or ("",))
    count = len(bases) * len(axes[0]) * len(axes[1]) * len(axes[2])
    if not count and not defects:
        defects.append("there is nothing to plan: name models and platforms, or problems")
    if count > MOST_TASKS:
        defects.append(f"there are {count} plans to make, at most {MOST_TASKS} are taken in one sweep")
    if not defects:
        tasks = []
        for parts in product(bases, *axes):
            try:
                tasks.append(_task(sweep, *parts))
            except InvalidInputError as error:  # of a problem that Python made
                defects.append(str(error))
    if defects:
        raise InvalidInputError("the sweep cannot be planned:", dict.fromkeys(defects))
    return tuple(tasks)


def _defects_of_axes(sweep: Sweep) -> Iterator[str]:
    checks: dict[str, tuple[Callable[[str], Any], tuple[str, ...]]] = {
        "backends": (get_backend, sweep.backends),
        "objectives": (_check_objective, sweep.objectives),
    }
    for field, (check, texts) in checks.items():
        for number, text in enumerate(texts):
            if not text:  # which stands for the usual
                continue
            try:
                check(text)
            except GaplessError as error:
                yield f"{field}[{number}]: {error}"
    for number, one in enumerate(sweep.limits):
        if one.rules and not os.path.isfile(one.rules):
            yield f"limits[{number}]: there is no file of rules {shown(one.rules)}"


def _check_objective(text: str) -> None:
    """Refuse an objective that no formulation has; whether a problem has it is seen when it is planned."""
    known = {term for name in formulation_names() for term in formulation_named(name).terms}
    unknown = [term for term in Objective.parse(text).terms if term not in known]
    if unknown:
        raise InvalidInputError(f"{shown(unknown[0])} is no term; {meant(unknown[0], sorted(known))}")


def _task(sweep: Sweep, base: Base, objective: str, limits: LimitSet, backend: str) -> SweepTask:
    wanted = limits.in_use()
    if base.made is not None:
        problem = base.made.with_limits(**wanted)
        base = replace(base, made=problem.with_objective(objective) if objective else problem)
    else:
        base = replace(base, asked=_with_limits(base.asked, objective, limits))
    memory = sweep.memory_limit_mib
    task = SweepTask(
        base=base,
        objective=objective,
        limits=limits.words,
        rules=limits.rules,
        solving=Solving(
            backend=backend,
            time_limit_s=sweep.time_limit_s,
            memory_limit_bytes=None if memory is None else memory * 2**20,
            seed=sweep.seed,
            threads=sweep.threads,
            start=sweep.start,
        ),
    )
    return keyed(task)


def keyed(task: SweepTask) -> SweepTask:
    """Return a task with the key under which its answer is kept."""
    return replace(task, key=_key(task))


def _with_limits(asked: Question, objective: str, wanted: Limits) -> Question:
    """Return a question with an objective and limits."""
    limits, most = wanted.in_use(), asked.limits.max_units
    if most is not None and wanted.max_units is not None:  # of the numbers of units of a platform
        limits["max_units"] = min(most, wanted.max_units)
    return asked.with_values({**limits, **({"objective": objective} if objective else {})})


def _key(task: SweepTask) -> str:
    base, solving = task.base, task.solving
    asked = base.asked.texts()
    files = [asked[name] for name in _FILES if name in asked]
    files += [task.rules, solving.backend.rpartition(":")[0]]
    said = {
        "gapless": __version__,
        "asked": asked,
        "made": None if base.made is None else base.made.fingerprint,
        "rules": bool(task.rules),
        "solving": plain(solving),
        "files": [_digest(name) for name in files if name and os.path.isfile(name)],
    }
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


@cache
def _digest(path: str) -> str:
    """Return the digest of a file; the files of a sweep are taken not to change while it is planned."""
    try:
        with Path(path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InvalidInputError(f"cannot read {path}: {error.strerror or error}") from error
