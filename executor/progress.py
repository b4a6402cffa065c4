"""How long jobs say how far they are, and keep what they have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol


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
    """A ledger for a job that starts anew: it finds nothing, but what it does can be resumed."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def find(self, kind: str, key: str) -> str | None:
        """Return None."""
        return None

    def keep(self, kind: str, key: str, text: str) -> None:
        """Keep a text for a later job."""
        self._ledger.keep(kind, key, text)
