"""Task streams: networks that run one after the other on the same devices, planned ahead or during the run.

Each task is a network, a plan for it and a number of items. A device goes on to the next task when it has
finished its last item of this one, so that a switch between plans that are known ahead idles nobody longer
than the pipeline takes to fill (EPipe 2.1, Fig. 1). Where a network is profiled and planned when its turn
comes, all devices wait for that.

Every pipeline is a line of servers: a device that computes, the message behind it, the next device, and so
on; without overlap a device and its messages are one server. Items pass it by the clock of all streams
(`flight.py`).
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice, pairwise

from .errors import InvalidInputError
from .flight import served, slots_in_line
from .operation import Line, Server, ServerKind, operation_of
from .plan import Plan
from .problem import Problem

MOST_ITEMS = 100_000
"""Most items of one task: times of all of them are kept while it is played."""

Times = list[int]
"""When items leave, microseconds."""

Free = dict[tuple[ServerKind, str], int]
"""When each server is free again, microseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A network that has to process some items.

    `problem`, `plan`: the network on the devices, and a valid plan for it.
    """

    problem: Problem
    plan: Plan
    items: int
    """How many; an item is what one run of the plan takes, e.g. a batch of pictures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanningTime:
    """What it costs to plan when a network's turn comes; all devices wait.

    Attributes
    ----------
    profile_us
        Time to measure the layers on the devices, microseconds.
    idle_us
        Time from then until the first device begins: results are collected, a plan is made and sent out.
    """

    profile_us: int = 0
    idle_us: int = 0

    @property
    def whole_us(self) -> int:
        """Time of both, microseconds."""
        return self.profile_us + self.idle_us


class SpanKind(StrEnum):
    """What a device does."""

    TASK = "task"
    PROFILE = "profiling"
    IDLE = "planning"


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """What a device does from one time to another.

    `start_us`, `end_us`: from when to when; of a task: from its first item to its last one.
    """

    kind: SpanKind  # what
    task: int  # index of the task
    device: str  # its name
    start_us: int
    end_us: int
    busy_us: int = 0  # how long it computes in that
    pipeline: str = ""  # name of its pipeline; empty where there is one only
    items: int = 0  # how many it processes


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedTask:
    """One task of a stream, at work.

    `start_us`, `end_us`: from the first device's start to the last result.
    """

    network: str  # name of its network
    items: tuple[int, ...]  # how many each pipeline processes, in the order of the plan
    start_us: int
    end_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedStream:
    """A task stream at work."""

    tasks: tuple[PlayedTask, ...]  # in their order
    spans: tuple[Span, ...]  # what each device does, in order of the start

    @property
    def makespan_us(self) -> int:
        """End of the last result, microseconds."""
        return max(task.end_us for task in self.tasks)

    @property
    def switch_us(self) -> Mapping[str, tuple[int, ...]]:
        """Time between the last item of one task and the first of the next on each device, microseconds."""
        found: dict[str, list[Span]] = {}
        for span in self.spans:
            if span.kind is SpanKind.TASK:
                found.setdefault(span.device, []).append(span)
        return {
            device: tuple(after.start_us - before.end_us for before, after in pairwise(spans))
            for device, spans in found.items()
        }


def spread(completions_us: Sequence[Times], items: int) -> tuple[int, ...]:
    """Return how many items each pipeline takes so that the last result comes first.

    Taking the earliest results of all pipelines is best: a pipeline's k-th result does not depend on how
    many follow. For pipelines that start empty it is the minimum over n_1 + n_2 + ... = N of the largest
    latency_p + (n_p - 1) period_p.

    `completions_us`: when each pipeline would finish its first, second, ... item; `items` of them each.
    """
    owned = ([(time, line) for time in times] for line, times in enumerate(completions_us))
    taken = Counter(line for _, line in islice(heapq.merge(*owned), items))
    return tuple(taken[line] for line in range(len(completions_us)))


