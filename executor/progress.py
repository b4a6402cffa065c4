"""How long jobs say how far they are, and keep what they have."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Protocol, TextIO

from ..formulations.printing import shortened

_EVERY_S = 0.5
_USUAL_COLUMNS = 80

ERASE = "\r\x1b[2K"
"""Empties the line of a terminal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """How far a long job is.

    `done`, `total`: units of work; `total` is None while it is not known.
    """

    text: str  # what is being done now, for people
    done: int = 0
    total: int | None = None


Report = Callable[[Step], None]
"""Called whenever a job has got further; cheap, and never raises."""


def silent(step: Step) -> None:
    """Report nothing."""


@contextmanager
def shown_on_terminal(report: Report | None) -> Iterator[Report]:
    """Yield whom to tell: `report`, or where that is None a line on standard error, if that is a terminal."""
    if report is not None or not sys.stderr.isatty():
        yield report or silent
        return
    line = TerminalLine(sys.stderr)
    try:
        yield line.report
    finally:
        line.clear()


def columns_of(stream: TextIO) -> int:
    """Return how many columns a terminal has."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or _USUAL_COLUMNS
    except OSError:
        return _USUAL_COLUMNS


class TerminalLine:
    """A line on a terminal that says what is being done, twice a second at most.

    It is written when there is something new: the timer signal of the command line's own line
    (`gapless/cli/base/progress.py`) is not for programs of others.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._began_s = time.monotonic()
        self._last_s = float("-inf")

    def report(self, step: Step) -> None:
        """Show a step in place of the one before."""
        now_s = time.monotonic()
        if now_s - self._last_s < _EVERY_S:
            return
        self._last_s = now_s
        share = f"{100 * step.done // step.total} %, " if step.total else ""
        passed = divmod(round(now_s - self._began_s), 60)
        words = f"{share}{passed[0]} min {passed[1]:02d} s: {' '.join(step.text.split())}"
        self._write(shortened(words, most=columns_of(self._stream) - 1))

    def clear(self) -> None:
        """Leave an empty line."""
        self._write("")

    def _write(self, text: str) -> None:
        with suppress(OSError, ValueError):  # progress never stops what it is about
            self._stream.write(f"{ERASE}{text}")
            self._stream.flush()


class Ledger(Protocol):
    """Where a long job keeps finished pieces of work, so that it can be resumed.

    Each entry is kept at once and for good: a job that is killed loses at most the piece at hand.
    """

    def find(self, kind: str, key: str) -> str | None:
        """Return what was kept under a kind and a key, or None."""
        ...

    def keep(self, kind: str, key: str, text: str) -> None:
        """Keep a text (JSON) under a kind and a key; replaces an earlier one."""
        ...


class Forgetful:
    """A ledger that keeps nothing: for jobs that need not be resumed."""

    def find(self, kind: str, key: str) -> str | None:
        """Return None."""
        return None

    def keep(self, kind: str, key: str, text: str) -> None:
        """Do nothing."""


class Afresh:
    """A ledger for a job that starts again: it finds nothing, but what it does can be resumed."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def find(self, kind: str, key: str) -> str | None:
        """Return None."""
        return None

    def keep(self, kind: str, key: str, text: str) -> None:
        """Keep a text for a later job."""
        self._ledger.keep(kind, key, text)
