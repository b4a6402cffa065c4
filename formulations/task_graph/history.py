"""A schedule at work: requests one after the other, the pieces of each side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ..deployment import Deployment
from ..history import History, Interval, SteadyState, executed, simulated
from ..plan import Plan
from ..problem import Problem
from ..serving import checked_slots
from ..streams import Stream
from ..usage import Usage, usage_of
from .pieces import stream_of
from .tables import TaskTables, tables_of, tasks_of


@dataclass(frozen=True, kw_only=True)
class _Run:
    """When a piece runs, microseconds from the beginning of its request.

    `entered_us`, `left_us`: the same, with what tensors from outside take into pieces that wait for none, and
    those to the outside out of pieces that none waits for.
    """

    entered_us: int
    start_us: int
    end_us: int
    left_us: int


def history(
    problem: Problem, plan: Plan, *, requests: int | None, interval_us: int | None, task_slots: int | None
) -> History:
    """Play a plan for a number of requests, one at a time; see `simulate`."""
    requests, _ = checked_slots(requests, interval_us, task_slots)
    stream = stream_of(problem, plan)
    runs = _runs(problem, stream)
    latency_us = _latency_us(runs)
    between_us = latency_us if interval_us is None else interval_us
    arrivals = tuple(request * between_us for request in range(requests))
    begins, free_us = [], 0
    for arrival in arrivals:
        begins.append(max(arrival, free_us))
        free_us = begins[-1] + latency_us
    events = _events(stream, runs, begins, engines=False)
    units = tables_of(problem).units
    return simulated(plan, events, units=units, arrivals_us=arrivals, streams=(stream,))


def play(problem: Problem, deployment: Deployment, rounds: int) -> History:
    """Play a number of requests, each as soon as the one before is done."""
    (stream,) = deployment.streams
    runs = _runs(problem, stream)
    begins = [_latency_us(runs) * request for request in range(rounds)]
    return executed(deployment, _events(stream, runs, begins, engines=True))


def steady(problem: Problem, deployment: Deployment) -> tuple[SteadyState, ...]:
    """Return one request: the next one does the same."""
    (stream,) = deployment.streams
    runs = _runs(problem, stream)
    events = tuple(_events(stream, runs, [0], engines=True))
    return (SteadyState(period_us=float(_latency_us(runs)), events=events),)


def usage(problem: Problem, trace: History) -> Usage:
    """Return the bytes in use over time; see `trace_usage`.

    Weights are there all the time, what pieces make for others from the end of the piece that makes it to the
    end of the last one that reads it.
    """
    return usage_of(
        _changes(problem, trace),
        ((event.request, *event.span_us) for event in trace.events),
        base=sum(_held_bytes(problem, stream) for stream in trace.streams),
        requests=len(trace.output_us),
    )


def _held_bytes(problem: Problem, stream: Stream) -> int:
    """Return the weights on all units; what several tasks of a unit share is there once."""
    tables, of_unit = _by_layer(problem), dict[str, set[int]]()
    for chunk, own in zip(stream.chunks, _layers(stream), strict=True):
        of_unit.setdefault(chunk.unit, set()).update(tables.tasks.of[layer] for layer in own)
    return sum(tables.weights.of(tasks) for tasks in of_unit.values())


def _runs(problem: Problem, stream: Stream) -> list[_Run]:
    """Return when each piece runs: as soon as those that it waits for are done, and their tensors there."""
    tables = _by_layer(problem)
    layers = _layers(stream)
    own_tasks = [sorted({tables.tasks.of[layer] for layer in own}) for own in layers]
    piece_of = {task: piece for piece, own in enumerate(own_tasks) for task in own}
    units = [tables.units.index(chunk.unit) for chunk in stream.chunks]
    found: list[_Run] = []
    for own, unit, waits in zip(own_tasks, units, stream.waits, strict=True):
        start = max([tables.entry_us[task][unit] for task in own] + [found[other].end_us for other in waits])
        for task in own:
            for maker, square in tables.before[task]:
                sender = piece_of[maker]
                if task not in own_tasks[sender]:
                    start = max(start, found[sender].end_us + square[units[sender]][unit])
        end = start + sum(tables.time_us[task][unit] or 0 for task in own)
        found.append(_Run(entered_us=start if waits else 0, start_us=start, end_us=end, left_us=end))
    for piece in stream.last:
        leave = max(tables.exit_us[task][units[piece]] for task in own_tasks[piece])
        found[piece] = replace(found[piece], left_us=found[piece].end_us + leave)
    return found


def _by_layer(problem: Problem) -> TaskTables:
    """Return the tables of single layers: a piece need not be made of segments."""
    data = tasks_of(problem)
    return tables_of(replace(problem, data=replace(data, segments=())) if data.segments else problem)


def _layers(stream: Stream) -> list[Sequence[int]]:
    order = stream.order or range(stream.chunks[-1].stop)
    return [order[chunk.start : chunk.stop] for chunk in stream.chunks]


def _latency_us(runs: Sequence[_Run]) -> int:
    return max(run.left_us for run in runs)


def _events(stream: Stream, runs: Sequence[_Run], begins: list[int], *, engines: bool) -> Iterator[Interval]:
    """Yield each piece of requests that begin at some times; sending takes no time of a unit."""
    for request, begin in enumerate(begins):
        for index, (chunk, run) in enumerate(zip(stream.chunks, runs, strict=True)):
            inside = (run.start_us, run.end_us) if engines else ()
            yield Interval(
                start_ns=1000 * (begin + run.entered_us),
                end_ns=1000 * (begin + run.left_us),
                stream=0,
                request=request,
                chunk=index,
                unit=chunk.unit,
                engine_ns=tuple(1000 * (begin + at) for at in inside),
            )


def _changes(problem: Problem, trace: History) -> Iterator[tuple[int, int]]:
    """Yield (time, bytes taken or given back) of what crosses pieces, and of nothing at each start."""
    ends = {(event.request, event.chunk): event.span_us[1] for event in trace.events}
    yield from ((event.span_us[0], 0) for event in trace.events)
    network, (stream,) = problem.network, trace.streams
    piece_of = {layer: piece for piece, own in enumerate(_layers(stream)) for layer in own}
    for tensor in network.tensors:
        readers = {piece_of[target] for target in tensor.targets if target < len(network.layers)}
        maker = piece_of.get(tensor.source)
        if maker is None or not readers - {maker}:
            continue
        for request in {event.request for event in trace.events}:
            yield ends[request, maker], tensor.bytes
            yield max(ends[request, reader] for reader in readers), -tensor.bytes
