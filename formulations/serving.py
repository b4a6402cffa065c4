"""Requests that pass stations in line, each of which serves one at a time: the clock of all streams.

Asynchronous model on an integer clock: a station begins with a request when the station before is done with
it and it is free itself; it serves requests in order; at most `slots` requests are on their way.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import NamedTuple

from .errors import InvalidInputError
from .streams import default_task_slots

STEADY, CYCLES = 8, 4
"""Requests a task slot that are played until a stream is steady, and those of them that tell its period."""


def checked_slots(requests: int | None, interval_us: int | None, task_slots: int | None) -> tuple[int, int]:
    """Return how many requests of an endless stream are played, and in how many task slots."""
    if requests is None:
        raise InvalidInputError("the stream is endless: say how many requests are played")
    slots = requests if task_slots is None else task_slots
    for name, value, least in (("requests", requests, 1), ("task_slots", slots, 1)):
        if value < least:
            raise InvalidInputError(f"{name} is {value}, must be at least {least}")
    if interval_us is not None and interval_us < 0:
        raise InvalidInputError(f"interval_us is {interval_us}, must be at least 0")
    return requests, slots


class Visit(NamedTuple):
    """One request that was served by one station; microseconds."""

    start_us: int
    end_us: int
    request: int
    station: int


def served(
    times_us: Sequence[int], arrivals_us: Sequence[int], slots: int, free_us: Sequence[int] = ()
) -> list[Visit]:
    """Serve requests in order of (time, request, station).

    `slots`: most requests on their way at once, at least 1. `free_us`: when each station is free for the
    first request; empty: from the beginning.
    """
    last = len(times_us) - 1
    free = list(free_us) or [0] * len(times_us)
    finished: list[int] = []
    visits = []
    queue = [(arrivals_us[request], request, 0) for request in range(min(slots, len(arrivals_us)))]
    heapq.heapify(queue)
    while queue:
        ready_us, request, station = heapq.heappop(queue)
        start = max(ready_us, free[station])
        end = free[station] = start + times_us[station]
        visits.append(Visit(start, end, request, station))
        if station < last:
            heapq.heappush(queue, (end, request, station + 1))
            continue
        finished.append(end)
        following = len(finished) - 1 + slots
        if following < len(arrivals_us):
            heapq.heappush(queue, (max(end, arrivals_us[following]), following, 0))
    return visits


def slots_in_line(chunks: int, stations: int) -> int:
    """Return the task slots of a line where none are given: at least one a station.

    Messages from and to a host are stations, too, for which two slots a chunk may be too few.
    """
    return max(default_task_slots(chunks), stations)


def saturated(times_us: Sequence[int], slots: int, requests: int) -> list[Visit]:
    """Serve requests that are all there from the beginning and wait for task slots."""
    return served(times_us, (0,) * requests, slots)


def steady_visits(times_us: Sequence[int], slots: int) -> tuple[float, list[Visit]]:
    """Return the period of a line that is never short of requests, and the visits of its last request."""
    visits = saturated(times_us, slots, STEADY * slots)
    outputs = [visit.end_us for visit in visits if visit.station == len(times_us) - 1]
    last, cycle = len(outputs) - 1, CYCLES * slots
    period_us = (outputs[-1] - outputs[-1 - cycle]) / cycle
    return period_us, [visit for visit in visits if visit.request == last]
