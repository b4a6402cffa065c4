"""Task streams on a cluster: the next plan is placed while the present one runs (EPipe 2.1, Fig. 1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from threading import Event
from time import monotonic_ns

from ...formulations.deployment import Deployment
from ..model import Model
from ..progress import Report, Step, silent
from ..runner import UNCHECKED, Verification
from .cluster import Cluster
from .driver import Replan
from .loss import Loss
from .pipeline import ClusterPipeline
from .recording import Passed
from .routes import END, START

_US = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterTask:
    """A network that has to process some items on a cluster.

    `model`, `engine`: the network, and who runs it.
    """

    model: Model
    engine: str
    deployment: Deployment  # its plan
    items: int  # how many
    replan: Replan | None = None
    verification: Verification | None = None
    """What came of comparing its numbers before the stream; None: they were not compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTask:
    """One task of a stream that has run.

    `start_us`, `end_us`: first start of a chunk and last end, from the start of the stream.
    """

    network: str  # name of its network
    items: int  # how many came out
    start_us: int
    end_us: int
    period_us: float  # time from one output to the next, mean
    placed_us: int  # when its sessions were open on all devices
    devices: dict[str, tuple[int, int]]  # for each device: first start and last end there
    losses: tuple[Loss, ...] = ()  # what was lost meanwhile
    verification: Verification | None = None
    """What came of comparing the numbers of its plan with the uncut model before the stream; None: they were
    not compared."""

    @property
    def numbers(self) -> str:
        """Whether its numbers are right, in words. A plan that takes over after a loss is not compared."""
        if self.verification is None:
            return UNCHECKED
        later = "; the plan that took over after a loss was not compared" if self.losses else ""
        return self.verification.words + later


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """From one task to the next on one device."""

    device: str  # its name
    task: int  # index of the next task
    idle_us: int  # from its last item of the task before to its first one of the next; never negative


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStream:
    """A task stream that has run.

    Attributes
    ----------
    tasks
        In their order.
    """

    tasks: tuple[RunTask, ...]

    @property
    def switches(self) -> tuple[Switch, ...]:
        """For each task but the first: the devices that it shares with those before."""
        found = []
        latest: dict[str, int] = {}
        for index, task in enumerate(self.tasks):
            found += [
                Switch(device=device, task=index, idle_us=max(0, start_us - latest[device]))
                for device, (start_us, _) in task.devices.items()
                if device in latest
            ]
            latest |= {device: end_us for device, (_, end_us) in task.devices.items()}
        return tuple(found)


def run_stream(cluster: Cluster, tasks: Sequence[ClusterTask], *, report: Report = silent) -> RunStream:
    """Run tasks one after the other.

    A device goes on to the next task when it has finished its last item of this one; the next task's
    sessions are opened meanwhile.
    """
    origin_ns = monotonic_ns()
    cluster.set_clocks()
    numbers = [cluster.next_task() for _ in tasks]
    playing: list[Future[RunTask]] = []
    with ThreadPoolExecutor(max_workers=4) as pool:
        opening = pool.submit(_placed, cluster, tasks[0], numbers[0], report)
        for index, task in enumerate(tasks):
            pipeline, placed_ns = opening.result()
            entered = Event()
            playing.append(pool.submit(_played, pipeline, task, entered, origin_ns, placed_ns))
            if index > 0:
                playing[index - 1].result()
            if index + 1 < len(tasks):
                opening = pool.submit(_placed, cluster, tasks[index + 1], numbers[index + 1], report)
            _wait_for(entered, playing[index])
        return RunStream(tasks=tuple(future.result() for future in playing))


def _wait_for(entered: Event, playing: Future[RunTask]) -> None:
    """Wait until all items are on their way, or the task has failed."""
    while not entered.wait(timeout=0.1) and not playing.done():
        pass


def _placed(cluster: Cluster, task: ClusterTask, number: int, report: Report) -> tuple[ClusterPipeline, int]:
    pipeline = ClusterPipeline(
        cluster,
        task.deployment,
        task.model,
        task.engine,
        task=number,
        replan=task.replan,
        report=report,
    )
    report(Step(text=f"{task.model.network.name} is placed: [{pipeline.deployment}]"))
    return pipeline, monotonic_ns()


def _played(
    pipeline: ClusterPipeline, task: ClusterTask, entered: Event, origin_ns: int, placed_ns: int
) -> RunTask:
    with pipeline:
        results = pipeline.play(_items(task.items, entered), wanted=False, ends=True)
        found = [result.passed for result in results]
    ends_ns = sorted(one.end_ns for one in found)
    start_ns = min(one.start_ns for one in found)
    window_ns = ends_ns[-1] - (ends_ns[0] if len(ends_ns) > 1 else start_ns)
    return RunTask(
        network=task.model.network.name,
        items=len(found),
        start_us=(start_ns - origin_ns) // _US,
        end_us=(ends_ns[-1] - origin_ns) // _US,
        period_us=window_ns / max(1, len(ends_ns) - 1) / _US,
        placed_us=(placed_ns - origin_ns) // _US,
        devices=_devices(found, origin_ns),
        losses=tuple(pipeline.losses),
        verification=task.verification,
    )


def _items(count: int, entered: Event) -> Iterator[None]:
    yield from (None for _ in range(count))
    entered.set()


def _devices(found: Sequence[Passed], origin_ns: int) -> dict[str, tuple[int, int]]:
    """Return the first start and the last end on each device."""
    spans: dict[str, tuple[int, int]] = {}
    for one in found:
        for device, row in zip(one.devices, one.times_ns, strict=True):
            start_us, end_us = ((row[k] - origin_ns) // _US for k in (START, END))
            first, last = spans.get(device, (start_us, end_us))
            spans[device] = min(first, start_us), max(last, end_us)
    return spans
