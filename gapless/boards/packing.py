"""What a command takes to a board and brings back: its options as words, with the paths of files there."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from ..api.models import is_code, parse_places, split_locator
from ..api.problems import load_problem
from ..executor.graph.opening import SECONDS_OPTION, OpeningLimits
from ..executor.samples import SUFFIX
from ..files.plans import DEPLOYMENT, named_plan, problem_of_plan
from ..formulations.deployment import Deployment
from ..formulations.errors import InvalidInputError
from ..formulations.files import PLATFORM, dump, dump_problem
from ..formulations.hardware import Platform
from ..formulations.network import Network
from ..formulations.plugins import require_trusted
from ..formulations.problem import Problem
from ..question.question import Question
from .shelf import FILES, RUNS, Listed, group_digest

SIMULATED = "simulated"

_WORDS = {"feed": "--input", "number": "--plan"}
"""Options that are not called as their parameters are."""

_NEGATED = frozenset({"check"})
"""Flags that are on unless `--no-...` is given."""

_LISTED = frozenset({"backends", "units"})
"""Options that take several names between commas."""

_POSITIONAL = ("subjects", "models", "model", "packed")

IN_FOLDERS = ("tune", "profile")
"""Commands that write a run folder."""


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

    def words(self, command: str, options: Mapping[str, Any]) -> list[str]:
        """Return the words of a command with options, by the names of its parameters.

        Raises InvalidInputError: a file cannot be read, or an option cannot be used on a board.
        """
        options = {name: value for name, value in options.items() if value is not None}
        _refuse(options)
        if command == "run":
            options = self._planned(options)
        words = command.split()
        if command in IN_FOLDERS:
            there, out = f"{RUNS}/{self.run}", options.pop("out", self.scratch)
            self.printed[there] = str(out)
            words.append(f"--out={there}")
            options.pop("overwrite", None)  # what it removes is here
        materialize = bool(options.get("materialize"))
        positional: list[str] = []
        for name, value in options.items():
            pack = _PACKED.get(name, _plain)
            given = _values(name, value)
            found = [pack(self, each, Asked(name, materialize)) for each in given]
            if name in _POSITIONAL:
                positional += found
            else:
                words += [
                    word
                    for each, text in zip(given, found, strict=True)
                    for word in _option(name, each, text)
                ]
        words[1:1] = [f"--trust={code}" for code in dict.fromkeys(self.trusted)]
        if (seconds := OpeningLimits.usual().seconds) is not None:
            words.insert(1, f"{SECONDS_OPTION}={seconds:g}")
        return [*words, "--", *positional] if positional else words

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

    def _planned(self, options: dict[str, Any]) -> dict[str, Any]:
        """Find the plan and its problem here, where the files are that say what belongs together."""
        if "planned" in options:
            problem, deployment = options.pop("planned")
            return {**options, "packed": self.deployed(problem, deployment, called="the problem", at={})}
        files = options.get("files") or []
        if not 1 <= len(files) <= 2:
            raise InvalidInputError(
                f"give a problem and a plan, or a plan alone; got {' '.join(files) or 'none'}"
            )
        named = named_plan(files[-1], options.get("number"))
        problem, notes = problem_of_plan(named, Question(problem=str(files[0]) if len(files) == 2 else None))
        self.notes += [*named.notes, *notes]
        words = self.deployed(
            problem, named.deployed(problem), called=str(files[-1]), at=parse_places(options.get("at"))
        )
        rest = {name: value for name, value in options.items() if name not in ("files", "number", "at")}
        return {**rest, "packed": words}


class Asked(NamedTuple):
    """What is known of a value besides itself: its parameter, and whether links to weights are followed."""

    name: str
    materialize: bool


def _plain(packing: Packing, value: Any, asked: Asked) -> str:
    return str(value)


def _subject(packing: Packing, value: Any, asked: Asked) -> str:
    if isinstance(value, Problem):
        return packing.problem(
            value, called=value.network.name if len(value.networks) == 1 else "the problem"
        )
    if str(value).endswith(".json") and os.path.isfile(value):
        return packing.problem(load_problem(value), called=str(value))
    return packing.model(value, materialize=asked.materialize)


def _file(packing: Packing, value: Any, asked: Asked) -> str:
    if str(value).endswith(".py"):
        return packing.code(Path(value))
    if isinstance(value, Platform):
        return packing.text("platform.json", dump(value, PLATFORM), called=value.name)
    return packing.file(Path(value))


def _inputs(packing: Packing, value: Any, asked: Asked) -> str:
    """Take a file with inputs along, or all of a folder."""
    if not os.path.isdir(value):
        return packing.file(Path(value))
    names = sorted(path.name for path in Path(value).glob(f"*{SUFFIX}"))
    if not names:
        raise InvalidInputError(f"the folder {value} holds no {SUFFIX} file with inputs")
    return packing.file(Path(value, names[0]), names[1:]).rpartition("/")[0]


def _code(packing: Packing, value: Any, asked: Asked) -> str:
    """Take along the files of references such as file.py:Class, which may stand between commas."""
    found = []
    for each in str(value).split(","):
        source, colon, name = each.strip().rpartition(":")
        is_file = colon and source.endswith(".py") and os.path.isfile(source)
        found.append(f"{packing.code(Path(source))}:{name}" if is_file else each)
    return ",".join(found)


def _result(packing: Packing, value: Any, asked: Asked) -> str:
    return packing.result(asked.name, Path(value))


_PACKED: Mapping[str, Callable[[Packing, Any, Asked], str]] = {
    "subjects": _subject,
    "models": _subject,
    "model": _subject,
    "rules": _file,
    "device": _file,
    "cluster": _file,
    "feed": _inputs,
    "engine": _code,
    "backends": _code,
    "out": _result,
    "output": _result,
    "trace": _result,
}
"""Parameters that name files, and what becomes of their values; the values of all others stay as they are."""


def _refuse(options: Mapping[str, Any]) -> None:
    """Refuse what has no meaning on a board."""
    if options.get("engine") == SIMULATED:
        raise InvalidInputError("a simulated device needs no board: leave out --on, or --engine simulated")
    if options.keys() & {"local", "address"}:
        raise InvalidInputError("--on is about one board, --local and --address are about clusters: give one")
    if "store" in options:
        raise InvalidInputError(
            "--store names a file here, and a board keeps its measurements with the run: leave it out; --out "
            "brings them back"
        )


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


def _values(name: str, value: Any) -> Sequence[Any]:
    """Return the values of an option: a Python list is several ones, or one with commas."""
    if isinstance(value, Mapping):  # shapes by input
        return [f"{key}={','.join(map(str, each))}" for key, each in value.items()]
    if isinstance(value, str) or not isinstance(value, Sequence):
        return [value]
    return [",".join(map(str, value))] if name in _LISTED else value


def _option(name: str, value: Any, text: str) -> list[str]:
    """Return an option as words."""
    word = _WORDS.get(name, f"--{name.replace('_', '-')}")
    if value is True:
        return [] if name in _NEGATED else [word]
    if value is False:
        return [f"--no-{word[2:]}"] if name in _NEGATED else []
    return [f"{word}={text}"]
