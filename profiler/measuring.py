"""The parent's side of measuring: one pinned worker a unit, and benches that time pieces on them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

from ..executor.closing import Closing
from ..executor.comparing import Allowed
from ..executor.engine import Artifact, OperatorTime, parse_receipt
from ..executor.model import Piece
from ..executor.workers import Message, Role, Worker
from ..formulations.errors import ProfilingError, UnitLostError
from ..formulations.hardware import Platform
from .feed import Feed
from .sampling import Effort, Samples
from .slowdown.contention.features import Features
from .summary import Timing, timing
from .worker import serve

_LONGER = (1, 5, 25)
"""How many times as long is measured when a busy core did not get round to the load beside it."""

ANSWER_LIMIT_S = 600.0
"""How long a worker may take for one answer: opening, warming up and timing a slow piece."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedPiece:
    """A piece, and what the engine made of it."""

    piece: Piece
    artifact: Artifact


NOTHING: Mapping[str, PreparedPiece] = {}
"""No load."""


class Bench(Protocol):
    """Where pieces are timed."""

    def start(self, unit: str) -> None:
        """Have a unit ready for work, if it is not yet.

        Raises PlacementError: this machine does not grant what the unit stands for.
        """
        ...

    def timing(
        self,
        unit: str,
        prepared: PreparedPiece,
        *,
        effort: Effort,
        beside: Mapping[str, PreparedPiece] = NOTHING,
    ) -> Timing:
        """Time a piece on a unit, while other units each run some piece in a loop.

        Raises PlacementError, ExecutionError: the unit cannot run it.
        """
        ...

    def operators(
        self, unit: str, prepared: PreparedPiece, *, repetitions: int
    ) -> tuple[OperatorTime, ...] | None:
        """Return the times of the operators inside a piece, in order; None: the engine cannot tell."""
        ...

    def error(self, unit: str, prepared: PreparedPiece, *, allowed: Allowed) -> float:
        """Return the largest error of the outputs of a piece, to be held against what is allowed.

        Errors as for `timing`.
        """
        ...

    def features(self, unit: str, prepared: PreparedPiece, *, runs: int) -> Features:
        """Return how a piece uses the processor of a unit, alone.

        Raises ProfilingError: the system does not let this be counted; the message says why, and what to do.
        """
        ...


class WorkerBench(Closing):
    """Times pieces in worker processes, which are started when they are first needed."""

    def __init__(
        self,
        platform: Platform,
        feed: Feed,
        *,
        engines: Collection[str] | None = None,
        counting: bool = False,
        role: Role | str = serve,
    ) -> None:
        self._units = {unit.name: unit for unit in platform.units}
        self._feed = feed
        self._engines = engines
        self._counting = counting
        self._role = role
        self._workers: dict[str, Worker] = {}

    def start(self, unit: str) -> None:
        """Start the worker of a unit; see `Bench`."""
        if unit not in self._workers:
            descriptor = self._feed.descriptor
            worker = Worker(
                self._units[unit],
                self._role,
                {"descriptor": descriptor, "counting": self._counting},
                descriptors=[descriptor],
                engines=self._engines,
            )
            try:
                worker.expect("ready")
            except BaseException:
                worker.close()
                raise
            self._workers[unit] = worker

    def timing(
        self,
        unit: str,
        prepared: PreparedPiece,
        *,
        effort: Effort,
        beside: Mapping[str, PreparedPiece] = NOTHING,
    ) -> Timing:
        """Time a piece; see `Bench`.

        Raises ProfilingError: a unit that should have run a piece in a loop meanwhile did not get round to
        it.
        """
        for factor in _LONGER:
            least_s, most_s = factor * effort.min_seconds, factor * effort.max_seconds
            asked = asdict(replace(effort, min_seconds=least_s, max_seconds=most_s))
            with self._loaded(beside) as ended:
                found = self._ask(unit, "measure", prepared, "samples", effort=asked)
            idle = [unit for unit, end in ended.items() if end["runs"] == 0]
            if not idle:
                break
        else:
            raise ProfilingError(
                f"the load on {', '.join(idle)} did not run once while another piece was measured; "
                "give the measurement more time (min_seconds)"
            )
        shares = [end["share"] for end in ended.values()]
        samples = Samples(**{name: tuple(values) for name, values in found["samples"].items()})
        of_several = bool(self._units[unit].worker_of)
        summary = timing(samples, parse_receipt(found["receipt"]), sustained=of_several)
        return replace(summary, load_shares=tuple(shares))

    def operators(
        self, unit: str, prepared: PreparedPiece, *, repetitions: int
    ) -> tuple[OperatorTime, ...] | None:
        """Return the times of operators; see `Bench`."""
        times = self._ask(unit, "operators", prepared, "operators", repetitions=repetitions)["times"]
        return None if times is None else tuple(OperatorTime(**time) for time in times)

    def error(self, unit: str, prepared: PreparedPiece, *, allowed: Allowed) -> float:
        """Return the largest error of outputs; see `Bench`."""
        more = {"expected": self._feed.expected(prepared.piece), "allowed": asdict(allowed)}
        found: float = self._ask(unit, "check", prepared, "checked", **more)["error"]
        return found

    def features(self, unit: str, prepared: PreparedPiece, *, runs: int) -> Features:
        """Return how a piece uses the processor of a unit; see `Bench`."""
        found = self._ask(unit, "count", prepared, "counted", runs=runs)
        return Features(**found["features"])

    def close(self) -> None:
        """End all workers."""
        while self._workers:
            self._workers.popitem()[1].close()

    @contextmanager
    def _loaded(self, load: Mapping[str, PreparedPiece]) -> Iterator[dict[str, Message]]:
        """Have units run something in a loop; what each of them says in the end is put into the mapping."""
        started: list[str] = []
        ended: dict[str, Message] = {}
        try:
            for unit, prepared in load.items():
                self._ask(unit, "load", prepared, "loading")
                started.append(unit)
            yield ended
        finally:
            ended.update((unit, self._stop(unit)) for unit in started)

    def _stop(self, unit: str) -> Message:
        worker = self._workers[unit]
        worker.send({"kind": "stop"})
        return self._expect(worker, "loaded")

    def _ask(self, unit: str, kind: str, prepared: PreparedPiece, answer: str, **more: Any) -> Message:
        places = self._feed.places(prepared.piece)
        self.start(unit)
        worker = self._workers[unit]
        worker.send({"kind": kind, "artifact": asdict(prepared.artifact), "inputs": places, **more})
        return self._expect(worker, answer)

    def _expect(self, worker: Worker, answer: str) -> Message:
        try:
            return worker.expect(answer, ANSWER_LIMIT_S)
        except UnitLostError:
            self._workers.pop(worker.unit.name).close()
            raise
