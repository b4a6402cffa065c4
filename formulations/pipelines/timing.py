"""A pipeline as stations in line: where an item is for how long, on devices and on links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..deployment import Stream
from ..history import Interval, link_name
from ..serving import Visit
from .plans import Pipe, stages_of
from .tables import Cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a station does for one item; times in microseconds from its beginning.

    Attributes
    ----------
    row
        A device, or a link (`link_name`).
    chunk
        Index of the chunk that computes, sends, or gets the first input.
    start_us, end_us
        From when to when.
    engine_us
        When the engine of a device begins and when it is done; empty for messages.
    """

    row: str
    chunk: int
    start_us: int
    end_us: int
    engine_us: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Station:
    """What serves one item at a time: for how long, and what is done meanwhile."""

    time_us: int
    works: tuple[Work, ...]


def stations_of(cluster: Cluster, pipe: Pipe) -> tuple[Station, ...]:
    """Return the stations of a pipeline in order: the largest time of one is the period.

    A device that sends while it computes is one station, and each link another one. Without overlap the
    device is taken by its messages, too, and both are one station. Messages of no time are left out.
    """
    found: list[Station] = []
    stages = stages_of(cluster, pipe)
    for index, stage in enumerate(stages):
        device = cluster.devices[stage.device]
        enters, sends = stage.receive_us, stage.send_us
        target = cluster.devices[pipe[index + 1][2]] if index + 1 < len(pipe) else cluster.data.host
        copies = _copies_us(cluster, pipe[index])
        before = _message(link_name(cluster.data.host, device), index, enters)
        behind = _message(link_name(device, target), index, sends)
        if cluster.data.overlap:
            whole = _computing(device, index, 0, stage.compute_us, copies)
            found += [*before, Station(time_us=stage.compute_us, works=(whole,)), *behind]
            continue
        done = enters + stage.compute_us
        engine = (enters + copies[0], done - copies[1])
        whole = Work(row=device, chunk=index, start_us=0, end_us=done + sends, engine_us=engine)
        messages = (
            *(w for s in before for w in s.works),
            *(_moved(w, done) for s in behind for w in s.works),
        )
        found.append(Station(time_us=stage.stage_us, works=(whole, *messages)))
    return tuple(found)


def pipe_of(cluster: Cluster, stream: Stream) -> Pipe:
    """Return the chunks of a stream by index."""
    return tuple((c.start, c.stop, cluster.devices.index(c.unit)) for c in stream.chunks)


def intervals(
    stations: Sequence[Station], visits: Sequence[Visit], stream: int, *, engines: bool
) -> list[Interval]:
    """Return what was at work during visits of stations; `engines`: with the times of the engines."""
    return [
        Interval(
            start_ns=1000 * (visit.start_us + work.start_us),
            end_ns=1000 * (visit.start_us + work.end_us),
            stream=stream,
            request=visit.request,
            chunk=work.chunk,
            unit=work.row,
            engine_ns=tuple(1000 * (visit.start_us + at) for at in work.engine_us) if engines else (),
        )
        for visit in visits
        for work in stations[visit.station].works
    ]


def _computing(device: str, index: int, start_us: int, time_us: int, copies: tuple[int, int]) -> Work:
    end_us = start_us + time_us
    engine = (start_us + copies[0], end_us - copies[1])
    return Work(row=device, chunk=index, start_us=start_us, end_us=end_us, engine_us=engine)


def _message(link: str, index: int, time_us: int) -> tuple[Station, ...]:
    if not time_us:
        return ()
    return (Station(time_us=time_us, works=(Work(row=link, chunk=index, start_us=0, end_us=time_us),)),)


def _moved(work: Work, by_us: int) -> Work:
    return Work(row=work.row, chunk=work.chunk, start_us=work.start_us + by_us, end_us=work.end_us + by_us)


def _copies_us(cluster: Cluster, part: tuple[int, int, int]) -> tuple[int, int]:
    """Return how long the copies in and out of a chunk take on its device."""
    start, stop, device = part
    if cluster.inner_us[device] is not None:
        return 0, 0
    return cluster.chain.transfer_in_us[start][device], cluster.chain.transfer_out_us[stop][device]
