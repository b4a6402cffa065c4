"""What of the traces of a subject is drawn, predicted and measured: who ran on which unit, when."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median_low

from ...executor.history import History, Work, history
from ...formulations.flow_shop.tables import workload_in
from ...formulations.plan import Chunk
from ..words import microseconds
from .subject import Subject


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """A stream of a deployment: its name and its chunks. The requests of a workload are streams of one each.

    Attributes
    ----------
    name
        Unique in the deployment.
    chunks
        In order of their layers.
    colour
        What tells it from its neighbours; requests of one stream are told apart by their numbers.
    alone
        Whether it is a request of a workload: then its name, not a number, tells it from others.
    high
        Whether its network is of high contention.
    """

    name: str
    chunks: tuple[Chunk, ...]
    colour: int
    alone: bool = False
    high: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """One trace.

    Attributes
    ----------
    title
        "predicted" or "measured".
    note
        What of it is shown, where that is not all.
    works
        In order of their start, which is 0 for the first or later.
    """

    title: str
    note: str
    works: tuple[Work, ...]

    @property
    def end_us(self) -> float:
        """When the last one ends."""
        return max(work.end_us for work in self.works)

    def on(self, unit: str) -> tuple[Work, ...]:
        """Return what a unit did, in order."""
        return tuple(work for work in self.works if work.unit == unit)


def lanes_of(subject: Subject) -> tuple[Lane, ...]:
    """Return the streams of a subject; colours follow the order of arrival, whatever the plan's order is."""
    problem, streams = subject.problem, subject.deployment.streams
    workload = workload_in(problem)
    arrival = workload.names if workload else tuple(stream.name for stream in streams)
    interference = problem.interference
    return tuple(
        Lane(
            name=stream.name,
            chunks=stream.chunks,
            colour=arrival.index(stream.name) if stream.name in arrival else index,
            alone=subject.deployment.rounds is not None,
            high=interference is not None and interference.is_high(stream.network),
        )
        for index, stream in enumerate(streams)
    )


def played(subject: Subject) -> tuple[Played, ...]:
    """Return the traces of a subject that are known, the predicted one first."""
    found = []
    if subject.predicted is not None and subject.predicted.events:
        # A stream of rounds is played once: the simulation knows one round.
        rounds = subject.deployment.rounds
        note = "" if rounds is None or subject.deployment.is_batch else "one round"
        past = history(subject.predicted)
        found.append(Played(title="predicted", note=note, works=_on_lanes(subject, past, past.works)))
    if subject.measured is not None and subject.measured.events:
        past = history(subject.measured)
        note, works = _typical_round(past) if subject.measured.deployment.is_batch else ("", past.works)
        first_ns = min(work.start_ns for work in works)
        works = [work.moved(-first_ns) for work in works]
        found.append(Played(title="measured", note=note, works=_on_lanes(subject, past, works)))
    return tuple(found)


def _on_lanes(subject: Subject, past: History, works: Sequence[Work]) -> tuple[Work, ...]:
    """Return works with their streams in the order of the deployment."""
    index = {stream.name: number for number, stream in enumerate(subject.deployment.streams)}
    lanes = [index[stream.name] for stream in past.streams]
    return tuple(sorted(replace(work, stream=lanes[work.stream]) for work in works))


def round_makespans_us(past: History) -> dict[int, float]:
    """Return from first start to last end of each round of a batch, by its number."""
    return {number: _makespan_us(works) for number, works in past.rounds().items()}


def _typical_round(past: History) -> tuple[str, Sequence[Work]]:
    """Return the round of a batch whose makespan is the median; the first one, a warm-up, does not count."""
    rounds = past.rounds()
    if len(rounds) == 1:
        (works,) = rounds.values()
        return "", works
    times = {number: _makespan_us(works) for number, works in list(rounds.items())[1:]}
    middle = median_low(times.values())
    number = next(number for number, time in times.items() if time == middle)
    note = f"round {number + 1} of {len(rounds)}, the one with the median makespan ({microseconds(middle)})"
    return note, [replace(work, request=0) for work in rounds[number]]


def _makespan_us(works: Sequence[Work]) -> float:
    return (max(work.end_ns for work in works) - min(work.start_ns for work in works)) / 1000


def together(works: Sequence[Work], lanes: Sequence[Lane]) -> Iterator[tuple[float, float]]:
    """Yield the times at which two or more requests of high contention run (start, end), in order."""
    changes = sorted(
        (time, change)
        for work in works
        if lanes[work.stream].high
        for time, change in ((work.start_us, 1), (work.end_us, -1))
    )
    running, since = 0, 0.0
    for time, change in changes:
        before, running = running, running + change
        if before < 2 <= running:
            since = time
        elif running < 2 <= before and time > since:
            yield since, time
