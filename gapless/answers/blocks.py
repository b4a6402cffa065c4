"""What is answered, as data: sentences, tables and sections, which all outputs render.

A cell holds a value, not a text. `said` makes the text of a value, for every output: a time reads the same in
the terminal, on a page, in Markdown and in a notebook.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Flag, StrEnum, auto
from operator import itemgetter
from typing import Any, Generic, TypeAlias, TypeVar

from ..formulations.errors import InvalidInputError
from ..formulations.terms import Dimension
from .charts import Bars, Gantt, HeatMap, Plane
from .graph_drawing import GraphDrawing
from .words import amount, interval_words, microseconds, seconds

RowT = TypeVar("RowT")

Value: TypeAlias = str | int | float | tuple[float, float] | None
"""What a cell holds: a text, a number, both ends of an interval, or nothing."""

ABSENT = "-"
"""The text of nothing."""


class Tone(StrEnum):
    """What to think of a sentence, a row or a cell; never the only carrier of a meaning."""

    PLAIN = ""
    STRONG = "strong"
    GOOD = "good"
    WARN = "warn"
    BAD = "bad"
    SOFT = "soft"


class Unit(StrEnum):
    """What a value is; those of `Dimension` are exact."""

    TEXT = "text"
    NAME = "name"
    CODE = "code"
    LONG = "long"
    MICROSECONDS = "microseconds"
    NANOSECONDS = "nanoseconds"
    NANOJOULES = "nanojoules"
    BYTES = "bytes"
    PERMILLE = "permille"
    COUNT = "count"
    MEASURED = "measured"
    """Microseconds that somebody measured, or predicted no better: three places."""
    SECONDS = "seconds"
    SHARE = "share"
    """Of 1, shown in percent."""
    CHANGE = "change"
    """The same with its sign."""
    FACTOR = "factor"

    @property
    def number(self) -> bool:
        """Whether the values are numbers: they are aligned to the right."""
        return self not in (Unit.TEXT, Unit.NAME, Unit.CODE, Unit.LONG)


class Shown(Flag):
    """Where a column or a sentence is shown: in brief, with all details, on pages, in files."""

    BRIEF = auto()
    DETAILS = auto()
    PAGE = auto()
    FILES = auto()
    TERMINAL = BRIEF | DETAILS
    PAGES = PAGE | FILES
    DETAILED = DETAILS | PAGES
    ALWAYS = BRIEF | DETAILED


_DIGITS = {Unit.SHARE: 1, Unit.CHANGE: 1, Unit.FACTOR: 3}


def said(value: Value, unit: Unit, digits: int | None = None) -> str:
    """Return the text of a value, for all outputs; `digits`: after the point, of shares and factors."""
    if value is None:
        return ABSENT
    if isinstance(value, str):
        return value
    if isinstance(value, tuple):
        return interval_words(*value)
    places = _DIGITS.get(unit, 0) if digits is None else digits
    match unit:
        case Unit.MEASURED:
            return microseconds(value)
        case Unit.SECONDS:
            return seconds(value)
        case Unit.SHARE:
            return f"{100 * value:,.{places}f} %"
        case Unit.CHANGE:
            return f"{100 * value:+,.{places}f} %"
        case Unit.FACTOR:
            return f"{value:,.{places}f}"
        case Unit.NANOJOULES if digits is not None:
            return f"{value / 1e6:,.{digits}f} mJ"
        case Unit.COUNT if digits:
            return f"{value:,.{digits}f}"
    return amount(Dimension(unit), round(value)) if unit.number else str(value)


@dataclass(frozen=True, slots=True)
class Cell:
    """A value where more is to be said than its column does.

    `note`: what stands behind it, where there is room. `unit`: its own, where it is not that of its column.
    `link`: place on the page that it leads to.
    """

    value: Value
    tone: Tone = Tone.PLAIN
    note: str = ""
    unit: Unit | None = None
    link: str = ""


@dataclass(frozen=True, slots=True)
class Column(Generic[RowT]):
    """A column: what it is called, and what it shows of a row.

    `of`: from what a row is about to its cell. `key`: its name in files, where that is not its title. `note`:
    what the title means, if that is not plain. `optional`: it is left out where no row has a value.
    """

    title: str
    unit: Unit
    of: Callable[[RowT], Cell | Value]
    shown: Shown = Shown.ALWAYS
    key: str = ""
    digits: int | None = None
    note: str = ""
    optional: bool = False

    @property
    def name(self) -> str:
        """Its name in files."""
        return self.key or self.title

    def text(self, cell: Cell, *, note: bool = False) -> str:
        """Return the text of one of its cells, without its note or with it."""
        text = said(cell.value, cell.unit or self.unit, self.digits)
        return f"{text} {cell.note}" if note and cell.note else text


@dataclass(frozen=True, slots=True)
class Row:
    """The cells of a row, one for each column."""

    cells: tuple[Cell, ...]
    tone: Tone = Tone.PLAIN


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table; `title`: what it shows; `most`: rows that the terminal shows."""

    title: str
    columns: tuple[Column[Any], ...]
    rows: tuple[Row, ...]
    most: int

    def of(self, place: Shown) -> Table:
        """Return the columns that are shown in a place."""
        kept = [
            index
            for index, column in enumerate(self.columns)
            if column.shown & place
            and not (column.optional and all(row.cells[index].value is None for row in self.rows))
        ]
        rows = (replace(row, cells=tuple(row.cells[index] for index in kept)) for row in self.rows)
        return replace(self, columns=tuple(self.columns[index] for index in kept), rows=tuple(rows))

    def first(self, most: int) -> tuple[Table, int]:
        """Return the first rows, and how many are left out."""
        return replace(self, rows=self.rows[:most]), max(0, len(self.rows) - most)

    @property
    def legend(self) -> str:
        """What the titles mean that are not plain."""
        return "; ".join(f"{column.title}: {column.note}" for column in self.columns if column.note)


