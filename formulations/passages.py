"""How requests of one network may pass the units: the data of the formulation `passage`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from .errors import InvalidInputError
from .validation import FileContent, meant, shown


class Ways(StrEnum):
    """Which units a chunk may be on.

    ONCE
        Each unit has at most one chunk (BetterTogether III-D, C2).
    ANY
        A unit has any number of chunks: requests come back to it.
    """

    ONCE = "once"
    ANY = "any"


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage(FileContent):
    """That a unit may have several chunks of one network; without it (`Problem.data` None) it has one.

    Attributes
    ----------
    ways
        ANY: the only one that problem files name, because ONCE is what holds without this data.
    """

    data_key: ClassVar[str] = "passage"

    ways: Ways = Ways.ANY

    def __post_init__(self) -> None:
        if self.ways is not Ways.ANY:
            raise InvalidInputError('passage is "once": leave it out, it is what holds without it')


def passage_of(text: str) -> Passage | None:
    """Return the data of a problem for a passage given by name.

    Raises InvalidInputError: there is no such passage.
    """
    if text not in tuple(Ways):
        raise InvalidInputError(f"passage is {shown(text)}; {meant(text, tuple(Ways))}")
    return Passage() if text == Ways.ANY else None
