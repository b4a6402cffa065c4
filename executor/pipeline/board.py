"""The board: shared words by which workers and parent know how far everything is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from struct import Struct
from typing import TYPE_CHECKING, Any

from ..model import TensorSpec
from .memory import WORD_BYTES, SharedMemory

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
