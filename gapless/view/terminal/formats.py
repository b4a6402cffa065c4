"""File formats for people: which there are, and the keys of one."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from ...files.formats import FileFormat
from ...files.schema import ObjectTable
from ..layout import indented, plain_table


def formats_view(formats: Sequence[FileFormat]) -> RenderableType:
    """Return what `gapless list files` shows."""
    table = plain_table("format", "what is in it", "written by")
    for entry in formats:
        table.add_row(entry.name, entry.what, entry.written_by)
    return Group(
        Text('Every file says its format ("gapless.plan") and its version.', style="bold"),
        "",
        indented(table),
        "",
        Text(
            "`gapless tools schema FORMAT` shows the keys; with --json or --out it gives the JSON Schema.",
            style="dim",
        ),
    )


def format_view(entry: FileFormat, tables: Sequence[ObjectTable]) -> RenderableType:
    """Return what `gapless tools schema FORMAT` shows."""
    parts: list[RenderableType] = [
        Text(f"gapless.{entry.name}", style="bold").append(f": {entry.what}", style="not bold"),
        Text(f"written by {entry.written_by}; read by {entry.read_by}", style="dim"),
    ]
    for table in tables:
        name = "the file" if table is tables[0] else table.name
        parts += ["", Text(name, style="bold").append(f": {table.text}", style="not bold")]
        if table.rows:
            keys = plain_table("key", "value", "meaning")
            for row in table.rows:
                keys.add_row(f"{row.name}{'' if row.needed else '?'}", row.kind, row.text)
            parts.append(indented(keys))
    return Group(*parts, "", Text("?: may be left out", style="dim"))
