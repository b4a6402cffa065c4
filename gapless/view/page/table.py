"""Tables as data: columns, and rows of cells that know what they mean."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ...answers.blocks import Cell, Column, Shown, Tone, Unit
from ...answers.blocks import Table as Block
from .texts import clipped

MOST_ROWS = 300
"""Of a table of answers that does not ask for more."""

_KINDS = {unit: str(unit) for unit in (Unit.NAME, Unit.CODE, Unit.LONG)}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableColumn:
    """A column: its title, and whether it holds numbers."""

    title: str
    number: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCell:
    """A cell."""

    text: str  # what it says
    kind: str = ""
    """"good", "bad", "warn", "soft", "name", "text", "long" or "": how it is set; never the only carrier of a
    meaning."""
    note: str = ""  # what stands behind it, in smaller letters
    link: str = ""  # place on the page that it leads to, or ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """A row; `strong` for the one that the others are compared with."""

    cells: tuple[TableCell, ...]
    strong: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table.

    `columns`, `rows`: its content; every row has a cell for each column.
    """

    caption: str  # what it shows
    columns: tuple[TableColumn, ...]
    rows: tuple[TableRow, ...]
    hidden: int = 0  # rows that are left out because there are too many
    legend: str = ""  # what its titles mean, as far as that is not plain


def table(
    caption: str,
    titles: Sequence[TableColumn],
    rows: Iterable[Sequence[TableCell | str]],
    *,
    strong: Iterable[int] = (),
    most: int | None = None,
) -> Table:
    """Return a table.

    `most`: rows to keep; None: all.
    """
    marked = frozenset(strong)
    built = tuple(
        TableRow(cells=tuple(map(_cell, row)), strong=index in marked) for index, row in enumerate(rows)
    )
    kept = built if most is None else built[:most]
    return Table(
        caption=caption,
        columns=tuple(titles),
        rows=kept,
        hidden=len(built) - len(kept),
    )


def columns(*given: TableColumn | str) -> tuple[TableColumn, ...]:
    """Return columns, some of them given by their titles alone."""
    return tuple(TableColumn(title=one) if isinstance(one, str) else one for one in given)


def numbers(*titles: str) -> tuple[TableColumn, ...]:
    """Return columns of numbers."""
    return tuple(TableColumn(title=title, number=True) for title in titles)


def grid(given: Block) -> Table:
    """Return a table of answers for the page."""
    most = max(given.most, MOST_ROWS)
    shown, hidden = given.of(Shown.PAGE).first(most)
    return Table(
        caption=shown.title,
        columns=tuple(TableColumn(title=one.title, number=one.unit.number) for one in shown.columns),
        rows=tuple(
            TableRow(
                cells=tuple(map(_drawn, row.cells, shown.columns)),
                strong=row.tone is Tone.STRONG,
            )
            for row in shown.rows
        ),
        hidden=hidden,
        legend=shown.legend,
    )


def _drawn(cell: Cell, column: Column[Any]) -> TableCell:
    kind = str(cell.tone) if cell.tone not in (Tone.PLAIN, Tone.STRONG) else _KINDS.get(column.unit, "")
    return TableCell(text=clipped(column.text(cell)), kind=kind, note=cell.note, link=cell.link)


def _cell(content: TableCell | str) -> TableCell:
    return TableCell(text=content) if isinstance(content, str) else content
