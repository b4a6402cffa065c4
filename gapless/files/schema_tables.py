"""JSON Schemas in words: one table of keys for each kind of object in a file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .schema import JsonSchema


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldRow:
    """One key of an object, in words.

    Attributes
    ----------
    name
        The key.
    kind
        What its value is: "integer", "list of Chunk", "string or null".
    needed
        Whether it must be there.
    text
        What it means; empty where nothing is written down.
    """

    name: str
    kind: str
    needed: bool
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectTable:
    """One kind of object of a file, in words: its name, what it is, and its keys.

    Attributes
    ----------
    name
        Name of the type; that of the format for the file itself.
    text
        What it is.
    rows
        Its keys; none for types that are not objects.
    """

    name: str
    text: str
    rows: tuple[FieldRow, ...]


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
