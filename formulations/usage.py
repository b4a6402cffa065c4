"""Memory over time of a trace: the bytes that weights, running chunks and waiting tensors take."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from .chunking.tables import chain_of
from .flow_shop.memory import Usage, memory_usage, usage_of
from .flow_shop.play import Run
from .flow_shop.tables import shop_of
from .problem import Problem
from .simulate import Trace, TraceEvent


def trace_usage(problem: Problem, trace: Trace) -> Usage:
    """Return the bytes in use over time while a trace runs, counted as the judge counts them.

    For one network: the weights of all chunks are resident; a chunk that runs needs the most live
    tensors of any of its layers (`Chain.memory_bytes`); between two chunks a request holds the tensors
    alive at the cut. Requests that have not started yet hold nothing.

    The judge (`Score.peak_bytes`) charges all chunks as if they ran at once, and no waiting tensors. In
    steady state, when requests come no faster than one a period, a chunk starts as soon as the one before
    it ends: nothing waits, and the peak of a trace is at most the judge's. It is less where no instant
    sees all chunks at work. When requests come faster, tensors pile up in front of slow chunks, and the
    peak can be larger by what waits.

    With a workload, the weights follow its load policy, and for the trace that `simulate_workload`
    makes of a plan the peak is the judge's own.

    Parameters
    ----------
    problem
        The problem.
    trace
        A trace of a well-formed plan for it: simulated, or measured and brought into this form.

    Returns
    -------
    Usage
        Steps of bytes in use, and the most bytes while a chunk of each request runs.

    Raises
    ------
    InvalidPlanError
        The plan of the trace does not belong to the problem.
    """
    return _stream_usage(problem, trace) if problem.data is None else _workload_usage(problem, trace)


def _stream_usage(problem: Problem, trace: Trace) -> Usage:
    parts = chain_of(problem.charged(trace.plan)).parts(trace.plan)
    return usage_of(
        _changes(problem, trace),
        ((event.request, event.start_us, event.end_us) for event in trace.events),
        base=sum(_weights(problem, start, stop) for start, stop, _ in parts),
        requests=len(trace.arrivals_us),
    )


def _changes(problem: Problem, trace: Trace) -> Iterator[tuple[int, int]]:
    """Yield (time, bytes taken or given back) of tensors."""
    chain, alive = chain_of(problem.charged(trace.plan)), problem.network.boundary_bytes
    chunks = trace.plan.chunks
    running = [
        chain.memory_bytes(chunk.start, chunk.stop) - _weights(problem, chunk.start, chunk.stop)
        for chunk in chunks
    ]
    for events in _by_request(trace):
        for event in events:
            yield event.start_us, running[event.chunk]
            yield event.end_us, -running[event.chunk]
        for event, following in pairwise(events):
            waiting = alive[chunks[event.chunk].stop]
            yield event.end_us, waiting
            yield following.start_us, -waiting


def _weights(problem: Problem, start: int, stop: int) -> int:
    prefix = chain_of(problem).weight_prefix
    return prefix[stop] - prefix[start]


def _by_request(trace: Trace) -> list[list[TraceEvent]]:
    """Return the events of each request in order of their chunks."""
    found = defaultdict(list)
    for event in sorted(trace.events, key=lambda event: event.chunk):
        found[event.request].append(event)
    return list(found.values())


def _workload_usage(problem: Problem, trace: Trace) -> Usage:
    shop = shop_of(problem)
    schedule = shop.schedule(trace.plan)
    position = {request: place for place, request in enumerate(schedule.order)}
    runs = [
        Run(
            position=position[event.request],
            unit=shop.units.index(event.unit),
            start_us=event.start_us,
            end_us=event.end_us,
            work_us=event.end_us - event.start_us - event.slowdown_us,
        )
        for event in trace.events
    ]
    return memory_usage(shop, schedule, runs)
