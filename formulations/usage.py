"""Memory over time of a trace: the bytes that weights, running chunks and waiting tensors take."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from .chunking.tables import chain_of
from .flow_shop.memory import Usage, memory_usage, usage_of
from .flow_shop.play import Run
from .flow_shop.tables import shop_of
from .history import History, Interval
from .plan import Plan
from .problem import Problem


def trace_usage(problem: Problem, trace: History) -> Usage:
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
        A trace of a well-formed plan for it; with a workload, of one round.

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


def _stream_usage(problem: Problem, trace: History) -> Usage:
    assert trace.plan is not None
    parts = chain_of(problem.charged(trace.plan)).parts(trace.plan)
    return usage_of(
        _changes(problem, trace, trace.plan),
        ((event.request, *_span_us(event)) for event in trace.events),
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
            start_us, end_us = _span_us(event)
            yield start_us, running[event.chunk]
            yield end_us, -running[event.chunk]
        for event, following in pairwise(events):
            waiting = alive[chunks[event.chunk].stop]
            yield _span_us(event)[1], waiting
            yield _span_us(following)[0], -waiting


def _weights(problem: Problem, start: int, stop: int) -> int:
    prefix = chain_of(problem).weight_prefix
    return prefix[stop] - prefix[start]


def _span_us(event: Interval) -> tuple[int, int]:
    return event.start_ns // 1000, event.end_ns // 1000


def _by_request(trace: History) -> list[list[Interval]]:
    """Return the events of each request in order of their chunks."""
    found = defaultdict(list)
    for event in sorted(trace.events, key=lambda event: event.chunk):
        found[event.request].append(event)
    return list(found.values())


def _workload_usage(problem: Problem, trace: History) -> Usage:
    assert trace.plan is not None
    shop = shop_of(problem)
    schedule = shop.schedule(trace.plan)
    position = {shop.workload.names[request]: place for place, request in enumerate(schedule.order)}
    runs = []
    for event in trace.events:
        start_us, end_us = _span_us(event)
        runs.append(
            Run(
                position=position[trace.streams[event.stream].name],
                unit=shop.units.index(event.unit),
                start_us=start_us,
                end_us=end_us,
                work_us=end_us - start_us - event.slowdown_ns // 1000,
            )
        )
    return memory_usage(shop, schedule, runs)
