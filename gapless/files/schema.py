"""JSON Schemas (draft 2020-12) of the files of gapless.

They are made from the types that hold the files, and their descriptions from the docstrings of these
types and the texts behind their fields. They say which keys there are, of which types, and which are
needed. What else a type checks (ranges, names that must be unique, rows of one length) is not in them:
gapless itself says that.
`object_tables` puts a schema in words: one table of keys for each kind of object in a file.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, is_dataclass
from typing import Any, get_args, get_type_hints, is_typeddict

from ..formulations.json_files import content_schema
from .formats import file_format

DIALECT = "https://json-schema.org/draft/2020-12/schema"

JsonSchema = dict[str, Any]


def json_schema(name: str) -> JsonSchema:
    """Return the JSON Schema of a kind of file; its name and errors as for `formats.file_format`."""
    schema = file_format(name).schema
    content = schema.content_with(None)
    made = content_schema(content)
    definitions: JsonSchema = made.pop("$defs", {})
    if "$ref" in made:  # a type that contains itself
        made = definitions[made["$ref"].rpartition("/")[2]]
    texts = _texts_behind_fields(content)
    for kind, node in ((content.__name__, made), *definitions.items()):
        _describe(node, texts.get(kind, {}))
    if "RuleDocument" in definitions:
        definitions["RuleDocument"]["properties"]["expr"] |= {"$ref": "#/$defs/Expression"}
        definitions["Expression"] = _expression()
    header = {
        "format": {"const": schema.format, "description": "Which kind of file it is."},
        "version": {"const": schema.version, "description": "Version of this kind of file."},
    }
    return {
        "$schema": DIALECT,
        "$id": f"urn:{schema.format.replace('.', ':')}:{schema.version}",
        "title": schema.format,
        "description": made.get("description", ""),
        "type": "object",
        "properties": {**header, **made["properties"]},
        "required": ["format", "version", *made.get("required", ())],
        "additionalProperties": _reads_a_part(content),
        **({"$defs": dict(sorted(definitions.items()))} if definitions else {}),
    }


def _reads_a_part(content: type[Any]) -> bool:
    """Return whether a file may hold more than is read."""
    return bool(getattr(content, "__pydantic_config__", {}).get("extra") == "ignore")


def _describe(node: JsonSchema, behind: Mapping[str, str]) -> None:
    """Give every property its text, from behind its field or from the docstring of the type.

    The type gets what is left of the docstring.
    """
    text, parts = _docstring_parts(node.get("description", ""))
    parts |= behind
    if text:
        node["description"] = text
    for name, field in node.get("properties", {}).items():
        field.pop("title", None)
        if name in parts:
            field["description"] = parts[name]


def _texts_behind_fields(content: type[Any]) -> dict[str, dict[str, str]]:
    """Return by type, as a part of a file, the texts behind its fields in the source.

    A text is about all fields before it that have none of their own. Fields of a base class have theirs
    there, behind the field or in its docstring.
    """
    found: dict[str, dict[str, str]] = {}
    left = [content]
    while left:
        kind = left.pop()
        left += [part for hint in get_type_hints(kind).values() for part in _file_types(hint)]
        left = [part for part in left if part.__name__ not in found]
        texts = found.setdefault(kind.__name__, {})
        for base in reversed(kind.__mro__[1:-1]):
            texts |= _docstring_parts(inspect.getdoc(base) or "")[1]
            texts |= _texts_in(base, texts)
        texts |= _texts_in(kind, texts)
    return found


def _texts_in(kind: type[Any], known: Mapping[str, str]) -> dict[str, str]:
    """Return the texts behind the fields that a type declares first."""
    found, waiting = dict[str, str](), list[str]()
    for node in _body(kind):
        match node:
            case ast.AnnAssign(target=ast.Name(id=name)) if name not in known:
                waiting.append(name)
            case ast.Expr(value=ast.Constant(value=str(text))):
                found |= dict.fromkeys(waiting, _as_json_says(" ".join(text.split())))
                waiting = []
    return found


def _body(kind: type[Any]) -> list[ast.stmt]:
    """Return what stands in a type; nothing where it has no source."""
    try:
        (found,) = ast.parse(inspect.getsource(kind)).body
    except (OSError, SyntaxError):
        return []
    assert isinstance(found, ast.ClassDef)
    return found.body


def _file_types(hint: object) -> Iterator[type[Any]]:
    """Yield the types with fields in the type of a field."""
    if isinstance(hint, type) and (is_dataclass(hint) or is_typeddict(hint)):
        yield hint
    for part in get_args(hint):
        yield from _file_types(part)


_SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.MULTILINE)


def _docstring_parts(docstring: str) -> tuple[str, dict[str, str]]:
    """Return the text of a numpydoc docstring before its sections, and its attributes by name."""
    head, *sections = _SECTION.split(docstring)
    by_title = dict(zip(sections[::2], sections[1::2], strict=True))
    parts: dict[str, str] = {}
    names: list[str] = []
    for line in by_title.get("Attributes", "").splitlines():
        if line and not line.startswith(" "):
            names = [name.strip() for name in line.split(",")]
        elif line.strip():
            for name in names:
                parts[name] = f"{parts.get(name, '')} {line.strip()}".strip()
    return _as_json_says(head.strip()), {name: _as_json_says(text) for name, text in parts.items()}


def _as_json_says(text: str) -> str:
    return re.sub(r"\bNone\b", "null", text)


def _node(name: object, *more: JsonSchema, rest: JsonSchema | bool, least: int) -> JsonSchema:
    """Return the schema of a list that begins with the name of a node of expressions."""
    first = {"enum": name} if isinstance(name, list) else {"const": name}
    return {"type": "array", "prefixItems": [first, *more], "items": rest, "minItems": least}


def _expression() -> JsonSchema:
    """Return the schema of what `formulations.expr` reads and writes."""
    whole, again = {"type": "integer"}, {"$ref": "#/$defs/Expression"}
    term = {"type": "array", "prefixItems": [whole, again], "items": False, "minItems": 2}
    return {
        "description": "An expression of a rule: a whole number, or a list that begins with the name of a "
        'node: ["var", quantity, index...], ["sum", constant, [factor, x]...], ["<=", x, y], ["not", a], '
        '["and", a...], ["or", a...], ["max", x...].',
        "anyOf": [
            whole,
            _node("var", {"type": "string"}, rest=whole, least=2),
            _node("sum", whole, rest=term, least=2),
            _node("<=", again, again, rest=False, least=3),
            _node("not", again, rest=False, least=2),
            _node(["and", "or"], rest=again, least=1),
            _node("max", again, rest=again, least=2),
        ],
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldRow:
    """One key of an object, in words."""

    name: str  # the key
    kind: str  # what its value is: "integer", "list of Chunk", "string or null"
    needed: bool  # whether it must be there
    text: str  # what it means; empty where nothing is written down


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectTable:
    """One kind of object of a file, in words: its name, what it is, and its keys."""

    name: str  # name of the type; that of the format for the file itself
    text: str  # what it is
    rows: tuple[FieldRow, ...]  # its keys; none for types that are not objects


def object_tables(schema: JsonSchema) -> Iterator[ObjectTable]:
    """Yield the objects of a file, the file itself first, in the order in which they are met."""
    definitions, seen, waiting = schema.get("$defs", {}), set(), [schema]
    while waiting:
        node = waiting.pop(0)
        rows = tuple(
            FieldRow(
                name=name,
                kind=_kind(field),
                needed=name in node.get("required", ()),
                text=field.get("description", ""),
            )
            for name, field in node.get("properties", {}).items()
        )
        text = " ".join(filter(None, (_values(node), node.get("description", ""))))
        yield ObjectTable(name=node.get("title", "Expression"), text=text, rows=rows)
        for name in _references(node.get("properties", {})):
            if name not in seen:
                seen.add(name)
                waiting.append(definitions[name])


def _values(node: JsonSchema) -> str:
    """Return what is allowed where there are few values."""
    values = node.get("enum", ())
    return f"one of {', '.join(map(str, values))}." if values else ""


def _references(node: object) -> Iterator[str]:
    if isinstance(node, dict):
        if "$ref" in node:
            yield node["$ref"].rpartition("/")[2]
        node = list(node.values())
    if isinstance(node, list):
        for part in node:
            yield from _references(part)


def _kind(field: JsonSchema) -> str:
    match field:
        case {"$ref": str(target)}:
            return target.rpartition("/")[2]
        case {"const": value}:
            return f'"{value}"' if isinstance(value, str) else str(value)
        case {"anyOf": list(choices)}:
            return " or ".join(map(_kind, choices))
        case {"prefixItems": list(items)}:
            return f"[{', '.join(map(_kind, items))}]"
        case {"type": "array", "items": dict(items)}:
            return f"list of {_kind(items)}"
        case {"type": "object", "additionalProperties": dict(values)}:
            return f"object of {_kind(values)}"
    return str(field.get("type", "anything"))
