"""What a command takes to a board and brings back: its options as words, with the paths of files there."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..api.models import is_code, parse_places, split_locator
from ..api.problems import load_problem
from ..executor.graph.opening import OpeningLimits
from ..executor.samples import SUFFIX
from ..files.plans import DEPLOYMENT, named_plan, problem_of_plan
from ..formulations.deployment import Deployment
from ..formulations.errors import InvalidInputError
from ..formulations.files import dump, dump_problem
from ..formulations.network import Network
from ..formulations.plugins import require_trusted
from ..formulations.problem import Problem
from ..question.fields import Field, Given
from ..question.question import Question
from ..question.subjects import OPEN_SECONDS, Folder
from ..question.values import Names
from .shelf import FILES, RUNS, Listed, group_digest

SIMULATED = "simulated"


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Files that belong together, and where they are here."""

    files: tuple[tuple[Listed, Path], ...]

    @property
    def listed(self) -> list[Listed]:
        """The files as the board is told of them."""
        return [listed for listed, _ in self.files]

    @property
    def place(self) -> str:
        """Its folder on the board."""
        return f"{FILES}/{group_digest(self.listed)}"


@dataclass(slots=True)
class Packing:
    """Collects what a command takes along."""

    run: str  # name of its run on the board
    scratch: Path  # an empty folder here, for files that are made
    groups: list[Group] = field(default_factory=list)  # what it needs
    results: dict[str, Path] = field(default_factory=dict)
    """Where files go that it writes: by their names in the folder of the run."""
    printed: dict[str, str] = field(default_factory=dict)
    """What to call paths of the board here: what the user called them."""
    trusted: list[str] = field(default_factory=list)
    """Python code that problems name which are taken along, as the board has it."""
    notes: list[str] = field(default_factory=list)  # what the user should know

    def words(
        self, command: str, said: Iterable[Given], subjects: Sequence[Any] = (), folder: Folder | None = None
    ) -> list[str]:
        """Return the words of a command: what is said of its fields, and what stands as its arguments.

        `folder`: of commands that write a run.
        Raises InvalidInputError: a file cannot be read, or an option cannot be used on a board.
        """
        given = list(said)
        for each, value in given:
            _refuse(each, value)
        if command == "run":
            given, subjects = self._planned(given, subjects)
        words, materialize = command.split(), False
        if folder is not None:
            there = f"{RUNS}/{self.run}"
            self.printed[there] = str(folder.out)
            words += [f"--out={there}", *(["--resume"] if folder.resume else [])]  # what it removes is here
        for each, value in given:
            materialize = materialize or (each.name == "materialize" and value)
            taken = None if each.form.names is None else _TAKEN[each.form.names]
            words += each.words(value) if taken is None else [f"{each.option}={taken(self, each, value)}"]
        positional = [self._subject(each, materialize=materialize) for each in subjects]
        words[1:1] = [f"--trust={code}" for code in dict.fromkeys(self.trusted)]
        if (seconds := OpeningLimits.usual().seconds) is not None:
            words[1:1] = OPEN_SECONDS.words(seconds)
        return [*words, "--", *positional] if positional else words

    def _subject(self, value: Any, *, materialize: bool) -> str:
        if isinstance(value, Problem):
            return self.problem(
                value, called=value.network.name if len(value.networks) == 1 else "the problem"
            )
        if isinstance(value, Packed):
            return value
        if str(value).endswith(".json") and os.path.isfile(value):
            return self.problem(load_problem(value), called=str(value))
        return self.model(value, materialize=materialize)

    def file(self, path: Path, beside: Iterable[str] = (), *, called: str | None = None) -> str:
        """Take a file along, with others below its folder; return its path on the board.

        `beside`: other files that it needs, by their paths below its folder. `called`: what the user calls
        it; None: as `path`.
        """
        names = (path.name, *beside)
        try:
            files = tuple((Listed.of(name, path.parent / name), path.parent / name) for name in names)
        except OSError as error:
            raise InvalidInputError(f"cannot read {error.filename}: {error.strerror}") from None
        group = Group(files=files)
        if group not in self.groups:
            self.groups.append(group)
        for name in names:
            self.printed[f"{group.place}/{name}"] = str(path.parent / name)
        there = f"{group.place}/{path.name}"
        if called is not None:
            self.printed[there] = called
        return there

    def model(self, locator: str | Path, *, materialize: bool = False) -> str:
        """Take a model along with its weights, if it is a file here; return its locator on the board."""
        name, where = split_locator(locator)
        source, colon, attribute = where.rpartition(":")
        if os.path.isfile(where):
            from ..executor.graph.model_file import external_files  # loads onnx

            there = self.file(Path(where), external_files(where, materialize=materialize))
        elif colon and source.endswith(".py") and os.path.isfile(source):
            there = f"{self.pipeline(Path(source))}:{attribute}"
        else:
            return str(locator)
        return there if name is None else f"{name}={there}"

    def pipeline(self, path: Path) -> str:
        """Take the file of a pipeline along, with models below its folder that it names; return its path.

        What it finds elsewhere, such as a model inside an installed package, the board has itself.
        """
        return self.file(path, dict.fromkeys([*_modules(path), *_named_models(path)]))

    def code(self, path: Path) -> str:
        """Take a Python file along, with the modules beside it that it imports; return its path there."""
        return self.file(path, _modules(path))

    def problem(self, problem: Problem, *, called: str, at: Mapping[str, str] | None = None) -> str:
        """Take a problem along, with the models of its networks that are files here.

        Raises InvalidInputError: a model is Python code that only the problem names.
        """

        def taken(network: Network, locator: str) -> str:
            if not is_code(locator):
                return self.model(locator, materialize=True)
            require_trusted(locator, f"the model of network {network.name!r}")
            there = self.model(locator)
            self.trusted.append(there)
            return there

        networks = tuple(
            replace(
                network,
                models=tuple(
                    replace(model, locator=taken(network, (at or {}).get(model.locator, model.locator)))
                    for model in network.models
                ),
            )
            for network in problem.networks
        )
        return self.text("problem.json", dump_problem(replace(problem, networks=networks)), called=called)

    def text(self, name: str, text: str, *, called: str) -> str:
        """Take a file along that is made here."""
        path = self.scratch / f"{len(self.groups)}" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return self.file(path, called=called)

    def deployed(
        self, problem: Problem, deployment: Deployment, *, called: str, at: Mapping[str, str]
    ) -> list[str]:
        """Take along what is to be run; return the two arguments of `gapless run`."""
        written = replace(problem, rules=problem.expression_rules)
        return [
            self.problem(written, called=called, at=at),
            self.text("deployment.json", dump(deployment, DEPLOYMENT), called=called),
        ]

    def result(self, option: str, path: Path) -> str:
        """Have a file brought back that the command writes; return its path on the board."""
        name = f"{option}{path.suffix if path.suffix.isascii() and path.suffix.isprintable() else ''}"
        self.results[name] = path
        self.printed[f"{RUNS}/{self.run}/{name}"] = str(path)
        return f"{RUNS}/{self.run}/{name}"

    def _planned(self, given: list[Given], subjects: Sequence[Any]) -> tuple[list[Given], list[Packed]]:
        """Find the plan and its problem here, where the files are that say what belongs together."""
        names = {each.name: value for each, value in given}
        if len(subjects) == 2 and isinstance(subjects[0], Problem):
            words = self.deployed(subjects[0], subjects[1], called="the problem", at={})
            return given, [Packed(each) for each in words]
        if not 1 <= len(subjects) <= 2:
            raise InvalidInputError(
                f"give a problem and a plan, or a plan alone; got {' '.join(subjects) or 'none'}"
            )
        named = named_plan(subjects[-1], names.get("number"))
        problem, notes = problem_of_plan(
            named, Question(problem=str(subjects[0]) if len(subjects) == 2 else None)
        )
        self.notes += [*named.notes, *notes]
        words = self.deployed(
            problem, named.deployed(problem), called=str(subjects[-1]), at=parse_places(names.get("at"))
        )
        rest = [one for one in given if one[0].name not in ("number", "at")]
        return rest, [Packed(each) for each in words]


