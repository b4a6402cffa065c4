"""A schedule at work: requests one after the other, the pieces of each side by side."""

from __future__ import annotations

from collections.abc import Iterator

from ..deployment import Deployment
from ..history import History, Interval, SteadyState, executed, simulated
from ..plan import Plan
from ..problem import Problem
from ..serving import checked_slots
from ..streams import Stream
from ..usage import Usage, usage_of
from .pieces import Pieces, pieces_of, stream_of
from .quantities import ScheduleValues
from .tables import Schedule, tables_of


def history(
    problem: Problem, plan: Plan, *, requests: int | None, interval_us: int | None, task_slots: int | None
) -> History:
    """Play a plan for a number of requests, one at a time; see `simulate`."""
    requests, _ = checked_slots(requests, interval_us, task_slots)
    code = problem.formulation.code(problem, plan)
    latency_us = _latency_us(problem, code)
    arrivals = tuple(
        request * (latency_us if interval_us is None else interval_us) for request in range(requests)
    )
    begins, free = [], 0
    for arrival in arrivals:
        begins.append(max(arrival, free))
        free = begins[-1] + latency_us
    events = _events(problem, code, begins, engines=False)
    units = tables_of(problem).units
    return simulated(plan, events, units=units, arrivals_us=arrivals, streams=(stream_of(problem, plan),))


def play(problem: Problem, deployment: Deployment, rounds: int) -> History:
    """Play a number of requests, each as soon as the one before is done."""
    code = code_of(problem, deployment.streams[0])
    latency_us = _latency_us(problem, code)
    begins = [latency_us * request for request in range(rounds)]
    return executed(deployment, _events(problem, code, begins, engines=True))


def steady(problem: Problem, deployment: Deployment) -> tuple[SteadyState, ...]:
    """Return one request: the next one does the same."""
    code = code_of(problem, deployment.streams[0])
    events = tuple(_events(problem, code, [0], engines=True))
    return (SteadyState(period_us=float(_latency_us(problem, code)), events=events),)


def usage(problem: Problem, trace: History) -> Usage:
    """Return the bytes in use over time; see `trace_usage`.

    Weights are there all the time, what pieces make for others from the end of the piece that makes it to the
    end of the last one that reads it.
    """
    return usage_of(
        _changes(problem, trace),
        ((event.request, *event.span_us) for event in trace.events),
        base=sum(tables_of(problem).bytes),
        requests=len(trace.output_us),
    )


def code_of(problem: Problem, stream: Stream) -> Schedule:
    """Return the schedule of a stream by index."""
    plan = Deployment(streams=(stream,)).plan
    assert plan is not None
    found: Schedule = problem.formulation.code(problem, plan)
    return found


def _latency_us(problem: Problem, code: Schedule) -> int:
    return ScheduleValues(tables_of(problem), code).latency_us


def _events(problem: Problem, code: Schedule, begins: list[int], *, engines: bool) -> Iterator[Interval]:
    """Yield each piece of requests that begin at some times; sending takes no time of a unit."""
    tables = tables_of(problem)
    pieces = pieces_of(tables, code)
    for request, begin in enumerate(begins):
        for chunk, unit in enumerate(pieces.units):
            inside = pieces.start_us[chunk], pieces.end_us[chunk]
            yield Interval(
                start_ns=1000 * (begin + pieces.entered_us[chunk]),
                end_ns=1000 * (begin + pieces.left_us[chunk]),
                stream=0,
                request=request,
                chunk=chunk,
                unit=tables.units[unit],
                engine_ns=tuple(1000 * (begin + at) for at in inside) if engines else (),
            )


def _changes(problem: Problem, trace: History) -> Iterator[tuple[int, int]]:
    """Yield (time, bytes taken or given back) of what crosses pieces, and of nothing at each start."""
    ends = {(event.request, event.chunk): event.span_us[1] for event in trace.events}
    yield from ((event.span_us[0], 0) for event in trace.events)
    tables, network = tables_of(problem), problem.network
    piece_of = _piece_of(pieces_of(tables, code_of(problem, trace.streams[0])))
    for tensor in network.tensors:
        readers = {piece_of[tables.tasks.of[t]] for t in tensor.targets if t < len(network.layers)}
        maker = piece_of[tables.tasks.of[tensor.source]] if tensor.source >= 0 else None
        for request in {event.request for event in trace.events} if readers - {maker} else ():
            if maker is not None:
                yield ends[request, maker], tensor.bytes
                yield max(ends[request, reader] for reader in readers), -tensor.bytes


def _piece_of(pieces: Pieces) -> dict[int, int]:
    return {task: piece for piece, own in enumerate(pieces.tasks) for task in own}
