"""How tables and notes look."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

MAX_NOTES_SHOWN = 8


def plain_table(*columns: str, numbers: Iterable[str] = ()) -> Table:
    """Return a table without frame; columns named in `numbers` are aligned to the right."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        table.add_column(column, justify="right" if column in set(numbers) else "left", overflow="fold")
    return table


def indented(what: RenderableType) -> Padding:
    """Return something with a margin of two columns."""
    return Padding(what, (0, 0, 0, 2), expand=False)


def notes_view(notes: Sequence[str]) -> list[Text]:
    """Return the first few notes, and how many more there are."""
    shown = [Text(f"note: {note}", style="yellow") for note in notes[:MAX_NOTES_SHOWN]]
    hidden = len(notes) - MAX_NOTES_SHOWN
    if hidden > 0:
        shown.append(Text(f"... and {hidden} more notes (--json shows all)", style="yellow"))
    return shown
