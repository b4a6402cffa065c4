"""What is kept of the requests that passed a cluster: times of every chunk and every message."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ...formulations.deployment import Deployment
from ...formulations.history import History, Interval, executed, link_name
from ..engine import PlacementReceipt
from ..measurement import LinkTimes, Measurement, Spread
from ..pipeline.account import measurement
from ..pipeline.board import RECORDS
from ..pipeline.evidence import Evidence, TaskCount
from .routes import ARRIVED, END, ENGINE_END, ENGINE_START, QUEUED, SENT, STAMPS, START, Route

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TASK = [START, ENGINE_START, ENGINE_END, END]
_US = 1e3


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """One request that came out.

    Attributes
    ----------
    stream, request
        Which one.
    devices
        Who served it, chunk by chunk.
    bytes_in
        Size of the message that each got.
    times_ns
        By [chunk][stamp], by the driver's clock.
    """

    stream: int
    request: int
    devices: tuple[str, ...]
    bytes_in: tuple[int, ...]
    times_ns: tuple[tuple[int, ...], ...]

    @property
    def end_ns(self) -> int:
        """When its last chunk was done."""
        return self.times_ns[-1][END]


def passed(route: Route, index: int, head: Mapping[str, Any], offsets_ns: Sequence[int]) -> Passed:
    """Return a result with its times by the driver's clock.

    Parameters
    ----------
    route, index
        Its stream.
    head
        Of the result.
    offsets_ns
        What is added to the times of each device; of a message the first two are the sender's.
    """
    stamps = head["stamps"]
    rows = []
    for chunk, offset_ns in enumerate(offsets_ns):
        row = stamps[chunk * STAMPS : (chunk + 1) * STAMPS]
        sender_ns = offsets_ns[chunk - 1] if chunk else 0
        rows.append(tuple(at + (sender_ns if k < ARRIVED else offset_ns) for k, at in enumerate(row)))
    return Passed(
        stream=index,
        request=head["request"],
        devices=route.devices,
        bytes_in=route.bytes_in,
        times_ns=tuple(rows),
    )


class Recording:
    """The requests of a run that count, of each stream; the latest `RECORDS` of each with all their times.

    Attributes
    ----------
    begins_ns
        When each stream put out its last request before those that count; 0: not yet.
    """

    def __init__(self, routes: Sequence[Route], warm_up: int) -> None:
        self.begins_ns = [0] * len(routes)
        self._routes = routes
        self._warm_up = warm_up
        self._rows: list[deque[Passed]] = [deque(maxlen=RECORDS) for _ in routes]
        self._tasks: dict[tuple[int, int], TaskCount] = {}

    def add(self, found: Passed) -> None:
        """Count a request, or take it as the end of the warm-up."""
        if found.request < self._warm_up or (not self._warm_up and found.request == 0):
            self.begins_ns[found.stream] = found.end_ns
        if found.request < self._warm_up:
            return
        self._rows[found.stream].append(found)
        for chunk, row in enumerate(found.times_ns):
            task = (found.stream, chunk)
            before = self._tasks.get(task, TaskCount(count=0, busy_ns=0, start_ns=row[START], end_ns=0))
            self._tasks[task] = replace(
                before,
                count=before.count + 1,
                busy_ns=before.busy_ns + row[END] - row[START],
                end_ns=row[END],
            )

    def counted(self, stream: int) -> int:
        """Return how many requests of a stream count so far."""
        found = self._tasks.get((stream, 0))
        return 0 if found is None else found.count

    def stamps(self, stream: int, chunk: int) -> _Rows:
        """Return the times of one chunk."""
        return _Rows(self._rows[stream], chunk)

    def measurement(
        self,
        deployment: Deployment,
        receipts: Sequence[PlacementReceipt],
        rss_bytes: Mapping[str, int],
        device: str,
    ) -> Measurement:
        """Return what the run has achieved."""
        evidence = Evidence(
            deployment=deployment, board=self, warm_up=self._warm_up, tasks=self._tasks, rss_bytes=rss_bytes
        )
        found = measurement(evidence, tuple(receipts), device)
        return replace(found, links=tuple(self._links()))

    def history(self, deployment: Deployment) -> History:
        """Return when everything that is kept happened, messages included."""
        events = [
            event
            for rows in self._rows
            for number, found in enumerate(rows)
            for event in _events(deployment, found, number)
        ]
        origin_ns = min(event.start_ns for event in events)
        return executed(deployment, (event.moved(-origin_ns) for event in events))

    def _links(self) -> Iterator[LinkTimes]:
        for route, rows in zip(self._routes, self._rows, strict=True):
            for chunk in range(1, len(route.devices)):
                times = [found.times_ns[chunk] for found in rows]
                yield LinkTimes(
                    stream=route.stream.name,
                    source=route.devices[chunk - 1],
                    target=route.devices[chunk],
                    size=route.bytes_in[chunk],
                    time_us=Spread.of([(row[ARRIVED] - row[SENT]) / _US for row in times]),
                    queued_us=Spread.of([(row[SENT] - row[QUEUED]) / _US for row in times]),
                )


class _Rows:
    def __init__(self, rows: deque[Passed], chunk: int) -> None:
        self._rows = rows
        self._chunk = chunk

    def rows(self, start: int, stop: int) -> NDArray[Any]:
        """Return start, begin and end of the engine, and end of the requests [start, stop)."""
        import numpy as np

        found = [[row.times_ns[self._chunk][k] for k in _TASK] for row in self._rows]
        return np.array(found, dtype=np.int64)[-(stop - start) :]


def _events(deployment: Deployment, found: Passed, request: int) -> Iterator[Interval]:
    chunks = deployment.streams[found.stream].chunks
    for chunk, row in enumerate(found.times_ns):
        yield Interval(
            start_ns=row[START],
            end_ns=row[END],
            stream=found.stream,
            request=request,
            chunk=chunk,
            unit=chunks[chunk].unit,
            engine_ns=(row[ENGINE_START], row[ENGINE_END]),
        )
        if chunk:
            yield Interval(
                start_ns=row[SENT],
                end_ns=max(row[ARRIVED], row[SENT]),
                stream=found.stream,
                request=request,
                chunk=chunk - 1,
                unit=link_name(chunks[chunk - 1].unit, chunks[chunk].unit),
            )
