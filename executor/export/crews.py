"""Second part of the exported runner: who runs the chunks, threads of one process or a process for each."""

from __future__ import annotations

import contextlib
import os
import queue
import struct
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .sessions import BAD_INPUT, FAILED, Export, OpenChunk, Stopped, pin_thread

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Tensors = Mapping[str, NDArray[Any]]

FRAME = struct.Struct("<qq")
"""What precedes the tensors of a request in a pipe: its number, and when it entered, in nanoseconds."""
LAST = -1
"""Number in the frame that ends a stream: a pipe that ends without it was broken off."""


class PendingRequest(NamedTuple):
    """A request on its way."""

    number: int
    entered_ns: int
    tensors: Tensors


class Threads:
    """All units in this process, a thread for each."""

    def __init__(self, export: Export, *, pinned: bool) -> None:
        self.events: queue.SimpleQueue[Any] = queue.SimpleQueue()  # results, as (stream, job), and errors
        self._export, self._pinned, self._stopped = export, pinned, False
        places = export.turns()
        self._queues: dict[tuple[int, int], queue.SimpleQueue[PendingRequest | None]] = {
            place: queue.SimpleQueue() for place in places
        }
        self._threads = []
        for unit in export.units:
            own = [(s, c) for s, c in places if export.streams[s]["chunks"][c]["unit"] == unit]
            self._threads.append(threading.Thread(target=self._serve, args=(unit, own), daemon=True))

    def open(self) -> None:
        """Start, and wait until everybody is ready."""
        for thread in self._threads:
            thread.start()
        for _ in self._threads:
            if isinstance(event := self.events.get(), BaseException):
                raise event

    def enter(self, stream: int, job: PendingRequest | None) -> None:
        """Let a request in; None: no more will come."""
        self._queues[stream, 0].put(job)

    def close(self) -> None:
        """End the threads; each finishes what it is at."""
        self._stopped = True
        for waiting in self._queues.values():
            waiting.put(None)
        for thread in self._threads:
            if thread.is_alive():
                thread.join()

    def _serve(self, unit: str, own: list[tuple[int, int]]) -> None:
        """Serve the requests with the same number in the order of the turns, then the next number."""
        try:
            if self._pinned:
                pin_thread(self._export.units[unit])
            opened: dict[str, Any] = {}
            chunks = {(s, c): OpenChunk(self._export, s, c, opened) for s, c in own}
            self.events.put("ready")
            while chunks and not self._stopped:
                for place in tuple(chunks):
                    job = self._queues[place].get()
                    if job is None or self._stopped:
                        del chunks[place]
                    else:
                        job = job._replace(tensors=chunks[place].run(job.tensors))
                    self._pass_on(*place, job)
        except BaseException as error:
            self.events.put(error)

    def _pass_on(self, stream: int, chunk: int, job: PendingRequest | None) -> None:
        if (stream, chunk + 1) in self._queues:
            self._queues[stream, chunk + 1].put(job)
        elif job is not None:
            self.events.put((stream, job))


class Processes:
    """A process for each chunk, connected by pipes; parameters and attributes as for `Threads`.

    Streams that share a unit would run on it at once, and in no order.
    """

    def __init__(self, export: Export, *, pinned: bool) -> None:
        self.events: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._export, self._pinned, self._stopped = export, pinned, False
        self._processes: list[list[subprocess.Popen[bytes]]] = []

    def open(self) -> None:
        """Start all processes."""
        for index, stream in enumerate(self._export.streams):
            row: list[subprocess.Popen[bytes]] = []
            self._processes.append(row)
            for chunk in range(len(stream["chunks"])):
                words = [sys.executable, sys.argv[0], "--chunk", str(chunk), "--stream", stream["name"]]
                words += [] if self._pinned else ["--no-pin"]
                source = row[-1].stdout if row else subprocess.PIPE
                row.append(subprocess.Popen(words, stdin=source, stdout=subprocess.PIPE))
                if len(row) > 1 and row[-2].stdout is not None:
                    row[-2].stdout.close()  # it is the child's now: when one dies, its neighbours notice
            threading.Thread(target=self._collect, args=(index,), daemon=True).start()

    def enter(self, stream: int, job: PendingRequest | None) -> None:
        """Let a request in; None: no more will come."""
        into = self._processes[stream][0].stdin
        assert into is not None
        try:
            write_frame(into, job, self._export.alive(stream, 0))
        except OSError as error:
            self._lost(stream, error)

    def close(self) -> None:
        """End all processes."""
        self._stopped = True
        processes = [process for row in self._processes for process in row]
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()

    def _collect(self, stream: int) -> None:
        source = self._processes[stream][-1].stdout
        assert source is not None
        try:
            last = len(self._export.streams[stream]["chunks"])
            pipe = Pipe(source, self._export.alive(stream, last))
            while (job := pipe.read()) is not None:
                self.events.put((stream, job))
        except (Stopped, OSError) as error:
            self._lost(stream, error)

    def _lost(self, stream: int, error: Exception) -> None:
        """Say which process has ended too early, if it was not ended by us."""
        if self._stopped:
            return
        for process in self._processes[stream]:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=0.5)
        codes = [process.poll() for process in self._processes[stream]]
        name = self._export.streams[stream]["name"]
        text = f"the processes of {name!r} ended with {codes} (None: still running): {error}"
        # Its neighbours fail, too, because their pipes break off: another code is nearer to the cause.
        self.events.put(Stopped(text, BAD_INPUT if BAD_INPUT in codes else FAILED))


class Pipe:
    """Frames that come in through a pipe."""

    def __init__(self, source: IO[bytes], specs: Sequence[Any]) -> None:
        self._source, self._specs = source, specs

    def read(self) -> PendingRequest | None:
        """Return the next request; None: that was the last one."""
        head = bytearray(FRAME.size)
        self._fill(memoryview(head))
        number, entered_ns = FRAME.unpack(head)
        if number == LAST:
            return None
        tensors = {spec["name"]: np.empty(spec["shape"], spec["dtype"]) for spec in self._specs}
        for array in tensors.values():
            self._fill(array.reshape(-1).view(np.uint8).data)
        return PendingRequest(number, entered_ns, tensors)

    def _fill(self, buffer: memoryview) -> None:
        while buffer.nbytes:
            count = os.readv(self._source.fileno(), [buffer])
            if not count:
                raise Stopped("the pipe was broken off: an earlier process has failed")
            buffer = buffer[count:]


def write_frame(target: IO[bytes], job: PendingRequest | None, specs: Sequence[Any]) -> None:
    """Write a request into a pipe; None: there are no more."""
    head = FRAME.pack(LAST, 0) if job is None else FRAME.pack(job.number, job.entered_ns)
    parts = [memoryview(head)]
    if job is not None:
        arrays = (np.ascontiguousarray(job.tensors[spec["name"]]) for spec in specs)
        parts += [array.reshape(-1).view(np.uint8).data for array in arrays]
    for part in parts:
        left = part
        while left.nbytes:
            left = left[os.write(target.fileno(), left) :]


def serve_chunk(export: Export, stream: int, number: int, target: IO[bytes], *, pinned: bool) -> None:
    """Run one chunk of a stream on what comes in through standard input, until the last request."""
    if pinned:
        pin_thread(export.units[export.streams[stream]["chunks"][number]["unit"]])
    chunk = OpenChunk(export, stream, number, {})
    pipe, sends = Pipe(sys.stdin.buffer, export.alive(stream, number)), export.alive(stream, number + 1)
    while (job := pipe.read()) is not None:
        write_frame(target, job._replace(tensors=chunk.run(job.tensors)), sends)
    write_frame(target, None, sends)
