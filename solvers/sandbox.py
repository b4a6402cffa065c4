"""Run a backend in a child process: hard deadline, memory limit, crash contained.

The child is forked, because rules are Python closures that cannot be sent to another program; the
parent never imports a solver, so the child starts clean. Claims come back through a pipe.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import ForkingPickler
from types import MappingProxyType
from typing import IO, Any, TypeVar

from ..formulations import errors
from ..formulations.errors import BackendFailedError, GaplessError
from ..formulations.problem import Problem
from .protocol import Backend, Claim, SolveOptions, SolveStatus, StopReason

T = TypeVar("T")

GRACE_S = 2.0
"""How long after its time limit a backend may still hand in its answer before it is killed."""

MEMORY_SHARE = 0.5
"""Share of the physical memory that a child may take when no limit is given."""

_PR_SET_PDEATHSIG = 1


def _frozen(held: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(held)


# Results hold such mappings, and their type has no name by which pickle could import it.
ForkingPickler.register(MappingProxyType, lambda held: (_frozen, (dict(held),)))


def run_isolated(backend: Backend, problem: Problem, options: SolveOptions) -> tuple[Claim, float]:
    """Run one backend in a child process.

    Parameters
    ----------
    backend, problem, options
        As for `Backend.solve`. `options.publish` is called in this process.

    Returns
    -------
    Claim, float
        The claim, and the seconds the backend took. When it overran its deadline or its memory, the
        claim is the last one it published, with the reason.

    Raises
    ------
    BackendFailedError
        It crashed, was killed by someone else, or ended without an answer.
    GaplessError
        What the backend itself raised.
    """
    limit = None if options.time_limit_s is None else options.time_limit_s + GRACE_S
    started = time.monotonic()
    with tempfile.TemporaryFile() as output, _child(backend, problem, options, output) as (process, pipe):
        last = Claim(status=SolveStatus.NO_SOLUTION, stop=StopReason.TIME_LIMIT)
        while True:
            left = None if limit is None else max(0.0, limit - (time.monotonic() - started))
            if not pipe.poll(left):
                return replace(last, stop=StopReason.TIME_LIMIT), time.monotonic() - started
            try:
                kind, *payload = pipe.recv()
            except (EOFError, OSError):
                process.join()
                raise BackendFailedError(_obituary(backend.name, process.exitcode, output)) from None
            match kind:
                case "published":
                    last = payload[0]
                    options.publish(last)
                case "done":
                    return payload[0], payload[1]
                case "memory":
                    return replace(last, stop=StopReason.MEMORY_LIMIT), payload[0]
                case _:
                    raise _rebuild(backend.name, *payload)


@contextlib.contextmanager
def _child(
    backend: Backend, problem: Problem, options: SolveOptions, output: IO[bytes]
) -> Iterator[tuple[BaseProcess, Connection]]:
    context = get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(backend, problem, options, sender, output), daemon=True)
    with warnings.catch_warnings():
        # Newer Pythons warn that other threads are not copied by a fork. The child needs none of them.
        warnings.simplefilter("ignore", DeprecationWarning)
        process.start()
    sender.close()
    try:
        yield process, receiver
    finally:
        _kill(process)
        receiver.close()


def call_in_child(work: Callable[[], T], name: str) -> T:
    """Return what a function returns, called in a child process: solvers that it loads stay there.

    Parameters
    ----------
    work
        The function.
    name
        Name of the backend that it is about, for errors.

    Raises
    ------
    BackendFailedError
        The child ended without an answer, or the function raised something that is not ours.
    GaplessError
        What the function raised.
    """
    context = get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(work, sender), daemon=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # as in `_child`
        process.start()
    sender.close()
    try:
        kind, *payload = receiver.recv()
    except EOFError:
        process.join()
        raise BackendFailedError(
            f"backend {name!r} ended its child process with exit code {process.exitcode}"
        ) from None
    finally:
        _kill(process)
        receiver.close()
    if kind != "done":
        raise _rebuild(name, *payload)
    answer: T = payload[0]
    return answer


def _send(work: Callable[[], object], pipe: Connection) -> None:
    os.setsid()
    try:
        pipe.send(("done", work()))
    except GaplessError as error:
        pipe.send(("error", type(error).__name__, str(error)))
    except Exception as error:
        pipe.send(("error", "", f"{type(error).__name__}: {error}"))


def _kill(process: BaseProcess) -> None:
    """End the child and everything that it started; both live in a process group of their own."""
    if process.pid is not None:
        for end in (os.killpg, os.kill):  # the group, or the child alone if it has not made one yet
            with contextlib.suppress(ProcessLookupError, PermissionError):
                end(process.pid, signal.SIGKILL)
    process.join()


def _work(
    backend: Backend, problem: Problem, options: SolveOptions, pipe: Connection, output: IO[bytes]
) -> None:
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C belongs to the parent, which kills us
    _die_with_parent()
    for stream in (1, 2):  # solvers print; standard output belongs to the caller's document
        os.dup2(output.fileno(), stream)
    _limit_memory(options.memory_limit_bytes)
    started = time.monotonic()
    try:
        claim = backend.solve(
            problem, replace(options, publish=lambda claim: pipe.send(("published", claim)))
        )
        pipe.send(("done", claim, time.monotonic() - started))
    except MemoryError:
        pipe.send(("memory", time.monotonic() - started))
    except GaplessError as error:
        pipe.send(("error", type(error).__name__, str(error)))
    except Exception as error:
        pipe.send(("error", "", f"{type(error).__name__}: {error}"))


def _die_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))


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
