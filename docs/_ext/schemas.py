"""The file formats, made from their JSON Schemas."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gapless.files.formats import FORMATS, FileFormat
from gapless.files.schema import ObjectTable, json_schema, object_tables

from .commands import code, prose


def overview() -> str:
    """Return the table of all kinds of files."""
    rows = (
        f"| [{code(entry.name)}](#{entry.name}) | {prose(entry.what)} | {prose(entry.written_by)} "
        f"| {prose(entry.read_by)} |"
        for entry in FORMATS
    )
    return "\n".join(["| format | what is in it | written by | read by |", "|---|---|---|---|", *rows])


def part_of(entry: FileFormat) -> Callable[[], str]:
    """Return what makes the tables of one kind of file."""
    return lambda: "\n".join(_tables(entry))


def _tables(entry: FileFormat) -> Iterator[str]:
    first, *others = object_tables(json_schema(entry.name))
    link = f'<a href="../_static/schemas/{entry.name}.json">{entry.name}.json</a>'
    yield f"Written by: {prose(entry.written_by)}. Read by: {prose(entry.read_by)}. JSON Schema: {link}.\n"
    yield from _keys(first)
    if others:
        yield "<details><summary>All objects inside</summary>\n"
        for table in others:
            yield f"\n**{prose(table.name)}**: {prose(' '.join(table.text.split()))}\n"
            yield from _keys(table)
        yield "\n</details>\n"


def _keys(table: ObjectTable) -> Iterator[str]:
    if not table.rows:
        return
    yield "| key | value | meaning |\n|---|---|---|"
    for row in table.rows:
        needed = "" if row.needed else " (may be left out)"
        yield f"| {code(row.name)} | {prose(row.kind)}{needed} | {prose(row.text)} |"
    yield ""
