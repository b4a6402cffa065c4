"""What a board writes, told in the terms of this machine: its paths, and nothing that steers a terminal."""

from __future__ import annotations

import codecs
import json
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..formulations.printing import HARMFUL

_ALLOWED = re.compile(r"\x1b\[[0-9;]{0,20}m|\x1b\[2K|[\n\r\t]|[^\x00-\x1f\x7f-\x9f]+")
"""Colours, erasing a line, and text."""
_ALLOWED_IN_MESSAGES = re.compile(r"[\n\t]|[^\x00-\x1f\x7f-\x9f]+")

_BEGUN = re.compile(r"\x1b(\[[0-9;]{0,20})?$")


@dataclass(frozen=True, slots=True)
class Translation:
    """From paths of a board to those here."""

    root: str  # folder of gapless on the board
    printed: Mapping[str, str]  # what the user calls a path there that is relative to it

    def pairs(self) -> list[tuple[str, str]]:
        """Return (there, here): whole paths before relative ones, which they end with; longer ones first."""
        names = sorted(self.printed.items(), key=lambda pair: -len(pair[0]))
        whole = [(f"{self.root}/{there}", str(Path(here).absolute())) for there, here in names]
        return [*whole, *names]

    def text(self, text: str) -> str:
        """Return a text for people."""
        for there, here in self.pairs():
            text = text.replace(there, here)
        return text

    def file(self, text: str) -> str:
        """Return the text of a file: in JSON, names are escaped."""
        for there, here in self.pairs():
            for ascii_only in (False, True):
                text = text.replace(_escaped(there, ascii_only), _escaped(here, ascii_only))
        return text

    def tree(self, value: Any) -> Any:
        """Return a JSON value."""
        match value:
            case str():
                return harmless(self.text(value))
            case list():
                return [self.tree(each) for each in value]
            case dict():
                return {harmless(self.text(str(name))): self.tree(each) for name, each in value.items()}
        return value


def _escaped(text: str, ascii_only: bool) -> str:  # noqa: FBT001 - as json.dumps calls it
    return json.dumps(text, ensure_ascii=ascii_only)[1:-1]


def harmless(text: str, *, colours: bool = False) -> str:
    """Return a text without what could steer a terminal or turn the direction of writing.

    All that a board says goes through here before anybody sees it. `colours`: what is printed for a terminal,
    line by line, keeps them, and lines that are erased.
    """
    found = "".join((_ALLOWED if colours else _ALLOWED_IN_MESSAGES).findall(text))
    if found.isascii():
        return found
    return "".join(char for char in found if ord(char) < 0xA0 or unicodedata.category(char) not in HARMFUL)


@dataclass(slots=True)
class Stream:
    """Translates what comes in pieces: nothing is cut in two."""

    translation: Translation
    _decoder: Any = field(
        default_factory=lambda: codecs.getincrementaldecoder("utf-8")("replace"), init=False
    )
    _held: str = field(default="", init=False)

    def feed(self, data: bytes, *, last: bool = False) -> str:
        """Return what can be shown by now."""
        text = self._held + self._decoder.decode(data, last)
        held = 0 if last else self._unfinished(text)
        self._held = text[len(text) - held :]
        return harmless(self.translation.text(text[: len(text) - held]), colours=True)

    def _unfinished(self, text: str) -> int:
        """Return how many of the last characters may be the beginning of a path, or of a sequence."""
        begun = _BEGUN.search(text)
        if begun:
            return len(begun[0])
        names = [there for there, _ in self.translation.pairs()]
        longest = min(len(text), max(map(len, names), default=1) - 1)
        ends = (length for length in range(longest, 0, -1) if text[-length:] in {n[:length] for n in names})
        return next(ends, 0)
