"""Pipelines as lines of servers: devices that compute, and the messages between them."""

from __future__ import annotations

from collections.abc import Iterator

from ..operation import Line, Server, ServerKind
from .plans import Pipeline, Pipes, pipe_names, stages_of
from .tables import Cluster


def lines_of(cluster: Cluster, pipes: Pipes) -> tuple[Line, ...]:
    """Return the servers of each pipeline; without overlap a device and its messages are one server."""
    names = pipe_names(len(pipes))
    stages = (stages_of(cluster, pipe) for pipe in pipes)
    return tuple(
        Line(name=name, servers=tuple(_servers(cluster, pipeline)))
        for name, pipeline in zip(names, stages, strict=True)
    )


def _servers(cluster: Cluster, stages: Pipeline) -> Iterator[Server]:
    for stage in stages:
        unit = cluster.devices[stage.device]
        if not cluster.data.overlap:
            yield Server(kind=ServerKind.COMPUTES, unit=unit, time_us=stage.stage_us)
            continue
        if stage.receive_us:
            yield Server(kind=ServerKind.RECEIVES, unit=unit, time_us=stage.receive_us)
        yield Server(kind=ServerKind.COMPUTES, unit=unit, time_us=stage.compute_us)
        if stage.send_us:
            yield Server(kind=ServerKind.SENDS, unit=unit, time_us=stage.send_us)
