"""Who answers the tasks of a sweep: a few child processes of this one; each answers one task at a time.

Children are forked: problems that Python made hold functions, which cannot be sent to another program. They
are given the number of a task and return an answer as JSON.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import Protocol, Self

from ..formulations.json_files import dump, parse
from ..formulations.processes import forked
from .answers import ANSWER, TaskAnswer
from .served import serve

STALL_S, STALL_SHARE = 30.0, 2.0
"""When a worker counts as hung: so long after the time limit, which may be overrun by such a share."""

_REAP_S = 2.0

Work = Callable[[int], TaskAnswer]
"""Answers the task of a number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a task: an answer, or None and why its worker was lost."""

    number: int
    answer: TaskAnswer | None
    reason: str = ""


def late_after(limit_s: float | None) -> float | None:
    """Return when the worker of a task that is given now counts as hung, on the clock of `time.monotonic`."""
    return None if limit_s is None else time.monotonic() + limit_s * (1 + STALL_SHARE) + STALL_S


class Workers(Protocol):
    """A few workers; the caller gives tasks as long as somebody is free, then waits."""

    @property
    def free(self) -> int:
        """How many more tasks can be given just now."""
        ...

    def give(self, number: int, limit_s: float | None) -> None:
        """Have a task answered; `limit_s` is the time limit that it was given."""
        ...

    def outcomes(self) -> Sequence[Outcome]:
        """Wait until something has become of at least one task; return all that has."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


@dataclass(slots=True)
class _Job:
    """What a worker is at: the number of a task, and when its worker counts as hung."""

    number: int
    late_s: float | None


class _Worker:
    """A forked process that answers one task after the other until it is ended."""

    def __init__(self, work: Work) -> None:
        self.connection, inner = Pipe()
        self.process = forked(_serve, work, inner)  # no daemon: those may not start the processes of solvers
        inner.close()
        self.job: _Job | None = None

    def end(self, wait_s: float = 0.0) -> str:
        """End it, if it does not end by itself in time; return how it ended, in words."""
        self.process.join(wait_s)
        with suppress(ProcessLookupError):
            self.process.kill()
        self.process.join(_REAP_S)
        self.connection.close()
        code = self.process.exitcode or 0
        return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"


class LocalWorkers:
    """Child processes of this one; those that are lost are replaced."""

    def __init__(self, work: Work, count: int) -> None:
        self._work = work
        self._count = count
        self._workers: list[_Worker] = []

    @property
    def free(self) -> int:
        """How many more tasks can be given just now."""
        return self._count - sum(worker.job is not None for worker in self._workers)

    @property
    def processes(self) -> tuple[int, ...]:
        """Process numbers of the workers."""
        return tuple(worker.process.pid or 0 for worker in self._workers)

    def give(self, number: int, limit_s: float | None) -> None:
        """Have a task answered, by an idle worker or a new one."""
        idle = (worker for worker in self._workers if worker.job is None)
        worker = next(idle, None) or self._started()
        worker.job = _Job(number, late_after(limit_s))
        with suppress(BrokenPipeError, ConnectionResetError):  # it was lost while it was idle: seen below
            worker.connection.send_bytes(str(number).encode())

    def outcomes(self) -> list[Outcome]:
        """Wait until something has become of at least one task; return all that has."""
        found: list[Outcome] = []
        while not found:
            ready = set(wait(self._watched(), self._patience()))
            for worker in list(self._workers):
                if worker.job and worker.connection in ready:
                    found += self._answered(worker)
                elif worker.process.sentinel in ready:
                    found += self._lost(worker)
            found += self._hung()
        return found

    def _started(self) -> _Worker:
        worker = _Worker(self._work)
        self._workers.append(worker)
        return worker

    def _watched(self) -> list[Connection | int]:
        busy = [worker.connection for worker in self._workers if worker.job]
        return [*busy, *(worker.process.sentinel for worker in self._workers)]

    def _patience(self) -> float | None:
        times = [worker.job.late_s for worker in self._workers if worker.job and worker.job.late_s]
        return None if not times else max(0.0, min(times) - time.monotonic())

    def _answered(self, worker: _Worker) -> list[Outcome]:
        job = worker.job
        assert job is not None
        try:
            data = worker.connection.recv_bytes()
        except (EOFError, OSError):
            return self._lost(worker)
        worker.job = None
        return [Outcome(number=job.number, answer=parse(data, ANSWER, name="the answer of a worker"))]

    def _lost(self, worker: _Worker) -> list[Outcome]:
        self._workers.remove(worker)
        how = worker.end(_REAP_S)  # whose pipe is closed already ends at once
        if worker.job is None:
            return []
        return [Outcome(number=worker.job.number, answer=None, reason=f"its worker {how}")]

    def _hung(self) -> Iterator[Outcome]:
        now = time.monotonic()
        for worker in list(self._workers):
            if worker.job and worker.job.late_s and worker.job.late_s <= now:
                self._workers.remove(worker)
                worker.end()
                reason = "its worker hung, and was ended long after the time limit"
                yield Outcome(number=worker.job.number, answer=None, reason=reason)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.end()
        self._workers.clear()


def _serve(work: Work, connection: Connection) -> None:
    """Be a worker; Ctrl-C belongs to the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    serve(connection, lambda asked: dump(work(int(asked)), ANSWER).encode())
