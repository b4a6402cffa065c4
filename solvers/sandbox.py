"""Run a backend in a child process: hard deadline, memory limit, crash contained.

The child is forked, because rules are Python closures that cannot be sent to another program; the
parent never imports a solver, so the child starts clean. Claims come back through a pipe.

A time limit counts from when the child is there and its backend is warmed up. It is told a little less. If
it has no answer shortly after the limit, the last claim that it published is the answer: solvers look at the
clock when it suits them, and a busy machine gives them no time to do so.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from multiprocessing.reduction import ForkingPickler
from types import MappingProxyType
from typing import IO, Any, Self, TypeVar

from ..formulations import errors
from ..formulations.errors import BackendFailedError, GaplessError
from ..formulations.problem import Problem
from ..formulations.processes import forked
from .protocol import Backend, Claim, Clock, Deadline, SolveOptions, SolveStatus, StopReason, warm_up

T = TypeVar("T")

RESERVE_S, RESERVE_SHARE = 0.1, 0.1
"""How much less than its time limit a backend is told, so that it answers in time; share of short limits."""

GRACE_S, GRACE_SHARE = 0.05, 0.03
"""How long after the time limit an answer is waited for; share of long limits."""

WARM_UP_S = 300.0
"""How long a backend may take to be loaded and warmed up."""

REAP_S = 0.05
"""How long the end of a killed child is waited for here; after that a thread does so."""

_LAST_BREATH_S = 2.0
"""How long a child that has closed its pipe may take to end, for its exit code."""

MEMORY_SHARE = 0.5
"""Share of the physical memory that a child may take when no limit is given."""


def _frozen(held: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(held)


# Results hold such mappings, and their type has no name by which pickle could import it.
ForkingPickler.register(MappingProxyType, lambda held: (_frozen, (dict(held),)))


def run_isolated(backend: Backend, problem: Problem, options: SolveOptions) -> tuple[Claim, float, float]:
    """Run one backend in a child process.

    `backend`, `problem`, `options`: as for `Backend.solve`. `options.publish` is called in this process.
    Returns the claim, the seconds until the backend was ready, and those of the search. When it overran its
    time or its memory, the claim is the last one it published, with the reason.
    Raises GaplessError: what the backend itself raised.
    """
    called, clock = time.monotonic(), options.clock or Clock()
    last = Claim(status=SolveStatus.NO_SOLUTION, stop=StopReason.TIME_LIMIT)
    told = replace(options, clock=None)
    with (
        tempfile.TemporaryFile() as output,
        _Child(partial(_solve, backend, problem, told, output)) as child,
    ):
        with clock.stopped():
            first = next(child.messages(Deadline(WARM_UP_S)), ("late",))
        started, limit_s = time.monotonic(), options.time_limit_s
        startup_s = started - called
        late = Deadline(None if limit_s is None else limit_s + max(GRACE_S, GRACE_SHARE * limit_s))
        for kind, *payload in chain([first], child.messages(late)):
            match kind:
                case "ready":
                    continue
                case "published":
                    last = payload[0]
                    options.publish(last)
                case "done":
                    return payload[0], startup_s, time.monotonic() - started
                case "memory":
                    last = replace(last, stop=StopReason.MEMORY_LIMIT)
                    return last, startup_s, time.monotonic() - started
                case "late":
                    raise BackendFailedError(
                        f"backend {backend.name!r} was not loaded and warmed up within {WARM_UP_S:g} s"
                    )
                case "lost":
                    raise BackendFailedError(_obituary(backend.name, child.exit_code, output))
                case _:
                    raise _rebuild(backend.name, *payload)
    return replace(last, stop=StopReason.TIME_LIMIT), startup_s, time.monotonic() - started


def call_in_child(work: Callable[[], T], name: str) -> T:
    """Return what a function returns, called in a child process: solvers that it loads stay there.

    Raises GaplessError: what the function raised.
    """
    with _Child(lambda pipe: pipe.send(("done", work()))) as child:
        kind, *payload = next(child.messages(Deadline(None)))
        if kind == "lost":
            raise BackendFailedError(
                f"backend {name!r} ended its child process with exit code {child.exit_code}"
            )
        if kind != "done":
            raise _rebuild(name, *payload)
        answer: T = payload[0]
        return answer


class _Child:
    """A forked process with a pipe to here; it ends with the block, and with this process.

    Linux counts threads as parents: the thread that made it has to stay in the block.
    """

    def __init__(self, work: Callable[[Connection], None]) -> None:
        self._pipe, sender = Pipe(duplex=False)
        self._process = forked(_begin, work, sender, daemon=True)
        self._ended = False
        sender.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()
        self._pipe.close()

    @property
    def exit_code(self) -> int | None:
        """How it ended, once it is "lost"."""
        return self._process.exitcode

    def messages(self, late: Deadline) -> Iterator[tuple[Any, ...]]:
        """Yield what it sends until a deadline, when it is ended; "lost" if it ends by itself before.

        What it had sent by its end is yielded in any case.
        """
        while not late.passed and self._pipe.poll(late.left_s):
            try:
                yield self._pipe.recv()
            except (EOFError, OSError):
                wait([self._process.sentinel], _LAST_BREATH_S)
                self._end()
                yield ("lost",)
                return
        self._end()
        with contextlib.suppress(EOFError, OSError):
            while self._pipe.poll(0):  # what it sent before its end
                yield self._pipe.recv()

    def _end(self) -> None:
        """Kill it with everything that it started; both live in a process group of their own."""
        if self._ended:
            return
        self._ended = True
        process = self._process
        assert process.pid is not None
        for end in (os.killpg, os.kill):  # the group, or the child alone if it has not made one yet
            with contextlib.suppress(ProcessLookupError, PermissionError):
                end(process.pid, signal.SIGKILL)
        process.join(REAP_S)
        if process.is_alive():  # a large process on a busy machine: nobody has to wait for it
            threading.Thread(target=process.join, daemon=True).start()


def _begin(work: Callable[[Connection], None], pipe: Connection) -> None:
    """Be a child: do the work, and send what it raises."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C belongs to the parent, which kills us
    try:
        work(pipe)
    except GaplessError as error:
        pipe.send(("error", type(error).__name__, str(error)))
    except MemoryError:
        pipe.send(("memory",))
    except Exception as error:
        pipe.send(("error", "", f"{type(error).__name__}: {error}"))


