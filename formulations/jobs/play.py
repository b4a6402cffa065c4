"""Who runs when: single requests played on an integer clock (`formulations/play.py`).

Each unit serves its chunks in the order of the plan; a chunk starts as soon as its unit, the chunk before it,
the requests that its request waits for, and its release allow, and it is its turn on the unit. Units that
take turns serve theirs as one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..play import Units

if TYPE_CHECKING:
    from .tables import ScheduleTables

Part = tuple[int, int, int]
"""A chunk of a request: first section, one past the last, unit."""

Parts = Sequence[Sequence[Part]]
"""The chunks of each request."""


class Run(NamedTuple):
    """A chunk at work: its request, its place among the chunks of that, and when."""

    request: int
    place: int
    part: Part
    start_us: int
    end_us: int
    work_us: int  # how long it would take alone


def played(tables: ScheduleTables, order: Iterable[int], parts: Parts) -> list[Run]:
    """Return what runs when; with slowdown in the order of starts, ties by request, else in the given one.

    `order`: a request for each of its chunks; units serve theirs in this order. What waits for others stands
    behind them.
    """
    if tables.losses.contended:
        return _Play(tables, order, parts).run()
    free_us, near, before, entry_us = [0] * tables.unit_count, tables.near, tables.before, tables.entry_us
    done_us, place = [0] * tables.request_count, [0] * tables.request_count
    found = []
    for request in order:
        number = place[request]
        part = parts[request][number]
        unit = part[2]
        start_us = done_us[request] if number else entry_us[request][unit]
        for other, square in () if number else before[request]:
            ready_us = done_us[other] + square[parts[other][-1][2]][unit]
            start_us = ready_us if ready_us > start_us else start_us  # `max` takes three times as long
        for other in near[unit]:
            start_us = free_us[other] if free_us[other] > start_us else start_us
        work_us = tables.work_us(request, part)
        end_us = start_us + work_us
        found.append(Run(request, number, part, start_us, end_us, work_us))
        free_us[unit] = done_us[request] = end_us
        place[request] = number + 1
    return found


class _Play:
    """The state of a play with slowdown, without delays and turns of units."""

    def __init__(self, tables: ScheduleTables, order: Iterable[int], parts: Parts) -> None:
        self._tables, self._parts = tables, parts
        self._units = Units(tables.losses.loss)
        self._queues: list[list[tuple[int, int]]] = [[] for _ in range(tables.unit_count)]
        """The chunks of each unit that have not started, the next one last: request, and place among its."""
        place = [0] * tables.request_count
        for request in order:
            self._queues[parts[request][place[request]][2]].append((request, place[request]))
            place[request] += 1
        for queue in self._queues:
            queue.reverse()
        self._done = [0] * tables.request_count
        self._waits = [len(before) for before in tables.after]

    def run(self) -> list[Run]:
        """Play until all requests are done."""
        found: list[Run] = []
        now = 0
        while True:
            release = self._start_ready(now)
            end = self._units.next_end_us(now)
            times = [time for time in (release, end) if time is not None]
            if not times:
                return sorted(found, key=lambda run: (run.start_us, run.request))
            now = min(times)
            for ended in self._units.stop(now) if now == end else ():
                request = ended.position
                own = self._parts[request]
                part = own[self._done[request]]
                found.append(Run(request, self._done[request], part, ended.start_us, now, ended.work_us))
                self._done[request] += 1
                if self._done[request] == len(own):
                    for follower in self._tables.followers[request]:
                        self._waits[follower] -= 1

    def _start_ready(self, now_us: int) -> int | None:
        """Start every chunk that can start; return when the next request that could start is released."""
        tables, releases = self._tables, []
        for unit, queue in enumerate(self._queues):
            if not queue or unit in self._units.running:
                continue
            request, place = queue[-1]
            if place != self._done[request] or self._waits[request]:
                continue
            release_us = tables.entry_us[request][unit]
            if release_us > now_us:
                releases.append(release_us)
                continue
            queue.pop()
            part = self._parts[request][place]
            mark, work_us = tables.mark(request, part), tables.work_us(request, part)
            self._units.start(request, mark, unit, work_us, now_us)
        return min(releases, default=None)
