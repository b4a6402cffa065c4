"""What a coordinator remembers of the last requests, in the form of a simulation's record."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from time import monotonic_ns

from ...formulations.coordination.dispatch import Start
from ...formulations.coordination.record import Answered, Ran, Record, UnitSpan
from .requests import Accepted

_REQUESTS, _CHUNKS = 4096, 16_384
"""So many of them are remembered."""


class Log:
    """The last requests and chunks, and when units were away; any thread may ask for the record."""

    def __init__(self) -> None:
        self._begin_us = monotonic_ns() / 1000
        self._requests: deque[Answered] = deque(maxlen=_REQUESTS)
        self._ran: deque[Ran] = deque(maxlen=_CHUNKS)
        self._away: deque[UnitSpan] = deque(maxlen=_REQUESTS)
        self._leaving: dict[int, tuple[float, str]] = {}
        self._lock = threading.Lock()

    def ran(self, start: Start, times_ns: Sequence[int], *, cut_off: bool) -> None:
        """Remember a chunk; one that was put back meanwhile was cut off."""
        ran = Ran(
            unit=start.unit,
            start_us=times_ns[0] / 1000 - self._begin_us,
            end_us=times_ns[-1] / 1000 - self._begin_us,
            request=start.request.number,
            first=start.request.done,
            last=start.stop,
            cut_off=cut_off,
        )
        with self._lock:
            self._ran.append(ran)

    def ended(self, request: Accepted, *, done_ns: int | None = None, dropped: bool = False) -> None:
        """Remember a request: when it was done, or None if it has no outputs."""
        waiting, begin_us = request.waiting, self._begin_us
        answered = Answered(
            number=waiting.number,
            application=waiting.application,
            network=waiting.network,
            arrival_us=request.arrival_ns / 1000 - begin_us,
            deadline_us=None if waiting.deadline_us is None else waiting.deadline_us - begin_us,
            end_us=None if done_ns is None else done_ns / 1000 - begin_us,
            dropped=dropped,
        )
        with self._lock:
            self._requests.append(answered)

    def left(self, unit: int, why: str) -> None:
        """Remember that a unit may not be used from now on."""
        with self._lock:
            self._leaving[unit] = monotonic_ns() / 1000 - self._begin_us, why

    def returned(self, unit: int) -> None:
        """Remember that it may be used again."""
        with self._lock:
            start_us, why = self._leaving.pop(unit)
            end_us = monotonic_ns() / 1000 - self._begin_us
            self._away.append(UnitSpan(unit=unit, start_us=start_us, end_us=end_us, cause=why))

    def record(
        self,
        policy: str,
        *,
        units: Sequence[str],
        networks: Sequence[str],
        applications: Sequence[str],
        decisions_ns: Sequence[int],
    ) -> Record:
        """Return what is remembered, in microseconds since the start."""
        with self._lock:
            requests = tuple(sorted(self._requests, key=lambda request: request.number))
            ran, away = tuple(self._ran), list(self._away)
            leaving = self._leaving.items()
            away += [UnitSpan(unit=unit, start_us=at, end_us=None, cause=why) for unit, (at, why) in leaving]
        return Record(
            policy=policy,
            units=tuple(units),
            networks=tuple(networks),
            applications=tuple(applications),
            duration_us=round(max((request.arrival_us for request in requests), default=0.0)),
            end_us=max((request.end_us or request.arrival_us for request in requests), default=0.0),
            requests=requests,
            ran=ran,
            away=tuple(away),
            decisions_ns=tuple(decisions_ns),
        )
