"""Sets of small numbers as bits of an integer."""

from __future__ import annotations

from collections.abc import Iterator


def members(some: int) -> Iterator[int]:
    """Yield the members of a set, ascending: the places of its bits."""
    while some:
        low = some & -some
        yield low.bit_length() - 1
        some ^= low
