"""Who runs when: requests played on an integer clock, each unit with an order of its own, or in columns.

A chunk starts as soon as its unit, the chunk before it, the requests that its request waits for, and its
release allow, and it is its turn on the unit. The judge, native searches and everything that shows a plan at
work play plans here.

A chunk of work T that starts at S ends at the first whole microsecond t with

    t - S >= T + sum over other chunks b of floor(loss(b) * overlap(b, t) / 1000) - floor(spared(t) / 1000),

overlap(b, t) being the time that both have run beside each other until t: b takes the share loss(b)
of its progress while it runs. Where those that run at an instant would take more than
`MOST_LOSS_PERMILLE` together, what is more is spared: spared(t) is the sum of that until t. Everything is
an integer, so the exact backends can state the same condition as rows and get the same numbers, not close
ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from .losses import MOST_LOSS_PERMILLE, Loss, Mark
from .streams import default_task_slots

Part = tuple[int, int, int]
"""A chunk of a request: first section, one past the last, unit."""

Parts = Sequence[Sequence[Part]]
"""The chunks of each request."""


class Run(NamedTuple):
    """A chunk at work: its request, its place among the chunks of that, and when."""

    request: int
    place: int
    part: Part
    start_us: int
    end_us: int
    work_us: int  # how long it would take alone
    round: int = 0  # how often its request has come before

    @property
    def unit(self) -> int:
        """Where it runs."""
        return self.part[2]


class Job(NamedTuple):
    """One request to play."""

    chunks: tuple[Part, ...]
    works_us: tuple[int, ...]  # how long each takes alone
    marks: tuple[Mark, ...]  # how sensitive and how intense each of them is
    entry_us: int = 0  # when it comes
    after: tuple[int, ...] = ()  # those that it waits for


@dataclass(slots=True, eq=False)
class _Running:
    request: int
    place: int
    part: Part
    round: int
    mark: Mark
    start_us: int
    work_us: int
    due_us: int
    """Start, work and the time lost to chunks that have ended."""
    beside: list[tuple[_Running, int, int]] = field(default_factory=list)
    """Chunks that run at the same time: (chunk, since when, loss in permille)."""
    over: int = 0
    """By how many permille they would take more than it can lose, since `seen_us`."""
    spared: int = 0
    """The sum of that up to then, in thousandths of a microsecond."""
    seen_us: int = 0

    def end_us(self, now_us: int) -> int:
        """Return when it will end if its company stays as it is, which it is from now on.

        The least t with t >= due + sum of floor(loss (t - since) / 1000) - floor(spared / 1000), approached
        from below: without a cap at work the right side never falls, and t may go there at once.
        """
        if self.over:
            self.spared += self.over * (now_us - self.seen_us)
            self.over = 0
        due = self.due_us
        if not self.beside:
            return due - self.spared // 1000
        loss, since = 0, 0
        for _, start, rate in self.beside:
            loss += rate
            since += rate * start
        over = 0
        if loss > MOST_LOSS_PERMILLE:
            over = self.over = loss - MOST_LOSS_PERMILLE
            self.seen_us = now_us
        spared = self.spared - over * now_us
        lower = (1000 * (due - len(self.beside)) - since - spared) // (1000 - loss + over)
        at = max(lower, now_us)
        while True:
            reached = due - (spared + over * at) // 1000
            for _, start, rate in self.beside:
                reached += rate * (at - start) // 1000
            if reached <= at:
                return at
            at = at + 1 if over else reached


class Units:
    """The units at work: who runs where, and since when beside whom."""

    def __init__(self, loss: Loss | None) -> None:
        self._loss = loss
        self._ends: list[tuple[_Running, int]] = []
        self.running: dict[int, _Running] = {}

    def start(self, job: Job, request: int, place: int, now_us: int, round_: int = 0) -> None:
        """Start a chunk of a request."""
        part, mark, work_us = job.chunks[place], job.marks[place], job.works_us[place]
        new = _Running(request, place, part, round_, mark, now_us, work_us, now_us + work_us)
        unit, loss = part[2], self._loss
        if loss is not None:
            for there, other in self.running.items():
                mine = loss(unit, mark, there, other.mark)
                theirs = loss(there, other.mark, unit, mark)
                if mine:
                    new.beside.append((other, now_us, mine))
                if theirs:
                    other.beside.append((new, now_us, theirs))
        self.running[unit] = new

    def next_end_us(self, now_us: int) -> int | None:
        """Return when the next chunk ends, or None when nothing runs."""
        self._ends = [(chunk, chunk.end_us(now_us)) for chunk in self.running.values()]
        return min((end for _, end in self._ends), default=None)

    def stop(self, at_us: int) -> list[Run]:
        """Take out and return the chunks that end at a time, which is what `next_end_us` has just said."""
        ended = [chunk for chunk, end in self._ends if end == at_us]
        for chunk in ended:
            del self.running[chunk.part[2]]
        for chunk in self.running.values():
            for other, since, rate in chunk.beside:
                if other in ended:
                    chunk.due_us += rate * (at_us - since) // 1000
            chunk.beside = [entry for entry in chunk.beside if entry[0] not in ended]
        return [Run(c.request, c.place, c.part, c.start_us, at_us, c.work_us, c.round) for c in ended]


def play(
    jobs: Sequence[Job],
    order: Iterable[int],
    unit_count: int,
    loss: Loss | None,
    task_slots: int | None = None,
    *,
    rounds: int = 1,
    endless: bool = False,
) -> list[Run]:
    """Play jobs freely, in order of the ends: a chunk starts as soon as its job and its unit are ready.

    A job neither waits for a unit that it skips nor blocks it. In rounds, no job is further ahead of itself
    than the task slots of its stream allow, as on a device: a unit with little to do waits for the others.

    `order`: a job for each of its chunks; units serve theirs in this order. What waits for others stands
    behind them. `loss`: `Losses.loss`, or None for no slowdown. `task_slots`: most jobs on their way at once,
    which enter in the order of their first chunks, or None. `rounds`: how often the jobs come, without
    waiting. `endless`: whether more rounds follow, so that the last of the rounds have company, too; what
    runs is returned up to the end of the rounds.
    """
    return _Play(jobs, order, unit_count, loss, task_slots).run(rounds, endless=endless)


class _Play:
    """The state of one play."""

    def __init__(
        self,
        jobs: Sequence[Job],
        order: Iterable[int],
        unit_count: int,
        loss: Loss | None,
        task_slots: int | None,
    ) -> None:
        self._jobs, self._slots = jobs, task_slots
        self._units = Units(loss)
        # What each unit does in one round: (job, index of its chunk).
        self._queues: list[list[tuple[int, int]]] = [[] for _ in range(unit_count)]
        self._turn: dict[int, int] = {}
        """By job, how many enter before it in each round."""
        place = [0] * len(jobs)
        for job in order:
            self._queues[jobs[job].chunks[place[job]][2]].append((job, place[job]))
            self._turn.setdefault(job, len(self._turn))
            place[job] += 1
        self._served = [0] * unit_count
        self._next: dict[tuple[int, int], int] = {}
        """Chunks that have ended, by round and job on its way."""
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
                self._end_chunk(run)
        return runs

    def _end_chunk(self, run: Run) -> None:
        if run.place + 1 < len(self._jobs[run.request].chunks):
            self._next[run.round, run.request] = run.place + 1
        else:
            self._next.pop((run.round, run.request), None)
            self._left[run.request] += 1

    def _start_ready(self, now_us: int, rounds: int) -> int | None:
        """Start every chunk that can start; return when the next job that could start arrives."""
        arrivals = []
        for unit, queue in enumerate(self._queues):
            if unit in self._units.running or self._served[unit] == rounds * len(queue):
                continue
            round_, turn = divmod(self._served[unit], len(queue))
            request, place = queue[turn]
            job = self._jobs[request]
            if place:
                if self._next.get((round_, request)) != place:
                    continue
            elif not self._may_enter(round_, request):
                continue
            elif job.entry_us > now_us:
                arrivals.append(job.entry_us)
                continue
            self._served[unit] += 1
            self._units.start(job, request, place, now_us, round_)
        return min(arrivals, default=None)

    def _may_enter(self, round_: int, request: int) -> bool:
        """Return whether what a job waits for is done, and it finds a task slot."""
        job, left = self._jobs[request], self._left
        if round_ and round_ - left[request] >= default_task_slots(len(job.chunks)):
            return False
        if job.after and any(left[other] <= round_ for other in job.after):
            return False
        if self._slots is None:
            return True
        return round_ * len(self._jobs) + self._turn[request] - sum(left) < self._slots


def play_columns(
    jobs: Sequence[Job], order: Sequence[int], unit_count: int, loss: Loss | None, *, rounds: int = 1
) -> list[Run]:
    """Play jobs in Hetero2Pipe's columns: chunks with the same position + unit index start together.

    The next column starts when the last chunk of this one has ended (Definition 3). Positions count on from
    round to round. `order`: each job once.
    """
    runs: list[Run] = []
    now = 0
    places = [{part[2]: place for place, part in enumerate(job.chunks)} for job in jobs]
    for column in range(rounds * len(order) + unit_count - 1):
        units = Units(loss)
        for unit in range(unit_count):
            round_, position = divmod(column - unit, len(order))
            request = order[position]
            if 0 <= round_ < rounds and unit in places[request]:
                units.start(jobs[request], request, places[request][unit], now, round_)
        while (end := units.next_end_us(now)) is not None:
            runs += units.stop(end)
            now = end
    return runs
