"""Versioned JSON documents: strict in, all defects at once; atomic out.

This is the only module of its folder that needs a third-party library (pydantic reads the documents
straight into the frozen types).
"""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Generic, NoReturn, TypeVar

from pydantic import TypeAdapter, ValidationError

from .errors import InvalidInputError, SchemaVersionError
from .validation import no_integer, unique_keys

PROBLEM = "gapless.problem"
PLAN = "gapless.plan"
PLANS = "gapless.plans"
_DEPLOYMENT = "gapless.deployment"
_PROFILE = "gapless.profile"
_EXECUTIONS = "gapless.executions"

_IN_FOLDER = {
    PROBLEM: ("problem.json",),
    PLAN: ("plan.json",),
    _DEPLOYMENT: ("deployment.json", "plan.json"),
    _PROFILE: ("profile.json",),
    _EXECUTIONS: ("executions.json",),
}
"""What files of a kind are called in the folders that `gapless tune` and `gapless profile` write."""

_INSTEAD = {
    (PLAN, PROBLEM): "it holds a plan. A problem comes first and the plan behind it; "
    "`gapless tools check {name}` looks at the plan alone",
    (PLANS, PROBLEM): "it holds a list of plans. A problem comes first and the list behind it; "
    "`gapless tools check {name}` looks at the best of them alone",
    (PROBLEM, PLAN): "it holds a problem. A plan comes behind its problem; "
    "`gapless plan {name} --out plan.json` makes one",
    (_DEPLOYMENT, PLAN): "it holds a deployment: `gapless run {name}` runs it",
    (_DEPLOYMENT, PROBLEM): "it holds a deployment. Its problem comes first: `gapless run PROBLEM {name}`",
    (_PROFILE, PROBLEM): "it holds measurements; the problem was written beside it, as problem.json",
    (PROBLEM, _EXECUTIONS): "it holds a problem; executed plans are in the executions.json of `gapless tune`",
    (PLAN, _EXECUTIONS): "it holds a plan; executed plans are in the executions.json of `gapless tune`",
}
"""{(kind that was found, kind that is needed): what to do instead}."""

_OTHER_MODEL = "it is a model of another kind; gapless takes ONNX: export it to a .onnx file first"

_FOREIGN = {
    ".onnx": "it is a model: `gapless profile {name}` measures it and writes gapless-out/problem.json, which "
    "can be planned; `gapless tune {name}` does all of it",
    ".pt": _OTHER_MODEL,
    ".pth": _OTHER_MODEL,
    ".tflite": _OTHER_MODEL,
    ".mnn": _OTHER_MODEL,
    ".npz": "it holds arrays; `gapless run --input` takes them",
    ".sqlite": "it is a store of measurements; --store takes it",
    ".html": "it is a report, for people",
}
"""Files that are no JSON, by how their names end."""


def instead(name: str, found: str, needed: str) -> str:
    """Return what to do with a file of another kind, as the end of a sentence; empty: nothing is known."""
    hint = _INSTEAD.get((found, needed), "")
    return f"; {hint.format(name=name)}" if hint else ""


def in_folder(path: Path, needed: str) -> str:
    """Return which file of a folder may be meant, as the end of a sentence.

    `needed`: the kind of file that is needed; empty: any.
    """
    for name in _IN_FOLDER.get(needed, ()):
        if (path / name).is_file():
            return f"; did you mean {path / name}?"
    return "; name a file"


def foreign(path: Path) -> str:
    """Return what a file is that is no JSON, as the end of a sentence; empty: it may be JSON."""
    return _FOREIGN.get(path.suffix.lower(), "").format(name=path)


MAX_FILE_BYTES = 64 * 2**20
"""Largest file that is read: far above any problem, far below what would exhaust a board."""

MAX_DEPTH = 200
"""Deepest nesting that is read: a rule needs some tens at most, and every later step walks it recursively."""

_MOST_DIGITS = 300
"""Most digits of an integer that is read: it can still be shown as a floating-point number."""

MAX_DEFECTS_SHOWN = 50
LINE_LENGTH = 100

Document = TypeVar("Document")


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema(Generic[Document]):
    """One kind of file."""

    format: str  # its name, which stands in the file
    version: int  # its current version; older ones are read, too
    content: type[Document]  # the type that holds its content
    extended: Callable[[Collection[str] | None], type[Document]] | None = None
    """Where plug-ins add keys: from the keys of a file to a type with the ones of these, which derives from
    `content`; from None to the type with all keys."""

    def content_with(self, keys: Collection[str] | None) -> type[Document]:
        """Return the type for a file with certain keys; None: any."""
        return self.content if self.extended is None else self.extended(keys)