@dataclass(frozen=True, slots=True)
class Sentence:
    """A line of text; `lead`: its first words, which carry the tone where they are there."""

    text: str
    tone: Tone = Tone.PLAIN
    lead: str = ""
    shown: Shown = Shown.ALWAYS


@dataclass(frozen=True, slots=True)
class Section:
    """Blocks under a title; `folded`: they are details; `place`: its name among those of a page.

    Without a title it holds together what belongs together: a chart, and what is said of it.
    """

    title: str
    blocks: tuple[Block, ...]
    folded: bool = False
    place: str = ""
    shown: Shown = Shown.ALWAYS


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """What only one page draws, with a template of its own: what derives from it."""


Block: TypeAlias = Sentence | Table | Section | Plane | Bars | HeatMap | Gantt | GraphDrawing | Drawing


def kept(blocks: Iterable[Block], place: Shown) -> tuple[Block, ...]:
    """Return the blocks that are shown in a place: no empty tables, nothing that is for another place."""

    def there(block: Block) -> bool:
        match block:
            case Sentence():
                return bool(block.shown & place) and bool(block.lead or block.text or place & Shown.TERMINAL)
            case Table():
                return bool(block.rows)
            case Section():
                hidden = not block.shown & place or (block.folded and place is Shown.BRIEF)
                return not hidden and bool(kept(block.blocks, place))
            case HeatMap():
                return True
            case Gantt():
                return bool(place & Shown.TERMINAL)
            case Plane() | Bars() | GraphDrawing() | Drawing():
                return bool(place & Shown.PAGES)
        raise InvalidInputError(
            f"{type(block).__name__!r} is no block: presenters return sentences, tables, sections and charts "
            "of gapless.answers"
        )

    return tuple(filter(there, blocks))


def table(
    title: str,
    columns: Sequence[Column[RowT]],
    rows: Iterable[RowT],
    *,
    tone: Callable[[RowT], Tone] = lambda row: Tone.PLAIN,
    most: int = 50,
) -> Table:
    """Return the table of some things: a row for each, with what each column shows of it."""
    return Table(
        title=title,
        columns=tuple(columns),
        rows=tuple(Row(tuple(_cell(column.of(row)) for column in columns), tone(row)) for row in rows),
        most=most,
    )


def grid(
    title: str,
    heads: Sequence[tuple[str, Unit]],
    rows: Iterable[Sequence[Cell | Value]],
    *,
    most: int = 50,
) -> Table:
    """Return a table whose rows are given cell by cell; `heads`: title and unit of each column."""
    columns = [Column(head, unit, itemgetter(place)) for place, (head, unit) in enumerate(heads)]
    return table(title, columns, rows, most=most)


def matrix(
    title: str,
    corner: str,
    names: Sequence[str],
    rows: Iterable[Sequence[Cell | Value]],
    *,
    words: Sequence[str] = (),
) -> Table:
    """Return a table of texts that stand for numbers, each row behind its name; `words`: columns of words."""
    units = ((name, Unit.TEXT if name in words else Unit.COUNT) for name in names)
    return grid(title, [(corner, Unit.NAME), *units], rows)


def titled(given: Table, title: str = "") -> Section:
    """Return a table under its title, where the terminal shows that, too; `title`: another one."""
    return Section(title or given.title, (given,))


def with_unused(given: Table, unused: Sequence[str], at: int = 0) -> Table:
    """Return a table of what units do with a last row about those that do nothing; `at`: their column."""
    if not unused:
        return given
    cells = [Cell("")] * len(given.columns)
    cells[at : at + 2] = [Cell(", ".join(unused)), Cell("not used")]
    return replace(given, rows=(*given.rows, Row(tuple(cells), Tone.SOFT)), most=given.most + 1)


def _cell(content: Cell | Value) -> Cell:
    return content if isinstance(content, Cell) else Cell(content)


_MOST_NOTES = 8


def notes(found: Sequence[str]) -> Iterator[Sentence]:
    """Yield the first few notes, and how many more there are."""
    for note in found[:_MOST_NOTES]:
        yield Sentence(f"note: {note}", Tone.WARN)
    if len(found) > _MOST_NOTES:
        yield Sentence(f"... and {len(found) - _MOST_NOTES} more notes (--json shows all)", Tone.WARN)
