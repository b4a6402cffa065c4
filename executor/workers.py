"""Worker processes: one a unit, pinned before anything heavy is loaded, ended with their parent.

A worker is a Python program, forked from one that has loaded what it needs, or started with an argument list
where that is not the same (`forking`). It talks with its parent over two pipes, in JSON lines; what an engine
prints goes to a temporary file whose last line is quoted when the worker dies. The role of a worker is a
function of a module, which the child finds by its name.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import Any

from ..formulations import errors
from ..formulations.errors import ExecutionError, GaplessError, PlacementError, UnitLostError
from ..formulations.hardware import EngineSettings, MemoryMode, Precision, ProcessingUnit, UnitKind
from ..formulations.processes import end_with_parent, name_process, readable
from .closing import Closing
from .forking import ONE_THREAD, Forked, fork, start_program
from .machine.quota import CpuQuota

Message = Mapping[str, Any]
"""One JSON object; "kind" says what it is."""

Role = Callable[["Link", Mapping[str, Any]], None]
"""What a worker does, with its end and what it needs to know."""

START_LIMIT_S = 60.0
"""How long a worker may take to start: a cold disk and a busy machine included."""


class Worker(Closing):
    """The parent's end of one worker process.

    It ends with this process, whatever becomes of the thread that makes it.

    `role`: a function at the top of a module, or its "module:function"; called with the worker's end (`Link`)
    and `settings`. `settings`: what the role needs to know; plain JSON. `descriptors`: file descriptors that
    the child inherits under the same numbers. `engines`: names of the engines that it will load; None: not
    known. Where it is the same, it is forked from a process that has loaded them (`forking`).
    Raises PlacementError: the cores of the unit may not be used, or its quota cannot be set.
    """

    def __init__(
        self,
        unit: ProcessingUnit,
        role: Role | str,
        settings: Mapping[str, Any],
        *,
        descriptors: Sequence[int] = (),
        engines: Collection[str] | None = None,
    ) -> None:
        self.unit = unit
        self._quota: CpuQuota | None = None
        self._unread = b""
        with ExitStack() as on_failure, ExitStack() as behind_start:  # a start that fails is tried again
            self._output = on_failure.enter_context(tempfile.TemporaryFile())
            child_in, self._to_child = os.pipe()
            behind_start.callback(os.close, child_in)
            on_failure.callback(os.close, self._to_child)  # a child that runs all the same reads the end
            self._from_child, child_out = os.pipe()
            behind_start.callback(os.close, child_out)
            on_failure.callback(os.close, self._from_child)
            place = role if isinstance(role, str) else name_of(role)
            self._process = _start(
                [place, str(child_in), str(child_out)],
                load=engines,
                environment=_environment(unit),
                output=self._output.fileno(),
                descriptors=(child_in, child_out, *descriptors),
            )
            on_failure.pop_all()
        try:
            if unit.quota_permille is not None:
                self._quota = CpuQuota.create(unit.quota_permille, cores=max(1, len(unit.cores)))
                self._quota.add(self._process.pid)
            self.send({"kind": "start", "unit": unit_data(unit), "settings": dict(settings)})
        except BaseException:
            self.close()
            raise

    @property
    def pid(self) -> int:
        """Its process number."""
        return self._process.pid

    @property
    def descriptor(self) -> int:
        """Readable when a message waits, or when it has died (for `readable`)."""
        return self._from_child

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self._process.poll() is None

    def send(self, message: Message) -> None:
        """Send a message."""
        try:
            _write_all(self._to_child, json.dumps(message).encode() + b"\n")
        except OSError:
            raise UnitLostError(self.obituary()) from None

    def receive(self, timeout_s: float | None = None) -> Message | None:
        """Return the next message, or None when none came in time."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while b"\n" not in self._unread:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not readable([self._from_child], left):
                return None
            data = os.read(self._from_child, 1 << 20)
            if not data:
                raise UnitLostError(self.obituary())
            self._unread += data
        line, _, self._unread = self._unread.partition(b"\n")
        message: Message = json.loads(line)
        if message["kind"] == "error":
            raise rebuild_error(message["type"], message["text"])
        return message

    def expect(self, kind: str, timeout_s: float = START_LIMIT_S) -> Message:
        """Return the next message, which must be of a kind and come in time; errors as for `receive`."""
        message = self.receive(timeout_s)
        if message is None:
            raise UnitLostError(
                f"the worker of unit {self.unit.name!r} (process {self.pid}) did not say {kind!r} "
                f"within {timeout_s:g} s; it is ended"
            )
        if message["kind"] != kind:
            raise UnitLostError(
                f"the worker of unit {self.unit.name!r} said {message['kind']!r}, expected {kind!r}"
            )
        return message

    def obituary(self) -> str:
        """Say that it ended, how, and what it last printed."""
        return f"the worker of unit {self.unit.name!r} (process {self.pid}) {self.ending()}"

    def ending(self) -> str:
        """Say how it ended, and what it last printed, as the end of a sentence about it."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=2.0)
        code = self._process.poll()
        if code is None:
            cause = "closed its pipe but still runs"
        elif code < 0:
            cause = f"was killed by {signal.Signals(-code).name}"
            cause += " (out of memory is a usual reason)" if -code == signal.SIGKILL else ""
        else:
            cause = f"ended with exit code {code}"
        words = self._last_line()
        said = f"; it last printed: {words}" if words else ""
        return f"{cause}{said}"

    def kill(self) -> None:
        """End it at once, with everything that it started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()
        self._process.wait()

    def close(self, *, patience_s: float = 0.0) -> None:
        """End it and free everything; within `patience_s` it may end by itself. Can be called twice."""
        if self._output.closed:
            return  # its number may be another process's
        for name in ("_to_child", "_from_child"):
            descriptor = getattr(self, name)
            if descriptor >= 0:
                if name == "_from_child" and patience_s > 0:
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        self._process.wait(timeout=patience_s)
                os.close(descriptor)
                setattr(self, name, -1)
        self.kill()
        self._output.close()
        if self._quota is not None:
            self._quota.close()
            self._quota = None
        if isinstance(self._process, Forked):
            self._process.release()

    def _last_line(self) -> str:
        if self._output.closed:
            return ""
        size = os.fstat(self._output.fileno()).st_size
        tail = os.pread(self._output.fileno(), 2000, max(0, size - 2000))
        lines = tail.decode(errors="replace").strip().splitlines()
        return lines[-1][:300] if lines else ""


