"""The document of `gapless compare --out`, read again as far as a report shows it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from ..formulations.errors import InvalidInputError
from ..formulations.files import format_of, load_foreign
from ..formulations.plan import Chunk, Plan

FORMAT = "gapless.comparison"

_LENIENT: dict[str, Any] = {"extra": "ignore"}
"""The document says more than is read here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenPlan:
    """The plan of a candidate."""

    __pydantic_config__: ClassVar[Any] = _LENIENT

    chunks: tuple[Chunk, ...]
    order: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenCandidate:
    """One candidate of a backend."""

    __pydantic_config__: ClassVar[Any] = _LENIENT

    plan: WrittenPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenResult:
    """The answer of one backend; fields as in `SolveResult`."""

    __pydantic_config__: ClassVar[Any] = _LENIENT

    backend: str
    backend_version: str | None
    status: str
    stop: str
    objective: int | None
    bound: int | None
    gap: float | None
    runtime_s: float
    candidates: tuple[WrittenCandidate, ...]

    @property
    def version(self) -> str:
        """Version of the backend; empty where it is not known."""
        return self.backend_version or ""

    @property
    def plan(self) -> Plan | None:
        """The best plan, or None."""
        if not self.candidates:
            return None
        written = self.candidates[0].plan
        return Plan(chunks=written.chunks, order=written.order)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenFailure:
    """Why a backend gave no answer."""

    __pydantic_config__: ClassVar[Any] = _LENIENT

    backend: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenProblem:
    """Which problem was solved."""

    __pydantic_config__: ClassVar[Any] = _LENIENT

    fingerprint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenComparison:
    """A comparison."""

    __pydantic_config__: ClassVar[Any] = _LENIENT

    version: int
    problem: WrittenProblem
    results: tuple[WrittenResult, ...]
    failures: tuple[WrittenFailure, ...]


def load_comparison(path: str | Path) -> WrittenComparison:
    """Read a comparison.

    Raises
    ------
    InvalidInputError
        The file is not valid, or no comparison.
    """
    kind = format_of(path)
    if kind != FORMAT:
        raise InvalidInputError(f"{path} is a {kind} file, not one of `gapless compare --out`")
    return load_foreign(path, WrittenComparison, called="a comparison of `gapless compare --out`")
