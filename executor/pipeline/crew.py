"""The crew of a pipeline: its workers, the pipes between them, and the watch over both."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import chain
from time import monotonic
from typing import TYPE_CHECKING, Any, NoReturn

from ...formulations.errors import UnitLostError
from ...formulations.hardware import ProcessingUnit
from ...formulations.processes import readable
from ..engine import parse_receipt
from ..workers import Message, Worker, unit_data
from .blueprint import Blueprint, StreamBlueprint
from .runs import PipelineRun
from .shared import Board, Doing, Hop, HopReader, NeighbourGoneError, SharedMemory, SlotHeader, send_hop
from .worker import TaskSettings, WorkerSettings, serve

if TYPE_CHECKING:
    from numpy.typing import NDArray


class SharedState:
    """The parent's view of the shared memory.

    Raises ExecutionError: there is not enough memory.
    """

    def __init__(self, blueprint: Blueprint) -> None:
        self.memory = SharedMemory.create(blueprint.size, reserved=blueprint.slots_end)  # the memory itself
        # how far everything is
        self.board = Board(self.memory, blueprint.board, stamps_at=blueprint.slots_end)
        # of the task slots, by [stream][slot]
        self.headers = [
            [
                SlotHeader(self.memory, stream.slot_at(slot), stream.stream.waits)
                for slot in range(stream.stream.slots)
            ]
            for stream in blueprint.streams
        ]
        self._tensors = [
            [
                {
                    spec.name: self.memory.array(spec, stream.slot_at(slot) + offset)
                    for spec, offset in zip(stream.layout.tensors, stream.layout.offsets, strict=True)
                }
                for slot in range(stream.stream.slots)
            ]
            for stream in blueprint.streams
        ]

    def tensors(self, stream: int, slot: int) -> dict[str, NDArray[Any]]:
        """Return all tensors of a task slot by name, without a copy."""
        return self._tensors[stream][slot]

    def close(self) -> None:
        """Give the memory back. Can be called twice."""
        self._tensors = []
        self.memory.close()


FIRST_TASK_LIMIT_S = 60.0
"""Least time without progress that counts as a hang while a unit has not yet done all its chunks once."""

STALL_LIMIT_S = 10.0
"""Least time without progress that counts as a hang, unless the user says otherwise."""

_PATIENCE = 20
"""A hang is at least this many times the longest task so far."""

_LONGEST_SLEEP_S = 1.0


class Watch:
    """Looks at the board now and then, and says who hangs and what is lost.

    `stall_limit_s`: how long a worker may make no progress although it has something to do. None: the larger
    of `STALL_LIMIT_S` and 20 times the longest task so far.
    """

    def __init__(self, blueprint: Blueprint, state: SharedState, stall_limit_s: float | None) -> None:
        self._blueprint = blueprint
        self._board = state.board
        self._headers = state.headers
        self._stall_limit_s = stall_limit_s
        self._tasks = [list(blueprint.tasks(index)) for index in range(len(blueprint.workers))]
        self._seen: list[object] = []
        self._since_s: list[float] = []
        self._looked_s = monotonic()

    @property
    def sleep_s(self) -> float:
        """How long the parent may sleep before it looks again."""
        limit_s = STALL_LIMIT_S if self._stall_limit_s is None else self._stall_limit_s
        return min(_LONGEST_SLEEP_S, limit_s / 4)

    def begin(self) -> None:
        """Begin to watch a run."""
        self._seen = [None for _ in self._tasks]
        self._since_s = [monotonic() for _ in self._tasks]
        self._looked_s = monotonic()

    def hung(self, done: Collection[int]) -> int | None:
        """Return a worker that has had something to do for too long, if it is time to look again.

        `done`: workers (indices) that are done with the run.
        """
        now_s = monotonic()
        if not self._seen or now_s - self._looked_s < self.sleep_s / 2:
            return None
        away = now_s - self._looked_s > 3 * self.sleep_s  # the parent itself was busy elsewhere
        self._looked_s = now_s
        for index, progress in enumerate(self._board.progress):
            seen = (progress.served, progress.state)
            if away or seen != self._seen[index] or index in done or not self._is_due(index):
                self._seen[index], self._since_s[index] = seen, now_s
        hung = [i for i, since_s in enumerate(self._since_s) if now_s - since_s > self._limit_s(i)]
        return min(hung, key=lambda index: self._since_s[index], default=None)

    def complaint(self, index: int, pid: int) -> str:
        """Say which worker hangs, and at what."""
        unit = self._blueprint.workers[index][0].name
        return (
            f"the worker of unit {unit!r} (process {pid}) has made no progress for "
            f"{self._limit_s(index):g} s and is ended; {self.lost(index)}"
        )

    def lost(self, index: int) -> str:
        """Say what a worker was at, and which other requests were on their way."""
        doing, task, request = self._board.progress[index].state
        if doing not in (Doing.WAITING, Doing.WORKING):
            return "it was at no request"
        stream, chunk = self._tasks[index][task]
        where = self._blueprint.streams[stream].where(chunk)
        verb = "was running" if doing is Doing.WORKING else "was waiting for"
        others = [
            f"request {other} of {self._blueprint.streams[index].stream.name!r}"
            for index, other in sorted(self._on_their_way() - {(stream, request)})
        ]
        also = f"; also on their way: {', '.join(others)}" if others else ""
        return f"it {verb} request {request} of {where}{also}"

    def _on_their_way(self) -> set[tuple[int, int]]:
        """Return (stream, request) of all requests of which some, but not all, chunks are done."""
        found = (header.under_way for headers in self._headers for header in headers)
        return {request for request in found if request is not None}

    def _is_due(self, index: int) -> bool:
        """Return whether a worker has something to do that depends on nobody else."""
        doing, task, request = self._board.progress[index].state
        if doing is Doing.WAITING:
            stream, chunk = self._tasks[index][task]
            headers = self._headers[stream]
            return headers[request % len(headers)].is_ready(chunk, request)
        if doing is Doing.ENDING:
            return all(progress.state[0] is Doing.ENDING for progress in self._board.progress)
        return True

    def _limit_s(self, index: int) -> float:
        if self._stall_limit_s is not None:
            return self._stall_limit_s
        warm = self._board.progress[index].served >= len(self._tasks[index])
        longest_s = max(progress.longest_ns for progress in self._board.progress) / 1e9
        return max(STALL_LIMIT_S if warm else FIRST_TASK_LIMIT_S, _PATIENCE * longest_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """The ends of pipes that a chunk needs; see `TaskSettings`."""

    receives: int
    senders: int
    sends: Sequence[int]
    leads: Sequence[int]
    delivers: int


class Pipes:
    """One pipe into every chunk, and one from the end of every stream to the parent."""

    def __init__(self, blueprint: Blueprint) -> None:
        self._open: set[int] = set()
        try:
            # (reading, writing) end of the pipe into each chunk, by [stream][chunk]
            self.into = [[self._pipe() for _ in stream.chunks] for stream in blueprint.streams]
            self.out = [self._pipe() for _ in blueprint.streams]  # the same from the end of each stream
        except OSError:
            self.close()
            raise
        # writing ends of the pipes into the first chunks, which the parent keeps
        self.entries = [pipes[0][1] for pipes in self.into]
        self.exits = [reading for reading, _ in self.out]  # reading ends of the pipes from the ends

    def _pipe(self) -> tuple[int, int]:
        ends = os.pipe()
        self._open.update(ends)
        return ends

    def ends(self, blueprint: Blueprint, stream: int, chunk: int) -> Ends:
        """Return the descriptors that a chunk needs."""
        pipes, runs = self.into[stream], blueprint.streams[stream].stream
        follows = [index for index, before in enumerate(runs.waits) if chunk in before]
        called_by = runs.last if chunk == 0 else runs.first[:1]  # a slot is free; a request has come in
        return Ends(
            receives=pipes[chunk][0],
            senders=len(runs.waits[chunk] or called_by),
            sends=[pipes[index][1] for index in follows or runs.first[:1]],
            leads=[pipes[index][1] for index in runs.first[1:]] if chunk == 0 else [],
            delivers=self.out[stream][1],
        )

    def of(self, blueprint: Blueprint, index: int) -> list[int]:
        """Return all descriptors that a worker needs."""
        ends = [self.ends(blueprint, *task) for task in blueprint.tasks(index)]
        return sorted({end for e in ends for end in (e.receives, *e.sends, *e.leads, e.delivers)})

    def leave_to_workers(self) -> None:
        """Close what only the workers use, so that a pipe ends when they do."""
        keep = {*self.entries, *self.exits}
        self._close(self._open - keep)

    def close(self) -> None:
        """Close everything. Can be called twice."""
        self._close(set(self._open))

    def _close(self, descriptors: set[int]) -> None:
        for descriptor in descriptors:
            os.close(descriptor)
        self._open -= descriptors


def worker_settings(blueprint: Blueprint, index: int, memory: SharedMemory, pipes: Pipes) -> WorkerSettings:
    """Return what a worker (by its index) is told."""
    units = {unit.name: unit for unit in blueprint.workers[index]}
    return WorkerSettings(
        unit=index,
        descriptor=memory.descriptor,
        size=memory.size,
        stamps_at=blueprint.slots_end,
        chunks=blueprint.board.chunks,
        units=blueprint.board.units,
        tasks=[
            asdict(
                _task(
                    blueprint.streams[stream],
                    stream,
                    chunk,
                    units[blueprint.deployment.streams[stream].chunks[chunk].unit],
                    pipes.ends(blueprint, stream, chunk),
                )
            )
            for stream, chunk in blueprint.tasks(index)
        ],
    )


def _task(
    blueprint: StreamBlueprint, stream: int, chunk: int, unit: ProcessingUnit, ends: Ends
) -> TaskSettings:
    cycle = blueprint.stream.cycle
    order = None if cycle is None else cycle.order(blueprint.stream.slots)
    return TaskSettings(
        stream=stream,
        chunk=chunk,
        unit=unit_data(unit),
        waits=blueprint.stream.waits,
        is_last=chunk in blueprint.stream.last,
        where=blueprint.where(chunk),
        steps=[
            {
                "artifact": asdict(step.artifact),
                "inputs": [blueprint.place(step, name) for name in step.inputs],
                "outputs": [blueprint.place(step, name) for name in step.outputs],
            }
            for step in blueprint.chunks[chunk]
        ],
        states=[[asdict(spec), *at] for spec, *at in blueprint.states(chunk)],
        slots_at=[blueprint.slot_at(slot) for slot in range(blueprint.stream.slots)],
        turn=() if order is None else order.turns[chunk],
        patience_ns=() if order is None else (1000 * order.patience_us, 1000 * order.news_us),
        **asdict(ends),
    )


OPEN_LIMIT_S = 300.0
"""How long the workers may take to start and to open their sessions."""

_NEWS_LIMIT_S = 5.0
"""How long the news of a worker's death may take."""


