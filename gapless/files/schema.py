"""JSON Schemas (draft 2020-12) of the files of gapless.

They are made from the types that hold the files, and their descriptions from the docstrings of these
types. They say which keys there are, of which types, and which are needed. What else a type checks
(ranges, names that must be unique, rows of one length) is not in them: gapless itself says that.
"""

from __future__ import annotations

import re
from typing import Any

from ..formulations.json_files import content_schema
from .formats import file_format

DIALECT = "https://json-schema.org/draft/2020-12/schema"

JsonSchema = dict[str, Any]


def json_schema(name: str) -> JsonSchema:
    """Return the JSON Schema of a kind of file.

    Parameters
    ----------
    name
        As for `formats.file_format`.

    Raises
    ------
    InvalidInputError
        There is no such kind.
    """
    schema = file_format(name).schema
    made = content_schema(schema.content)
    definitions: JsonSchema = made.pop("$defs", {})
    if "$ref" in made:  # a type that contains itself
        made = definitions[made["$ref"].rpartition("/")[2]]
    for node in (made, *definitions.values()):
        _describe(node)
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
        "additionalProperties": _reads_a_part(schema.content),
        **({"$defs": dict(sorted(definitions.items()))} if definitions else {}),
    }


def _reads_a_part(content: type[Any]) -> bool:
    """Return whether a file may hold more than is read."""
    return bool(getattr(content, "__pydantic_config__", {}).get("extra") == "ignore")


def _describe(node: JsonSchema) -> None:
    """Give every property its part of the docstring of the type, and the type what is left of it."""
    text, parts = _docstring_parts(node.get("description", ""))
    if text:
        node["description"] = text
    for name, field in node.get("properties", {}).items():
        field.pop("title", None)
        if name in parts:
            field["description"] = parts[name]


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
    """Return the schema of what `formulations.expr_json` reads and writes."""
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
