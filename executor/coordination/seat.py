"""One unit of a coordinator: its worker, what that is at, and why it may not be used."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import NamedTuple

from ...formulations.coordination.simulation import Start
from ...formulations.errors import ExecutionError, GaplessError, UnitLostError
from ...formulations.hardware import ProcessingUnit
from ..pipeline.crew import FIRST_TASK_LIMIT_S, OPEN_LIMIT_S
from ..workers import Message, rebuild_error
from .requests import Accepted
from .restarts import Restarts
from .tally import UnitCounts
from .workers import UnitWorker, Workers

LOST = "lost"
"""Why a unit may not be used that is not expected back soon."""

SOON_S = 10.0
"""Requests wait for a unit whose next worker starts within this time; later ones are refused meanwhile."""

_PATIENCE = 20
"""A chunk hangs when it takes so many times what was expected, and `FIRST_TASK_LIMIT_S` at least."""


@dataclass(slots=True)
class Errand:
    """Something that a worker does while its unit may not be used for requests."""

    message: Message | None  # what it is told; None: it speaks first
    answer: Future[Message] = field(default_factory=Future)  # where its answer goes
    vital: bool = False  # whether nobody waits for it: the worker is of no use if it fails


class Opened(NamedTuple):
    """A network as workers of a unit are told of it."""

    message: Message  # what opens it
    probe: Message  # a chunk of it that says whether the unit works


@dataclass(slots=True)
class Run:
    """A chunk that is under way."""

    start: Start  # as the dispatcher has it
    request: Accepted  # whose chunk it is
    slot: int  # the task slot in which it runs
    stale: bool = False  # whether the request runs elsewhere by now: what comes out does not count


class Seat:
    """A unit.

    `chunks`, `busy_ns`, `losses`, `restarts`, `rss_bytes`: what is counted, see `UnitCounts`.
    """

    def __init__(
        self,
        index: int,
        unit: ProcessingUnit,
        workers: Workers,
        *,
        restarts: Restarts,
        engines: Collection[str] | None = None,
    ) -> None:
        self.index = index
        self.unit = unit
        self.rivals: list[Seat] = []  # units that share a core with it
        self.reasons: set[str] = set()  # why it may not be used, besides errands
        self.errands: deque[Errand] = deque()  # what its worker has to do before it may be used
        self.task: Run | Errand | None = None  # what its worker is at
        self.opened: dict[int, Opened] = {}  # by network, what workers are told of it
        self.chunks = self.busy_ns = self.losses = self.restarts = self.rss_bytes = 0
        # when its next worker starts, by the clock of `restarts`; None: it has one, or gets none
        self.due_s: float | None = None
        self._workers = workers
        self._restarts = restarts
        self._engines = engines
        self._worked = False
        self._wait_s: float | None = 0.0
        self._deadline_s = 0.0
        self.worker: UnitWorker | None = None
        self.begin()

    @property
    def usable(self) -> bool:
        """Whether requests may run here, as soon as it is idle; errands are not to be disturbed."""
        busy = any(seat.has_errands for seat in (self, *self.rivals))
        return not self.reasons and self.worker is not None and not busy

    @property
    def has_errands(self) -> bool:
        """Whether its worker has something else to do than requests."""
        return bool(self.errands) or isinstance(self.task, Errand)

    @property
    def why(self) -> tuple[str, ...]:
        """Why requests may not run here; empty while they may."""
        if self.reasons or self.usable:
            return tuple(sorted(self.reasons))
        return ("between two workers" if self.worker is None else "busy with sessions or a probe",)

    def counts(self, *, available: bool) -> UnitCounts:
        """Return what it has done so far."""
        return UnitCounts(
            name=self.unit.name,
            available=available,
            why=self.why,
            chunks=self.chunks,
            busy_us=self.busy_ns / 1000,
            losses=self.losses,
            restarts=self.restarts,
            rss_bytes=self.rss_bytes,
        )

    @property
    def lost(self) -> bool:
        """Whether it is not expected back soon."""
        return LOST in self.reasons

    @property
    def prospect(self) -> str:
        """What becomes of a unit without a worker, in words."""
        if self._wait_s is None:
            return "no other one is started"
        return f"another one starts in {self._wait_s:.2g} s" if self._wait_s else "another one starts"

    @property
    def due(self) -> bool:
        """Whether its next worker may start."""
        return self.due_s is not None and self._restarts.clock() >= self.due_s

    @property
    def due_in_s(self) -> float | None:
        """How long until its next worker may start; None: none is to start."""
        return None if self.due_s is None else self.due_s - self._restarts.clock()

    def begin(self) -> None:
        """Start its worker: it opens what the one before had open, and is probed."""
        self.due_s, self._worked = None, False
        self.worker = self._workers.start(self.unit, self._engines)
        self._occupy(Errand(None), OPEN_LIMIT_S)
        self.errands.extendleft(Errand(known.message, vital=True) for known in reversed(self.opened.values()))
        self.check()

    def check(self) -> None:
        """Have its worker show that it works before requests run here."""
        known = next(reversed(self.opened.values()), None) if self.worker is not None else None
        if known is not None and not any(errand.message is known.probe for errand in self.errands):
            self.errands.append(Errand(known.probe, vital=True))

    def run(self, run: Run, message: Message) -> None:
        """Have the worker run a chunk; raises UnitLostError when it is gone."""
        self._occupy(run, max(FIRST_TASK_LIMIT_S, _PATIENCE * run.start.expected_us / 1e6))
        self._send(message)

    def do_errand(self) -> None:
        """Have an idle worker do the next errand; raises UnitLostError when it is gone."""
        if self.errands and all(seat.task is None for seat in (self, *self.rivals)):
            errand = self.errands.popleft()
            self._occupy(errand, OPEN_LIMIT_S)
            if errand.message is not None:
                self._send(errand.message)

    def listen(self) -> Message | None:
        """Return what the worker says, if anything; raises what it raised, or UnitLostError."""
        assert self.worker is not None
        return self.worker.receive(0.0)

    def heard(self, errand: Errand, message: Message) -> bool:
        """Hand on the answer to an errand; return whether it is a good one, or somebody's who looks at it."""
        self.rss_bytes = max(self.rss_bytes, message.get("rss_bytes", 0))
        if message["kind"] != "failed":
            errand.answer.set_result(message)
            return True
        errand.answer.set_exception(failure(message))
        return not errand.vital

    def hangs(self) -> bool:
        """Return whether the worker takes too long."""
        return self.task is not None and self._restarts.clock() > self._deadline_s

    def begin_again(self) -> None:
        """Start another worker; raises UnitLostError when it cannot be started, for whatever reason."""
        self._restarts.begun()
        try:
            self.begin()
        except Exception as error:  # too many open files, no memory, no process
            raise UnitLostError(f"no worker can be started: {error}") from error
        self.restarts += 1

    def proved(self) -> bool:
        """Note that its worker has done what it was told; return whether the unit was lost before."""
        self._worked = self._worked or (self.worker is not None and not self.has_errands)
        was_lost = self._worked and self.lost
        if was_lost:
            self.reasons.discard(LOST)
        return was_lost

    def lose(self, error: GaplessError) -> Run | None:
        """End the worker, say when the next one starts, and return the chunk that was under way.

        Errands that somebody waits for fail.
        """
        run = self.task if isinstance(self.task, Run) else None
        self.give_up(error)
        self.task = None
        self.end()
        self.losses += 1
        self._wait_s = self._restarts.wait_s(worked=self._worked)
        self._worked = False
        self.due_s = None if self._wait_s is None else self._restarts.clock() + self._wait_s
        if self._wait_s is None or self._wait_s > SOON_S:
            self.reasons.add(LOST)
        return run

    def give_up(self, error: GaplessError) -> None:
        """Have all errands fail."""
        under_way = [self.task] if isinstance(self.task, Errand) else []
        for errand in [*under_way, *self.errands]:
            errand.answer.set_exception(error)
        self.errands.clear()

    def end(self, *, patience_s: float = 0.0) -> None:
        """End the worker. Can be called twice."""
        worker, self.worker = self.worker, None
        if worker is not None:
            worker.close(patience_s=patience_s)

    def _occupy(self, task: Run | Errand, limit_s: float) -> None:
        self.task = task
        self._deadline_s = self._restarts.clock() + limit_s

    def _send(self, message: Message) -> None:
        assert self.worker is not None
        self.worker.send(message)


def failure(message: Message) -> GaplessError:
    """Return the error of a worker that said "failed": at least an ExecutionError."""
    error = rebuild_error(message["type"], message["text"])
    return error if isinstance(error, ExecutionError) else ExecutionError(str(error))
