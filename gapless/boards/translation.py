"""What a board writes, told in the terms of this machine: its paths, and nothing that steers a terminal."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..formulations.printing import HARMFUL

_ALLOWED = re.compile(r"[\n\t]|[^\x00-\x1f\x7f-\x9f]+")


@dataclass(frozen=True, slots=True)
class Translation:
    """From paths of a board to those here."""

    root: str  # folder of gapless on the board
    printed: Mapping[str, str]  # what the user calls a path there that is relative to it

    def _pairs(self) -> list[tuple[str, str]]:
        """Return (there, here): whole paths before relative ones, which they end with; longer ones first."""
        names = sorted(self.printed.items(), key=lambda pair: -len(pair[0]))
        whole = [(f"{self.root}/{there}", str(Path(here).absolute())) for there, here in names]
        return [*whole, *names]

    def text(self, text: str) -> str:
        """Return a text for people."""
        return _told(text, self._pairs())

    def file(self, text: str) -> str:
        """Return the text of a file: in JSON, names are escaped."""
        for there, here in self._pairs():
            for ascii_only in (False, True):
                text = text.replace(_escaped(there, ascii_only), _escaped(here, ascii_only))
        return text

    def tree(self, value: Any) -> Any:
        """Return a JSON value."""
        pairs = self._pairs()

        def told(each: Any) -> Any:
            match each:
                case str():
                    return _told(each, pairs)
                case list():
                    return [told(one) for one in each]
                case dict():
                    return {_told(str(name), pairs): told(one) for name, one in each.items()}
            return each

        return told(value)


def _told(text: str, pairs: Sequence[tuple[str, str]]) -> str:
    for there, here in pairs:
        text = text.replace(there, here)
    return harmless(text)


def _escaped(text: str, ascii_only: bool) -> str:  # noqa: FBT001 - as json.dumps calls it
    return json.dumps(text, ensure_ascii=ascii_only)[1:-1]


def harmless(text: str) -> str:
    """Return a text without what could steer a terminal or turn the direction of writing.

    All that a board says goes through here before anybody sees it.
    """
    found = "".join(_ALLOWED.findall(text))
    if found.isascii():
        return found
    return "".join(char for char in found if ord(char) < 0xA0 or unicodedata.category(char) not in HARMFUL)