def load(path: str | Path, schema: Schema[Document]) -> Document:
    """Read one file of a known kind.

    Raises
    ------
    InvalidInputError
        The file is missing, too large, not JSON, or its content is not valid; all defects are listed.
    SchemaVersionError
        It is a file of another kind, or of a version that this gapless does not read.
    """
    return parse(read_bytes(path, needed=schema.format), schema, name=str(path))


def parse(data: bytes, schema: Schema[Document], *, name: str) -> Document:
    """Read one document of a known kind; `name` stands for it in messages."""
    tree = json_tree(data, name)
    _check_header(tree, schema, name)
    content = {key: value for key, value in tree.items() if key not in ("format", "version")}
    wrong = f"{name} is not a valid {schema.format} file:"
    return parse_tree(content, schema.content_with(content), wrong=wrong)


def format_of(path: str | Path) -> str | None:
    """Return of which kind a file says it is, or None if it does not say; errors as for `load`."""
    found = load_tree(path).get("format")
    return found if isinstance(found, str) else None


def load_tree(path: str | Path) -> dict[str, Any]:
    """Return the JSON object in a file, of whichever kind; errors as for `load`."""
    return json_tree(read_bytes(path), str(path))


def load_foreign(path: str | Path, content: type[Document], *, called: str) -> Document:
    """Read a file in a form that gapless did not make up: a JSON object without format and version."""
    return parse_tree(load_tree(path), content, wrong=f"{path} is not valid as {called}:")


def parse_tree(tree: dict[str, Any], content: type[Document], *, wrong: str) -> Document:
    """Read plain values, as they stand in a file of whatever form, into a type."""
    try:
        return _adapter(content).validate_json(json.dumps(tree, allow_nan=False))
    except ValidationError as error:
        raise InvalidInputError(wrong, _shown(error)) from None
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInputError(wrong, [str(error)]) from None


def dump(value: Document, schema: Schema[Document]) -> str:
    """Return a document as JSON text."""
    content = _adapter(type(value)).dump_python(value, mode="json", exclude_defaults=True)
    document = {"format": schema.format, "version": schema.version, **content}
    return _pretty(document) + "\n"


def save(text: str, path: str | Path) -> None:
    """Write a file at once: it is whole or not there."""
    target, part = Path(os.path.realpath(path)), None
    try:
        if os.path.exists(path) and not os.path.isfile(path):  # a device or pipe is never replaced
            Path(path).write_text(text, encoding="utf-8")
            return
        with tempfile.NamedTemporaryFile(
            "w", dir=target.parent, prefix=f".{target.name}.", delete=False, encoding="utf-8"
        ) as part:
            part.write(text)
        os.chmod(part.name, _mode_of(target))
        os.replace(part.name, target)
    except OSError as error:
        if part is not None:
            Path(part.name).unlink(missing_ok=True)
        raise InvalidInputError(f"cannot write {target}: {error.strerror or error}") from error


