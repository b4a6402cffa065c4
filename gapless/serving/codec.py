"""JSON in processes of its own: while Python reads or writes a document, none of its other threads works.

Small documents are read and written at once, where that takes less than asking a process.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from ..executor.workers import Worker
from ..formulations.errors import ExecutionError, InvalidInputError, UnitLostError
from ..formulations.hardware import ProcessingUnit
from .json_process import joined, receive, send, split, work
from .messages import Buffer
from .parameters import Wishes
from .protocol import InferRequest, Interface, read_request, write_document
from .tensors import Inputs

if TYPE_CHECKING:
    from numpy.typing import NDArray

T = TypeVar("T")

SMALL_BYTES = 16 * 1024
"""Documents up to this are read at once: a fifth of a millisecond."""

SMALL_VALUES = 1_000
"""Up to this many numbers are written at once: a third of a millisecond."""

_PROCESSES = 2
_PATIENCE_S = 60.0


class Codec:
    """Reads requests and writes answers, large ones in processes that are started when they are needed."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_PROCESSES, thread_name_prefix="gapless JSON")
        self._idle: list[_Process] = []
        self._lock = threading.Lock()
        self._closed = False

    async def read(self, interface: Interface, text: memoryview, binary_bytes: int) -> InferRequest:
        """Return a request from its document; parameters and errors as for `read_request`.

        Raises ExecutionError: the process that reads it is lost.
        """
        if len(text) <= SMALL_BYTES:
            return read_request(interface, bytes(text), binary_bytes)
        specs = [[spec.name, list(spec.shape), spec.dtype] for spec in interface.inputs]
        head = {
            "model": interface.model,
            "inputs": specs,
            "outputs": list(interface.outputs),
            "recurrent": interface.recurrent,
            "binary": binary_bytes,
        }
        said, data = await self._elsewhere(lambda process: process.ask(head, text))
        return InferRequest(
            inputs=Inputs(
                arrays=split(said["arrays"], data),
                spans={name: (start, stop) for name, (start, stop) in said["spans"].items()},
            ),
            outputs=said["outputs"],
            id=said["id"],
            wishes=Wishes(**said["wishes"]),
        )

    async def write(self, document: Mapping[str, Any], arrays: Mapping[int, NDArray[Any]]) -> Buffer:
        """Return the document of an answer; parameters as for `write_document`.

        Raises ExecutionError: the process that writes it is lost.
        """
        if sum(array.size for array in arrays.values()) <= SMALL_VALUES:
            return write_document(document, arrays)
        told, data = joined({str(index): array for index, array in arrays.items()})
        head = {"document": document, "arrays": told}
        return (await self._elsewhere(lambda process: process.ask(head, data)))[1]

    def close(self) -> None:
        """End the processes. Can be called twice."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        self._threads.shutdown(wait=False, cancel_futures=True)
        for process in idle:
            process.close()

    async def _elsewhere(self, work: Callable[[_Process], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._with_process, work)

    def _with_process(self, work: Callable[[_Process], T]) -> T:
        with self._lock:
            process = self._idle.pop() if self._idle else None
        if process is not None:
            with suppress(UnitLostError):  # it may have been lost while it was idle
                return self._working(process, work)
        return self._working(_Process(), work)

    def _working(self, process: _Process, work: Callable[[_Process], T]) -> T:
        try:
            found = work(process)
        except InvalidInputError:  # the process is well
            self._give(process)
            raise
        except BaseException:
            process.close()
            raise
        self._give(process)
        return found

    def _give(self, process: _Process) -> None:
        with self._lock:
            if not self._closed:
                self._idle.append(process)
                return
        process.close()


class _Process:
    """The parent's end of one process."""

    def __init__(self) -> None:
        self._end, theirs = socket.socketpair()
        self._end.settimeout(_PATIENCE_S)
        with theirs:
            self._worker = Worker(
                ProcessingUnit(name="JSON"),
                work,
                {"descriptor": theirs.fileno()},
                descriptors=(theirs.fileno(),),
                engines=["numpy"],
            )

    def ask(self, head: Mapping[str, Any], data: Buffer) -> tuple[dict[str, Any], bytearray]:
        """Return what it says."""
        try:
            send(self._end, head, data)
            said = receive(self._end)
        except OSError as error:
            raise UnitLostError(f"a request was not read or written: {error}") from None
        if said is None:
            raise UnitLostError(f"a request was not read or written: {self._worker.obituary()}")
        if "failed" in said[0]:
            raise ExecutionError(f"a request was not read or written: {said[0]['failed']}")
        if "message" in said[0]:
            raise InvalidInputError(said[0]["message"], said[0]["problems"])
        return said

    def close(self) -> None:
        """End it."""
        self._end.close()
        self._worker.close()
