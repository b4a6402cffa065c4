"""One visit to one candidate, how it is made, and what came of it: what the store keeps."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import NamedTuple

from ...formulations import errors
from ...formulations.deployment import Deployment
from ...formulations.errors import EngineUnavailableError, ExecutionError, StoreError
from ...formulations.validation import FileContent
from ..measurement import Measurement
from ..runner import Budget, Runner, Verification


class Visit(NamedTuple):
    """Which visit: identity of the deployment, rung, and round within the rung."""

    candidate: str
    rung: int
    round: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure(FileContent):
    """Why a candidate could not be executed."""

    error: str
    """Name of the class of the error."""
    message: str
    """What it said."""

    @classmethod
    def of(cls, error: ExecutionError) -> Failure:
        """Return an error as data."""
        return cls(error=type(error).__name__, message=str(error))

    @property
    def wrong(self) -> bool:
        """Whether its numbers are wrong."""
        return self.error == errors.OutputMismatchError.__name__

    def exception(self, message: str) -> ExecutionError:
        """Return an error of the same class with another message."""
        kind = getattr(errors, self.error, ExecutionError)
        found: ExecutionError = kind(message)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial(FileContent):
    """What came of one visit."""

    spent_s: float
    """What it took, with preparation, warm-up and verification, seconds."""
    measurement: Measurement | None = None
    """What was measured, or None."""
    failure: Failure | None = None
    """Why nothing was measured, or None."""
    verification: Verification | None = None
    """Numbers against the uncut model, taken at the first visit; None at others, and where a runner has no
    numbers."""


def attempt(runner: Runner, deployment: Deployment, budget: Budget, *, verifies: bool) -> Trial:
    """Execute a candidate; its failure is data, unless it would befall every candidate.

    Raises StoreError, EngineUnavailableError: nothing can be recorded or executed, whatever the candidate.
    """
    started = time.monotonic()
    verification: Verification | None = None
    measurement, failure = None, None
    try:
        if verifies:
            verification = runner.verify(deployment)
        measurement = runner.measure(deployment, budget)
    except (StoreError, EngineUnavailableError):
        raise
    except ExecutionError as error:
        failure = Failure.of(error)
    return Trial(
        spent_s=time.monotonic() - started,
        measurement=measurement,
        failure=failure,
        verification=verification,
    )
