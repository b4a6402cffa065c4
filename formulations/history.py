"""Who ran when, simulated or measured, and memory over time."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from math import ceil
from typing import Protocol

from .deployment import Deployment
from .plan import Chunk, Plan
from .streams import Stream


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Interval:
    """One chunk of one request at work, or a message that it sends or that brings it the input.

    `start_ns`, `end_ns`: from when to when, nanoseconds from the start of the history.
    """

    start_ns: int
    end_ns: int
    stream: int  # index of its stream; the requests of a workload are streams
    request: int  # number within the stream; in a workload, number of the round
    chunk: int  # index in the stream
    unit: str  # where; of a message the link (`link_name`)
    slowdown_ns: int = 0  # how much longer it took because of what ran beside it; 0 where that is not known
    engine_ns: tuple[int, ...] = ()
    """When the engine began, and when it was done: between start and end, inputs and outputs were copied.
    Empty where that is not known."""

    def moved(self, by_ns: int) -> Interval:
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
        return _microseconds(self.start_ns)

    @property
    def end_us(self) -> float:
        """To when, microseconds."""
        return _microseconds(self.end_ns)

    @property
    def span_us(self) -> tuple[int, int]:
        """From when to when, whole microseconds."""
        return self.start_ns // 1000, self.end_ns // 1000

    @property
    def slowdown_us(self) -> float:
        """How much longer it took because of what ran beside it, microseconds."""
        return _microseconds(self.slowdown_ns)

    @property
    def parts_ns(self) -> tuple[tuple[int, int], ...]:
        """(start, end) of copy in, run and copy out; empty where that is not known."""
        return tuple(pairwise((self.start_ns, *self.engine_ns, self.end_ns))) if self.engine_ns else ()

    @property
    def parts_us(self) -> tuple[float, ...]:
        """How long copy in, run and copy out took, microseconds; empty where that is not known."""
        return tuple((end_ns - start_ns) / 1000 for start_ns, end_ns in self.parts_ns)


def link_name(source: str, target: str) -> str:
    """Return the name of a link between two devices, on whose row messages are at work."""
    return f"{source} -> {target}"


class HasChunks(Protocol):
    """What has chunks, in order of their layers: a stream, or how one is shown."""

    @property
    def chunks(self) -> tuple[Chunk, ...]:
        """The chunks."""


def is_message(event: Interval, streams: Sequence[HasChunks]) -> bool:
    """Return whether an interval is a message of a chunk, on its link, and not the chunk on its unit."""
    return event.unit != streams[event.stream].chunks[event.chunk].unit


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What happened when. The properties below are in whole microseconds.

    Attributes
    ----------
    streams
        Who is served; of a workload, its requests.
    units
        Names of units, in order: all units of the platform where a plan was simulated, else those in use.
    events
        All chunks of all requests, in order of their start.
    in_rounds
        Whether the streams are the requests of one workload.
    plan
        The plan that was played; None for replicas, which are no plan.
    arrivals_us
        When each request came in; empty where that is not known.
    deployment
        What was executed, on a device or on a simulated one; None: `simulate` played the plan.
    """

    streams: tuple[Stream, ...]
    units: tuple[str, ...]
    events: tuple[Interval, ...]
    in_rounds: bool = False
    plan: Plan | None = None
    arrivals_us: tuple[int, ...] = ()
    deployment: Deployment | None = None

    @property
    def measured(self) -> bool:
        """Whether it is of an execution; else it is a prediction."""
        return self.deployment is not None

    @property
    def is_batch(self) -> bool:
        """Whether a finite batch of requests was executed, over and over."""
        return self.deployment is not None and self.deployment.is_batch

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the requests of a workload; empty for streams."""
        return tuple(stream.name for stream in self.streams) if self.in_rounds else ()

    @property
    def used_units(self) -> tuple[str, ...]:
        """Names of the units in use: in the order of the chunks where nothing else decides.

        Links in use stand among them in the order in which the first request passes them.
        """
        used = dict.fromkeys(chunk.unit for stream in self.streams for chunk in stream.chunks)
        if any(event.unit not in used for event in self.events):
            passed = sorted(self.events, key=lambda event: (event.stream, event.request, event.start_ns))
            return tuple(dict.fromkeys(event.unit for event in passed))
        return tuple(unit for unit in self.units if unit in used) if self.in_rounds else tuple(used)

    @property
    def makespan_us(self) -> int:
        """End of the last request."""
        return max(event.end_ns for event in self.events) // 1000

    @property
    def output_us(self) -> tuple[int, ...]:
        """When each request was finished: all streams of the first number or round, then of the next."""
        return tuple(end_ns // 1000 for _, end_ns in self._spans_ns())

    @property
    def latency_us(self) -> tuple[int, ...]:
        """From arrival to exit, for each request; from its first start where arrivals are not known."""
        spans = self._spans_ns()
        begins_ns = [1000 * at for at in self.arrivals_us] or [start_ns for start_ns, _ in spans]
        return tuple((end - begin) // 1000 for begin, (_, end) in zip(begins_ns, spans, strict=True))

    @property
    def period_us(self) -> int | None:
        """Time between the last two outputs; None for a single request."""
        outputs = self.output_us
        return outputs[-1] - outputs[-2] if len(outputs) > 1 else None

    def on(self, unit: str) -> tuple[Interval, ...]:
        """Return the events of one unit, in order."""
        return tuple(event for event in self.events if event.unit == unit)

    def bubble_us(self, unit: str) -> int | None:
        """Return the idle time of a unit between its first start and last end; None if not used."""
        events = self.on(unit)
        if not events:
            return None
        busy_ns = sum(event.end_ns - event.start_ns for event in events)
        return (events[-1].end_ns - events[0].start_ns - busy_ns) // 1000

    def rounds(self) -> dict[int, tuple[Interval, ...]]:
        """Return the events by their number (`Interval.request`), in order."""
        found: defaultdict[int, list[Interval]] = defaultdict(list)
        for event in self.events:
            found[event.request].append(event)
        return {number: tuple(events) for number, events in sorted(found.items())}

    def outputs_ns(self) -> Iterator[int]:
        """Yield when each request of each stream (of a workload: each round) was through, in order."""
        done: dict[tuple[int, int], int] = {}
        for event in self.events:
            output = (event.request, 0 if self.in_rounds else event.stream)
            done[output] = max(event.end_ns, done.get(output, 0))
        yield from sorted(done.values())

    def _spans_ns(self) -> list[tuple[int, int]]:
        """Return the first start and the last end of each request."""
        spans: dict[tuple[int, int], tuple[int, int]] = {}
        for event in self.events:
            key = (event.request, event.stream)
            start, end = spans.get(key, (event.start_ns, event.end_ns))
            spans[key] = (min(start, event.start_ns), max(end, event.end_ns))
        return [span for _, span in sorted(spans.items())]


@dataclass(frozen=True, slots=True, kw_only=True)
class SteadyState:
    """Streams that go in step, once their pipeline is full: they do the same over and over."""

    period_us: float  # from one round to the next
    events: tuple[Interval, ...]
    """One round: a request of each stream. A round of a batch begins at 0."""

    def window(self, rounds: int) -> tuple[Interval, ...]:
        """Return what happens in so many periods, from 0 on: what reaches beyond either end is cut there.

        Units that run ahead of others work on later rounds; rounds are numbered from 0.
        """
        begin_ns = min(event.start_ns for event in self.events)
        end_ns = max(event.end_ns for event in self.events)
        ahead = ceil((end_ns - begin_ns) / 1000 / self.period_us)
        whole_ns = round(1000 * self.period_us * rounds)
        found = []
        for number in range(ahead + rounds):
            by_ns = round(1000 * self.period_us * (number - ahead)) - begin_ns
            for event in self.events:
                start, stop = max(0, event.start_ns + by_ns), min(whole_ns, event.end_ns + by_ns)
                if start < stop:
                    lost = min(event.slowdown_ns, stop - start)
                    found.append(
                        replace(
                            event, start_ns=start, end_ns=stop, slowdown_ns=lost, request=number, engine_ns=()
                        )
                    )
        first = min(event.request for event in found)
        return tuple(replace(event, request=event.request - first) for event in found)


def simulated(
    plan: Plan,
    events: Iterable[Interval],
    *,
    units: tuple[str, ...],
    arrivals_us: tuple[int, ...],
    names: tuple[str, ...] = (),
    streams: tuple[Stream, ...] = (),
) -> History:
    """Return the history of a plan that was played; `names`: of the requests of its workload, the streams.

    Without names, an order of the plan is that of its streams side by side. `streams`: what served it, where
    the chunks of the plan do not say so.
    """
    return History(
        streams=streams
        or tuple(Stream(name=name, chunks=plan.of(name)) for name in names or plan.order)
        or (Stream(name=plan.chunks[0].network, chunks=plan.chunks),),
        units=units,
        events=tuple(sorted(events, key=lambda e: (e.start_ns, e.end_ns, e.stream, e.request, e.chunk))),
        in_rounds=bool(names),
        plan=plan,
        arrivals_us=arrivals_us,
    )


def executed(deployment: Deployment, events: Iterable[Interval]) -> History:
    """Return the history of an execution."""
    names = [stream.name for stream in deployment.streams]

    def place(event: Interval) -> tuple[object, ...]:
        # What starts at the same time has an order, too: that of trace files.
        name = names[event.stream]
        return event.start_ns, event.engine_ns, event.end_ns, name, event.request, event.chunk

    return History(
        streams=deployment.streams,
        units=deployment.units,
        events=tuple(sorted(events, key=place)),
        in_rounds=deployment.rounds is not None,
        plan=deployment.plan,
        deployment=deployment,
    )


def _microseconds(time_ns: int) -> float:
    """Return nanoseconds in microseconds: a whole number where it is one, as simulated times are."""
    whole, rest = divmod(time_ns, 1000)
    return time_ns / 1000 if rest else whole


@dataclass(frozen=True, slots=True)
class Usage:
    """Memory over time."""

    steps: tuple[tuple[int, int], ...]  # (microsecond, bytes in use from then on), in order
    while_bytes: tuple[int, ...]  # most bytes in use while any chunk of a request runs, by request

    @property
    def peak_bytes(self) -> int:
        """Most bytes in use at any instant."""
        return max(used for _, used in self.steps)


def usage_of(
    changes: Iterable[tuple[int, int]], spans: Iterable[tuple[int, int, int]], *, base: int, requests: int
) -> Usage:
    """Return memory over time from what is taken and given back.

    `changes`: (microsecond, bytes taken, or given back if negative), in any order; what happens in the same
    microsecond happens at once. `spans`: (request, start, end in microseconds) of each chunk that has run.
    """
    steps, used = [], base
    for time, group in groupby(sorted(changes), key=lambda change: change[0]):
        used += sum(change[1] for change in group)
        steps.append((time, used))
    most = [0] * requests
    times = [time for time, _ in steps]
    for request, start_us, end_us in spans:
        during = steps[bisect_left(times, start_us) : bisect_left(times, end_us)]
        most[request] = max([most[request], *(used for _, used in during)])
    return Usage(tuple(steps), tuple(most))