class Packed(str):
    """A path of a board: what was taken there."""

    __slots__ = ()


def _file(packing: Packing, field: Field, value: Path) -> str:
    return packing.code(value) if value.suffix == ".py" else packing.file(value)


def _inputs(packing: Packing, field: Field, value: Path) -> str:
    """Take a file with inputs along, or all of a folder."""
    if not value.is_dir():
        return packing.file(value)
    names = sorted(path.name for path in value.glob(f"*{SUFFIX}"))
    if not names:
        raise InvalidInputError(f"the folder {value} holds no {SUFFIX} file with inputs")
    return packing.file(value / names[0], names[1:]).rpartition("/")[0]


def _code(packing: Packing, field: Field, value: Any) -> str:
    """Take along the files of references such as file.py:Class, which may stand between commas."""
    found = []
    for each in field.form.write(value).split(","):
        source, colon, name = each.strip().rpartition(":")
        is_file = colon and source.endswith(".py") and os.path.isfile(source)
        found.append(f"{packing.code(Path(source))}:{name}" if is_file else each)
    return ",".join(found)


def _result(packing: Packing, field: Field, value: Path) -> str:
    return packing.result(field.name, value)


_TAKEN: Mapping[Names, Callable[[Packing, Field, Any], str]] = {
    Names.FILE: _file,
    Names.INPUTS: _inputs,
    Names.CODE: _code,
    Names.RESULT: _result,
    Names.FOLDER: _result,
}
"""What becomes of values that name something; all others stay as they are."""


