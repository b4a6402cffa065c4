"""Memory over time while items pass pipelines, over all devices together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from ..history import History, Interval, is_message
from ..problem import Problem
from ..usage import Usage, usage_of
from .tables import Cluster, cluster_of


def pipelines_usage(problem: Problem, trace: History) -> Usage:
    """Return the bytes in use over time; see `trace_usage`.

    Weights, the runtime of each device in use and the slots of its queues are always there; a chunk that runs
    needs its live tensors. Where no queue has a slot, a tensor between two chunks takes its own bytes.
    """
    assert trace.plan is not None
    cluster = cluster_of(problem.charged(trace.plan))
    chunks = [chunk for stream in trace.streams for chunk in stream.chunks]
    numbers = {key: place for place, key in enumerate(sorted({(e.request, e.stream) for e in trace.events}))}
    return usage_of(
        _changes(cluster, trace),
        ((numbers[e.request, e.stream], *e.span_us) for e in _computing(trace)),
        base=sum(_resident(cluster, chunk.start, chunk.stop) for chunk in chunks),
        requests=len(numbers),
    )


def _computing(trace: History) -> Iterator[Interval]:
    return (event for event in trace.events if not is_message(event, trace.streams))


def _changes(cluster: Cluster, trace: History) -> Iterator[tuple[int, int]]:
    """Yield (time, bytes taken or given back) of tensors."""
    data = cluster.data
    reserved = bool(data.in_slots or data.out_slots)
    items: defaultdict[tuple[int, int], list[Interval]] = defaultdict(list)
    for event in _computing(trace):
        items[event.stream, event.request].append(event)
    for (stream, _), events in items.items():
        chunks = trace.streams[stream].chunks
        events.sort(key=lambda event: event.chunk)
        for event in events:
            chunk, (start_us, end_us) = chunks[event.chunk], event.span_us
            running = cluster.memory_bytes(chunk.start, chunk.stop) - _resident(
                cluster, chunk.start, chunk.stop
            )
            yield start_us, running
            yield end_us, -running
        for event, following in pairwise(events if not reserved else []):
            waiting = cluster.boundary_bytes[chunks[event.chunk].stop]
            yield event.span_us[1], waiting
            yield following.span_us[0], -waiting


def _resident(cluster: Cluster, start: int, stop: int) -> int:
    """Return what a chunk keeps on its device all the time: weights, slots of queues, the runtime."""
    data, sizes = cluster.data, cluster.boundary_bytes
    waiting = data.in_slots * sizes[start] + data.out_slots * sizes[stop]
    return cluster.chain.weights.between(start, stop) + waiting + data.resident_bytes
