"""Text that does nothing but be read: names come from files of strangers."""

from __future__ import annotations

import unicodedata

HARMFUL = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Unicode categories that can move the cursor, reverse the direction of writing, or break lines."""


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
