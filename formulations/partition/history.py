"""A partition at work: requests that pass its parts in line, in the order of the parts."""

from __future__ import annotations

from collections.abc import Iterator

from ..deployment import Deployment
from ..history import History, Interval, SteadyState, executed, simulated
from ..plan import Plan
from ..problem import Problem
from ..serving import checked_slots, saturated, served, steady_visits
from ..stations import Station, Work, intervals
from ..streams import Stream
from ..usage import Usage, usage_of
from .deployment import stream_of
from .quantities import PartValues
from .tables import graph_of, partition_of


def stations_of(problem: Problem, stream: Stream) -> tuple[Station, ...]:
    """Return what each part of a stream does for one request: receive, compute, send."""
    graph = graph_of(problem)
    values = PartValues(graph, _code(problem, stream))
    received = _received_us(problem, values)
    found = []
    for index, chunk in enumerate(stream.chunks):
        unit = graph.units.index(chunk.unit)
        time_us, in_us = values.busy_us[unit], received[unit]
        engine_us = (in_us, in_us + values.compute_us[unit])
        work = Work(row=chunk.unit, chunk=index, start_us=0, end_us=time_us, engine_us=engine_us)
        found.append(Station(time_us=time_us, works=(work,)))
    return tuple(found)


def history(
    problem: Problem, plan: Plan, *, requests: int | None, interval_us: int | None, task_slots: int | None
) -> History:
    """Play a plan for a number of requests; see `simulate`."""
    requests, slots = checked_slots(requests, interval_us, task_slots)
    stream = stream_of(problem, plan)
    line = stations_of(problem, stream)
    times = [station.time_us for station in line]
    interval = max(times) if interval_us is None else interval_us
    arrivals = tuple(request * interval for request in range(requests))
    events = intervals(line, served(times, arrivals, slots), 0, engines=False)
    units = graph_of(problem).units
    return simulated(plan, events, units=units, arrivals_us=arrivals, streams=(stream,))


def play(problem: Problem, deployment: Deployment, rounds: int) -> History:
    """Play a number of requests of each stream, which wait for task slots; streams share no unit."""
    events: list[Interval] = []
    for index, stream in enumerate(deployment.streams):
        line = stations_of(problem, stream)
        visits = saturated([station.time_us for station in line], stream.slots, rounds)
        events += intervals(line, visits, index, engines=True)
    return executed(deployment, events)


def steady(problem: Problem, deployment: Deployment) -> tuple[SteadyState, ...]:
    """Return what each stream does over and over."""
    found = []
    for index, stream in enumerate(deployment.streams):
        line = stations_of(problem, stream)
        period_us, visits = steady_visits([station.time_us for station in line], stream.slots)
        events = intervals(line, visits, index, engines=True)
        found.append(SteadyState(period_us=period_us, events=tuple(events)))
    return tuple(found)


def usage(problem: Problem, trace: History) -> Usage:
    """Return the bytes in use over time; see `trace_usage`.

    Weights are there all the time, tensors between parts from the end of the part that makes them to the end
    of the last one that reads them.
    """
    return usage_of(
        _changes(problem, trace),
        ((event.request, *event.span_us) for event in trace.events),
        base=sum(PartValues(graph_of(problem), _code(problem, s)).peak_bytes for s in trace.streams),
        requests=len(trace.output_us),
    )


def _changes(problem: Problem, trace: History) -> Iterator[tuple[int, int]]:
    """Yield (time, bytes taken or given back) of what crosses parts, and of nothing at each start."""
    ends = {(e.stream, e.request, e.unit): e.span_us[1] for e in trace.events}
    layers, units = len(problem.network.layers), graph_of(problem).units
    codes = [_code(problem, stream) for stream in trace.streams]
    yield from ((event.span_us[0], 0) for event in trace.events)
    for index, request in {(event.stream, event.request) for event in trace.events}:
        code = codes[index]
        for tensor in problem.network.tensors:
            readers = {code[target] for target in tensor.targets if target < layers}
            if tensor.source >= 0 and readers - {code[tensor.source]}:
                yield ends[index, request, units[code[tensor.source]]], tensor.bytes
                yield max(ends[index, request, units[unit]] for unit in readers), -tensor.bytes


def _code(problem: Problem, stream: Stream) -> tuple[int, ...]:
    return tuple(problem.formulation.code(problem, Plan(chunks=stream.placed)))


def _received_us(problem: Problem, values: PartValues) -> dict[int, int]:
    """Return what of its transfers each unit receives."""
    received, layers = dict.fromkeys(values.busy_us, 0), len(values.code)
    for tensor, row in zip(problem.network.tensors, partition_of(problem).tensor_us, strict=False):
        maker = values.code[tensor.source] if tensor.source >= 0 else None
        for unit in {values.code[target] for target in tensor.targets if target < layers} - {maker}:
            received[unit] += row[unit]
    return received