def _solve(
    backend: Backend, problem: Problem, options: SolveOptions, output: IO[bytes], pipe: Connection
) -> None:
    """Solve in a child, once the backend is ready; what it prints goes to a file."""
    for stream in (1, 2):  # solvers print; standard output belongs to the caller's document
        os.dup2(output.fileno(), stream)
    _limit_memory(options.memory_limit_bytes)
    warm_up(backend, problem)
    pipe.send(("ready",))
    reserve_s = min(RESERVE_S, RESERVE_SHARE * (options.time_limit_s or 0.0))
    told = replace(options.later(reserve_s), publish=lambda claim: pipe.send(("published", claim)))
    pipe.send(("done", backend.solve(problem, told)))


def _limit_memory(most_bytes: int | None) -> None:
    page = os.sysconf("SC_PAGE_SIZE")
    if most_bytes is None:
        most_bytes = int(MEMORY_SHARE * page * os.sysconf("SC_PHYS_PAGES"))
    with contextlib.suppress(OSError), open("/proc/self/statm", encoding="ascii") as statm:
        most_bytes += page * int(statm.read().split()[0])
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    if hard != resource.RLIM_INFINITY:
        most_bytes = min(most_bytes, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most_bytes, hard))


def _rebuild(backend: str, kind: str, text: str) -> GaplessError:
    """Return the error that the child raised; errors that are not ours become a failure of the backend."""
    error = getattr(errors, kind, None) if kind else None
    if isinstance(error, type) and issubclass(error, GaplessError):
        return error(text)
    return BackendFailedError(
        f"backend {backend!r} failed: {text}. Please report this with the problem file; "
        "other backends are not affected"
    )


def _obituary(backend: str, exitcode: int | None, output: IO[bytes]) -> str:
    output.seek(0)
    lines = output.read()[-2000:].decode(errors="replace").strip().splitlines()
    words = f"; it last printed: {lines[-1]}" if lines else ""
    if exitcode is not None and exitcode < 0:
        cause = f"was killed by {signal.Signals(-exitcode).name}"
        if -exitcode in (signal.SIGKILL, signal.SIGABRT):
            cause += " (out of memory is the usual reason; see --memory-limit)"
    else:
        cause = f"ended with exit code {exitcode} without an answer"
    return f"backend {backend!r} {cause}{words}. Other backends are not affected; try another one"
