"""The wiring of a pipeline: pipes between the chunks, and what each worker is told."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from ...formulations.hardware import ProcessingUnit
from ..workers import unit_data
from .blueprint import Blueprint, StreamBlueprint
from .memory import SharedMemory
from .worker import TaskSettings, WorkerSettings


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
        slots_at=[blueprint.slot_at(slot) for slot in range(blueprint.stream.slots)],
        turn=() if order is None else order.turns[chunk],
        patience_ns=() if order is None else (1000 * order.patience_us, 1000 * order.news_us),
        **asdict(ends),
    )
