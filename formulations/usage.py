"""Memory over time of a trace: the bytes that weights, running chunks and waiting tensors take."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby


@dataclass(frozen=True, slots=True)
class Usage:
    """Memory over time."""

    steps: tuple[tuple[int, int], ...]  # (microsecond, bytes in use from then on), in order
    while_bytes: tuple[int, ...]  # most bytes in use while any chunk of a request runs, by request

    @property
    def peak_bytes(self) -> int:
        """Most bytes in use at any instant."""
        return max(used for _, used in self.steps)


def usage_of(
    changes: Iterable[tuple[int, int]], spans: Iterable[tuple[int, int, int]], *, base: int, requests: int
) -> Usage:
    """Return memory over time from what is taken and given back.

    `changes`: (microsecond, bytes taken, or given back if negative), in any order; what happens in the same
    microsecond happens at once. `spans`: (request, start, end in microseconds) of each chunk that has run.
    """
    steps, used = [], base
    for time, group in groupby(sorted(changes), key=lambda change: change[0]):
        used += sum(change[1] for change in group)
        steps.append((time, used))
    most = [0] * requests
    times = [time for time, _ in steps]
    for request, start_us, end_us in spans:
        during = steps[bisect_left(times, start_us) : bisect_left(times, end_us)]
        most[request] = max([most[request], *(used for _, used in during)])
    return Usage(tuple(steps), tuple(most))
