"""Text that does nothing but be read: names come from files of strangers."""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Iterable, Sequence

HARMFUL = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Unicode categories that can move the cursor, reverse the direction of writing, or break lines."""

MOST_ROWS = 12
"""Of a table in a notebook; a line below counts the others."""

_TABLE, _CELL = '<table style="color: inherit">', "text-align: left; padding-right: 1em"


def printable(text: str) -> str:
    r"""Return text in which control and format characters are written out; line breaks stay.

    >>> printable("red\x1b[31m")
    'red\\x1b[31m'
    """
    if text.isprintable():
        return text
    return "".join(
        char
        if char == "\n" or unicodedata.category(char) not in HARMFUL
        else char.encode("unicode_escape").decode()
        for char in text
    )


def shortened(text: str, most: int = 100) -> str:
    """Return a printable text of at most `most` characters, the last ones dots where it was longer."""
    text = printable(text)
    return text if len(text) <= most else f"{text[: most - 3]}..."


def html_table(
    caption: str, head: Sequence[str], rows: Sequence[Sequence[str]], notes: Iterable[str] = ()
) -> str:
    """Return a small table for notebooks: everything escaped, in the colours of the page, nothing fetched."""

    def row(cells: Sequence[str], tag: str) -> str:
        words = "".join(f'<{tag} style="{_CELL}">{_escaped(cell)}</{tag}>' for cell in cells)
        return f"<tr>{words}</tr>"

    more = [f"and {len(rows) - MOST_ROWS} more"] if len(rows) > MOST_ROWS else []
    body = "".join(row(cells, "td") for cells in rows[:MOST_ROWS])
    below = "".join(f"<div><small>{_escaped(note)}</small></div>" for note in (*more, *notes))
    table = f"{_TABLE}<thead>{row(head, 'th')}</thead><tbody>{body}</tbody></table>" if rows else ""
    return f"<div><div>{_escaped(caption)}</div>{table}{below}</div>"


def _escaped(text: str) -> str:
    return html.escape(printable(text))
