"""What an exact search begins with, and where plans and bounds come from."""

from __future__ import annotations

from enum import StrEnum

from ..formulations.errors import InvalidInputError


class StartMode(StrEnum):
    """What a backend may begin with that begins with something (`Capabilities.starts`).

    NATIVE
        What the native algorithms of the family find within a share of the time: a plan, and a bound.
    NONE
        Nothing: it works cold. What it finds and proves is its own.
    BOTH
        Once with, once without; in comparisons only.
    """

    NATIVE = "native"
    NONE = "none"
    BOTH = "both"


def start_mode(text: str | None) -> StartMode:
    """Return a start mode by name; None: what is usual."""
    if text is None:
        return StartMode.NATIVE
    if text not in list(StartMode):
        raise InvalidInputError(f"start is {text!r}; choose from {', '.join(StartMode)}")
    return StartMode(text)


class Source(StrEnum):
    """Where a plan or a bound comes from.

    OWN
        The backend found or proved it.
    START
        It was handed over before the search began, and the search found nothing better.
    """

    OWN = "own"
    START = "start"


def label_of(backend: str, start: StartMode | None) -> str:
    """Return the name of a backend in tables, with "(cold)" where it began with nothing by choice."""
    return f"{backend} (cold)" if start is StartMode.NONE else backend
