"""Blocks in the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from ...answers.blocks import Block, Column, Row, Section, Sentence, Shown, Table, Tone, kept
from ..layout import indented, plain_table

_STYLES = {
    Tone.PLAIN: "",
    Tone.STRONG: "bold",
    Tone.GOOD: "green",
    Tone.WARN: "yellow",
    Tone.BAD: "red",
    Tone.SOFT: "dim",
}


def blocks_view(blocks: Iterable[Block], *, details: bool = True) -> Group:
    """Return blocks for the terminal; `details`: with folded sections and all columns, or without."""
    return Group(*_parts(blocks, Shown.DETAILS if details else Shown.BRIEF))


def _parts(blocks: Iterable[Block], place: Shown) -> Iterator[RenderableType]:
    """Yield blocks; a blank line stands before and after tables, except before soft sentences about them."""
    before: Block | None = None
    for block in kept(blocks, place):
        about = isinstance(block, Sentence) and block.tone is Tone.SOFT
        both = isinstance(before, Sentence) and isinstance(block, Sentence)
        if before is not None and not both and not about:
            yield Text()
        before = block
        match block:
            case Sentence():
                yield sentence_view(block)
            case Table():
                yield from table_view(block, place)
            case Section():
                yield Text(block.title, style="bold")
                for part in block.blocks:
                    yield from _inside(part, place)


def _inside(block: Block, place: Shown) -> Iterator[RenderableType]:
    """Yield a block of a section: nothing stands between its title and its table."""
    if isinstance(block, Table):
        yield from table_view(block, place)
    else:
        yield from _parts([block], place)


def sentence_view(one: Sentence) -> Text:
    """Return a sentence."""
    style = _STYLES[one.tone]
    if not one.lead:
        return Text(one.text, style=f"bold {style}" if one.tone is Tone.BAD else style)
    return Text.assemble((one.lead, f"bold {style}".strip()), one.text)


def table_view(given: Table, place: Shown = Shown.DETAILS) -> Iterator[RenderableType]:
    """Yield a table, and what its titles mean."""
    shown, hidden = given.of(place).first(given.most)
    found = plain_table(*(column.title for column in shown.columns))
    for drawn, column in zip(found.columns, shown.columns, strict=True):
        drawn.justify = "right" if column.unit.number else "left"
    for row in shown.rows:
        found.add_row(*_cells(row, shown.columns, place), style=_STYLES[row.tone])
    yield indented(found)
    if hidden:
        yield Text(f"  ... and {hidden} more (--json shows all)")
    if shown.legend:
        yield Text(shown.legend, style="dim")


def _cells(row: Row, columns: tuple[Column[object], ...], place: Shown) -> Iterator[Text]:
    for cell, column in zip(row.cells, columns, strict=True):
        yield Text(column.text(cell, note=place is not Shown.BRIEF), style=_STYLES[cell.tone])
