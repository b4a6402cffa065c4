"""The wiring of a pipeline: pipes between the chunks, and what each worker is told."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass

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
    """One pipe into every chunk, and one from the end of every stream to the parent.

    Attributes
    ----------
    into
        (reading, writing) end of the pipe into each chunk, by [stream][chunk].
    out
        The same from the end of each stream.
    entries
        Writing ends of the pipes into the first chunks, which the parent keeps.
    exits
        Reading ends of the pipes from the ends.
    """

    def __init__(self, blueprint: Blueprint) -> None:
        self._open: set[int] = set()
        try:
            self.into = [[self._pipe() for _ in stream.chunks] for stream in blueprint.streams]
            self.out = [self._pipe() for _ in blueprint.streams]
        except OSError:
            self.close()
            raise
        self.entries = [pipes[0][1] for pipes in self.into]
        self.exits = [reading for reading, _ in self.out]

    def _pipe(self) -> tuple[int, int]:
        ends = os.pipe()
        self._open.update(ends)
        return ends

    def ends(self, blueprint: Blueprint, stream: int, chunk: int) -> Ends:
        """Return the descriptors that a chunk needs."""
        pipes, groups = self.into[stream], blueprint.streams[stream].stream.groups
        place = next(place for place, group in enumerate(groups) if chunk in group)
        leads = chunk == 0
        follows = groups[place + 1] if place + 1 < len(groups) else groups[0][:1]
        return Ends(
            receives=pipes[chunk][0],
            senders=1 if place == 0 and not leads else len(groups[place - 1]),
            sends=[pipes[index][1] for index in follows],
            leads=[pipes[index][1] for index in groups[0][1:]] if leads else [],
            delivers=self.out[stream][1],
        )

    def of(self, blueprint: Blueprint, index: int) -> list[int]:
        """Return all descriptors that a worker needs."""
        ends = [self.ends(blueprint, *task) for task in blueprint.tasks(blueprint.units[index].name)]
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
    """Return what the worker of a unit (by its index) is told."""
    unit = blueprint.units[index]
    return WorkerSettings(
        unit=index,
        descriptor=memory.descriptor,
        size=memory.size,
        stamps_at=blueprint.slots_end,
        chunks=blueprint.board.chunks,
        units=blueprint.board.units,
        tasks=[
            asdict(_task(blueprint.streams[stream], stream, chunk, pipes.ends(blueprint, stream, chunk)))
            for stream, chunk in blueprint.tasks(unit.name)
        ],
    )


def _task(blueprint: StreamBlueprint, stream: int, chunk: int, ends: Ends) -> TaskSettings:
    return TaskSettings(
        stream=stream,
        chunk=chunk,
        before=blueprint.stream.before,
        is_last=chunk in blueprint.stream.groups[-1],
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
        **asdict(ends),
    )
