"""What was at work when, in one form for simulated and measured traces: for charts, files and accounts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from ..formulations.deployment import Stream
from ..formulations.simulate import Trace
from .measurement import MeasuredTrace


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Work:
    """One chunk of one request at work.

    Attributes
    ----------
    start_ns, end_ns
        From when to when, nanoseconds from the start of the trace.
    stream
        Index of its stream; the requests of a workload are streams.
    request
        Number within the stream; in a workload, number of the round.
    chunk
        Index in the stream.
    unit
        Where.
    slowdown_ns
        How much longer it took because of its company; 0 where that is not known.
    engine_ns
        Of a measured one: when the engine began, and when it was done; between start and end, inputs and
        outputs were copied.
    """

    start_ns: int
    end_ns: int
    stream: int
    request: int
    chunk: int
    unit: str
    slowdown_ns: int = 0
    engine_ns: tuple[int, ...] = ()

    def moved(self, by_ns: int) -> Work:
        """Return the same at another time."""
        return replace(
            self,
            start_ns=self.start_ns + by_ns,
            end_ns=self.end_ns + by_ns,
            engine_ns=tuple(at + by_ns for at in self.engine_ns),
        )

    @property
    def start_us(self) -> float:
        """From when, microseconds."""
        return self.start_ns / 1000

    @property
    def end_us(self) -> float:
        """To when, microseconds."""
        return self.end_ns / 1000

    @property
    def parts_ns(self) -> tuple[tuple[int, int], ...]:
        """(start, end) of copy in, run and copy out; empty where that is not known."""
        return tuple(pairwise((self.start_ns, *self.engine_ns, self.end_ns))) if self.engine_ns else ()

    @property
    def parts_us(self) -> tuple[float, ...]:
        """How long copy in, run and copy out took, microseconds; empty where that is not known."""
        return tuple((end_ns - start_ns) / 1000 for start_ns, end_ns in self.parts_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """A trace.

    Attributes
    ----------
    streams
        Who is served; of a workload, its requests.
    units
        Names of the units in use: in the order of the chunks of a single stream.
    works
        In order of their start.
    in_rounds
        Whether the streams are the requests of one workload.
    """

    streams: tuple[Stream, ...]
    units: tuple[str, ...]
    works: tuple[Work, ...]
    in_rounds: bool

    def rounds(self) -> dict[int, tuple[Work, ...]]:
        """Return the works by their number (`Work.request`), in order."""
        found: defaultdict[int, list[Work]] = defaultdict(list)
        for work in self.works:
            found[work.request].append(work)
        return {number: tuple(works) for number, works in sorted(found.items())}

    def outputs_ns(self) -> Iterator[int]:
        """Yield when each request of each stream (of a workload: each round) was through, in order."""
        done: dict[tuple[int, int], int] = {}
        for work in self.works:
            output = (work.request, 0 if self.in_rounds else work.stream)
            done[output] = max(work.end_ns, done.get(output, 0))
        yield from sorted(done.values())


def history(trace: Trace | MeasuredTrace) -> History:
    """Return a trace in one form."""
    return _measured(trace) if isinstance(trace, MeasuredTrace) else _simulated(trace)


def _simulated(trace: Trace) -> History:
    chunks = trace.plan.chunks
    used = dict.fromkeys(chunk.unit for chunk in chunks)
    return History(
        streams=tuple(Stream(name=name, chunks=trace.plan.of(name)) for name in trace.names)
        or (Stream(name=chunks[0].network, chunks=chunks),),
        units=tuple(unit for unit in trace.units if unit in used) if trace.names else tuple(used),
        works=tuple(
            Work(
                start_ns=1000 * event.start_us,
                end_ns=1000 * event.end_us,
                # The simulation of a workload counts its requests; each of them is a stream of one.
                stream=event.request if trace.names else 0,
                request=0 if trace.names else event.request,
                chunk=event.chunk,
                unit=event.unit,
                slowdown_ns=1000 * event.slowdown_us,
            )
            for event in sorted(trace.events)
        ),
        in_rounds=bool(trace.names),
    )


def _measured(trace: MeasuredTrace) -> History:
    streams = trace.deployment.streams
    index = {stream.name: number for number, stream in enumerate(streams)}
    return History(
        streams=streams,
        units=trace.deployment.units,
        works=tuple(
            Work(
                start_ns=event.start_ns,
                end_ns=event.end_ns,
                stream=index[event.stream],
                request=event.request,
                chunk=event.chunk,
                unit=event.unit,
                engine_ns=(event.run_ns, event.copied_ns),
            )
            for event in sorted(trace.events)
        ),
        in_rounds=trace.deployment.rounds is not None,
    )