def play_stream(tasks: Sequence[Task], planning: PlanningTime | None = None) -> PlayedStream:
    """Play tasks one after the other.

    `tasks`: at least one; all of them on devices of the same names; `planning`: what each task waits for when
    its turn comes; None: plans are known ahead.
    Raises InvalidInputError: there is no task, one has no items or too many, or the devices differ.
    Raises InvalidPlanError: a plan is not for its problem.
    """
    _check(tasks)
    free: Free = {}
    spans: list[Span] = []
    played = []
    for number, task in enumerate(tasks):
        devices = task.problem.platform.unit_names
        if planning is not None:
            begin = max(free.values(), default=0)
            spans += _waiting(devices, number, begin, planning)
            free = {(kind, name): begin + planning.whole_us for kind in ServerKind for name in devices}
        done, found = _play(task, number, free)
        played.append(done)
        spans += found
    return PlayedStream(tasks=tuple(played), spans=tuple(sorted(spans, key=lambda s: (s.start_us, s.device))))


def _check(tasks: Sequence[Task]) -> None:
    if not tasks:
        raise InvalidInputError("a task stream needs at least one task")
    devices = tasks[0].problem.platform.unit_names
    for task in tasks:
        name = task.problem.network.name
        if not 0 < task.items <= MOST_ITEMS:
            raise InvalidInputError(f"{name}: {task.items} items, must be from 1 to {MOST_ITEMS:,}")
        if task.problem.platform.unit_names != devices:
            raise InvalidInputError(
                f"{name} runs on {', '.join(task.problem.platform.unit_names)}, the first task on "
                f"{', '.join(devices)}: plan all of them for one platform"
            )


def _waiting(devices: Iterable[str], number: int, begin_us: int, planning: PlanningTime) -> list[Span]:
    middle, end = begin_us + planning.profile_us, begin_us + planning.whole_us
    times = ((SpanKind.PROFILE, begin_us, middle), (SpanKind.IDLE, middle, end))
    return [
        Span(kind=kind, task=number, device=device, start_us=start, end_us=stop)
        for device in devices
        for kind, start, stop in times
        if start < stop
    ]


def _play(task: Task, number: int, free: Free) -> tuple[PlayedTask, list[Span]]:
    """Play one task from when its servers are free, and set when they are free again."""
    lines = operation_of(task.problem).lines(task.problem, task.plan)
    ends = [_through(line, free, task.items) for line in lines]
    shares = spread([each[-1] for each in ends], task.items)
    spans: list[Span] = []
    last = 0
    for line, times, share in zip(lines, ends, shares, strict=True):
        for server, own in zip(line.servers, times, strict=True) if share else ():
            free[server.kind, server.unit] = end = own[share - 1]
            last = max(last, end)
            if server.kind is ServerKind.COMPUTES:
                start = own[0] - server.time_us
                spans.append(_span(number, line, server, (start, end), share))
    start = min(span.start_us for span in spans)
    network = task.problem.network.name
    return PlayedTask(network=network, items=shares, start_us=start, end_us=last), spans


def _span(number: int, line: Line, server: Server, times_us: tuple[int, int], items: int) -> Span:
    return Span(
        kind=SpanKind.TASK,
        task=number,
        device=server.unit,
        start_us=times_us[0],
        end_us=times_us[1],
        busy_us=items * server.time_us,
        pipeline=line.name,
        items=items,
    )


def _through(line: Line, free: Free, items: int) -> list[Times]:
    """Return when each item leaves each server of a line, all items being there from the beginning."""
    servers = line.servers
    chunks = sum(server.kind is ServerKind.COMPUTES for server in servers)
    visits = served(
        [server.time_us for server in servers],
        (0,) * items,
        slots_in_line(chunks, len(servers)),
        [free.get((server.kind, server.unit), 0) for server in servers],
    )
    found: list[Times] = [[] for _ in servers]
    for visit in visits:  # every station serves in order
        found[visit.station].append(visit.end_us)
    return found
