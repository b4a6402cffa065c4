"""Values as users write them: "30ms", "2GiB", "62.5%", "bert=20ms..500ms"; one place for each form."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import Enum, StrEnum, auto
from functools import partial
from math import inf
from operator import index
from pathlib import Path
from typing import Any

from ..formulations.errors import InvalidInputError
from ..formulations.validation import meant, read_number, shown

TIMES = {"us": 1, "ms": 1000, "s": 1_000_000}
"""Units of times, in microseconds."""

SPANS = {"us": 1, "ms": 1000, "s": 1_000_000, "min": 60_000_000, "h": 3_600_000_000}
"""Units of how long somebody waits or measures."""

ENERGIES = {"nJ": 1, "uJ": 1000, "mJ": 1_000_000, "J": 1_000_000_000}
"""Units of energies, in nanojoules."""

SIZES = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
"""Units of memory, in bytes."""

POWERS = {"mW": 1, "W": 1000}
"""Units of powers, in milliwatts."""

KELVINS = {"mK": 1, "K": 1000}
"""Units of differences of temperatures, in millikelvins."""

_MOST_DIGITS = 15
_AMOUNT = re.compile(rf"(\d{{1,{_MOST_DIGITS}}}(?:\.\d{{1,9}})?) ?([A-Za-z]*)", re.ASCII)
_PERCENT = re.compile(r"(\d{1,9})(?:\.(\d))?\s?%", re.ASCII)
_BEHIND_PERCENT = re.compile(r"(?<=%)\s+")
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


class Names(Enum):
    """What a value names that a board lacks until it is taken there, or brings back."""

    FILE = auto()
    INPUTS = auto()
    """A file, or a folder of them."""
    CODE = auto()
    """Python in files, as file.py:NAME, between commas."""
    RESULT = auto()
    FOLDER = auto()
    """What is written, in a folder of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """How the values of a field are written as text."""

    metavar: str | None
    """What stands for a value in help; None: VALUE, or the choices."""
    read: Callable[[Place, str], Any]
    write: Callable[[Any], str] = str
    """From a value to the text that a file keeps."""
    take: Callable[[Any], Any] | None = None
    """From what Python gives to the value, where a text cannot hold all that it may be; ValueError: wrong."""
    example: str = ""
    plain: bool = False  # whether a value is a text itself
    choices: type[StrEnum] | None = None
    names: Names | None = None  # what a value names, where that has to be there, too, on another machine
    repeated: bool = False  # whether it may be given several times
    joint: str = " "  # what stands between its texts then

    def with_metavar(self, metavar: str) -> Form:
        """Return the same, which help shows by another word."""
        return replace(self, metavar=metavar)

    def naming(self, names: Names) -> Form:
        """Return the same, of what a board lacks."""
        return replace(self, names=names)


def _text(place: Place, text: str) -> str:
    return text  # who looks it up says what there is


def _count(place: Place, text: str, *, least: int, most: int | None) -> int:
    digits = text.removeprefix("-")  # too little is told below
    if not digits.isascii() or not digits.isdecimal() or len(digits) > _MOST_DIGITS:
        raise InvalidInputError(f"{place} is {shown(text)}, must be a whole number")
    _within(place, text, int(text), least, most)
    return int(text)


def _within(place: Place, text: str, value: float, least: float, most: float | None) -> None:
    """Refuse what is too little or too much."""
    if value < least:
        raise InvalidInputError(f"{place} is {text}, must be at least {least}")
    if most is not None and value > most:
        raise InvalidInputError(f"{place} is {text}, must be at most {most}")


