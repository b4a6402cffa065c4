"""Plans: which consecutive layers run on which unit."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .errors import InvalidPlanError
from .validation import MAX_COUNT, Defects, FileContent

if TYPE_CHECKING:
    from .hardware import Platform


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Chunk(FileContent):
    """Consecutive layers [start, stop) of one network on one unit.

    Attributes
    ----------
    network
        Name of the network.
    start, stop
        First layer, and one past the last; 0-based.
    unit
        Name of the unit.
    request
        Name of the request, in plans for a workload, or of the pipeline, in plans of several; empty where
        every request runs alike.
    """

    network: str
    start: int
    stop: int
    unit: str
    request: str = ""

    def __post_init__(self) -> None:
        if type(self.start) is type(self.stop) is int and 0 <= self.start < self.stop <= MAX_COUNT:
            return  # backends make many chunks: what is right costs nothing
        defects = Defects(f"chunk [{self.start}, {self.stop}) on {self.unit!r}")
        if defects.check_count("start", self.start) and defects.check_count("stop", self.stop):
            defects.add("it is empty: stop must be greater than start")
        defects.raise_as(InvalidPlanError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(FileContent):
    """Chunks in canonical order: by request, by network, then by first layer.

    Attributes
    ----------
    chunks
        At least one chunk. They are sorted on construction, so equal plans are equal values.
    order
        In plans for a workload, the names of all requests in the order in which every unit serves them; in
        plans of single requests, a name for each chunk of its request, in the order in which units serve
        them; in plans of several pipelines, their names; in plans of layers side by side, the names of all
        layers in the order of their starts; empty otherwise.
    """

    chunks: tuple[Chunk, ...]
    order: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.chunks:
            raise InvalidPlanError("a plan needs at least one chunk; no plan is written as None")
        ranked = sorted(self.chunks, key=lambda chunk: (chunk.request, chunk))
        object.__setattr__(self, "chunks", tuple(ranked))

    @property
    def plan_id(self) -> str:
        """Twelve hexadecimal digits that depend on the chunks and the order alone."""
        lines = ["\t".join((c.network, str(c.start), str(c.stop), c.unit, *_named(c))) for c in self.chunks]
        lines += [f"order\t{name}" for name in self.order]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:12]

    def of(self, request: str) -> tuple[Chunk, ...]:
        """Return the chunks of one request of a workload, in order of their layers."""
        return tuple(chunk for chunk in self.chunks if chunk.request == request)

    def __str__(self) -> str:
        if not self.order or not any(chunk.request for chunk in self.chunks):
            return _path(self.chunks)
        return "; ".join(f"{name}: {_path(self.of(name))}" for name in dict.fromkeys(self.order))


def comes_back(chunks: Sequence[Chunk], platform: Platform | None = None) -> bool:
    """Return whether chunks in a row come back to a unit that has one of them already.

    `platform`: what its units share; units that take turns count as one.
    """
    units = [chunk.unit for chunk in chunks]
    return len({*(units if platform is None else platform.turns(units))}) < len(chunks)


def _named(chunk: Chunk) -> tuple[str, ...]:
    return (chunk.request,) if chunk.request else ()


def _path(chunks: tuple[Chunk, ...]) -> str:
    return " | ".join(f"{c.start}-{c.stop - 1} {c.unit}" for c in chunks)
