"""Task streams: networks that run one after the other on the same devices, planned ahead or during the run.

Each task is a network, a plan for it and a number of items. A device goes on to the next task when it has
finished its last item of this one, so that a switch between plans that are known ahead idles nobody longer
than the pipeline takes to fill (EPipe 2.1, Fig. 1). Where a network is profiled and planned when its turn
comes, all devices wait for that.

Every pipeline is a row of servers: a device that computes, the message behind it, the next device, and so
on; without overlap a device and its messages are one server. The k-th item leaves a server of time t at

    e_k = max(a_k, e_(k-1)) + t = t (k + 1) + max over i <= k of (a_i - i t),

a_k being its arrival; so a pipeline is played without a loop over its items.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ..errors import InvalidInputError
from ..plan import Plan
from ..problem import Problem
from .plans import Pipeline, pipe_names
from .quantities import PipelineValues
from .tables import Cluster, cluster_of

MOST_ITEMS = 1_000_000
"""Most items of one task: times of all of them are kept while it is played."""

Times = npt.NDArray[np.int64]

Server = tuple[str, int]
"""What a device does, and its index: each of them serves one item at a time."""

Row = list[tuple[Server, int]]
"""The servers of a pipeline, in order, each with its time for one item."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A network that has to process some items.

    Attributes
    ----------
    problem, plan
        The network on the devices, and a valid plan for it.
    items
        How many; an item is what one run of the plan takes, e.g. a batch of pictures.
    """

    problem: Problem
    plan: Plan
    items: int


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

    Attributes
    ----------
    kind
        What.
    task
        Index of the task.
    device
        Its name.
    start_us, end_us
        From when to when; of a task: from its first item to its last one.
    busy_us
        How long it computes in that.
    pipeline
        Name of its pipeline; empty where there is one only.
    items
        How many it processes.
    """

    kind: SpanKind
    task: int
    device: str
    start_us: int
    end_us: int
    busy_us: int = 0
    pipeline: str = ""
    items: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedTask:
    """One task of a stream, at work.

    Attributes
    ----------
    network
        Name of its network.
    items
        How many each pipeline processes, in the order of the plan.
    start_us, end_us
        From the first device's start to the last result.
    """

    network: str
    items: tuple[int, ...]
    start_us: int
    end_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedStream:
    """A task stream at work.

    Attributes
    ----------
    tasks
        In their order.
    spans
        What each device does, in order of the start.
    """

    tasks: tuple[PlayedTask, ...]
    spans: tuple[Span, ...]

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

    Parameters
    ----------
    completions_us
        When each pipeline would finish its first, second, ... item; `items` of them each.
    items
        How many in all.
    """
    owner = np.repeat(np.arange(len(completions_us)), [len(times) for times in completions_us])
    order = np.argsort(np.concatenate(completions_us), kind="stable")[:items]
    return tuple(int(count) for count in np.bincount(owner[order], minlength=len(completions_us)))


def play_stream(tasks: Sequence[Task], planning: PlanningTime | None = None) -> PlayedStream:
    """Play tasks one after the other.

    Parameters
    ----------
    tasks
        At least one; all of them on devices of the same names.
    planning
        What each task waits for when its turn comes; None: plans are known ahead.

    Raises
    ------
    InvalidInputError
        There is no task, one has no items or too many, or the devices differ.
    InvalidPlanError
        A plan is not for its problem.
    """
    _check(tasks)
    free: dict[Server, int] = {}
    spans: list[Span] = []
    played = []
    for number, task in enumerate(tasks):
        if planning is not None:
            begin = max(free.values(), default=0)
            spans += _waiting(task, number, begin, planning)
            free = dict.fromkeys(_servers(cluster_of(task.problem)), begin + planning.whole_us)
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


def _servers(cluster: Cluster) -> Iterable[Server]:
    return (
        (kind, device) for kind in ("receives", "computes", "sends") for device in range(cluster.device_count)
    )


def _waiting(task: Task, number: int, begin_us: int, planning: PlanningTime) -> list[Span]:
    times = (
        (SpanKind.PROFILE, begin_us, begin_us + planning.profile_us),
        (SpanKind.IDLE, begin_us + planning.profile_us, begin_us + planning.whole_us),
    )
    return [
        Span(kind=kind, task=number, device=device, start_us=start, end_us=end)
        for device in task.problem.platform.unit_names
        for kind, start, end in times
        if start < end
    ]


def _play(task: Task, number: int, free: dict[Server, int]) -> tuple[PlayedTask, list[Span]]:
    """Play one task from when its servers are free, and set when they are free again."""
    problem = task.problem
    formulation = problem.formulation
    values = formulation.numbers(problem, formulation.code(problem, task.plan))
    assert isinstance(values, PipelineValues)
    rows = [_row(values.cluster, stages) for stages in values.stages]
    ends = [_through(row, free, task.items) for row in rows]
    shares = spread([each[-1] for each in ends], task.items)
    spans = []
    starts, last = [], 0
    names = pipe_names(len(rows))
    for row, times, share, name in zip(rows, ends, shares, names, strict=True):
        for (server, time), own in zip(row, times, strict=True):
            if not share:
                continue
            free[server] = int(own[share - 1])
            last = max(last, free[server])
            if server[0] == "computes":
                compute = values.busy_us[server[1]]
                starts.append(int(own[0]) - time)
                spans.append(
                    Span(
                        kind=SpanKind.TASK,
                        task=number,
                        device=values.cluster.devices[server[1]],
                        start_us=starts[-1],
                        end_us=free[server],
                        busy_us=compute * share,
                        pipeline=name,
                        items=share,
                    )
                )
    done = PlayedTask(network=problem.network.name, items=shares, start_us=min(starts), end_us=last)
    return done, spans


def _row(cluster: Cluster, stages: Pipeline) -> Row:
    """Return the servers of a pipeline, in order, with their times."""
    if not cluster.data.overlap:
        return [(("computes", stage.device), stage.stage_us) for stage in stages]
    row = []
    for stage in stages:
        times = (stage.receive_us, stage.compute_us, stage.send_us)
        parts = zip(("receives", "computes", "sends"), times, strict=True)
        row += [((kind, stage.device), time) for kind, time in parts if time or kind == "computes"]
    return row


def _through(row: Row, free: Mapping[tuple[str, int], int], items: int) -> list[Times]:
    """Return when each item leaves each server of a row, all items being there from the beginning."""
    index = np.arange(items, dtype=np.int64)
    arrivals = np.zeros(items, np.int64)
    found = []
    for server, time in row:
        waiting = np.maximum(arrivals, free.get(server, 0))
        arrivals = time * (index + 1) + np.maximum.accumulate(waiting - time * index)
        found.append(arrivals)
    return found
