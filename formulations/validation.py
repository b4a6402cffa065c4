"""Collecting every defect of a value before complaining once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from math import inf, isfinite
from typing import Any, ClassVar

from .errors import InvalidInputError

STRICT: dict[str, Any] = {"extra": "forbid", "strict": True}
"""How files are read into the frozen types: no unknown keys, no silent conversions (`files.py`)."""


class FileContent:
    """A frozen type that files hold, whole or as a part; they are read into it as `STRICT` says.

    A text behind fields is about all fields since the text before it, and JSON Schemas say it of each. Public
    types have these texts in the docstring, for `help`.
    """

    __slots__ = ()
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT


MAX_NAME_LENGTH = 200
MAX_COUNT = 2**44
"""Largest integer quantity, also of a whole network (203 days in microseconds, 16 TiB).

Multiplied by 1000 (permille) and by the most units of a platform it stays within 64 bits, so that
backends which compute with machine integers need no check of their own.
"""

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)


def read_number(text: str) -> float | None:
    """Return the finite number that a text is in decimal digits; None: it is none."""
    found = float(text) if _NUMBER.fullmatch(text.strip()) else inf
    return found if isfinite(found) else None


class Defects:
    """A list of complaints about one value."""

    def __init__(self, subject: str) -> None:
        self.subject = subject
        self.found: list[str] = []

    def add(self, text: str) -> None:
        """Note one defect."""
        self.found.append(text)

    def check_name(self, field: str, name: object) -> None:
        """Require a printable, non-empty string of bounded length."""
        if not isinstance(name, str):
            self.add(f"{field} must be a string, got {type(name).__name__}")
        elif not name.strip():
            self.add(f"{field} is empty")
        elif len(name) > MAX_NAME_LENGTH:
            self.add(f"{field} has {len(name)} characters, at most {MAX_NAME_LENGTH} are allowed")
        elif not name.isprintable():
            self.add(f"{field} {name!r} holds characters that cannot be printed")

    def check_count(self, field: str, value: object, *, least: int = 0) -> bool:
        """Require an integer in [least, MAX_COUNT]; return whether it is."""
        if isinstance(value, bool) or not isinstance(value, int):
            self.add(f"{field} must be an integer, got {value!r}")
        elif value < least:
            self.add(f"{field} is {value}, must be at least {least}")
        elif value > MAX_COUNT:
            self.add(f"{field} is {value}, more than the largest allowed {MAX_COUNT}")
        else:
            return True
        return False

    def check_counts(self, field: str, values: Iterable[object]) -> None:
        """Require integers >= 0."""
        for position, value in enumerate(values):
            self.check_count(f"{field}[{position}]", value)

    def check_unique(self, field: str, values: Sequence[Hashable]) -> None:
        """Require that no value stands twice."""
        twice = [value for value, count in Counter(values).items() if count > 1]
        if twice:
            self.add(f"{field} must be unique, but found twice: {', '.join(map(repr, twice))}")

    def check_size(self, field: str, size: int, *, most: int) -> None:
        """Require between one and `most` entries."""
        if size == 0:
            self.add(f"{field} are missing: at least one is needed")
        elif size > most:
            self.add(f"{field}: {size} are given, at most {most} are allowed")

    def raise_as(self, error: type[InvalidInputError]) -> None:
        """Raise `error` with all defects, if there are any."""
        if self.found:
            raise error(f"{self.subject} is not valid:", self.found)
