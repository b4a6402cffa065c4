"""What several benchmark commands read from their command line."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from gapless.question.values import SHARES, Place


def chosen(known: Sequence[str]) -> Callable[[str], list[str]]:
    """Return what reads a list of known names, or "none"."""

    def read(text: str) -> list[str]:
        names = [] if text == "none" else text.split(",")
        if unknown := [name for name in names if name not in known]:
            raise argparse.ArgumentTypeError(f"{unknown[0]!r} is none of {', '.join(known)}, or none")
        return names

    return read


def positive(text: str) -> float:
    """Return a positive number."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e6:
        raise argparse.ArgumentTypeError(f"{text!r} is no number above 0")
    return value


def folder(text: str) -> Path:
    """Return a folder that is there."""
    if not Path(text).is_dir():
        raise argparse.ArgumentTypeError(f"{text!r} is no folder: make it first")
    return Path(text)


def parse_emulation(texts: Sequence[str] | None) -> dict[str, int]:
    """Return {unit: permille} from texts such as "core1=50%", as `gapless` takes them."""
    found: dict[str, int] = SHARES.read(Place("--emulate"), " ".join(texts)) if texts else {}
    return found


def parse_names(text: str | None) -> tuple[str, ...]:
    """Return the names of a comma-separated list; empty without one."""
    return tuple(name.strip() for name in text.split(",") if name.strip()) if text else ()
