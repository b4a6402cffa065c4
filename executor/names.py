"""Names that may stand in networks, tables and file listings, made from whatever a model file holds."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

MAX_SAFE_LENGTH = 120
"""Longest name that `safe_name` gives: a prefix still fits in front of it."""


def safe_name(text: str, *, most: int = MAX_SAFE_LENGTH) -> str:
    """Return a printable, non-empty name of at most `most` characters.

    A text that is one already is returned as it is; what has to be changed gets a digest of the true
    text, so that different texts keep different names.
    """
    if text.strip() and text.isprintable() and len(text) <= most:
        return text
    mark = "-" + hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:8]
    printable = "".join(letter if letter.isprintable() else "_" for letter in text)
    return printable[: most - len(mark)].strip() + mark


def distinct(names: Iterable[str]) -> tuple[str, ...]:
    """Return names in which repeated ones are numbered: "a", "a#2", "a#3"."""
    used: set[str] = set()
    given: list[str] = []
    counts: dict[str, int] = {}
    for name in names:
        unique = name
        while unique in used:
            counts[name] = counts.get(name, 1) + 1
            unique = f"{name}#{counts[name]}"
        used.add(unique)
        given.append(unique)
    return tuple(given)
