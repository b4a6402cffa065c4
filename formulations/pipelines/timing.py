"""A pipeline as stations in line: where an item is for how long, on devices and on links."""

from __future__ import annotations

from ..history import link_name
from ..stations import Station, Work, later, message
from ..streams import Stream
from .plans import Pipe, stages_of
from .tables import Cluster


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
        before = message(link_name(cluster.data.host, device), index, enters)
        behind = message(link_name(device, target), index, sends)
        if cluster.data.overlap:
            whole = _computing(device, index, 0, stage.compute_us, copies)
            found += [*before, Station(time_us=stage.compute_us, works=(whole,)), *behind]
            continue
        done = enters + stage.compute_us
        engine = (enters + copies[0], done - copies[1])
        whole = Work(row=device, chunk=index, start_us=0, end_us=done + sends, engine_us=engine)
        messages = (
            *(work for station in before for work in station.works),
            *(work for station in behind for work in later(station.works, done)),
        )
        found.append(Station(time_us=stage.stage_us, works=(whole, *messages)))
    return tuple(found)


def pipe_of(cluster: Cluster, stream: Stream) -> Pipe:
    """Return the chunks of a stream by index."""
    return tuple((c.start, c.stop, cluster.devices.index(c.unit)) for c in stream.chunks)


def _computing(device: str, index: int, start_us: int, time_us: int, copies: tuple[int, int]) -> Work:
    end_us = start_us + time_us
    engine = (start_us + copies[0], end_us - copies[1])
    return Work(row=device, chunk=index, start_us=start_us, end_us=end_us, engine_us=engine)


def _copies_us(cluster: Cluster, part: tuple[int, int, int]) -> tuple[int, int]:
    """Return how long the copies in and out of a chunk take on its device."""
    start, stop, device = part
    if cluster.inner_us[device] is not None:
        return 0, 0
    return cluster.chain.transfer_in_us[start][device], cluster.chain.transfer_out_us[stop][device]
