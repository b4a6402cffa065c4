"""Waiting for file descriptors of any number: `select.select` refuses those from 1,024 on."""

from __future__ import annotations

import select
from collections.abc import Collection


def readable(descriptors: Collection[int], timeout_s: float | None) -> list[int]:
    """Return the descriptors that can be read without waiting, or that are at their end.

    `timeout_s`: how long to wait for the first one, 0 not at all; None: until there is one.
    """
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    limit_ms = None if timeout_s is None else max(0.0, 1000 * timeout_s)  # poll would wait for ever below 0
    return [descriptor for descriptor, _ in poll.poll(limit_ms)]


def writable(descriptor: int, timeout_s: float) -> bool:
    """Return whether something can be written to a descriptor, or it is at its end, within some time."""
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    return bool(poll.poll(max(0.0, 1000 * timeout_s)))