def _amount(
    place: Place,
    text: str,
    *,
    units: Mapping[str, int],
    what: str,
    example: str,
    usual: str = "",
    least: int = 0,
    most: int | None = None,
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
    found_in_least = number * units.get(unit, 1)
    if found_in_least != int(found_in_least):
        raise InvalidInputError(f"{place} is {shown(text)}, must be a whole number of {next(iter(units))}")
    for bound, wrong, end in (
        (least, found_in_least < least, "least"),
        (most, most is not None and found_in_least > most, "most"),
    ):
        if wrong and bound is not None:
            raise InvalidInputError(
                f"{place} is {shown(text)}, must be at {end} {amount_words(bound, units)}"
            )
    return int(found_in_least)


def amount_words(value: int, units: Mapping[str, int]) -> str:
    """Return an amount in the largest of some units in which it is a whole number."""
    unit = max((unit for unit in units if value % units[unit] == 0), key=lambda unit: units[unit])
    return f"{value // units[unit]}{unit}" if value else "0"


_time = partial(_amount, units=TIMES, what="a time", example="30ms")


def names_in(place: Place | str, text: str) -> tuple[str, ...]:
    """Return the names between commas; there is one at least, and none is empty."""
    names = tuple(name.strip() for name in text.split(","))
    if "" in names:
        raise InvalidInputError(
            f"{place} is {shown(text)}, must be one name, or several with a comma between two"
        )
    return names


def _sizes(place: Place, text: str) -> tuple[int, ...]:
    return tuple(_count(place, part.strip(), least=1, most=9999) for part in text.split(","))


def _taken_sizes(sizes: int | Sequence[int]) -> tuple[int, ...]:
    found = tuple(map(index, sizes if isinstance(sizes, Sequence) else [sizes]))
    if not all(1 <= size <= 9999 for size in found) or not found:
        raise ValueError(found)
    return found


def _taken_names(names: Sequence[str]) -> str:
    return ",".join(names_in("it", ",".join(names)))


def _shares(place: Place, text: str) -> dict[str, int]:
    """Read a percentage for each of several names, in permille."""
    found: dict[str, int] = {}
    for each in _BEHIND_PERCENT.split(text.strip()):
        name, _, share = each.rpartition("=")
        read = _PERCENT.fullmatch(share.strip())
        permille = 10 * int(read[1]) + int(read[2] or 0) if read else 0
        if not name.strip() or name.strip() in found or not 1 <= permille <= 1000:
            raise InvalidInputError(
                f"{place} is {shown(each)}, must be a unit and a percentage, once per unit, e.g. core1=50%"
            )
        found[name.strip()] = permille
    return found


def _shares_text(shares: Mapping[str, int]) -> str:
    return " ".join(f"{name}={_percent_text(permille)}" for name, permille in shares.items())


def _deadlines(place: Place, text: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for each in text.split():
        name, _, time = each.rpartition("=")
        if not name or name in found:
            raise InvalidInputError(
                f"{place} is {shown(each)}, must be NAME=TIME, once per model, e.g. squeezenet=50ms"
            )
        found[name] = _time(place, time, usual="ms", least=1)
    return found


def _deadlines_text(deadlines: Mapping[str, int]) -> str:
    return " ".join(f"{name}={amount_words(time_us, TIMES)}" for name, time_us in deadlines.items())


def _states(place: Place, text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in text.split():
        taken, _, made = each.partition("=")
        if not taken or not made or taken in found:
            raise InvalidInputError(
                f"{place} is {shown(each)}, must be an input and an output, once per input, e.g. h=h_out"
            )
        found[taken] = made
    return found


def _states_text(states: Mapping[str, str]) -> str:
    return " ".join(f"{taken}={made}" for taken, made in states.items())


def _path(place: Place, text: str) -> Path:
    return Path(text)


def read_percent(place: Place, text: str) -> int:
    """Return a percentage in permille."""
    found = _PERCENT.fullmatch(text.strip())
    if found is None:
        raise InvalidInputError(
            f"{place} is {shown(text)}, must be a percentage with at most one decimal, e.g. 80% or 62.5%"
        )
    return 10 * int(found[1]) + int(found[2] or 0)


def _share(place: Place, text: str) -> int:
    share = read_percent(place, text)
    if share > 1000:
        raise InvalidInputError(f"{place} is {text}, must be at most 100%")
    return share


def _percent_text(permille: int) -> str:
    permille = index(permille)  # what is half a permille has no text
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


def _taken_shapes(shapes: Mapping[str, Sequence[int]]) -> dict[str, tuple[int, ...]]:
    found = {name: tuple(map(index, sizes)) for name, sizes in shapes.items()}
    if any(size < 1 for sizes in found.values() for size in sizes):
        raise ValueError(found)
    return found


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


def count_form(least: int = 1, most: int | None = None) -> Form:
    """Return the form of whole numbers."""
    return Form(metavar="NUMBER", read=partial(_count, least=least, most=most))


def number_form(metavar: str, least: float, most: float) -> Form:
    """Return the form of numbers."""

    def read(place: Place, text: str) -> float:
        number = read_number(text)
        if number is None:
            raise InvalidInputError(f"{place} is {shown(text)}, must be a number")
        _within(place, text, number, least, most)
        return number

    return Form(metavar=metavar, read=read, write=lambda number: repr(float(number)))


def scaled_form(
    metavar: str, units: Mapping[str, int], usual: str, what: str, example: str, *, least: str, most: str
) -> Form:
    """Return the form of amounts that Python has as a number of the usual unit, which may be a fraction."""
    ends = [_amount(Place(""), end, units=units, what=what, example=example) for end in (least, most)]
    how: dict[str, Any] = {"units": units, "what": what, "example": example, "usual": usual}
    return Form(
        metavar=metavar,
        example=example,
        read=lambda place, text: _amount(place, text, least=ends[0], most=ends[1], **how) / units[usual],
        write=lambda value: amount_words(round(value * units[usual]), units),
    )


def span_form(example: str = "30s", *, least: str = "1us", most: str = "10000h", never: bool = False) -> Form:
    """Return the form of how long something takes, in seconds; `never`: may be that, which is infinite."""
    plain = scaled_form("TIME", SPANS, "s", "a time", example, least=least, most=most)
    if not never:
        return plain
    return replace(
        plain,
        metavar="TIME|never",
        read=lambda place, text: inf if text == "never" else plain.read(place, text),
        write=lambda seconds: "never" if seconds == inf else plain.write(seconds),
    )


def file_form(metavar: str = "FILE", names: Names = Names.FILE) -> Form:
    """Return the form of the path of a file, or of what `names` says."""
    return Form(metavar=metavar, read=_path, plain=True, names=names)


def choice_form(kind: type[StrEnum], metavar: str | None = None) -> Form:
    """Return the form of one of several names."""
    return Form(metavar=metavar or "|".join(kind), read=partial(_choice, kind=kind), choices=kind)


def _amount_form(metavar: str, units: Mapping[str, int], what: str, example: str, least: int = 0) -> Form:
    read = partial(_amount, units=units, what=what, example=example, least=least)
    return Form(metavar=metavar, example=example, read=read, write=partial(amount_words, units=units))


TIME = _amount_form("TIME", TIMES, "a time", "30ms")
ENERGY = _amount_form("ENERGY", ENERGIES, "an energy", "5mJ")
SIZE = _amount_form("SIZE", SIZES, "an amount of memory", "2GiB")
SOME_SIZE = _amount_form("SIZE", SIZES, "an amount of memory", "2GiB", least=2**10)
SHARE = Form(metavar="PERCENT", read=_share, write=_percent_text)
PERCENT = Form(metavar="PERCENT", read=read_percent, write=_percent_text)
YES = Form(metavar="True|False", read=_yes)
DEVICES = Form(metavar="TYPE=NUMBER,...", read=_devices, write=_pairs_text)
SHAPES = Form(
    metavar="INPUT=N,C,H,W",
    read=_shapes,
    write=_shapes_text,
    take=_taken_shapes,
    repeated=True,
)
STATES = Form(metavar="INPUT=OUTPUT", read=_states, write=_states_text, repeated=True)
WINDOWS = Form(metavar="NAME=FROM..TO", read=_windows, write=_windows_text, repeated=True)
SHARES = Form(metavar="UNIT=PERCENT", read=_shares, write=_shares_text, repeated=True)
DEADLINES = Form(metavar="NAME=TIME", read=_deadlines, write=_deadlines_text, repeated=True)
LIST = Form(metavar="NAME,NAME", read=names_in, write=",".join)
SIZES_OF_BATCHES = Form(
    metavar="SIZES",
    read=_sizes,
    write=lambda sizes: ",".join(map(str, sizes)),
    take=_taken_sizes,
    example="1,2,4",
)
LINES = Form(
    metavar=None,
    read=lambda place, text: tuple(text.splitlines()),
    write="\n".join,
    repeated=True,
    joint="\n",
)
CODE = Form(metavar=None, read=_text, take=_taken_names, plain=True, names=Names.CODE)
