"""Memory over time while requests of one network run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from ..history import History, Interval
from ..plan import Plan
from ..problem import Problem
from ..usage import Usage, usage_of
from .tables import chain_of


def stream_usage(problem: Problem, trace: History) -> Usage:
    """Return the bytes in use over time; see `trace_usage`."""
    assert trace.plan is not None
    parts = chain_of(problem.charged(trace.plan)).parts(trace.plan)
    return usage_of(
        _changes(problem, trace, trace.plan),
        ((event.request, *event.span_us) for event in trace.events),
        base=sum(_weights(problem, start, stop) for start, stop, _ in parts),
        requests=len(trace.output_us),
    )


def _changes(problem: Problem, trace: History, plan: Plan) -> Iterator[tuple[int, int]]:
    """Yield (time, bytes taken or given back) of tensors."""
    chain, alive = chain_of(problem.charged(plan)), problem.network.boundary_bytes
    chunks = plan.chunks
    running = [
        chain.memory_bytes(chunk.start, chunk.stop) - _weights(problem, chunk.start, chunk.stop)
        for chunk in chunks
    ]
    for events in _by_request(trace):
        for event in events:
            start_us, end_us = event.span_us
            yield start_us, running[event.chunk]
            yield end_us, -running[event.chunk]
        for event, following in pairwise(events):
            waiting = alive[chunks[event.chunk].stop]
            yield event.span_us[1], waiting
            yield following.span_us[0], -waiting


def _weights(problem: Problem, start: int, stop: int) -> int:
    return chain_of(problem).weights.between(start, stop)


def _by_request(trace: History) -> list[list[Interval]]:
    """Return the events of each request in order of their chunks."""
    found = defaultdict(list)
    for event in sorted(trace.events, key=lambda event: event.chunk):
        found[event.request].append(event)
    return list(found.values())