def _refuse(field: Field, value: Any) -> None:
    """Refuse what has no meaning on a board."""
    if field.name == "engine" and value == SIMULATED:
        raise InvalidInputError("a simulated device needs no board: leave out --on, or --engine simulated")
    if field.not_on_boards:
        raise InvalidInputError(f"{field.option} cannot be used with --on: {field.not_on_boards}")


def _modules(path: Path) -> list[str]:
    """Return the Python files beside a file that it imports, and these import, by their paths from there."""
    folder, found, asked = path.parent, dict[str, None](), [path]
    while asked:
        try:
            tree = ast.parse(asked.pop().read_bytes())
        except (OSError, SyntaxError, ValueError):  # who runs it says what is wrong with it
            continue
        for name in _imported(tree):
            package = folder / name
            files = [package.with_suffix(".py"), *(package.rglob("*.py") if package.is_dir() else ())]
            new = [each for each in files if each.is_file() and str(each.relative_to(folder)) not in found]
            found |= dict.fromkeys(str(each.relative_to(folder)) for each in new)
            asked += new
    found.pop(path.name, None)
    return sorted(found)


def _named_models(path: Path) -> Iterator[str]:
    """Yield the ONNX files that a Python file names as text, and their weights, as seen from its folder.

    The file is only read: what it needs to be executed may be on the board alone.
    """
    from ..executor.graph.model_file import external_files  # loads onnx

    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):  # who runs it says what is wrong with it
        return
    for node in ast.walk(tree):
        name = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
        file = path.parent / name
        inside = not os.path.isabs(name) and ".." not in Path(name).parts
        if name.endswith(".onnx") and inside and file.is_file():
            yield name
            for weights in external_files(file, materialize=True):
                yield str(Path(name).parent / weights)


def _imported(tree: ast.Module) -> set[str]:
    """Return the first names of all modules that a source imports."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names
