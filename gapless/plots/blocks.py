"""Simulated and measured traces in one form: the blocks of a Gantt chart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ..executor.measurement import MeasuredTrace
from ..formulations.errors import InvalidInputError
from ..formulations.simulate import Trace


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
    every = _simulated(trace) if isinstance(trace, Trace) else _measured(trace)
    found = [block for block in every if requests is None or block.request in requests]
    if not found:
        there = max((event.request for event in trace.events), default=-1) + 1
        raise InvalidInputError(f"requests is {requests}, the trace has {there} requests, numbered from 0")
    begin = min(block.start_ms for block in found)
    moved = (replace(b, start_ms=b.start_ms - begin, end_ms=b.end_ms - begin) for b in found)
    return sorted(moved, key=lambda block: block.start_ms)


def rows_of(trace: Trace | MeasuredTrace) -> list[str]:
    """Return the units that have a row: all of the platform for a workload, else those of the chunks."""
    if isinstance(trace, MeasuredTrace):
        return list(trace.deployment.units)
    if trace.names:
        return list(trace.units)
    return list(dict.fromkeys(chunk.unit for chunk in trace.plan.chunks))


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


def _simulated(trace: Trace) -> Iterator[Block]:
    networks = {chunk.request: chunk.network for chunk in trace.plan.chunks}
    for event in trace.events:
        name = trace.names[event.request] if trace.names else ""
        yield Block(
            unit=event.unit,
            request=event.request,
            start_ms=event.start_us / 1000,
            end_ms=event.end_us / 1000,
            lost_ms=event.slowdown_us / 1000,
            label=name or str(event.request),
            network=networks[name],
        )


def _measured(trace: MeasuredTrace) -> Iterator[Block]:
    networks = {stream.name: stream.network for stream in trace.deployment.streams}
    several = len(networks) > 1
    for event in trace.events:
        yield Block(
            unit=event.unit,
            request=event.request,
            start_ms=event.start_ns / 1e6,
            end_ms=event.end_ns / 1e6,
            lost_ms=0.0,
            label=event.stream if several else str(event.request),
            network=networks[event.stream],
        )
