"""Plans: which consecutive layers run on which unit."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, ClassVar

from .errors import InvalidPlanError
from .validation import MAX_COUNT, STRICT, Defects


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Chunk:
    """Consecutive layers [start, stop) of one network on one unit.

    Attributes
    ----------
    network
        Name of the network.
    start, stop
        First layer, and one past the last; 0-based.
    unit
        Name of the unit.
    """

    __pydantic_config__: ClassVar[Any] = STRICT

    network: str
    start: int
    stop: int
    unit: str

    def __post_init__(self) -> None:
        if type(self.start) is type(self.stop) is int and 0 <= self.start < self.stop <= MAX_COUNT:
            return  # backends make many chunks: what is right costs nothing
        defects = Defects(f"chunk [{self.start}, {self.stop}) on {self.unit!r}")
        if defects.check_count("start", self.start) and defects.check_count("stop", self.stop):
            defects.add("it is empty: stop must be greater than start")
        defects.raise_as(InvalidPlanError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Chunks in canonical order: by network, then by first layer.

    Attributes
    ----------
    chunks
        At least one chunk. They are sorted on construction, so equal plans are equal values.
    """

    __pydantic_config__: ClassVar[Any] = STRICT

    chunks: tuple[Chunk, ...]

    def __post_init__(self) -> None:
        if not self.chunks:
            raise InvalidPlanError("a plan needs at least one chunk; no plan is written as None")
        object.__setattr__(self, "chunks", tuple(sorted(self.chunks)))

    @property
    def plan_id(self) -> str:
        """Twelve hexadecimal digits that depend on the chunks alone."""
        text = "\n".join(f"{c.network}\t{c.start}\t{c.stop}\t{c.unit}" for c in self.chunks)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def __str__(self) -> str:
        return " | ".join(f"{c.start}-{c.stop - 1} {c.unit}" for c in self.chunks)
