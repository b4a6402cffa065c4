"""Names that somebody may have meant: one place for every "did you mean"."""

from __future__ import annotations

import builtins
import difflib
import re
import sys
from collections.abc import Collection, Iterable

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
    return repr(name if len(name) <= MAX_LENGTH else f"{name[:MAX_LENGTH]}...")


def _parts(key: str) -> list[str]:
    for separator in _SEPARATORS:
        key = key.replace(separator, " ")
    return key.split()


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
