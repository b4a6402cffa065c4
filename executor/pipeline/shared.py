"""What the processes of a pipeline share: memory without a name, task slots in it, the board, and hops.

Hops: the small messages that hand a request from worker to worker, through pipes. Tensors stay in the task
slots; what travels says whose turn it is. Reading blocks in the kernel, so a waiting worker costs nothing,
and ends when the neighbour is gone.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from struct import Struct
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from ...formulations.errors import ExecutionError
from ..model import TensorSpec

if TYPE_CHECKING:
    from numpy.typing import NDArray

WORD_BYTES = 8


class SharedMemory:
    """Anonymous memory that processes share through an inherited descriptor."""

    def __init__(self, descriptor: int, size: int) -> None:
        self.descriptor = descriptor
        self.size = size
        self._map = mmap.mmap(descriptor, size)
        self._words: list[memoryview] = []

    @classmethod
    def create(cls, size: int, *, reserved: int) -> Self:
        """Make zeroed memory, the first `reserved` bytes of which are there for certain."""
        free = _available_bytes()
        if free is not None and reserved > free:
            raise ExecutionError(_refusal(reserved, f"{free:,} are free"))
        descriptor = os.memfd_create("gapless")
        try:
            os.ftruncate(descriptor, size)
            os.posix_fallocate(descriptor, 0, reserved)
            return cls(descriptor, size)
        except OSError as error:
            os.close(descriptor)
            raise ExecutionError(_refusal(reserved, str(error.strerror))) from None

    def words(self, offset: int, count: int) -> memoryview:
        """Return 64-bit integers in the memory, to read and write."""
        view = memoryview(self._map)[offset : offset + count * WORD_BYTES].cast("q")
        self._words.append(view)
        return view

    def array(self, spec: TensorSpec, offset: int, strides: Sequence[int] | None = None) -> NDArray[Any]:
        """Return a tensor in the memory, without a copy; C-contiguous unless it has strides of its own."""
        import numpy as np

        kept = np.frombuffer(self._map, dtype=np.uint8)  # `ndarray` alone would not keep the map from closing
        return np.ndarray(spec.shape, dtype=spec.dtype, buffer=kept, offset=offset, strides=strides)

    def close(self) -> None:
        """Give it back; arrays that are still in use keep their pages until they go. Can be called twice."""
        if self.descriptor < 0:
            return
        os.close(self.descriptor)
        self.descriptor = -1
        for view in self._words:
            view.release()
        self._words.clear()
        with suppress(BufferError):  # an array is still in use
            self._map.close()


def _refusal(size: int, why: str) -> str:
    return f"{size:,} bytes of shared memory for the task slots cannot be had ({why}); use fewer task slots"


def _available_bytes() -> int | None:
    """Return how much memory can be had; asking for more would end in the system killing something."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), None)


_FORMAT = struct.Struct("<IIqII")
_MAGIC = 0x67617073
_ENDS = 1


class NeighbourGoneError(Exception):
    """The process at the other end of a pipe is gone; the parent finds out which, and why."""


class Hop(NamedTuple):
    """What one message says.

    `stream`, `request`, `slot`: which request it is about, and where its tensors are.
    """

    stream: int
    request: int
    slot: int
    ends: bool = False  # the stream ends before this request


def send_hop(descriptor: int, hop: Hop) -> None:
    """Send a hop."""
    data = _FORMAT.pack(_MAGIC, hop.stream, hop.request, hop.slot, _ENDS if hop.ends else 0)
    try:
        os.write(descriptor, data)  # shorter than PIPE_BUF: all or nothing
    except BrokenPipeError:
        raise NeighbourGoneError from None


def receive_hop(descriptor: int) -> Hop:
    """Wait for the next hop."""
    data = os.read(descriptor, _FORMAT.size)
    if not data:
        raise NeighbourGoneError
    if len(data) == _FORMAT.size:
        magic, stream, request, slot, flags = _FORMAT.unpack(data)
        if magic == _MAGIC and flags <= _ENDS:
            return Hop(stream, request, slot, flags == _ENDS)
    raise ExecutionError(f"what came through a pipe between two workers is no hop: {data.hex()}")


class HopReader:
    """Takes hops that several neighbours send through one pipe: one has come when all of them have sent it.

    `senders`: how many neighbours there are; each sends its hops in the same order.
    """

    def __init__(self, descriptor: int, senders: int) -> None:
        self.descriptor = descriptor
        self._senders = senders
        self._sent: Counter[Hop] = Counter()

    def take(self) -> Hop | None:
        """Wait for the next message, and return its hop if nobody else has still to send it; else None."""
        hop = receive_hop(self.descriptor)
        if self._senders == 1:
            return hop
        self._sent[hop] += 1
        if self._sent[hop] < self._senders:
            return None
        del self._sent[hop]
        return hop

    def receive(self) -> Hop:
        """Wait for the next hop that all have sent; errors as for `take`."""
        while (hop := self.take()) is None:
            pass
        return hop


