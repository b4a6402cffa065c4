"""The watch over the workers: who makes progress, and who should but does not."""

from __future__ import annotations

from collections.abc import Collection
from time import monotonic

from .blueprint import Blueprint
from .board import Doing
from .state import SharedState

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
