"""Many problems to compare backends on: files of a folder, shipped tables, and drawn by size and seed."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import product
from pathlib import Path
from typing import Any, ClassVar

from ..api.asked import problem_of
from ..api.problems import load_problem
from ..formulations.errors import GaplessError, InvalidInputError
from ..formulations.files import format_of
from ..formulations.json_files import Schema, load
from ..formulations.problem import Problem
from ..formulations.validation import STRICT, meant, shown
from ..profiler.platforms.catalog import shipped_names
from ..question.values import names_in
from ..solvers.families import Drawn, families
from .spec import GivenProblem, given_problems, listed, load_sweep

MOST_INSTANCES = 10_000
"""Most problems of one comparison."""

_PROBLEM = "gapless.problem"

Generated = Mapping[str, str | int | bool | tuple[int, ...]]
"""A family of drawn problems: its formulation, its sizes (a number or several), "seeds", switches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceSet:
    """Problems to compare backends on.

    Attributes
    ----------
    title
        What the comparison is called on its page.
    problems
        Problem files, shipped names such as "pixel7a/octree" or patterns of them such as `pixel7a/*`, or what
        `gapless plan` is asked for, by the fields of a question, e.g. {"workload": "yolov4,bert", "platform":
        "kirin990"}.
    generate
        Problems that are drawn: {"formulation": NAME, SIZE: [4, 6], SIZE: 4, "seeds": 10} is ten a size;
        one such object, or several. "seed": that of the first, otherwise 0.
    objective
        As for `gapless plan --objective`; empty: that of each problem.
    """

    __pydantic_config__: ClassVar[Any] = STRICT

    title: str = ""
    problems: tuple[str | Mapping[str, str], ...] = ()
    generate: Generated | tuple[Generated, ...] = ()
    objective: str = ""

    @property
    def drawn(self) -> tuple[Generated, ...]:
        """The families of drawn problems."""
        return (self.generate,) if isinstance(self.generate, Mapping) else self.generate


INSTANCES = Schema(format="gapless.instances", version=1, content=InstanceSet)


@dataclass(frozen=True, slots=True, kw_only=True)
class Instances:
    """Problems with their names, which differ."""

    title: str  # what they are called together
    problems: tuple[tuple[str, Problem], ...]
    notes: tuple[str, ...] = ()  # what was left out


def instances_of(given: str | Path | InstanceSet | Iterable[GivenProblem], objective: str = "") -> Instances:
    """Return the problems that are meant.

    `given`: a folder of problem files; a file of format gapless.instances; a problem file; a Python file with
    a function `problems`, as for `gapless.sweep`; shipped names or patterns of them, with commas between; or
    an `InstanceSet`, or problems, or pairs of a name and a problem. `objective`: overrides that of the
    problems; empty: it does not.
    """
    if isinstance(given, InstanceSet):
        found = _of_set(given)
    elif isinstance(given, str | Path):
        found = _named(given)
    else:
        made = given_problems(given)
        found = Instances(title="", problems=tuple((name or _name_of(one), one) for name, one in made))
    if not found.problems:
        raise InvalidInputError(f"{shown(str(given))} holds no problems: there is nothing to compare on")
    if len(found.problems) > MOST_INSTANCES:
        raise InvalidInputError(
            f"there are {len(found.problems)} problems, at most {MOST_INSTANCES} are taken in one comparison"
        )
    wanted = [(name, one.with_objective(objective) if objective else one) for name, one in found.problems]
    return Instances(title=found.title, problems=tuple(_apart(wanted)), notes=found.notes)


def _named(given: str | Path) -> Instances:
    path = Path(given)
    if path.is_dir():
        return _of_folder(path)
    if path.suffix == ".py":
        asked = load_sweep(path)
        more = _of_set(InstanceSet(problems=asked.sweep.problems)) if asked.sweep.problems else None
        made = [(name or _name_of(one), one) for name, one in asked.problems]
        return Instances(
            title=asked.sweep.title or path.stem, problems=(*(more.problems if more else ()), *made)
        )
    if path.is_file():
        if format_of(path) == _PROBLEM:
            return Instances(title=path.stem, problems=((path.stem, load_problem(path)),))
        return _of_set(load(path, INSTANCES), path.parent)
    return _of_set(InstanceSet(problems=names_in("instances", str(given))))


def _of_folder(folder: Path) -> Instances:
    found, others, defects = [], [], list[str]()
    for path in sorted(folder.glob("*.json")):
        try:
            if format_of(path) != _PROBLEM:
                others.append(path.name)
            else:
                found.append((path.stem, load_problem(path)))
        except GaplessError as error:
            defects.append(str(error))
    if defects:
        raise InvalidInputError(f"not all problem files of {folder} can be used:", defects)
    if not found:
        raise InvalidInputError(
            f"{folder} holds no problem files (*.json); `gapless profile` writes them, and gapless.save"
        )
    notes = (f"left out, because they are no problem files: {', '.join(others)}",) if others else ()
    return Instances(title=folder.resolve().name, problems=tuple(found), notes=notes)


