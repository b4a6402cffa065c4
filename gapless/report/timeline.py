"""What was at work when, in one form for simulated and measured traces: rows of blocks."""

from __future__ import annotations

import string
from dataclasses import dataclass, replace

from ..executor.measurement import MeasuredTrace
from ..formulations.simulate import Trace

_LETTERS = string.ascii_uppercase + string.ascii_lowercase


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Block:
    """One chunk of one request at work.

    Attributes
    ----------
    start_ns, end_ns
        From when to when.
    request
        Number of the request, or of the round of a workload.
    name
        What stands for it in a chart.
    colour
        Blocks of the same number have the same colour.
    """

    start_ns: int
    end_ns: int
    request: int
    name: str
    colour: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """Rows of blocks.

    Attributes
    ----------
    rows
        Units in use with their blocks, in order of their start.
    start_ns, end_ns
        The time that is shown; blocks may reach beyond.
    outputs_ns
        When each request (of each stream) or round was through, in order.
    noun
        What blocks are numbered by: "request" or "round".
    legend
        What the letters in the names of blocks mean; empty without letters.
    """

    rows: tuple[tuple[str, tuple[Block, ...]], ...]
    start_ns: int
    end_ns: int
    outputs_ns: tuple[int, ...]
    noun: str
    legend: tuple[tuple[str, str], ...] = ()

    @property
    def shown(self) -> tuple[int, int]:
        """First and last number of the blocks that are shown."""
        numbers = [block.request for _, blocks in self.rows for block in blocks]
        return min(numbers, default=0), max(numbers, default=0)


def timeline(trace: Trace | MeasuredTrace) -> Timeline:
    """Return all of a trace."""
    return _measured(trace) if isinstance(trace, MeasuredTrace) else _simulated(trace)


def letter(number: int) -> str:
    """Return what stands for a request of a workload, or for a stream."""
    return _LETTERS[number % len(_LETTERS)]


def steady(whole: Timeline, outputs: int) -> Timeline:
    """Return the part of a timeline in which so many requests come out, from the middle of all; at least one.

    At its ends a pipeline fills and drains; in the middle it is as it would be for ever.
    """
    count = max(1, outputs)
    if count >= len(whole.outputs_ns):
        return whole
    first = (len(whole.outputs_ns) - count) // 2
    start_ns = whole.outputs_ns[first - 1] if first else whole.start_ns
    end_ns = max(start_ns + 1, whole.outputs_ns[first + count - 1])
    rows = tuple(
        (unit, tuple(b for b in blocks if b.end_ns > start_ns and b.start_ns < end_ns))
        for unit, blocks in whole.rows
    )
    return replace(whole, rows=rows, start_ns=start_ns, end_ns=end_ns)


def _simulated(trace: Trace) -> Timeline:
    used = dict.fromkeys(chunk.unit for chunk in trace.plan.chunks)
    names = [letter(n) if trace.names else str(n % 10) for n in range(len(trace.arrivals_us))]
    end_ns = 1000 * trace.makespan_us
    rows = []
    for unit in (unit for unit in trace.units if unit in used) if trace.names else used:
        blocks = [
            Block(
                start_ns=1000 * event.start_us,
                end_ns=1000 * event.end_us,
                request=event.request,
                name=names[event.request],
                colour=event.request,
            )
            for event in trace.on(unit)
        ]
        rows.append((unit, tuple(sorted(blocks))))
    return Timeline(
        rows=tuple(rows),
        start_ns=0,
        end_ns=end_ns,
        # A finite workload has no steady state: it is shown as a whole.
        outputs_ns=(end_ns,) if trace.names else tuple(sorted(1000 * at for at in trace.output_us)),
        noun="request",
        legend=tuple((letter(n), name) for n, name in enumerate(trace.names)),
    )


def _measured(trace: MeasuredTrace) -> Timeline:
    streams, in_rounds = trace.deployment.streams, trace.deployment.rounds is not None
    index = {stream.name: number for number, stream in enumerate(streams)}
    numbered = len(streams) == 1 or any(event.request for event in trace.events)
    rows: dict[str, list[Block]] = {unit: [] for unit in trace.deployment.units}
    done: dict[tuple[int, int], int] = {}
    for event in trace.events:
        stream = index[event.stream]
        mark = letter(stream) if len(streams) > 1 else ""
        rows[event.unit].append(
            Block(
                start_ns=event.start_ns,
                end_ns=event.end_ns,
                request=event.request,
                name=mark + (str(event.request % 10) if numbered else ""),
                colour=stream if mark else event.request,
            )
        )
        output = (event.request, 0 if in_rounds else stream)
        done[output] = max(event.end_ns, done.get(output, 0))
    return Timeline(
        rows=tuple((unit, tuple(sorted(blocks))) for unit, blocks in rows.items()),
        start_ns=0,
        end_ns=max(done.values(), default=1),
        outputs_ns=tuple(sorted(done.values())),
        noun="round" if in_rounds else "request",
        legend=tuple((letter(n), s.name) for n, s in enumerate(streams)) if len(streams) > 1 else (),
    )
