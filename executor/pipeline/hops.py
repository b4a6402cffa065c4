"""Hops: the small messages that hand a request from worker to worker, through pipes.

Tensors stay in the task slots; what travels says whose turn it is. Reading blocks in the kernel, so a
waiting worker costs nothing, and ends when the neighbour is gone.
"""

from __future__ import annotations

import os
import struct
from collections import Counter
from typing import NamedTuple

from ...formulations.errors import ExecutionError

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
