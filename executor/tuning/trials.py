"""One visit to one candidate, and what came of it: what the store keeps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from ...formulations import errors
from ...formulations.errors import ExecutionError
from ...formulations.validation import STRICT
from ..measurement import Measurement
from ..runner import Verification

DRIFT_RUNG = -1
"""Rung of the two visits to the reference: round 0 before the race, round 1 after it."""


class Visit(NamedTuple):
    """Which visit: identity of the deployment, rung, and round within the rung."""

    candidate: str
    rung: int
    round: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a candidate could not be executed.

    Attributes
    ----------
    error
        Name of the class of the error.
    message
        What it said.
    """

    __pydantic_config__: ClassVar[Any] = STRICT

    error: str
    message: str

    @classmethod
    def of(cls, error: ExecutionError) -> Failure:
        """Return an error as data."""
        return cls(error=type(error).__name__, message=str(error))

    def exception(self, message: str) -> ExecutionError:
        """Return an error of the same class with another message."""
        kind = getattr(errors, self.error, ExecutionError)
        found: ExecutionError = kind(message)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What came of one visit.

    Attributes
    ----------
    spent_s
        What it took, with preparation, warm-up and verification, seconds.
    measurement
        What was measured, or None.
    failure
        Why nothing was measured, or None.
    verification
        Numbers against the uncut model, taken at the first visit; None at others, and where a runner
        has no numbers.
    """

    __pydantic_config__: ClassVar[Any] = STRICT

    spent_s: float
    measurement: Measurement | None = None
    failure: Failure | None = None
    verification: Verification | None = None
