"""Values as users write them: "30ms", "2GiB", "62.5%", "bert=20ms..500ms"; one place for each form."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from functools import partial
from typing import Any

from ..formulations.errors import InvalidInputError
from ..formulations.nearness import meant, shown

TIMES = {"us": 1, "ms": 1000, "s": 1_000_000}
"""Units of times, in microseconds."""

ENERGIES = {"nJ": 1, "uJ": 1000, "mJ": 1_000_000, "J": 1_000_000_000}
"""Units of energies, in nanojoules."""

SIZES = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
"""Units of memory, in bytes."""

_MOST_DIGITS = 15
_AMOUNT = re.compile(rf"(\d{{1,{_MOST_DIGITS}}}(?:\.\d{{1,9}})?) ?([A-Za-z]*)", re.ASCII)
_PERCENT = re.compile(r"(\d{1,3})(?:\.(\d))?\s?%", re.ASCII)
_WINDOW = re.compile(r"([^=]+)=(.*?)\.\.(.*)")

Window = tuple[int, int | None]
"""When a request comes and when it has to be done, microseconds; None: no end."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value stands: an option or the key of a file, which begins an error."""

    name: str
    bare: bool = False
    """Whether a number without a unit means the one that the key names, or that earlier versions meant."""

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """How the values of a field are written as text."""

    metavar: str | None
    """What stands for a value in help; None: VALUE, or the choices."""
    read: Callable[[Place, str], Any]
    write: Callable[[Any], str] = str
    """From a value to the text that a file keeps."""
    example: str = ""
    plain: bool = False  # whether a value is a text itself
    choices: type[StrEnum] | None = None
    repeated: bool = False  # whether it may be given several times; its texts are joined by spaces


def _text(place: Place, text: str) -> str:
    return text  # who looks it up says what there is


def _count(place: Place, text: str, *, least: int) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > _MOST_DIGITS:
        raise InvalidInputError(f"{place} is {shown(text)}, must be a whole number")
    if int(text) < least:
        raise InvalidInputError(f"{place} is {text}, must be at least {least}")
    return int(text)


def _amount(
    place: Place, text: str, *, units: Mapping[str, int], what: str, example: str, usual: str = ""
) -> int:
    """Read an amount with a unit as a whole number of the least one; `usual`: what a bare number is in."""
    found = _AMOUNT.fullmatch(text.strip())
    if found is None:
        raise InvalidInputError(f"{place} is {shown(text)}, must be {what} with its unit, e.g. {example}")
    number, unit = Decimal(found[1]), found[2] or (place.bare and (usual or next(iter(units)))) or ""
    if not unit and number:
        raise InvalidInputError(f"{place}: {shown(text)} has no unit ({', '.join(units)}), e.g. {example}")
    if unit and unit not in units:
        hint = meant(unit, units, listed_by=f"units are {', '.join(units)}")
        raise InvalidInputError(f"{place}: {shown(text)} has an unknown unit {shown(unit)}; {hint}")
    least = number * units.get(unit, 1)
    if least != int(least):
        raise InvalidInputError(f"{place} is {shown(text)}, must be a whole number of {next(iter(units))}")
    return int(least)


def amount_words(value: int, units: Mapping[str, int]) -> str:
    """Return an amount in the largest of some units in which it is a whole number."""
    unit = max((unit for unit in units if value % units[unit] == 0), key=lambda unit: units[unit])
    return f"{value // units[unit]}{unit}" if value else "0"


_time = partial(_amount, units=TIMES, what="a time", example="30ms")


def read_percent(place: Place, text: str) -> int:
    """Return a percentage in permille."""
    found = _PERCENT.fullmatch(text.strip())
    if found is None:
        raise InvalidInputError(
            f"{place} is {shown(text)}, must be a percentage with at most one decimal, e.g. 80% or 62.5%"
        )
    return 10 * int(found[1]) + int(found[2] or 0)


