"""Who runs when: the event simulation of a workload on an integer clock (`formulations/play.py`).

The judge, the native search and the tools that show traces all play plans here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..losses import Loss, Mark
from ..play import Run, Units
from ..streams import default_task_slots
from .tables import FlowShop, Schedule


@dataclass(frozen=True, slots=True)
class Job:
    """One request at its position in the order."""

    request: int  # index of the request
    arrival_us: int  # when it comes in
    chunks: tuple[tuple[int, int], ...]
    """(unit, work in microseconds) of its chunks that are not empty, in order."""
    marks: tuple[Mark, ...]  # how sensitive and how intense each of them is


def jobs_of(shop: FlowShop, schedule: Schedule) -> list[Job]:
    """Return the jobs of a schedule, in order."""
    requests = shop.workload.requests
    jobs = []
    for request in schedule.order:
        cuts = schedule.cuts[request]
        times = shop.times_us(request, cuts)
        chunks = tuple((unit, time) for unit, time in enumerate(times) if time)
        marks = tuple(shop.mark(request, unit, cuts[unit], cuts[unit + 1]) for unit, _ in chunks)
        jobs.append(Job(request, requests[request].arrival_us, chunks, marks))
    return jobs


def play_asynchronous(
    jobs: Sequence[Job],
    unit_count: int,
    loss: Loss | None,
    task_slots: int | None = None,
    *,
    rounds: int = 1,
    endless: bool = False,
) -> list[Run]:
    """Play jobs freely: a chunk starts as soon as its job and its unit are ready.

    Each unit serves the jobs in order; a job neither waits for a unit that it skips nor blocks it. In rounds,
    no job is further ahead of itself than the task slots of its stream allow, as on a device: a unit with
    little to do waits for the others.

    `jobs`: of one round, in order. `loss`: `Losses.loss`, or None for no slowdown. `task_slots`:
    most jobs on their way at once, or None. `rounds`: how often the jobs come, without waiting; positions
    count on from round to round. `endless`: whether more rounds follow, so that the last of the rounds have
    company, too.
    Runs are in the order of their ends; of an endless play, up to the end of the rounds.
    """
    if loss is None and task_slots is None and rounds == 1:
        return _play_alone(jobs, unit_count)
    return _Play(jobs, unit_count, loss, task_slots).run(rounds, endless=endless)


def _play_alone(jobs: Sequence[Job], unit_count: int) -> list[Run]:
    """Without slowdown: the flow-shop recursion with bypass (formulations, section 4)."""
    free = [0] * unit_count
    runs = []
    for position, job in enumerate(jobs):
        at = job.arrival_us
        for unit, work in job.chunks:
            start = max(at, free[unit])
            at = free[unit] = start + work
            runs.append(Run(position, unit, start, at, work))
    return sorted(runs, key=lambda run: (run.end_us, run.position))


class _Play:
    """The state of one asynchronous play."""

    def __init__(
        self, jobs: Sequence[Job], unit_count: int, loss: Loss | None, task_slots: int | None
    ) -> None:
        self._jobs = jobs
        self._slots = task_slots
        self._units = Units(loss)
        # What each unit does in one round: (place of the job, index of its chunk).
        self._queues: list[list[tuple[int, int]]] = [[] for _ in range(unit_count)]
        for place, job in enumerate(jobs):
            for index, (unit, _) in enumerate(job.chunks):
                self._queues[unit].append((place, index))
        self._served = [0] * unit_count
        self._next: dict[int, int] = {}
        """Chunks that have ended, by position of the job on its way."""
        self._left = [0] * len(jobs)
        """How often each job has left."""

    def run(self, rounds: int, *, endless: bool) -> list[Run]:
        """Play until every job has left as often as there are rounds."""
        runs: list[Run] = []
        entered = rounds + endless * max(default_task_slots(len(job.chunks)) for job in self._jobs)
        now = 0
        while min(self._left) < rounds:
            arrival = self._start_ready(now, entered)
            end = self._units.next_end_us(now)
            now = min(time for time in (arrival, end) if time is not None)
            for run in self._units.stop(now) if now == end else ():
                runs.append(run)
                self._end_chunk(run.position)
        return runs

    def _end_chunk(self, position: int) -> None:
        place = position % len(self._jobs)
        done = self._next.get(position, 0) + 1
        if done < len(self._jobs[place].chunks):
            self._next[position] = done
        else:
            self._next.pop(position, None)
            self._left[place] += 1

    def _start_ready(self, now_us: int, rounds: int) -> int | None:
        """Start every chunk that can start; return when the next job that could start arrives."""
        arrivals = []
        for unit, queue in enumerate(self._queues):
            if unit in self._units.running or self._served[unit] == rounds * len(queue):
                continue
            number, turn = divmod(self._served[unit], len(queue))
            place, index = queue[turn]
            job, position = self._jobs[place], number * len(self._jobs) + place
            if (index and self._next.get(position, 0) != index) or (
                not index and not self._may_enter(position)
            ):
                continue
            if job.arrival_us > now_us:
                arrivals.append(job.arrival_us)
                continue
            self._served[unit] += 1
            self._units.start(position, job.marks[index], unit, job.chunks[index][1], now_us)
        return min(arrivals, default=None)

    def _may_enter(self, position: int) -> bool:
        """Return whether the job finds a task slot."""
        number, place = divmod(position, len(self._jobs))
        if number - self._left[place] >= default_task_slots(len(self._jobs[place].chunks)):
            return False
        return self._slots is None or position - sum(self._left) < self._slots


def play_columns(jobs: Sequence[Job], unit_count: int, loss: Loss | None) -> list[Run]:
    """Play jobs in Hetero2Pipe's columns: chunks with the same position + unit index start together.

    The next column starts when the last chunk of this one has ended (Definition 3).
    """
    runs: list[Run] = []
    now = 0
    work = [
        {unit: (us, mark) for (unit, us), mark in zip(job.chunks, job.marks, strict=True)} for job in jobs
    ]
    for column in range(len(jobs) + unit_count - 1):
        units = Units(loss)
        for unit in range(unit_count):
            position = column - unit
            if 0 <= position < len(jobs) and unit in work[position]:
                work_us, mark = work[position][unit]
                units.start(position, mark, unit, work_us, now)
        while (end := units.next_end_us(now)) is not None:
            runs += units.stop(end)
            now = end
    return runs
