"""What was at work when, in one form for simulated and measured traces: rows of blocks."""

from __future__ import annotations

import string
from dataclasses import dataclass, replace

from ..executor.history import History, history
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
    past, measured = history(trace), isinstance(trace, MeasuredTrace)
    # A simulated workload is one round, and each of its requests a stream with a name.
    named = len(past.streams) > 1 or (past.in_rounds and not measured)
    numbered = not named or any(work.request for work in past.works)
    outputs_ns = tuple(past.outputs_ns())
    return Timeline(
        rows=tuple((unit, _blocks(past, unit, named=named, numbered=numbered)) for unit in past.units),
        start_ns=0,
        end_ns=max(outputs_ns, default=1),
        outputs_ns=outputs_ns,
        noun="round" if past.in_rounds and measured else "request",
        legend=tuple((letter(n), stream.name) for n, stream in enumerate(past.streams)) if named else (),
    )


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


def _blocks(past: History, unit: str, *, named: bool, numbered: bool) -> tuple[Block, ...]:
    return tuple(
        Block(
            start_ns=work.start_ns,
            end_ns=work.end_ns,
            request=work.request,
            name=(letter(work.stream) if named else "") + (str(work.request % 10) if numbered else ""),
            colour=work.stream if named else work.request,
        )
        for work in past.works
        if work.unit == unit
    )