def _start(
    words: Sequence[str],
    *,
    load: Collection[str] | None,
    environment: Mapping[str, str],
    output: int,
    descriptors: Sequence[int],
) -> Forked | subprocess.Popen[bytes]:
    """Start the program of a worker: forked where that is possible, else afresh."""
    forked = fork(words, load=load, environment=environment, output=output, descriptors=descriptors)
    if forked is not None:
        return forked
    words = [str(os.getpid()), *words]
    return start_program(words, environment=environment, output=output, descriptors=descriptors)


class Link:
    """The worker's end: messages from and to the parent."""

    def __init__(self, unit: ProcessingUnit, reading: int, writing: int) -> None:
        self.unit = unit  # the unit that this process stands for; the process is pinned to its cores
        self._reading = reading
        self._writing = writing
        self._unread = b""

    def send(self, message: Message) -> None:
        """Send a message to the parent."""
        _write_all(self._writing, json.dumps(message).encode() + b"\n")

    def receive(self) -> Message | None:
        """Wait for the next message; None when the parent has closed the pipe: time to end."""
        while b"\n" not in self._unread:
            data = os.read(self._reading, 1 << 20)
            if not data:
                return None
            self._unread += data
        line, _, self._unread = self._unread.partition(b"\n")
        message: Message = json.loads(line)
        return message

    def waiting(self) -> bool:
        """Return, without waiting, whether `receive` would have something to say."""
        return bool(self._unread) or bool(readable([self._reading], 0.0))


def name_of(function: Callable[..., Any]) -> str:
    """Return by which name another process finds a function: "module:function"."""
    return f"{function.__module__}:{function.__name__}"


def run_worker(arguments: Sequence[str]) -> int:
    """Be a worker: the whole program of the child process.

    `arguments`: process number of the parent, role, and the descriptors to read from and to write to.
    """
    parent, role, reading, writing = arguments
    end_with_parent(int(parent))
    link = Link(ProcessingUnit(name="?"), int(reading), int(writing))
    start = link.receive()  # sent once the quota is in force
    if start is None:
        return 0
    link.unit = parse_unit(start["unit"])
    name_process(link.unit.name)
    try:
        _pin(link.unit)
        module, _, name = role.partition(":")
        serve: Role = getattr(import_module(module), name)
        serve(link, start["settings"])
    except GaplessError as error:
        _report(link, type(error).__name__, str(error))
        return 1
    except Exception as error:
        _report(link, "", f"the worker of unit {link.unit.name!r} failed: {type(error).__name__}: {error}")
        raise
    return 0


def unit_data(unit: ProcessingUnit) -> dict[str, Any]:
    """Return a unit as plain JSON."""
    return {
        "name": unit.name,
        "kind": str(unit.kind),
        "cores": list(unit.cores),
        "threads": unit.threads,
        "engine": {
            "backend": unit.engine.backend,
            "precision": str(unit.engine.precision),
            "memory": str(unit.engine.memory),
        },
        "quota_permille": unit.quota_permille,
    }


def parse_unit(data: Mapping[str, Any]) -> ProcessingUnit:
    """Return the unit that `unit_data` wrote."""
    engine = data["engine"]
    return ProcessingUnit(
        name=data["name"],
        kind=UnitKind(data["kind"]),
        cores=tuple(data["cores"]),
        threads=data["threads"],
        engine=EngineSettings(
            backend=engine["backend"],
            precision=Precision(engine["precision"]),
            memory=MemoryMode(engine["memory"]),
        ),
        quota_permille=data["quota_permille"],
    )


def _environment(unit: ProcessingUnit) -> dict[str, str]:
    threads = str(unit.threads or max(1, len(unit.cores)))
    paths = [str(import_root()), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **os.environ,
        **dict.fromkeys(ONE_THREAD, threads),
        "PYTHONPATH": os.pathsep.join(paths),
    }


def import_root() -> Path:
    """Return the folder from which `import gapless` works, installed or not."""
    package = sys.modules[__name__.partition(".")[0]].__file__
    if package is None:  # pragma: no cover - a package without a file
        return Path.cwd()
    return Path(package).absolute().parent.parent


def _pin(unit: ProcessingUnit) -> None:
    if not unit.cores:
        return
    try:
        os.sched_setaffinity(0, unit.cores)
    except OSError as error:
        usable = sorted(os.sched_getaffinity(0))
        raise PlacementError(
            f"unit {unit.name!r} needs the cores {list(unit.cores)}, but this process may only use {usable} "
            f"({error.strerror}); `gapless device detect` builds units from the usable cores"
        ) from None


def _report(link: Link, kind: str, text: str) -> None:
    with contextlib.suppress(OSError):
        link.send({"kind": "error", "type": kind, "text": text})


def rebuild_error(kind: str, text: str) -> GaplessError:
    """Return an error of gapless that a worker told by the name of its class and its text."""
    error = getattr(errors, kind, None) if kind else None
    if isinstance(error, type) and issubclass(error, GaplessError):
        return error(text)
    return ExecutionError(text)


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
