"""How tables and notes look."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from textwrap import wrap

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

_GAP = 2
"""Columns of the terminal between two columns of a table."""

_ROOM = 6
"""Columns of the terminal in which words are broken so that the names of the rows stay whole."""

_ENDLESS = 100_000
_LIFTED = frozenset(("ns", "us", "ms", "s", "B", "KiB", "MiB", "GiB", "TiB", "M"))
"""Units that can stand in a header instead of in every cell."""


class PlainTable(Table):
    """A table without frame that gives way where the terminal is narrow, without breaking a number or a word.

    Units that all cells of a column share move to its header, headers break between words, and columns of
    text are wrapped. Where that is not enough the last columns stand below, behind the first one again. Only
    where not even two columns fit are words broken, too.
    """

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the table as it is if it fits, else a narrower one, or several."""
        wide, width = options.update(max_width=_ENDLESS), options.max_width
        if Measurement.get(console, wide, self).maximum <= width:
            yield from Table.__rich_console__(self, console, options)
            return
        cells, heads, least = self._squeezed()
        for number, part in enumerate(_parts(least, width)):
            if number:
                yield Text()
            yield from Table.__rich_console__(
                self._narrow(cells, heads, least, part, width), console, options
            )

    def _squeezed(self) -> tuple[list[list[str]], list[str], list[int]]:
        """Return the cells and the header of each column as narrow as they can be, and how wide that is."""
        cells = [[_plain(cell) for cell in column.cells] for column in self.columns]
        heads = [str(column.header) for column in self.columns]
        numbers = [column.justify == "right" for column in self.columns]
        for index, texts in enumerate(cells):
            unit = _common_unit(texts) if numbers[index] else ""
            if unit:
                cells[index] = [text.removesuffix(unit) for text in texts]
                heads[index] += f",{unit}"
            heads[index] = _broken(heads[index], max(map(len, cells[index]), default=0))
        least = [
            max((len(word) for text in (head, *texts) for word in text.split()), default=1)
            for head, texts in zip(heads, cells, strict=True)
        ]
        for index, number in enumerate(numbers):
            if number or self.columns[index].no_wrap:  # with its unit it is one word
                least[index] = max([least[index], *map(len, cells[index])])
        return cells, heads, least

    def _narrow(
        self, cells: list[list[str]], heads: list[str], least: list[int], part: Sequence[int], width: int
    ) -> Table:
        """Return a table of some columns, which are as wide as there is room."""
        narrow = [least[index] for index in part]
        gap = _GAP if sum(narrow) + _GAP * (len(part) - 1) <= width else 1
        spare = width - gap * (len(part) - 1) - sum(narrow)
        longest = [max(map(len, cells[index]), default=0) for index in part]
        room = width - gap - narrow[0]  # of the other one of two that do not fit
        tight = [narrow[0], room] if len(part) == 2 and room >= _ROOM else [None] * len(part)
        widths = _widened(narrow, longest, spare) if spare >= 0 else tight
        table = Table(
            title=self.title,
            title_justify=self.title_justify,
            box=None,
            pad_edge=False,
            padding=(0, gap, 0, 0),
            header_style="bold",
        )
        for index, fixed in zip(part, widths, strict=True):
            justify = self.columns[index].justify
            table.add_column(heads[index], justify=justify, overflow="fold", width=fixed)
        for row, style in enumerate(self.rows):
            found = (_replaced(self.columns[index], cells[index], row) for index in part)
            table.add_row(*found, style=style.style)
        return table


def _parts(least: Sequence[int], width: int) -> list[list[int]]:
    """Return which columns stand beside each other: as many as fit, each part behind the first column."""
    parts = [[0]]
    for index in range(1, len(least)):
        wide = sum(1 + least[column] for column in parts[-1]) + least[index]
        if wide > width and len(parts[-1]) > 1:
            parts.append([0])
        parts[-1].append(index)
    return parts


def plain_table(*columns: str, numbers: Iterable[str] = ()) -> Table:
    """Return a table without frame; columns named in `numbers` are aligned to the right."""
    table = PlainTable(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")
    for column in columns:
        table.add_column(column, justify="right" if column in set(numbers) else "left", overflow="fold")
    return table


def _widened(least: Sequence[int], longest: Sequence[int], spare: int) -> list[int]:
    """Return widths of columns: what they need at least, and of the rest the narrow ones are served first."""
    widths = list(least)
    wanting = sorted(range(len(least)), key=lambda index: longest[index] - least[index])
    for place, index in enumerate(wanting):
        more = min(max(0, longest[index] - least[index]), spare // (len(wanting) - place))
        widths[index] += more
        spare -= more
    return widths


def _plain(cell: RenderableType) -> str:
    return cell.plain if isinstance(cell, Text) else str(cell)


def _replaced(column: Column, texts: Sequence[str], index: int) -> RenderableType:
    """Return a cell with its new text; a styled one keeps its style."""
    cell = list(column.cells)[index]
    return cell if isinstance(cell, Text) and cell.plain == texts[index] else texts[index]


def _common_unit(texts: Sequence[str]) -> str:
    """Return the unit, with a space before it, of all cells with a number; empty: they have several."""
    found = {text[text.rfind(" ") :] if " " in text else "" for text in texts if text not in ("", "-")}
    unit = found.pop() if len(found) == 1 else ""
    return unit if unit[1:] in _LIFTED else ""


def _broken(head: str, width: int) -> str:
    """Return a header in lines that are no wider than the cells below, as far as its words let it."""
    return "\n".join(wrap(head, max(1, width, *map(len, head.split())))) if head.strip() else head


def indented(what: RenderableType) -> Padding:
    """Return something with a margin of two columns."""
    return Padding(what, (0, 0, 0, 2), expand=False)
