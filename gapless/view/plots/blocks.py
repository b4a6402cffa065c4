"""Simulated and measured traces in one form: the blocks of a Gantt chart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ...executor.history import history
from ...executor.measurement import MeasuredTrace
from ...formulations.errors import InvalidInputError
from ...formulations.simulate import Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One chunk of one request at work.

    Attributes
    ----------
    unit, request
        Where, and the number of the request (of a measured batch: of the round).
    start_ms, end_ms
        When, from the start of the first block that is drawn.
    lost_ms
        How much of it was lost to slowdown; 0 where it is not known.
    label
        The request in as few characters as possible.
    network
        Name of its network.
    """

    unit: str
    request: int
    start_ms: float
    end_ms: float
    lost_ms: float
    label: str
    network: str


def blocks_of(trace: Trace | MeasuredTrace, requests: range | None) -> list[Block]:
    """Return the blocks of a trace by their start.

    Parameters
    ----------
    trace
        Simulated or measured.
    requests
        Numbers of the requests to keep; None: all.

    Raises
    ------
    InvalidInputError
        None of the requests is in the trace.
    """
    found = [block for block in _every(trace) if requests is None or block.request in requests]
    if not found:
        there = max((event.request for event in trace.events), default=-1) + 1
        raise InvalidInputError(f"requests is {requests}, the trace has {there} requests, numbered from 0")
    begin = min(block.start_ms for block in found)
    moved = (replace(b, start_ms=b.start_ms - begin, end_ms=b.end_ms - begin) for b in found)
    return sorted(moved, key=lambda block: block.start_ms)


def rows_of(trace: Trace | MeasuredTrace) -> list[str]:
    """Return the units that have a row: all of the platform for a workload, else those of the chunks."""
    if isinstance(trace, Trace) and trace.names:
        return list(trace.units)
    return list(history(trace).units)


def bubbles_of(blocks: Sequence[Block]) -> Iterator[tuple[float, float]]:
    """Yield (start, end) of the times between the blocks of one unit in which it has nothing to do."""
    busy_until = blocks[0].end_ms if blocks else 0.0
    for block in blocks:
        if block.start_ms > busy_until:
            yield busy_until, block.start_ms
        busy_until = max(busy_until, block.end_ms)


def headline(trace: Trace | MeasuredTrace, blocks: Sequence[Block]) -> str:
    """Return what was played, and how long it took."""
    count = len({(block.label, block.request) for block in blocks})
    took = f"{max(block.end_ms for block in blocks):.2f} ms"
    what = "Predicted" if isinstance(trace, Trace) else "Measured"
    return f"{what}: {count} request{'s' if count > 1 else ''} in {took}"


def _every(trace: Trace | MeasuredTrace) -> Iterator[Block]:
    past = history(trace)
    # The requests of a simulated workload are numbered as such; measured ones repeat, and their rounds are.
    served_once = past.in_rounds and isinstance(trace, Trace)
    for work in past.works:
        stream = past.streams[work.stream]
        yield Block(
            unit=work.unit,
            request=work.stream if served_once else work.request,
            start_ms=work.start_ns / 1e6,
            end_ms=work.end_ns / 1e6,
            lost_ms=work.slowdown_ns / 1e6,
            label=stream.name if served_once or len(past.streams) > 1 else str(work.request),
            network=stream.network,
        )
