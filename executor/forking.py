"""Worker processes forked from one that has loaded what they need: they start in milliseconds.

A fresh Python program loads numpy and an engine for a third of a second, and one command may start dozens.
The process that forks, the fork server, does it once. It has one thread only, because a fork has one thread
and may find locks that others held. It opens no session, and ends with the process that asks it. A child that
has ended stays a zombie until its `Forked` is released, so that its number means no other process.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from functools import cache

from ..formulations.processes import in_lasting_thread, readable

LOADED: Mapping[str, Sequence[str]] = {
    "numpy": ("numpy",),
    "onnx": ("onnx",),
    "onnxruntime": ("gapless.executor.engines.ort_engine", "gapless.executor.engines.ort_session"),
    "mnn": ("gapless.executor.engines.mnn_engine", "gapless.executor.engines.mnn_session"),
}
"""What is loaded for an engine, or for a library: only what starts no thread when it is loaded
(OpenVINO does), and is not told its number of threads by the environment (numpy is, and functions of users
may call it)."""

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

_NOT_READ = ("GAPLESS_", "PYTEST_")
"""How variables of the environment begin that no library reads when it is loaded."""

_MOST_SERVERS = 3
_LIMIT_S = 60.0
_MOST_BYTES, _MOST_DESCRIPTORS = 100_000, 240
"""Of one message between processes: Linux passes 253 descriptors at most."""
_UNKNOWN = -int(signal.SIGKILL)
"""How a child has ended whose server is gone: with it."""


class Forked:
    """A forked process, with what `subprocess.Popen` has of it."""

    def __init__(self, pid: int, status: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._status = status
        self._lock = threading.Lock()

    def poll(self) -> int | None:
        """Return how it has ended: its exit code, or less than 0: the signal; None: it runs."""
        with self._lock:  # who asks second finds nothing to read
            if self.returncode is None and readable([self._status], 0.0):
                said = os.read(self._status, 8)
                self.returncode = int(said) if said else _UNKNOWN
            return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it has ended; raises subprocess.TimeoutExpired."""
        if self.returncode is None and not readable([self._status], timeout):
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
        code = self.poll()
        assert code is not None, "the status of a process was readable, and there is none"
        return code

    def kill(self) -> None:
        """Send SIGKILL, if it has not ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def release(self) -> None:
        """Let its number be used again. Can be called twice."""
        if self._status >= 0:
            os.close(self._status)
            self._status = -1

    def __del__(self) -> None:
        self.release()


def start_program(
    words: Sequence[str], *, environment: Mapping[str, str], output: int, descriptors: Sequence[int]
) -> subprocess.Popen[bytes]:
    """Start the program of workers and fork servers afresh; parameters as for `fork`."""
    return in_lasting_thread(
        lambda: subprocess.Popen(
            [sys.executable, "-P", "-m", "gapless.executor.worker_process", *words],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=descriptors,
            env=environment,
            start_new_session=True,  # Ctrl-C belongs to the parent
        )
    )


def fork(
    words: Sequence[str],
    *,
    load: Collection[str] | None,
    environment: Mapping[str, str],
    output: int,
    descriptors: Sequence[int],
) -> Forked | None:
    """Start the program of a worker in a fork; None: that is not possible here, or would not be the same.

    `words`: role, and where it reads and writes. `load`: what it will use, names in `LOADED`; where it may
    use something else, it must be meant to have one thread, as numpy has in the server. `environment`: all of
    it, for the child. `output`: where it prints. `descriptors`: what it inherits, under the same numbers.
    Raises OSError: no further process can be started.
    """
    known = load is not None and set(load) <= LOADED.keys()
    alike = all(environment.get(name) == one for name, one in ONE_THREAD.items())
    if sys.platform != "linux" or not (known or alike) or len(descriptors) > _MOST_DESCRIPTORS:
        return None
    try:
        folder = os.getcwd()
    except OSError:  # it is gone; a fresh program inherits it all the same
        return None
    request = {
        "words": words,
        "load": _modules(words[0], load or ()),
        "environment": dict(environment),
        "cores": sorted(os.sched_getaffinity(0)),
        "folder": folder,
        "descriptors": descriptors,
    }
    text = json.dumps(request).encode()
    if len(text) > _MOST_BYTES:
        return None
    return _servers(os.getpid()).fork(text, environment, [output, *descriptors])


def _modules(role: str, load: Collection[str]) -> Sequence[str]:
    """Return what is loaded for a role, which may be somebody else's, and for engines."""
    module, package = role.partition(":")[0], __name__.partition(".")[0]
    own = [module] if module.startswith(f"{package}.") else []
    known = (LOADED.get(name, ()) for name in ("numpy", *sorted(load)))
    return list(dict.fromkeys([*(each for modules in known for each in modules), *own]))


