"""Collecting every defect of a value before complaining once, and names that somebody may have meant."""

from __future__ import annotations

import builtins
import difflib
import re
import sys
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Sequence
from itertools import chain
from math import inf, isfinite
from typing import Any, ClassVar

from .errors import InvalidInputError

MOST = 3
"""Names that are suggested at most."""

MAX_LISTED = 8
"""Known names that a message lists; of more, it says who lists them."""

MAX_LENGTH = 100
"""Characters of a typed name that are looked at, and shown."""

_ALIKE = 0.6
_ALIKE_BUT_FOR_THE_BEGINNING = 0.7
"""People rarely mistype the first letter: mmn is mnn, but npu is not gpu."""

_MUCH_NEARER = 0.2

_SEPARATORS = "/-_ "


def near(name: str, known: Iterable[str], *, most: int = MOST) -> tuple[str, ...]:
    """Return the known names that are near to a typed one, the nearest first.

    `most`: how many are returned at most.

    >>> near("Cpsta", ["native", "cpsat", "z3"])
    ('cpsat',)
    >>> near("pixel7a", ["pixel7a/octree", "jetson/octree"])
    ('pixel7a/octree',)
    """
    typed = name[:MAX_LENGTH].lower().strip()
    by_key: dict[str, str] = {}
    for each in known:
        by_key.setdefault(each.lower(), each)
    if typed in by_key:
        return (by_key[typed],)
    parts = [key for key in by_key if typed and typed in _parts(key)]
    begun = [key for key in by_key if len(typed) > 1 and key.startswith(typed)]
    found = dict.fromkeys([*parts, *_alike(typed, by_key), *begun])
    return tuple(by_key[key] for key in found)[:most]


def _alike(typed: str, known: Iterable[str]) -> list[str]:
    """Return the names that are spelt alike, the nearest first, without the much further ones."""
    alike = {
        key: difflib.SequenceMatcher(None, key, typed).ratio()
        for key in difflib.get_close_matches(typed, known, n=MOST, cutoff=_ALIKE)
    }
    best = max(alike.values(), default=0.0)
    return [
        key
        for key, ratio in alike.items()
        if ratio >= best - _MUCH_NEARER and (key[:1] == typed[:1] or ratio >= _ALIKE_BUT_FOR_THE_BEGINNING)
    ]


def meant(name: str, known: Collection[str], *, listed_by: str = "", choice: str = "choose one of") -> str:
    """Return what to say after a name that is not known: what was meant, or what there is.

    `listed_by`: who lists them all when they are many, e.g. "`gapless doctor` lists them".
    For example "did you mean cpsat or pulp-cbc?", with `listed_by` behind it; without a near name a choice.
    """
    found = near(name, known)
    if found:
        *others, last = found
        names = f"{', '.join(others)} or {last}" if others else last
        return f"did you mean {names}?" + (f" {_capital(listed_by)}" if listed_by else "")
    if not known:
        return "there is none"
    if listed_by and len(known) > MAX_LISTED:
        return listed_by
    return f"{choice} {', '.join(known)}"


def python_hint(error: BaseException, defined: Iterable[str] = ()) -> str:
    """Return what a name may have meant that Python did not find, as the end of a sentence; mostly empty.

    `error`: an `AttributeError`, `NameError` or `ImportError` of somebody's code.
    """
    known: Iterable[str] = ()
    name = getattr(error, "name", None)
    if isinstance(error, AttributeError):
        known = dir(getattr(error, "obj", None))
    elif isinstance(error, NameError):
        known = (*defined, *dir(builtins))
    elif isinstance(error, ImportError) and name in sys.modules:
        found = re.search(r"cannot import name '(\w+)'", str(error))
        known, name = dir(sys.modules[name]), found[1] if found else None
    public = [each for each in known if not each.startswith("_")]
    close = near(name, public) if name else ()
    return f"; did you mean {' or '.join(close)}?" if close else ""


def shown(name: str) -> str:
    """Return a typed name for a message: in quotes, and never longer than a line."""
    return repr(shortened(name))


def shortened(text: str) -> str:
    """Return a text that was typed, never longer than a line."""
    return text if len(text) <= MAX_LENGTH else f"{text[:MAX_LENGTH]}..."


def unique_keys(pairs: list[tuple[str, Any]], where: str = "") -> dict[str, Any]:
    """Return an object of a JSON document (`object_pairs_hook`); a key that stands there twice is refused."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = min(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise InvalidInputError(f"{where}the key {shown(twice)} stands twice in one object")
    return found


def _parts(key: str) -> list[str]:
    for separator in _SEPARATORS:
        key = key.replace(separator, " ")
    return key.split()


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


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


_UNITS = {
    "us": "microseconds, e.g. 30000 for 30 ms",
    "nj": "nanojoules, e.g. 5000000 for 5 mJ",
    "permille": "permille, e.g. 800 for 80 %",
    "bytes": "bytes, e.g. 67108864 for 64 MiB",
}


def no_integer(field: str) -> str:
    """Return what is wrong with a value that is no integer; the name of its field ends with its unit."""
    unit = _UNITS.get(field.rpartition("_")[2])
    return f"must be an integer{f' ({unit})' if unit else ''}"


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
            self.add(f"{field} {no_integer(field)}, got {value!r}")
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

    def check_sets(self, field: str, sets: Sequence[Sequence[int]], called: str) -> None:
        """Require sets of integers >= 0 that have something in them, and nothing in common."""
        for index, own in enumerate(sets):
            self.check_counts(f"{field}[{index}]", own)
            if not own:
                self.add(f"{field}[{index}] is empty: name its layers, or leave it out")
        self.check_unique(called, tuple(chain.from_iterable(sets)))

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