ALIGNMENT = 64
"""Of tensors, headers and slots: one cache line."""

_FIRST_DONE = 3
"""Words of a slot before those of its chunks: stream, request that enters, request that has been taken up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotLayout:
    """Where each tensor lies in a slot; every slot of a stream is alike.

    Attributes
    ----------
    tensors
        All tensors that cross the border of a chunk or piece, by the names that they have in the network.
    offsets
        Where each of them starts, in bytes from the start of the slot. Each has its own place, so
        that all can be looked at when a request is through.
    size
        Bytes of one slot.
    """

    tensors: tuple[TensorSpec, ...]
    offsets: tuple[int, ...]
    size: int

    @classmethod
    def of(cls, tensors: Iterable[TensorSpec], chunks: int) -> SlotLayout:
        """Lay out tensors one after the other, behind the header of a slot for a given number of chunks.

        Raises
        ------
        ExecutionError
            Two pieces do not agree about a tensor.
        """
        known: dict[str, TensorSpec] = {}
        for spec in tensors:
            if known.setdefault(spec.name, spec) != spec:
                raise ExecutionError(
                    f"two pieces do not agree about the tensor {spec.name!r}: "
                    f"{_words(known[spec.name])} and {_words(spec)}"
                )
        offsets, end = [], aligned(header_words(chunks) * WORD_BYTES)
        for spec in known.values():
            offsets.append(end)
            end = aligned(end + spec.bytes)
        return cls(tensors=tuple(known.values()), offsets=tuple(offsets), size=end)

    def offset(self, name: str) -> int:
        """Return where a tensor starts."""
        return dict(zip((spec.name for spec in self.tensors), self.offsets, strict=True))[name]


def header_words(chunks: int) -> int:
    """Return how many words the header of a slot has."""
    return _FIRST_DONE + chunks


def aligned(size: int) -> int:
    """Round a size up to the alignment."""
    return -(-size // ALIGNMENT) * ALIGNMENT


class SlotHeader:
    """Which request lies in a slot, and which chunks have done their part of it.

    The messages between workers say the same; whoever takes a request compares both, so that requests
    that have been mixed up are noticed where it happens. Each word but the first two has one writer.

    `waits`: for each chunk of the stream the chunks that must be done right before it.
    """

    def __init__(self, memory: SharedMemory, offset: int, waits: Sequence[Sequence[int]]) -> None:
        self._words = memory.words(offset, header_words(len(waits)))
        self._waits = waits

    def clear(self) -> None:
        """Say that no request is in the slot."""
        for index in range(1, len(self._words)):
            self._words[index] = -1

    def enter(self, stream: int, request: int) -> None:
        """Give the slot to a request as soon as the one before has left."""
        self._words[0], self._words[1] = stream, request

    def admit(self, request: int) -> None:
        """Say that the first chunk has taken up a request, so that others that begin with it may."""
        self._words[2] = request

    def expects(self, request: int, slots: int) -> bool:
        """Return whether a request has come in, or cannot yet, because the one before it is in the slot."""
        _, entered, _, *done = self._words
        return entered >= request or (entered == request - slots and set(done) != {entered})

    def finish(self, chunk: int, request: int) -> None:
        """Say that a chunk has done its part of a request."""
        self._words[_FIRST_DONE + chunk] = request

    def is_ready(self, chunk: int, request: int) -> bool:
        """Return whether a chunk may work on a request, or after the last one, whether it is through."""
        words = self._words
        if chunk < len(self._waits) and words[_FIRST_DONE + chunk] == request:
            return False
        if chunk < len(self._waits) and self._waits[chunk]:  # asked for each chunk of each request
            return all(words[_FIRST_DONE + other] == request for other in self._waits[chunk])
        _, entered, admitted, *done = words
        if chunk == len(done):
            return set(done) == {request}
        return admitted == request if chunk else entered == request and len(set(done)) == 1

    @property
    def under_way(self) -> tuple[int, int] | None:
        """Stream and number of the request of which some, but not all, chunks have done their part."""
        stream, _, _, *done = self._words
        return None if len(set(done)) == 1 else (stream, max(done))

    def check(self, hop: Hop, expected: Hop, chunk: int) -> None:
        """Require that a message, and the slot, hold the request that a chunk expects."""
        if hop != expected or self._words[0] != hop.stream or not self.is_ready(chunk, hop.request):
            stream, entered, _, *done = self._words
            raise ExecutionError(
                f"requests are mixed up: request {expected.request} of stream {expected.stream} was to come "
                f"to chunk {chunk} in task slot {expected.slot}; the message says {tuple(hop)}, the slot is "
                f"for request {entered} of stream {stream}, and the last request of each chunk was {done}"
            )


def _words(spec: TensorSpec) -> str:
    return f"{spec.dtype}{list(spec.shape)}"


RECORDS = 1 << 15
"""Requests of each chunk whose time stamps are kept: the latest of those that count."""

_STAMPS = 4
_STREAM_WORDS = 2
_UNIT_WORDS = 5
_ROW = Struct(f"={_STAMPS}q")


class Doing(IntEnum):
    """What a worker is at in a run.

    STARTING
        It has not taken up the run yet.
    WAITING
        For a request.
    WORKING
        On a request.
    ENDING
        All its streams have ended.
    """

    STARTING = 0
    WAITING = 1
    WORKING = 2
    ENDING = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardShape:
    """How large a board is."""

    units: int  # number of workers
    chunks: tuple[int, ...]  # number of chunks of each stream

    @property
    def word_bytes(self) -> int:
        """Bytes of the words, without the time stamps."""
        words = _STREAM_WORDS * len(self.chunks) + _UNIT_WORDS * self.units
        return words * WORD_BYTES

    @property
    def stamp_bytes(self) -> int:
        """Bytes of the time stamps."""
        return sum(self.chunks) * RECORDS * _ROW.size


class WorkerProgress:
    """What one worker is at: five words that it writes and the parent reads."""

    def __init__(self, words: memoryview) -> None:
        self._words = words

    def set(self, doing: Doing, task: int, request: int) -> None:
        """Say what the worker is at now: the index of a task of its unit, and a request."""
        self._words[1], self._words[2] = task, request
        self._words[0] = doing

    def finished(self, lasted_ns: int) -> None:
        """Count a task that is done."""
        self._words[3] += 1
        self._words[4] = max(self._words[4], lasted_ns)

    def reset(self) -> None:
        """Forget everything but the longest task."""
        for index in range(4):
            self._words[index] = 0

    @property
    def state(self) -> tuple[Doing, int, int]:
        """What it does, the task of its unit, the request."""
        return Doing(self._words[0]), self._words[1], self._words[2]

    @property
    def served(self) -> int:
        """Number of tasks done."""
        return int(self._words[3])

    @property
    def longest_ns(self) -> int:
        """Length of the longest task so far, nanoseconds."""
        return int(self._words[4])


class Board:
    """Words and time stamps at known places of the shared memory."""

    def __init__(self, memory: SharedMemory, shape: BoardShape, *, stamps_at: int) -> None:
        streams = len(shape.chunks)
        self._memory = memory
        self._shape = shape
        self._stamps_at = stamps_at
        self.begins_ns = memory.words(0, streams)  # for each stream: when its warm-up was over; 0: not yet
        # for each stream: whether it has put out all the requests that are asked for
        self.reached = memory.words(streams * WORD_BYTES, streams)
        at = _STREAM_WORDS * streams * WORD_BYTES
        size = _UNIT_WORDS * WORD_BYTES
        # of each worker
        self.progress = tuple(
            WorkerProgress(memory.words(at + unit * size, _UNIT_WORDS)) for unit in range(shape.units)
        )

    def reset(self) -> None:
        """Prepare for the next run."""
        for stream in range(len(self._shape.chunks)):
            self.begins_ns[stream] = self.reached[stream] = 0
        for progress in self.progress:
            progress.reset()

    def stamps(self, stream: int, chunk: int) -> Stamps:
        """Return the time stamps of one chunk."""
        before = sum(self._shape.chunks[:stream]) + chunk
        return Stamps(self._memory, self._stamps_at + before * RECORDS * _ROW.size)


class Stamps:
    """Start, begin and end of the engine, and end of the latest requests of one chunk (see `Interval`)."""

    def __init__(self, memory: SharedMemory, offset: int) -> None:
        self._memory = memory
        self._offset = offset
        self._words = memory.words(offset, RECORDS * _STAMPS)

    def put(self, request: int, times_ns: tuple[int, int, int, int]) -> None:
        """Keep the four times of a request."""
        _ROW.pack_into(self._words, (request % RECORDS) * _ROW.size, *times_ns)

    def rows(self, start: int, stop: int) -> NDArray[Any]:
        """Return the times of the requests [start, stop), at most `RECORDS`, as an array (requests, 4)."""
        import numpy as np

        whole = self._memory.array(TensorSpec(name="", shape=(RECORDS, _STAMPS), dtype="int64"), self._offset)
        return whole[np.arange(start, stop) % RECORDS]
