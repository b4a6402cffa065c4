"""Task slots: where the tensors of one request lie while it is on its way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ...formulations.errors import ExecutionError
from ..model import TensorSpec
from .hops import Hop
from .memory import WORD_BYTES, SharedMemory

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
        """Lay out tensors one after the other, behind the header of a slot for so many chunks.

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
