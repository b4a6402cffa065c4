"""Versioned JSON files: strict in, all defects at once; atomic out.

This is the only module of its folder that needs a third-party library (pydantic reads the documents
straight into the frozen types).
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import TypeAdapter, ValidationError

from .costs import CostTable, Interference
from .errors import (
    ExpressionError,
    InvalidInputError,
    InvalidPlanError,
    InvalidProblemError,
    SchemaVersionError,
)
from .expr_json import Variables, chain_variables, from_data, to_data, workload_variables
from .hardware import Platform
from .network import Network
from .objective import Limits, Objective
from .plan import Chunk, Plan
from .problem import Problem
from .rules import Rule
from .validation import STRICT
from .workload import Workload

MAX_FILE_BYTES = 64 * 2**20
"""Largest file that is read: far above any problem, far below what would exhaust a board."""

MAX_DEFECTS_SHOWN = 50
LINE_LENGTH = 100

Document = TypeVar("Document")


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema(Generic[Document]):
    """One kind of file: its name, its current version, and the type that holds its content."""

    format: str
    version: int
    content: type[Document]


@dataclass(frozen=True, slots=True, kw_only=True)
class _RuleDocument:
    __pydantic_config__: ClassVar[Any] = STRICT
    name: str
    expr: Any
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _ProblemDocument:
    __pydantic_config__: ClassVar[Any] = STRICT
    platform: Platform
    networks: tuple[Network, ...]
    costs: CostTable
    objective: Objective = Objective()
    limits: Limits = Limits()
    rules: tuple[_RuleDocument, ...] = ()
    workload: Workload | None = None
    interference: Interference | None = None
    co_run_costs: tuple[CostTable, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _PlanDocument:
    __pydantic_config__: ClassVar[Any] = STRICT
    chunks: tuple[Chunk, ...]
    order: tuple[str, ...] = ()
    plan_id: str | None = None
    problem: str | None = None
    asked: dict[str, str] = field(default_factory=dict)


PLATFORM = Schema(format="gapless.platform", version=1, content=Platform)
NETWORK = Schema(format="gapless.network", version=1, content=Network)
INTERFERENCE = Schema(format="gapless.interference", version=1, content=Interference)
COSTS = Schema(format="gapless.costs", version=1, content=CostTable)
_PROBLEM = Schema(format="gapless.problem", version=1, content=_ProblemDocument)
_PLAN = Schema(format="gapless.plan", version=1, content=_PlanDocument)


def load(path: str | Path, schema: Schema[Document]) -> Document:
    """Read one file of a known kind.

    Raises
    ------
    InvalidInputError
        The file is missing, too large, not JSON, or its content is not valid; all defects are listed.
    SchemaVersionError
        It is a file of another kind, or of a version that this gapless does not read.
    """
    return parse(_read(Path(path)), schema, name=str(path))


def parse(data: bytes, schema: Schema[Document], *, name: str) -> Document:
    """Read one document of a known kind; `name` stands for it in messages."""
    tree = _json_tree(data, name)
    _check_header(tree, schema, name)
    content = {key: value for key, value in tree.items() if key not in ("format", "version")}
    return _content(content, schema.content, f"{name} is not a valid {schema.format} file:")


def format_of(path: str | Path) -> str | None:
    """Return of which kind a file says it is, or None if it does not say; errors as for `load`."""
    found = _json_tree(_read(Path(path)), str(path)).get("format")
    return found if isinstance(found, str) else None


def load_foreign(path: str | Path, content: type[Document], *, called: str) -> Document:
    """Read a file in a form that gapless did not make up: a JSON object without format and version.

    Parameters
    ----------
    path
        The file.
    content
        The type that holds it.
    called
        What such a file is, for messages.

    Raises
    ------
    InvalidInputError
        As for `load`.
    """
    tree = _json_tree(_read(Path(path)), str(path))
    return _content(tree, content, f"{path} is not valid as {called}:")


def _content(tree: dict[str, Any], content: type[Document], wrong: str) -> Document:
    try:
        return _adapter(content).validate_json(json.dumps(tree))
    except ValidationError as error:
        raise InvalidInputError(wrong, _shown(error)) from None


def dump(value: Document, schema: Schema[Document]) -> str:
    """Return a document as JSON text."""
    content = _adapter(schema.content).dump_python(value, mode="json", exclude_defaults=True)
    document = {"format": schema.format, "version": schema.version, **content}
    return _pretty(document) + "\n"


def save(text: str, path: str | Path) -> None:
    """Write a file at once: it is whole or not there.

    Raises
    ------
    InvalidInputError
        The place cannot be written.
    """
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


def load_problem(path: str | Path) -> Problem:
    """Read a problem file; errors as for `load`."""
    return parse_problem(_read(Path(path)), name=str(path))


def parse_problem(data: bytes, *, name: str) -> Problem:
    """Read a problem document; errors as for `load`."""
    document = parse(data, _PROBLEM, name=name)
    try:
        problem = Problem(
            platform=document.platform,
            networks=document.networks,
            costs=document.costs,
            objective=document.objective,
            limits=document.limits,
            workload=document.workload,
            interference=document.interference,
            co_run_costs=document.co_run_costs,
        )
    except InvalidInputError as error:
        raise InvalidProblemError(f"{name} is not a valid problem:", error.problems) from None
    rules, defects = [], []
    for index, rule in enumerate(document.rules):
        try:
            expr = from_data(rule.expr, _variables(problem))
            rules.append(Rule(name=rule.name, text=rule.text, expr=expr))
        except (InvalidInputError, ExpressionError, RecursionError) as error:
            defects.append(f"rules[{index}] {rule.name!r}: {error}")
    if defects:
        raise InvalidProblemError(f"{name} is not a valid problem:", defects)
    try:
        return problem.with_rules(*rules)
    except InvalidInputError as error:
        raise InvalidProblemError(f"{name} is not a valid problem:", error.problems) from None


def _variables(problem: Problem) -> Variables:
    if problem.workload is not None:
        return workload_variables(problem.flow_shop)
    return chain_variables(problem.chain)


def dump_problem(problem: Problem) -> str:
    """Return a problem as JSON text.

    Raises
    ------
    InvalidProblemError
        It has opaque rules, which are Python code and have no written form.
    """
    if problem.opaque_rules:
        names = ", ".join(repr(rule.name) for rule in problem.opaque_rules)
        raise InvalidProblemError(
            f"opaque rules are Python code and cannot be written to a file: {names}; "
            "keep them in a rules file and add them after loading"
        )
    document = _ProblemDocument(
        platform=problem.platform,
        networks=problem.networks,
        costs=problem.costs,
        objective=problem.objective,
        limits=problem.limits,
        rules=tuple(
            _RuleDocument(name=rule.name, text=rule.text, expr=to_data(rule.expr))
            for rule in problem.expression_rules
        ),
        workload=problem.workload,
        interference=problem.interference,
        co_run_costs=problem.co_run_costs,
    )
    return dump(document, _PROBLEM)


def load_plan(path: str | Path) -> Plan:
    """Read a plan file; errors as for `load`."""
    return _plan(load(path, _PLAN), path)


def load_origin(path: str | Path) -> dict[str, str]:
    """Read how the problem of a plan file was named when the plan was made; errors as for `load`."""
    return load(path, _PLAN).asked


def _plan(document: _PlanDocument, path: str | Path) -> Plan:
    if not document.chunks:
        raise InvalidPlanError(f"{path}: a plan needs at least one chunk")
    plan = Plan(chunks=document.chunks, order=document.order)
    if document.plan_id is not None and document.plan_id != plan.plan_id:
        raise InvalidPlanError(
            f"{path}: its chunks have the plan_id {plan.plan_id}, but it says {document.plan_id!r}; "
            "it was edited: remove the plan_id, or restore the chunks"
        )
    return plan


def dump_plan(plan: Plan, problem: Problem, origin: Mapping[str, str] | None = None) -> str:
    """Return a plan as JSON text, with the fingerprint of its problem and how that was named."""
    document = _PlanDocument(
        chunks=plan.chunks,
        order=plan.order,
        plan_id=plan.plan_id,
        problem=problem.fingerprint,
        asked=dict(origin or {}),
    )
    return dump(document, _PLAN)


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


_ADAPTERS: dict[type[Any], TypeAdapter[Any]] = {}


def _adapter(content: type[Document]) -> TypeAdapter[Document]:
    if content not in _ADAPTERS:
        _ADAPTERS[content] = TypeAdapter(content)
    return _ADAPTERS[content]


def _read(path: Path) -> bytes:
    try:
        size = path.stat().st_size
        if size > MAX_FILE_BYTES:
            raise InvalidInputError(f"{path} has {size} bytes, more than the {MAX_FILE_BYTES} that are read")
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise InvalidInputError(f"cannot read {path}: {error.strerror or error}") from error
    if len(data) > MAX_FILE_BYTES:
        raise InvalidInputError(f"{path} holds more than the {MAX_FILE_BYTES} bytes that are read")
    return data


def _json_tree(data: bytes, name: str) -> dict[str, Any]:
    def refuse(constant: str) -> None:
        raise InvalidInputError(f"{name}: {constant} is not a number that can be planned with")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            twice = sorted({key for key, _ in pairs if [k for k, _ in pairs].count(key) > 1})
            raise InvalidInputError(f"{name}: the key {twice[0]!r} stands twice in one object")
        return found

    try:
        tree = json.loads(data, parse_constant=refuse, object_pairs_hook=unique)
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"{name} is not a text file in UTF-8: {error.reason}") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise InvalidInputError(f"{name} is not valid JSON: {error.msg} at {where}") from None
    except RecursionError:
        raise InvalidInputError(f"{name} is nested too deeply") from None
    except InvalidInputError:
        raise
    except ValueError as error:  # e.g. an integer with more digits than Python converts
        raise InvalidInputError(f"{name} is not valid JSON: {error}") from None
    if not isinstance(tree, dict):
        raise InvalidInputError(f"{name} holds a {type(tree).__name__}, not an object")
    return tree


def _check_header(tree: dict[str, Any], schema: Schema[Document], name: str) -> None:
    found, version = tree.get("format"), tree.get("version")
    if found != schema.format:
        raise SchemaVersionError(
            f"{name} is no {schema.format} file: its format is {'missing' if found is None else repr(found)}"
        )
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
        yield f"{prefix}{text}, got {value if len(value) <= 60 else value[:57] + '...'}"
