"""Rounds of a workload: the parent lets each request in when it has arrived and there is room for it."""

from __future__ import annotations

from time import monotonic_ns

from ...formulations.deployment import Mode, Rounds
from .blueprint import Blueprint
from .crew import Crew
from .hops import Hop
from .runs import PipelineRun
from .state import SharedState


class RoundKeeper:
    """One run of a workload on inputs that lie in the task slots already."""

    def __init__(self, blueprint: Blueprint, state: SharedState, crew: Crew, rounds: Rounds) -> None:
        self._crew = crew
        self._headers = state.headers
        self._rounds = rounds
        self._chunks = [len(stream.chunks) for stream in blueprint.streams]
        self._entered = [0] * len(self._chunks)
        self._left = [0] * len(self._chunks)
        self._open = set(range(len(self._chunks)))
        self._waiting: list[int] = []
        self._begins_ns: list[int] = []

    def play(self, asked: PipelineRun) -> tuple[int, ...]:
        """Play round after round, and return when each of them began, in nanoseconds of the clock."""
        self._crew.begin(PipelineRun(first=asked.first, warm_up=asked.warm_up, fed=True))
        while self._wants_another(asked):
            self._begins_ns.append(monotonic_ns())
            self._waiting = list(range(len(self._chunks)))
            self._let_in()
            while not self._may_begin:
                self._collect()
                self._let_in()
        for stream, entered in enumerate(self._entered):
            self._crew.end_stream(stream, entered)
        while self._open:
            self._collect()
        return tuple(self._begins_ns)

    def _wants_another(self, asked: PipelineRun) -> bool:
        """Return whether another round is to be played; at least one counts."""
        number, warm_up = len(self._begins_ns), asked.warm_up
        if number <= warm_up:
            return True
        if asked.requests is not None and number >= warm_up + asked.requests:
            return False
        return asked.duration_ns is None or monotonic_ns() < self._begins_ns[warm_up] + asked.duration_ns

    @property
    def _may_begin(self) -> bool:
        """Whether the next round may begin."""
        return not self._waiting and (self._rounds.mode is Mode.STREAM or self._entered == self._left)

    def _let_in(self) -> None:
        """Let in, in order, whatever may come in now."""
        for stream in tuple(self._waiting):
            request, slots = self._entered[stream], len(self._headers[stream])
            if self._has_room(stream) and self._arrives_in_ns(stream) <= 0:
                self._crew.enter(stream, request, request % slots)
                self._entered[stream] += 1
                self._waiting.remove(stream)

    def _has_room(self, stream: int) -> bool:
        if self._entered[stream] - self._left[stream] >= len(self._headers[stream]):
            return False
        if self._rounds.task_slots is None:
            return True
        place = self._entered[stream] * len(self._chunks) + stream
        return place - sum(self._left) < self._rounds.task_slots

    def _arrives_in_ns(self, stream: int) -> int:
        return self._begins_ns[-1] + 1000 * self._rounds.arrivals_us[stream] - monotonic_ns()

    def _collect(self) -> None:
        """Sleep until a request leaves or the next one arrives, and note what has left."""
        coming_ns = [self._arrives_in_ns(stream) for stream in self._waiting if self._has_room(stream)]
        timeout_s = max(0, min(coming_ns)) / 1e9 if coming_ns else None
        exits = self._crew.exits
        for descriptor in self._crew.wait(exits, timeout_s=timeout_s):
            self._take(exits.index(descriptor))

    def _take(self, stream: int) -> None:
        hop = self._crew.take(stream)
        if hop is None:
            return
        if hop.ends:
            self._open.discard(stream)
            return
        headers, request = self._headers[stream], self._left[stream]
        slot = request % len(headers)
        headers[slot].check(hop, Hop(stream, request, slot), self._chunks[stream])
        self._left[stream] += 1
