"""Task slots: where the tensors of one request lie while it is on its way."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ...formulations.errors import ExecutionError
from ..model import TensorSpec
from .hops import Hop
from .memory import WORD_BYTES, SharedMemory

ALIGNMENT = 64
"""Of tensors, headers and slots: one cache line."""

_HEADER_WORDS = 3


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
    def of(cls, tensors: Iterable[TensorSpec]) -> SlotLayout:
        """Lay out tensors one after the other, behind the header.

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
        offsets, end = [], aligned(_HEADER_WORDS * WORD_BYTES)
        for spec in known.values():
            offsets.append(end)
            end = aligned(end + spec.bytes)
        return cls(tensors=tuple(known.values()), offsets=tuple(offsets), size=end)

    def offset(self, name: str) -> int:
        """Return where a tensor starts."""
        return dict(zip((spec.name for spec in self.tensors), self.offsets, strict=True))[name]


def aligned(size: int) -> int:
    """Round a size up to the alignment."""
    return -(-size // ALIGNMENT) * ALIGNMENT


class SlotHeader:
    """Which request lies in a slot, and how many of its chunks are done.

    The messages between workers say the same; whoever takes a request compares both, so that requests
    that have been mixed up are noticed where it happens.
    """

    def __init__(self, memory: SharedMemory, offset: int) -> None:
        self._words = memory.words(offset, _HEADER_WORDS)

    def clear(self) -> None:
        """Say that no request is in the slot."""
        self.enter(0, -1)

    def enter(self, stream: int, request: int) -> None:
        """Give the slot to a request."""
        self._words[0], self._words[1], self._words[2] = stream, request, 0

    def advance(self) -> None:
        """Count a chunk that is done."""
        self._words[2] += 1

    @property
    def state(self) -> tuple[int, int, int]:
        """Stream, request, chunks done."""
        stream, request, done = self._words
        return stream, request, done

    def check(self, hop: Hop, expected: Hop, done: int) -> None:
        """Require that a message, and the slot, hold the request that is expected, with `done` chunks done.

        Raises
        ------
        ExecutionError
            They do not.
        """
        if hop != expected or self.state != (expected.stream, expected.request, done):
            raise ExecutionError(
                f"requests are mixed up: request {expected.request} of stream {expected.stream} was to come "
                f"in task slot {expected.slot} with {done} chunks done; the message says {tuple(hop)}, "
                f"the slot holds (stream, request, chunks done) {self.state}"
            )


def _words(spec: TensorSpec) -> str:
    return f"{spec.dtype}{list(spec.shape)}"
