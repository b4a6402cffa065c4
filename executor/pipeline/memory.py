"""Shared memory without a name: it is gone as soon as no process has it any more."""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

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

        return np.ndarray(spec.shape, dtype=spec.dtype, buffer=self._map, offset=offset, strides=strides)

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