def _mode_of(target: Path) -> int:
    """Return the permissions a file has, or that a new one gets here."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _pretty(value: Any, indent: str = "") -> str:
    """Return JSON with one row of a table a line: short values stand on one line, long ones do not."""
    line = json.dumps(value, ensure_ascii=False, allow_nan=False)
    if not isinstance(value, dict | list) or not value or len(line) + len(indent) <= LINE_LENGTH:
        return line
    deeper = indent + " "
    if isinstance(value, dict):
        rows = [f"{json.dumps(key)}: {_pretty(item, deeper)}" for key, item in value.items()]
    else:
        rows = [_pretty(item, deeper) for item in value]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return f"{opening}\n{deeper}{f',{chr(10)}{deeper}'.join(rows)}\n{indent}{closing}"


def content_schema(content: type[Any]) -> dict[str, Any]:
    """Return the JSON Schema of what is read into a type: names, types, what is needed; no headers.

    Descriptions are whole docstrings. Ranges and what else a type checks by itself are not in it.
    """
    return _adapter(content).json_schema()


_ADAPTERS: dict[type[Any], TypeAdapter[Any]] = {}


def _adapter(content: type[Document]) -> TypeAdapter[Document]:
    if content not in _ADAPTERS:
        _ADAPTERS[content] = TypeAdapter(content)
    return _ADAPTERS[content]


def read_bytes(path: str | Path, *, needed: str = "", most: int = MAX_FILE_BYTES) -> bytes:
    """Return what a file holds.

    `needed`: the kind of JSON file that it has to be, for messages; empty: any.
    """
    path = Path(path)
    try:
        size = path.stat().st_size
        if path.is_dir():
            raise InvalidInputError(f"cannot read {path}: it is a folder{in_folder(path, needed)}")
        if known := foreign(path):
            raise InvalidInputError(f"{path} is no {needed or 'JSON'} file: {known}")
        if size > most:
            raise InvalidInputError(f"{path} has {size} bytes, more than the {most} that are read")
        with path.open("rb") as file:
            data = file.read(most + 1)
    except OSError as error:
        raise InvalidInputError(f"cannot read {path}: {error.strerror or error}") from error
    if len(data) > most:
        raise InvalidInputError(f"{path} holds more than the {most} bytes that are read")
    return data


def json_tree(data: bytes, name: str) -> dict[str, Any]:
    """Return the JSON object in a text; `name` stands for it in messages; errors as for `load`."""

    def refuse(constant: str) -> NoReturn:
        raise InvalidInputError(f"{name}: {constant[:40]} is not a number that can be planned with")

    def finite(digits: str) -> float:
        number = float(digits)
        return number if math.isfinite(number) else refuse(digits)

    def whole(digits: str) -> int:
        return int(digits) if len(digits) <= _MOST_DIGITS else refuse(digits)

    if not data.strip():
        raise InvalidInputError(f"{name} is not valid JSON: it is empty")
    try:
        tree = json.loads(
            data,
            parse_float=finite,
            parse_int=whole,
            parse_constant=refuse,
            object_pairs_hook=partial(unique_keys, where=f"{name}: "),
        )
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"{name} is not a text file in UTF-8: {error.reason}") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise InvalidInputError(f"{name} is not valid JSON: {error.msg} at {where}") from None
    except RecursionError:
        raise InvalidInputError(f"{name} is nested too deeply") from None
    except InvalidInputError:
        raise
    except ValueError as error:
        raise InvalidInputError(f"{name} is not valid JSON: {error}") from None
    if not isinstance(tree, dict):
        raise InvalidInputError(f"{name} holds a {type(tree).__name__}, not an object")
    if _is_deep(tree):
        raise InvalidInputError(f"{name} is nested too deeply: more than {MAX_DEPTH} levels")
    return tree


def _is_deep(tree: dict[str, Any]) -> bool:
    """Return whether something in a tree lies deeper than is read; looks at it level by level."""
    level: list[Any] = [tree]
    for _ in range(MAX_DEPTH):
        level = [
            item
            for value in level
            for item in (value.values() if isinstance(value, dict) else value)
            if isinstance(item, dict | list)
        ]
        if not level:
            return False
    return True


def _check_header(tree: dict[str, Any], schema: Schema[Document], name: str) -> None:
    found, version = tree.get("format"), tree.get("version")
    if found != schema.format:
        said = "missing" if found is None else repr(found)
        hint = instead(name, str(found), schema.format)
        raise SchemaVersionError(f"{name} is no {schema.format} file: its format is {said}{hint}")
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise SchemaVersionError(f"{name}: its version is {version!r}, must be a whole number from 1")
    if version > schema.version:
        raise SchemaVersionError(
            f"{name} has version {version} of {schema.format}; this gapless reads up to version "
            f"{schema.version}. Update gapless, or write the file with an older one"
        )


def _shown(error: ValidationError) -> list[str]:
    defects = [line for defect in error.errors(include_url=False) for line in _lines(defect)]
    more = len(defects) - MAX_DEFECTS_SHOWN
    return defects[:MAX_DEFECTS_SHOWN] + ([f"... and {more} more"] if more > 0 else [])


def _lines(defect: Any) -> Iterator[str]:
    where = ""
    for part in defect["loc"]:
        where += f"[{part}]" if isinstance(part, int) else f"{'.' if where else ''}{part}"
    inner = defect.get("ctx", {}).get("error")
    prefix = f"{where}: " if where else ""
    if isinstance(inner, InvalidInputError) and inner.problems:
        yield from (f"{prefix}{problem}" for problem in inner.problems)
    elif defect["type"] == "unexpected_keyword_argument":
        yield f"{where}: unknown key"
    elif defect["type"] == "missing":
        yield f"{where}: missing"
    else:
        value = repr(defect["input"])
        text = defect["msg"].removeprefix("Value error, ")
        if defect["type"] == "int_type":
            text = no_integer(next((part for part in reversed(defect["loc"]) if isinstance(part, str)), ""))
        yield f"{prefix}{text}, got {value if len(value) <= 60 else value[:57] + '...'}"
