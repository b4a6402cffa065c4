"""How tables look."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table


def plain_table(*columns: str, numbers: Iterable[str] = ()) -> Table:
    """Return a table without frame; columns named in `numbers` are aligned to the right."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        table.add_column(column, justify="right" if column in set(numbers) else "left", overflow="fold")
    return table


def indented(what: RenderableType) -> Padding:
    """Return something with a margin of two columns."""
    return Padding(what, (0, 0, 0, 2), expand=False)
