"""Who executes deployments: the pipeline runtime on this machine, or a simulated device."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Protocol

from ..formulations.deployment import Deployment
from ..formulations.history import History
from ..formulations.validation import FileContent
from .comparing import percent
from .engine import PlacementReceipt
from .measurement import Measurement

UNCHECKED = "numbers are not compared with those of the uncut model, as was asked (--unchecked, check=False)"
"""What is said of numbers that nobody was to compare."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget(FileContent):
    """How long to run a deployment: until either limit is reached, after the warm-up.

    Attributes
    ----------
    seconds
        Time, or None.
    requests
        Number of requests of each stream, or None. At least one of both is given.
    warm_up_requests
        Requests of each stream that are run first and not counted.
    """

    seconds: float | None = None
    requests: int | None = None
    warm_up_requests: int = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification(FileContent):
    """Numbers of a deployment against the uncut model."""

    requests: int
    """How many different inputs were tried."""
    worst_error: float | None
    """Largest error over all outputs that were compared, relative to the scale of the block that the right
    numbers have there over all requests (see `executor.comparing`). None: no output could be compared."""
    tolerance: float
    """What is allowed."""
    problem: str = ""
    """Which outputs could not be compared and why, in words; "": all were."""
    share: float = 0.0
    """The largest share of the entries of an output that differ, of indices and other numbers that are
    decided or counted: those that may, because the values behind them are tied."""
    where: str = ""
    """The output with the largest error, in words."""

    @property
    def compared(self) -> bool:
        """Whether anything was compared."""
        return self.worst_error is not None

    @property
    def largest_error(self) -> float:
        """The largest error, infinite where nothing could be compared."""
        return float("inf") if self.worst_error is None else self.worst_error

    @property
    def words(self) -> str:
        """What came of it, in words."""
        if self.worst_error is None:
            return f"numbers are not verified: {self.problem}"
        agree = (
            f"numbers agree with the uncut model: largest relative error {self.worst_error:.1e} "
            f"(at most {self.tolerance:g} is allowed)"
        )
        if self.share:
            agree += f"; {percent(self.share)} of the entries of an output differ within that, as in a tie"
        return f"{agree}; but {self.problem}" if self.problem else agree


def told(
    verification: Verification | None, receipts: Iterable[PlacementReceipt]
) -> tuple[PlacementReceipt, ...]:
    """Return receipts that say whether numbers were compared."""
    compared = verification is not None and verification.compared
    return tuple(replace(receipt, compared=compared) for receipt in receipts)


class Runner(Protocol):
    """Executes deployments, one at a time."""

    def measure(self, deployment: Deployment, budget: Budget) -> Measurement:
        """Run a deployment and measure it.

        Raises ExecutionError: it could not be run to its end.
        """
        ...

    def trace(self, deployment: Deployment, *, requests: int) -> History:
        """Run some requests and return when everything happened."""
        ...

    def verify(self, deployment: Deployment) -> Verification | None:
        """Compare numbers with those of the uncut model; None where there are no numbers.

        Raises OutputMismatchError: they differ; the message names the first chunk that is wrong.
        """
        ...

    def close(self) -> None:
        """End all workers and free everything."""
        ...
