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
from ..pipeline.account import Evidence, TaskCount, measurement
from ..pipeline.shared import RECORDS
from .routes import ARRIVED, BACK, END, ENGINE_END, ENGINE_START, START, Message, Route

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TASK = [START, ENGINE_START, ENGINE_END, END]
_US = 1e3


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """One request that came out.

    `stream`, `request`: which one.
    """

    stream: int
    request: int
    route: Route  # which way it went
    times_ns: tuple[tuple[int, ...], ...]  # by [chunk][stamp], by the driver's clock

    @property
    def devices(self) -> tuple[str, ...]:
        """Who served it, chunk by chunk."""
        return self.route.devices

    @property
    def start_ns(self) -> int:
        """When the first tile of its first chunk began."""
        return min(self.times_ns[chunk][START] for chunk in self.route.stream.groups[0])

    @property
    def end_ns(self) -> int:
        """When its last chunk was done, and all tiles of it were with the leader."""
        return max(self.times_ns[chunk][-1] for chunk in self.route.stream.groups[-1])

    def sent_ns(self, message: Message) -> tuple[int, ...]:
        """Return when one of the messages of its route was queued, sent, and there."""
        return self.times_ns[message.row][message.at : message.at + 3]


def passed(route: Route, index: int, head: Mapping[str, Any], offsets_ns: Sequence[int]) -> Passed:
    """Return a result with its times by the driver's clock.

    `offsets_ns`: what is added to the times of each device; of a message the first two are the sender's.
    """
    rows = []
    for row, own_ns, source in zip(head["stamps"], offsets_ns, route.sources, strict=True):
        sender_ns = 0 if source is None else offsets_ns[source]
        # The last stamp of a tile is of the leader, who has sent its input, too.
        clocks_ns = [sender_ns] * ARRIVED + [own_ns] * (BACK + 2 - ARRIVED) + [sender_ns]
        rows.append(tuple(at + by for at, by in zip(row, clocks_ns, strict=False)))
    return Passed(stream=index, request=head["request"], route=route, times_ns=tuple(rows))


class Recording:
    """The requests of a run that count, of each stream; the latest `RECORDS` of each with all their times."""

    def __init__(self, routes: Sequence[Route], warm_up: int) -> None:
        # when each stream put out its last request before those that count; 0: not yet
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

    def ends_ns(self, stream: int) -> NDArray[Any]:
        """Return when the requests of a stream that are kept were through."""
        import numpy as np

        return np.array([found.end_ns for found in self._rows[stream]], dtype=np.int64)

    def measurement(
        self,
        deployment: Deployment,
        receipts: Sequence[PlacementReceipt],
        rss_bytes: Mapping[str, int],
        device: str,
    ) -> Measurement:
        """Return what the run has achieved."""
        evidence = _Evidence(
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
        events += [event for rows in self._rows for event in _on_links(rows)]
        origin_ns = min(event.start_ns for event in events)
        return executed(deployment, (event.moved(-origin_ns) for event in events))

    def _links(self) -> Iterator[LinkTimes]:
        for route, rows in zip(self._routes, self._rows, strict=True):
            for message in route.messages:
                times = [found.sent_ns(message) for found in rows]
                yield LinkTimes(
                    stream=route.stream.name,
                    source=message.source,
                    target=message.target,
                    size=message.size,
                    time_us=Spread.of([(arrived - sent) / _US for _, sent, arrived in times]),
                    queued_us=Spread.of([(sent - queued) / _US for queued, sent, _ in times]),
                )


class _Evidence(Evidence):
    """What is left of a run on a cluster, where a result is there when its last tile is with the leader."""

    def ends_ns(self, stream: int) -> NDArray[Any]:
        """Return when the requests of a stream were through; of those for which `rows` are kept."""
        assert isinstance(self.board, Recording)
        return self.board.ends_ns(stream)[-len(self.rows((stream, 0))) :]


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


def _on_links(rows: Sequence[Passed]) -> Iterator[Interval]:
    """Yield the messages of a stream, on each link one after the other.

    Sending may begin while the last bytes of the message before are on their way: those are waited for.
    """
    free_ns: dict[str, int] = {}
    for number, found in enumerate(rows):
        for message in found.route.messages:
            _, sent_ns, arrived_ns = found.sent_ns(message)
            link = link_name(message.source, message.target)
            start_ns = max(sent_ns, free_ns.get(link, sent_ns))
            free_ns[link] = max(arrived_ns, start_ns)
            yield Interval(
                start_ns=start_ns,
                end_ns=free_ns[link],
                stream=found.stream,
                request=number,
                chunk=message.chunk,
                unit=link,
            )