def _of_set(given: InstanceSet, folder: Path = Path()) -> Instances:
    """Return the problems of a set; its files are looked for in a folder first."""
    found: list[tuple[str, Problem]] = []
    defects: list[str] = []
    for number, one in enumerate(given.problems):
        try:
            found += _listed(one, folder)
        except GaplessError as error:
            defects.append(f"problems[{number}]: {error}")
    for number, family in enumerate(given.drawn):
        try:
            found += _drawn(family)
        except GaplessError as error:
            defects.append(f"generate[{number}]: {error}")
    if defects:
        raise InvalidInputError("these problems cannot be made:", defects)
    if given.objective:
        found = [(name, one.with_objective(given.objective)) for name, one in found]
    return Instances(title=given.title, problems=tuple(found))


def _listed(given: str | Mapping[str, str], folder: Path) -> Iterator[tuple[str, Problem]]:
    if not isinstance(given, str):
        asked = {key: _beside(text, folder) if key == "problem" else text for key, text in given.items()}
        yield " ".join(given.values()), problem_of(listed(asked).asked)
    elif any(sign in given for sign in "*?[") and not os.path.exists(given):
        names = [name for name in shipped_names() if fnmatchcase(name, given)]
        if not names:
            raise InvalidInputError(
                f"{shown(given)} matches no shipped problem; `gapless list problems` lists them"
            )
        for name in names:
            yield name, load_problem(name)
    else:
        path = _beside(given, folder)
        yield Path(path).stem if os.path.isfile(path) else given, load_problem(path)


def _beside(name: str, folder: Path) -> str:
    return str(folder / name) if (folder / name).is_file() else name


def _drawn(given: Generated) -> Iterator[tuple[str, Problem]]:
    """Yield problems of one family: each size, with each seed."""
    asked = dict(given)
    formulation = str(asked.pop("formulation", ""))
    known = {name: one for name, one in families().items() if one.drawn is not None}
    if formulation not in known:
        hint = meant(formulation, tuple(known), listed_by=f"there are {', '.join(known)}")
        raise InvalidInputError(f"problems of {shown(formulation)} cannot be drawn; {hint}")
    drawn, instances = known[formulation].drawn, known[formulation].instances
    assert drawn is not None
    assert instances is not None
    seeds, first = _whole("seeds", asked.pop("seeds", 1), 1), _whole("seed", asked.pop("seed", 0), 0)
    switches = _switches(drawn, asked)
    sizes = _sizes(drawn, asked)
    count = len(sizes) * seeds
    if count > MOST_INSTANCES:
        raise InvalidInputError(f"these are {count} problems, at most {MOST_INSTANCES} are taken")
    draw = instances().draw
    assert draw is not None
    words = "".join(f" {name}" for name, on in switches.items() if on)
    for size, seed in product(sizes, range(first, first + seeds)):
        said = " ".join(f"{name}={count}" for name, count in size.items())
        yield f"{formulation} {said} seed={seed}{words}", draw(**size, **switches, seed=seed)


def _switches(drawn: Drawn, asked: dict[str, Any]) -> dict[str, bool]:
    """Take the switches out of what is asked."""
    found = {name: asked.pop(name) for name in drawn.switches if name in asked}
    wrong = [name for name, value in found.items() if not isinstance(value, bool)]
    if wrong:
        raise InvalidInputError(f"{wrong[0]} is {found[wrong[0]]!r}, must be true or false")
    return found


def _sizes(drawn: Drawn, asked: Mapping[str, Any]) -> list[dict[str, int]]:
    absent = [name for name in drawn.sizes if name not in asked]
    unknown = [name for name in asked if name not in drawn.sizes]
    if absent or unknown:
        names = (*drawn.sizes, "seeds", "seed", *drawn.switches)
        what = f"{absent[0]} is absent" if absent else f"unknown key {shown(unknown[0])}"
        raise InvalidInputError(f"{what}; there are {', '.join(names)}")
    axes = []
    for name in drawn.sizes:
        given = asked[name]
        several = given if isinstance(given, list | tuple) else (given,)
        if not several:
            raise InvalidInputError(f"{name} is empty, must be a whole number or several")
        axes.append([_whole(name, value, 1) for value in several])
    return [dict(zip(drawn.sizes, sizes, strict=True)) for sizes in product(*axes)]


def _whole(name: str, value: Any, least: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise InvalidInputError(f"{name} is {value!r}, must be a whole number of at least {least}")
    return value


def _name_of(problem: Problem) -> str:
    return f"{', '.join(network.name for network in problem.networks)} on {problem.platform.name}"


def _apart(problems: Sequence[tuple[str, Problem]]) -> Iterator[tuple[str, Problem]]:
    """Yield problems with names that differ."""
    counts, used = Counter(name for name, _ in problems), Counter[str]()
    for name, problem in problems:
        used[name] += 1
        yield f"{name} #{used[name]}" if counts[name] > 1 else name, problem
