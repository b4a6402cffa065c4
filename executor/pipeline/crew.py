"""The crew of a pipeline: its workers, the pipes between them, and the watch over both."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import chain
from time import monotonic
from typing import NoReturn

from ...formulations.descriptors import readable
from ...formulations.errors import UnitLostError
from ...formulations.hardware import ProcessingUnit
from ..engine import parse_receipt
from ..workers import Message, Worker, unit_data
from .blueprint import Blueprint, StreamBlueprint
from .hops import Hop, HopReader, NeighbourGoneError, send_hop
from .memory import SharedMemory
from .runs import PipelineRun
from .state import SharedState
from .watch import Watch
from .worker import TaskSettings, WorkerSettings, serve


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
