"""What is printed: Markdown tables, and statements of the paper that hold or do not."""

from __future__ import annotations

from typing import NamedTuple

from rich.box import MARKDOWN
from rich.console import Console
from rich.table import Table

WIDTH = 200


class Statement(NamedTuple):
    """What the paper says in words where our copy has no numbers of a figure.

    Attributes
    ----------
    text
        What it says.
    found
        What is computed here.
    holds
        Whether that agrees.
    """

    text: str
    found: str
    holds: bool

    def __str__(self) -> str:
        return f"* Paper: {self.text}. Here: {self.found}. {'Agrees' if self.holds else '**Differs**'}."


Part = Table | Statement | str
"""A table, a statement of the paper, or a sentence of ours."""


def titled(title: str, *columns: str) -> Table:
    """Return an empty table with numbers on the right."""
    table = Table(title=title, title_justify="left", box=MARKDOWN)
    for place, column in enumerate(columns):
        table.add_column(column, justify="right" if place else "left", no_wrap=True)
    return table


def near(own: float, printed: float) -> bool:
    """Return whether a number is within a tenth of the paper's."""
    return abs(own / printed - 1) <= 0.1


def beside(own: str, printed: str | None) -> str:
    """Return a number with that of the paper behind it, if there is one."""
    return own if printed is None else f"{own} / {printed}"


def show(console: Console, part: Part) -> None:
    """Print a part as Markdown."""
    if isinstance(part, Table):
        console.print(f"\n{part.title}:\n", soft_wrap=True)
        part.title = None
        with console.capture() as got:
            console.print(part)
        rows = [line.rstrip() for line in got.get().splitlines()]
        console.print("\n".join([*filter(None, rows), ""]), markup=False)
    else:
        console.print(str(part), soft_wrap=True)