class Crew:
    """One worker a unit, or for all units of one resource, all with their sessions open.

    `stall_limit_s`: how long a worker may make no progress although it has something to do. None: the larger
    of `STALL_LIMIT_S` and 20 times the longest task so far.
    Raises PlacementError, ExecutionError: a worker could not start, or not open a session.
    """

    def __init__(
        self,
        blueprint: Blueprint,
        state: SharedState,
        *,
        stall_limit_s: float | None = None,
    ) -> None:
        self._blueprint = blueprint
        self._state = state
        self._workers: list[Worker] = []
        self._done: dict[int, Message] = {}
        self._watch = Watch(blueprint, state, stall_limit_s)
        state.board.reset()
        self._pipes = Pipes(blueprint)
        last = [len(stream.stream.last) for stream in blueprint.streams]
        self._exits = [HopReader(*pair) for pair in zip(self._pipes.exits, last, strict=True)]
        try:
            for index in range(len(blueprint.workers)):
                self._start(index)
            self._pipes.leave_to_workers()
            ready = self.finish(limit_s=OPEN_LIMIT_S)
        except BaseException:
            self.close()
            raise
        self.receipts = tuple(parse_receipt(data) for message in ready for data in message["receipts"])

    def _start(self, index: int) -> None:
        memory = self._state.memory
        settings = worker_settings(self._blueprint, index, memory, self._pipes)
        descriptors = [memory.descriptor, *self._pipes.of(self._blueprint, index)]
        unit = self._blueprint.workers[index][0]  # all of them have its cores and its quota
        engines = {step["artifact"]["engine"] for task in settings.tasks for step in task["steps"]}
        worker = Worker(unit, serve, asdict(settings), descriptors=descriptors, engines=engines)
        self._workers.append(worker)

    @property
    def exits(self) -> tuple[int, ...]:
        """For each stream: the descriptor from which a parent that feeds it reads what is through."""
        return tuple(self._pipes.exits)

    def take(self, stream: int) -> Hop | None:
        """Read from the exit of a stream: what is through, or None while a tile of it is still missing."""
        try:
            return self._exits[stream].take()
        except NeighbourGoneError:  # of a process that ends, this pipe may close before that of its news
            self._tell_loss(stream, self._blueprint.streams[stream].stream.last[0])

    @property
    def pids(self) -> tuple[int, ...]:
        """The process number of each worker."""
        return tuple(worker.pid for worker in self._workers)

    def begin(self, run: PipelineRun) -> None:
        """Start a run on all workers."""
        self._state.board.reset()
        self._done.clear()
        self._watch.begin()
        for header in chain.from_iterable(self._state.headers):
            header.clear()  # nobody is late for what has not come yet
        if not run.fed:  # before anyone runs: later, the last chunk puts free slots into the same pipe
            for stream, headers in enumerate(self._state.headers):
                for slot in range(len(headers)):
                    self.enter(stream, run.first[stream] + slot, slot)
        for worker in self._workers:
            worker.send(run.message())

    def enter(self, stream: int, request: int, slot: int) -> None:
        """Let a request into the pipeline; its inputs are in the slot."""
        self._state.headers[stream][slot].enter(stream, request)
        self._send(Hop(stream, request, slot))

    def end_stream(self, stream: int, request: int) -> None:
        """Say that a fed stream ends before a request."""
        self._send(Hop(stream, request, 0, ends=True))

    def finish(self, *, limit_s: float | None = None) -> list[Message]:
        """Wait until all workers have said that they are done, and return what they say.

        Raises UnitLostError, ExecutionError: as for `wait`; or a worker has said nothing within the limit.
        """
        until = None if limit_s is None else monotonic() + limit_s
        while len(self._done) < len(self._workers):
            self.wait(timeout_s=None if until is None else max(0.0, until - monotonic()))
            if until is not None and monotonic() >= until:
                silent = [w for index, w in enumerate(self._workers) if index not in self._done]
                names = ", ".join(f"{worker.unit.name!r} (process {worker.pid})" for worker in silent)
                raise UnitLostError(f"after {limit_s:g} s the workers of these units are not ready: {names}")
        return [self._done[index] for index in range(len(self._workers))]

    def wait(self, descriptors: Collection[int] = (), *, timeout_s: float | None = None) -> list[int]:
        """Sleep until something can be read, and return from which of the descriptors.

        Parameters
        ----------
        descriptors
            Other descriptors to wait for.
        timeout_s
            Longest sleep; None: until something happens, which may also be that a worker is done.

        Raises
        ------
        UnitLostError
            A worker has died or hangs; the message names the request that it was at.
        ExecutionError
            A worker has failed; the message names the request.
        """
        until = None if timeout_s is None else monotonic() + timeout_s
        workers = {worker.descriptor: index for index, worker in enumerate(self._workers)}
        while True:
            hung = self._watch.hung(self._done)
            if hung is not None:
                raise UnitLostError(self._watch.complaint(hung, self._workers[hung].pid))
            left_s = self._watch.sleep_s if until is None else max(0.0, until - monotonic())
            ready = readable([*workers, *descriptors], min(left_s, self._watch.sleep_s))
            for descriptor in ready:
                if descriptor in workers:
                    self._listen(workers[descriptor])
            if ready or (until is not None and monotonic() >= until):
                return [descriptor for descriptor in ready if descriptor not in workers]

    def close(self, *, patience_s: float = 0.0) -> None:
        """End all workers and free the pipes; they may take `patience_s` each. Can be called twice."""
        for worker in self._workers:
            if patience_s > 0:
                with suppress(UnitLostError):
                    worker.send({"kind": "end"})
        for worker in self._workers:
            worker.close(patience_s=patience_s)
        self._workers.clear()
        self._pipes.close()

    def _send(self, hop: Hop) -> None:
        try:
            # As many messages as come from the last chunks when nobody feeds the stream.
            for _ in self._blueprint.streams[hop.stream].stream.last:
                send_hop(self._pipes.entries[hop.stream], hop)
        except NeighbourGoneError:
            self._tell_loss(hop.stream, 0)

    def _tell_loss(self, stream: int, chunk: int) -> NoReturn:
        """Raise what has happened to the worker of a chunk, whose pipe is closed."""
        self.wait(timeout_s=_NEWS_LIMIT_S)
        unit = self._blueprint.deployment.streams[stream].chunks[chunk].unit
        raise UnitLostError(f"the worker of unit {unit!r} has closed its pipe") from None

    def _listen(self, index: int) -> None:
        try:
            message = self._workers[index].receive(0.0)
        except UnitLostError as error:
            raise UnitLostError(f"{error}; {self._watch.lost(index)}") from None
        if message is not None:
            self._done[index] = message