def _percent_text(permille: int) -> str:
    return f"{permille // 10}.{permille % 10}%" if permille % 10 else f"{permille // 10}%"


def _windows(place: Place, text: str) -> dict[str, Window]:
    found: dict[str, Window] = {}
    for each in text.split():
        read = _WINDOW.fullmatch(each)
        if read is None or read[1] in found:
            raise InvalidInputError(
                f"{place} is {shown(each)}, must be NAME=FROM..TO, once per request, e.g. bert=20ms..500ms, "
                "or bert=20ms.. for no end"
            )
        ends = (_time(place, part, usual="ms") if part else None for part in read.groups()[1:])
        begin, end = ends
        found[read[1]] = begin or 0, end
    return found


def _windows_text(windows: Mapping[str, Window]) -> str:
    def ends(begin: int, end: int | None) -> str:
        return f"{amount_words(begin, TIMES)}..{'' if end is None else amount_words(end, TIMES)}"

    return " ".join(f"{name}={ends(*window)}" for name, window in windows.items())


def _devices(place: Place, text: str) -> dict[str, int]:
    from ..formulations.cluster_platform import parse_counts

    try:
        return parse_counts(text)
    except InvalidInputError as error:
        raise InvalidInputError(f"{place}: {error}") from None


def _pairs_text(pairs: Mapping[str, object]) -> str:
    return ",".join(f"{name}={value}" for name, value in pairs.items())


def _shapes(place: Place, text: str) -> dict[str, tuple[int, ...]]:
    from ..executor.graph.shapes import parse_shapes

    return parse_shapes(text.split())


def _shapes_text(shapes: Mapping[str, Sequence[int]]) -> str:
    parts = ((name, ",".join(map(str, sizes))) for name, sizes in shapes.items())
    return " ".join(f"{name}={sizes}" if name else sizes for name, sizes in parts)


def _choice(place: Place, text: str, *, kind: type[StrEnum]) -> StrEnum:
    try:
        return kind(text)
    except ValueError:
        names = [str(each) for each in kind]
        hint = meant(text, names, listed_by=f"must be {' or '.join(names)}")
        raise InvalidInputError(f"{place} is {shown(text)}; {hint}") from None


def _yes(place: Place, text: str) -> bool:
    if text not in ("True", "False"):
        raise InvalidInputError(f"{place} is {shown(text)}, must be True or False")
    return text == "True"


def text_form(metavar: str | None = None) -> Form:
    """Return the form of any text."""
    return Form(metavar=metavar, read=_text, plain=True)


def count_form(least: int = 1) -> Form:
    """Return the form of whole numbers."""
    return Form(metavar="NUMBER", read=partial(_count, least=least))


def choice_form(kind: type[StrEnum], metavar: str | None = None) -> Form:
    """Return the form of one of several names."""
    return Form(metavar=metavar or "|".join(kind), read=partial(_choice, kind=kind), choices=kind)


def _amount_form(metavar: str, units: Mapping[str, int], what: str, example: str) -> Form:
    read = partial(_amount, units=units, what=what, example=example)
    return Form(metavar=metavar, example=example, read=read)


TIME = Form(metavar="TIME", example="30ms", read=_time)
ENERGY = _amount_form("ENERGY", ENERGIES, "an energy", "5mJ")
SIZE = _amount_form("SIZE", SIZES, "an amount of memory", "2GiB")
PERCENT = Form(metavar="PERCENT", read=read_percent, write=_percent_text)
YES = Form(metavar="True|False", read=_yes)
DEVICES = Form(metavar="TYPE=NUMBER,...", read=_devices, write=_pairs_text)
SHAPES = Form(metavar="INPUT=N,C,H,W", read=_shapes, write=_shapes_text, repeated=True)
WINDOWS = Form(metavar="NAME=FROM..TO", read=_windows, write=_windows_text, repeated=True)