class _Server:
    """The asking end of a fork server."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.lock = threading.Lock()
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._channel.settimeout(_LIMIT_S)
        with theirs:
            self._process = start_program(
                ["fork", str(os.getpid()), str(theirs.fileno())],
                environment={**environment, **ONE_THREAD},
                output=subprocess.DEVNULL,
                descriptors=(theirs.fileno(),),
            )

    def ask(self, text: bytes, descriptors: Sequence[int]) -> Mapping[str, int]:
        """Return the answer to a request, or nothing where there is none, and no child.

        Raises OSError: the server does not answer; it may have started a child.
        """
        with self.lock:
            try:
                try:
                    socket.send_fds(self._channel, [text], descriptors)
                except OSError:  # it has ended, or is asked no more
                    return {}
                answer = self._channel.recv(1000)
            except ConnectionError:  # it has ended, and its children end with it
                return {}
            except BaseException:
                self._channel.close()  # the next answer would be to this request
                raise
        found: Mapping[str, int] = json.loads(answer or b"{}")
        return found

    def close(self) -> None:
        """Ask no more; it ends after its children."""
        with self.lock:  # or it answers whom nobody listens to
            self._channel.close()

    def gone(self) -> bool:
        """Return whether it has ended."""
        return self._process.poll() is not None

    def kill(self) -> None:
        """End it, and with it all its children."""
        self._channel.close()
        self._process.kill()
        self._process.wait()


class _Servers:
    """The fork servers of a process: one per environment, because libraries read it when they are loaded."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[frozenset[tuple[str, str]], _Server | None] = {}  # None: it did not work
        self._closed: list[_Server] = []
        self._owner = os.getpid()
        atexit.register(self.kill)

    def fork(self, text: bytes, environment: Mapping[str, str], descriptors: Sequence[int]) -> Forked | None:
        """Start a process; see `fork`."""
        read = {name: value for name, value in environment.items() if not name.startswith(_NOT_READ)}
        key = frozenset({**read, **ONE_THREAD}.items())
        server = self._server(key, environment)
        if server is None:
            return None
        reading, writing = os.pipe()
        with ExitStack() as on_failure:
            on_failure.callback(os.close, reading)
            try:
                answer = server.ask(text, [writing, *descriptors])
            except BaseException:
                self._forget(key, server, works=True)
                raise
            finally:
                os.close(writing)
            if "pid" in answer:
                on_failure.pop_all()
                return Forked(answer["pid"], reading)
            if "errno" in answer:
                raise OSError(answer["errno"], os.strerror(answer["errno"]))
        self._forget(key, server, works=False)
        return None

    def kill(self) -> None:
        """End all of them; a fork of the process that started them ends none."""
        for server in (*self._known.values(), *self._closed):
            if server is not None and os.getpid() == self._owner:
                server.kill()

    def _server(self, key: frozenset[tuple[str, str]], environment: Mapping[str, str]) -> _Server | None:
        with self._lock:
            if key not in self._known:
                self._closed = [server for server in self._closed if not server.gone()]
                self._known[key] = _Server(environment)
            self._known[key] = found = self._known.pop(key)  # it comes last, as it was used last
            while len(self._known) > _MOST_SERVERS:
                self._close(self._known.pop(next(iter(self._known))))
            return found

    def _forget(self, key: frozenset[tuple[str, str]], server: _Server, *, works: bool) -> None:
        with self._lock:
            if self._known.get(key) is server:
                del self._known[key]
                if not works:
                    self._known[key] = None
            self._close(server)

    def _close(self, server: _Server | None) -> None:
        if server is not None:
            server.close()
            self._closed.append(server)


@cache
def _servers(process: int) -> _Servers:
    """Return the fork servers of a process: a fork of it has its own."""
    return _Servers()
