"""Requests that are accepted and not answered: each is answered once, and gives its task slot back."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import monotonic_ns
from typing import Self

from ...formulations.coordination.record import Answered, Ran, Record, UnitSpan
from ...formulations.coordination.simulation import Start
from ...formulations.errors import ExecutionError, GaplessError
from ..runner import Verification
from .held import HeldNetwork, TaskSlots
from .requests import Accepted
from .tally import Fate, Tally

_REQUESTS, CHUNKS = 4096, 16_384
"""How many of them are remembered: a server grows by 3 MiB until there are as many."""


class Log:
    """The last requests and chunks, and when units were away; any thread may ask for the record."""

    def __init__(self) -> None:
        self._begin_us = monotonic_ns() / 1000
        self._requests: deque[Answered] = deque(maxlen=_REQUESTS)
        self._ran: deque[Ran] = deque(maxlen=CHUNKS)
        self._away: deque[UnitSpan] = deque(maxlen=_REQUESTS)
        self._leaving: dict[int, tuple[float, str]] = {}
        self._lock = threading.Lock()

    def ran(self, start: Start, times_ns: Sequence[int], *, cut_off: bool) -> None:
        """Remember a chunk; one that was put back meanwhile was cut off."""
        ran = Ran(
            unit=start.unit,
            start_us=times_ns[0] / 1000 - self._begin_us,
            end_us=times_ns[-1] / 1000 - self._begin_us,
            request=start.request.number,
            first=start.request.done,
            last=start.stop,
            cut_off=cut_off,
        )
        with self._lock:
            self._ran.append(ran)

    def ended(self, request: Accepted, *, done_ns: int | None = None, dropped: bool = False) -> None:
        """Remember a request: when it was done, or None if it has no outputs."""
        waiting, begin_us = request.waiting, self._begin_us
        answered = Answered(
            number=waiting.number,
            application=waiting.application,
            network=waiting.network,
            arrival_us=request.arrival_ns / 1000 - begin_us,
            deadline_us=None if waiting.deadline_us is None else waiting.deadline_us - begin_us,
            end_us=None if done_ns is None else done_ns / 1000 - begin_us,
            dropped=dropped,
        )
        with self._lock:
            self._requests.append(answered)

    def left(self, unit: int, why: str) -> None:
        """Remember that a unit may not be used from now on."""
        with self._lock:
            self._leaving[unit] = monotonic_ns() / 1000 - self._begin_us, why

    def returned(self, unit: int) -> None:
        """Remember that it may be used again."""
        with self._lock:
            start_us, why = self._leaving.pop(unit)
            end_us = monotonic_ns() / 1000 - self._begin_us
            self._away.append(UnitSpan(unit=unit, start_us=start_us, end_us=end_us, cause=why))

    def record(
        self,
        policy: str,
        *,
        units: Sequence[str],
        networks: Sequence[str],
        applications: Sequence[str],
        decisions_ns: Sequence[int],
    ) -> Record:
        """Return what is remembered, in microseconds since the start."""
        with self._lock:
            requests = tuple(sorted(self._requests, key=lambda request: request.number))
            ran, away = tuple(self._ran), list(self._away)
            leaving = self._leaving.items()
            away += [UnitSpan(unit=unit, start_us=at, end_us=None, cause=why) for unit, (at, why) in leaving]
        return Record(
            policy=policy,
            units=tuple(units),
            networks=tuple(networks),
            applications=tuple(applications),
            duration_us=round(max((request.arrival_us for request in requests), default=0.0)),
            end_us=max((request.end_us or request.arrival_us for request in requests), default=0.0),
            requests=requests,
            ran=ran,
            away=tuple(away),
            decisions_ns=tuple(decisions_ns),
        )


@dataclass(frozen=True, slots=True)
class OpenNetwork:
    """A network, where its requests lie, and what came of comparing its numbers; None: they were not."""

    held: HeldNetwork
    slots: TaskSlots
    verification: Verification | None = None
    closed: bool = False  # whether its slots and sessions are gone


class Place:
    """Has a request count before it is submitted; a context manager, which ends that unless it was."""

    def __init__(self, count: Callable[[int], None]) -> None:
        self._count = count
        self._taken = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.leave():
            self._count(-1)

    def leave(self) -> bool:
        """Count no longer by itself; return whether it did."""
        taken, self._taken = self._taken, False
        return taken

    def again(self) -> None:
        """Count again, however many wait: what it was submitted with failed, and it is tried once more."""
        if not self._taken:
            self._taken = True
            self._count(1)


class Outstanding:
    """What waits for an answer. `hold` and `admit` are for any thread, the rest for the one that serves.

    `networks`: where the requests lie, by index of network.
    `tally`, `log`: counts them, and remembers the last ones.
    """

    def __init__(self, networks: Sequence[OpenNetwork]) -> None:
        self.by_number: dict[int, Accepted] = {}  # the requests
        self.tally = Tally()
        self.log = Log()
        self.waiting = 0  # how many are held or admitted, and not answered
        self.unanswered: tuple[str, ...] = ()  # what was not answered in the end, in words
        self._networks = networks
        self._answers: list[Callable[[], None]] = []
        self._of_network = Counter[int]()
        self._changed = threading.Condition()

    def hold(self, most: int) -> Place | None:
        """Count a request that may be submitted later; return None when as many as are allowed wait."""
        with self._changed:
            if self.waiting >= most:
                return None
            self.waiting += 1
        return Place(self._count)

    def admit(self, most: int, network: int, places: Sequence[Place] = ()) -> bool:
        """Count a request that will be submitted; return False when as many as are allowed wait.

        `places`: of what it answers, which counts already, and from now on does as a part of it.
        """
        with self._changed:
            if not places and self.waiting >= most:
                return False
            self.waiting += sum(not place.leave() for place in places) if places else 1
            self._of_network[network] += 1
        return True

    def _count(self, change: int) -> None:
        with self._changed:
            self.waiting += change

    def drained(self, network: int, patience_s: float) -> bool:
        """Wait until no request of a network is outstanding; return False when that takes too long."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._of_network[network], patience_s)

    def answer(self, request: Accepted) -> None:
        """Answer a request with its outputs, at the next `hand_out`."""
        self._answers.append(lambda: self._answer(request))

    def fail(self, request: Accepted, fate: Fate, error: GaplessError) -> None:
        """Answer a request with an error, at the next `hand_out`."""
        self._answers.append(lambda: request.future.set_exception(error))
        self._leave(request)
        self.tally.count(request.name, fate, took_ns=monotonic_ns() - request.arrival_ns)
        self.log.ended(request, dropped=fate in (Fate.DROPPED, Fate.LEFT))

    def hand_out(self) -> None:
        """Hand out all answers."""
        answers, self._answers = self._answers, []
        for answer in answers:
            answer()

    def fail_all(self, error: Exception | None) -> None:
        """Hand out all answers, and answer the other requests with an error; None: there was no time."""
        self.hand_out()
        why = "the coordinator was closed before it was done"
        why = why if error is None else f"{type(error).__name__}: {error}"
        self.unanswered = tuple(map(str, self.by_number.values()))
        for request in list(self.by_number.values()):
            self.fail(request, Fate.FAILED, ExecutionError(f"{request} is not answered: {why}"))
        self.hand_out()

    def _answer(self, request: Accepted) -> None:
        network = self._networks[request.waiting.network]
        tensors = network.slots.tensors(request.slot)
        outputs = {spec.name: tensors[spec.name].copy() for spec in network.held.model.outputs}
        served = request.served(outputs)
        self._leave(request)
        self.tally.answered(request.served({}))
        self.log.ended(request, done_ns=served.done_ns)
        request.future.set_result(served)

    def _leave(self, request: Accepted) -> None:
        del self.by_number[request.waiting.number]
        self._networks[request.waiting.network].slots.give(request.slot)
        with self._changed:
            self.waiting -= request.counts
            self._of_network[request.waiting.network] -= 1
            self._changed.notify_all()
