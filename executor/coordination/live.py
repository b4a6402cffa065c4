"""Requests of a scenario on the units of this machine: what a simulation is asked for, a coordinator does."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import replace
from time import monotonic_ns
from typing import TYPE_CHECKING, Any

from ...formulations.coordination.record import Answered, FrameSpan, Ran, Record
from ...formulations.errors import DroppedRequestError, RefusedRequestError
from .coordinator import Coordinator
from .requests import Served

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Inputs = Mapping[str, NDArray[Any]]

_PATIENCE_US = 60e6
"""So long nothing happening while requests wait is waited for at a time."""


class LiveRequests:
    """A coordinator that serves a scenario, in real time (see `play.RequestServer`).

    Everything is called from one thread.

    `names`: names of the networks there, by the index that requests have.
    """

    def __init__(
        self,
        coordinator: Coordinator,
        names: tuple[str, ...],
        inputs: Mapping[str, Inputs],
        ended: Callable[[Answered], None],
    ) -> None:
        self._coordinator, self._names, self._inputs, self._ended = coordinator, names, inputs, ended
        self._begin_ns = monotonic_ns()
        self._before = coordinator.statistics().decisions
        self._open: dict[int, Answered] = {}
        self._held: dict[int, Answered] = {}
        self._answered: dict[int, Answered] = {}
        self._ran: list[Ran] = []
        self._done: deque[tuple[int, Future[Served]]] = deque()
        self._bell = threading.Event()

    @property
    def now_us(self) -> float:
        """Microseconds since it was made."""
        return (monotonic_ns() - self._begin_ns) / 1000

    @property
    def unanswered(self) -> tuple[Answered, ...]:
        """The requests that were asked for and not answered."""
        return (*self._open.values(), *self._held.values())

    def ask(self, request: Answered, *, luck: str = "") -> None:
        """Submit a request now, or when those are done that it waits for."""
        if all(number in self._answered for number in request.after):
            self._submit(request)
        else:
            self._held[request.number] = request

    def next_us(self) -> float | None:
        """Return a time by which something should have happened; None: nothing waits for an answer."""
        return self.now_us + _PATIENCE_US if self._open else None

    def advance(self, until_us: float) -> None:
        """Wait until a request is answered, or until a time; take note of all that are."""
        left_s = (until_us - self.now_us) / 1e6
        if left_s > 0 and not self._done:
            self._bell.wait(left_s)
        self._bell.clear()
        while self._done:
            self._take(*self._done.popleft())

    def decide(self) -> None:
        """Do nothing: the coordinator decides."""

    def lose(self, unit: int, cause: str) -> None:
        """Take a unit away."""
        self._coordinator.withdraw(self._coordinator.platform.unit_names[unit], why=cause)

    def give_back(self, unit: int) -> None:
        """Give a unit back that an event has taken away."""
        self._coordinator.restore(self._coordinator.platform.unit_names[unit], why="event")

    def record(
        self, applications: tuple[str, ...], duration_us: int, frames: Iterable[FrameSpan] = ()
    ) -> Record:
        """Return what has happened: as a simulation does."""
        known = self._coordinator.record()
        shift_us = (self._begin_ns - self._coordinator.opened_ns) / 1000
        decided = self._coordinator.statistics().decisions - self._before
        return Record(
            policy=known.policy,
            units=known.units,
            networks=self._names,
            applications=applications,
            duration_us=duration_us,
            end_us=max((each.end_us or 0.0 for each in self._answered.values()), default=0.0),
            requests=tuple(sorted([*self._answered.values(), *self.unanswered], key=lambda r: r.number)),
            ran=tuple(self._ran),
            frames=tuple(sorted(frames, key=lambda span: span.start_us)),
            away=tuple(
                replace(
                    span,
                    start_us=span.start_us - shift_us,
                    end_us=None if span.end_us is None else span.end_us - shift_us,
                )
                for span in known.away
                if span.end_us is None or span.end_us > shift_us
            ),
            decisions_ns=known.decisions_ns[-decided:] if decided else (),
        )

    def _submit(self, request: Answered) -> None:
        now_us = self.now_us
        name = self._names[request.network]
        limit = None if request.deadline_us is None else max(1, round(request.deadline_us - now_us))
        self._open[request.number] = replace(request, arrival_us=now_us)
        try:
            future = self._coordinator.submit(name, self._inputs[name], deadline_us=limit)
        except RefusedRequestError:
            self._answer(request.number, None)
            return

        def done(found: Future[Served], number: int = request.number) -> None:
            self._done.append((number, found))
            self._bell.set()

        future.add_done_callback(done)

    def _take(self, number: int, future: Future[Served]) -> None:
        try:
            served = future.result()
        except DroppedRequestError:
            self._answer(number, None)
            return
        network = self._coordinator.registered[served.name].held
        starts = [section.start for section in network.sections]
        stops = [section.stop for section in network.sections]
        for chunk in served.chunks:
            self._ran.append(
                Ran(
                    unit=self._coordinator.platform.unit_names.index(chunk.unit),
                    start_us=(chunk.times_ns[0] - self._begin_ns) / 1000,
                    end_us=(chunk.times_ns[-1] - self._begin_ns) / 1000,
                    request=number,
                    first=starts.index(chunk.start),
                    last=stops.index(chunk.stop) + 1,
                )
            )
        self._answer(number, (served.done_ns - self._begin_ns) / 1000)

    def _answer(self, number: int, end_us: float | None) -> None:
        """Note an answer, or that there is none; those that wait for it come now, or are dropped, too."""
        request = self._open.pop(number, None) or self._held.pop(number)
        answered = replace(request, end_us=end_us, dropped=end_us is None)
        self._answered[number] = answered
        self._ended(answered)
        for other in [each for each in self._held.values() if number in each.after]:
            if other.number not in self._held:
                continue
            if end_us is None:
                self._answer(other.number, None)
            elif all(before in self._answered for before in other.after):
                self._submit(self._held.pop(other.number))
