"""Runs: what a pipeline is told to do, and which of its requests count."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from time import monotonic_ns
from typing import TYPE_CHECKING, Any, Self

from ...formulations.errors import InvalidInputError
from .shared import Board

if TYPE_CHECKING:
    from ..runner import Budget


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineRun:
    """One run of an open pipeline."""

    first: tuple[int, ...]  # number of the first request of each stream
    warm_up: int = 0  # requests of each stream that come first and do not count
    requests: int | None = None  # requests of each stream that count, or None
    duration_ns: int | None = None
    """How long requests are let in after the warm-up, nanoseconds, or None. At least one counts."""
    lingers: bool = False
    """Whether a stream goes on until every stream has put out all that is asked for, so that the last
    requests run beside the same load as the others."""
    fed: bool = False  # whether the parent gives the inputs of every request, and says where a stream ends

    def message(self) -> dict[str, Any]:
        """Return it as a message to a worker."""
        return {"kind": "run", **asdict(self)}

    @classmethod
    def parse(cls, message: Mapping[str, Any]) -> Self:
        """Return the run that `message` wrote."""
        fields = {name: value for name, value in message.items() if name != "kind"}
        return cls(**{**fields, "first": tuple(fields["first"])})


def run_for(budget: Budget, streams: int) -> PipelineRun:
    """Return the run of a measurement."""
    defects = []
    if budget.seconds is None and budget.requests is None:
        defects.append("give seconds, requests, or both")
    if budget.seconds is not None and not 0 < budget.seconds < float("inf"):
        defects.append(f"seconds is {budget.seconds}, must be greater than 0 and finite")
    if budget.requests is not None and budget.requests < 1:
        defects.append(f"requests is {budget.requests}, must be at least 1")
    if budget.warm_up_requests < 0:
        defects.append(f"warm_up_requests is {budget.warm_up_requests}, must be at least 0")
    if defects:
        raise InvalidInputError("the budget of a measurement is not valid:", defects)
    return PipelineRun(
        first=(0,) * streams,
        warm_up=budget.warm_up_requests,
        requests=budget.requests,
        duration_ns=None if budget.seconds is None else round(budget.seconds * 1e9),
        lingers=True,
    )


class RequestWindow:
    """Which requests of a run are let in, and which of them count; each worker has its own.

    `board`: where the workers tell each other when each stream is warm, and when it has got everything.
    """

    def __init__(self, run: PipelineRun, board: Board) -> None:
        self._run = run
        self._board = board
        self._deadline_ns: int | None = None
        self._stop = None if run.requests is None else run.warm_up + run.requests

    def admits(self, request: int) -> bool:
        """Return whether a stream that nobody feeds lets a request in."""
        if request <= self._run.warm_up:
            return True
        if self._stop is not None and request >= self._stop:
            if not self._run.lingers or all(self._board.reached):
                return False
        return not self._over(monotonic_ns())

    def counts(self, request: int, end_ns: int) -> bool:
        """Return whether a task counts that ended then."""
        if request <= self._run.warm_up:
            return request == self._run.warm_up
        return (self._stop is None or request < self._stop) and not self._over(end_ns)

    def note_output(self, stream: int, request: int, end_ns: int) -> None:
        """Say that a request of a stream is through, or one tile of it."""
        if request == max(self._run.warm_up - 1, 0):
            self._board.begins_ns[stream] = max(end_ns, self._board.begins_ns[stream])
        if self._stop is not None and request >= self._stop - 1:
            self._board.reached[stream] = 1

    def _over(self, now_ns: int) -> bool:
        """Return whether the time is over; it begins when all streams are warm."""
        if self._run.duration_ns is None:
            return False
        if self._deadline_ns is None:
            begins = list(self._board.begins_ns)
            if not all(begins):
                return False
            self._deadline_ns = max(begins) + self._run.duration_ns
        return now_ns >= self._deadline_ns


class Tally:
    """Exact sums over the tasks of one chunk that count, however long the run is."""

    def __init__(self) -> None:
        self.count = 0
        self.busy_ns = 0
        self.start_ns = 0
        self.end_ns = 0

    def add(self, start_ns: int, end_ns: int) -> None:
        """Count one task."""
        if not self.count:
            self.start_ns = start_ns
        self.count += 1
        self.busy_ns += end_ns - start_ns
        self.end_ns = end_ns
