"""Requests that are accepted and not answered: each is answered once, and gives its task slot back."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ...formulations.errors import ExecutionError, GaplessError
from ..runner import Verification
from .held import HeldNetwork, TaskSlots
from .log import Log
from .requests import Accepted
from .tally import Fate, Tally


@dataclass(frozen=True, slots=True)
class OpenNetwork:
    """A network, where its requests lie, and what came of comparing its numbers; None: they were not."""

    held: HeldNetwork
    slots: TaskSlots
    verification: Verification | None = None


class Outstanding:
    """What waits for an answer. `admit` is for any thread, the rest for the one that serves.

    `networks`: where the requests lie, by index of network.
    `tally`, `log`: counts them, and remembers the last ones.
    """

    def __init__(self, networks: Sequence[OpenNetwork]) -> None:
        self.by_number: dict[int, Accepted] = {}  # the requests
        self.tally = Tally()
        self.log = Log()
        self.waiting = 0  # how many were admitted and are not answered
        self.unanswered: tuple[str, ...] = ()  # what was not answered in the end, in words
        self._networks = networks
        self._answers: list[Callable[[], None]] = []
        self._lock = threading.Lock()

    def admit(self, most: int) -> bool:
        """Count a request that will be submitted; return False when as many as are allowed wait."""
        with self._lock:
            if self.waiting >= most:
                return False
            self.waiting += 1
        return True

    def answer(self, request: Accepted) -> None:
        """Answer a request with its outputs, at the next `hand_out`."""
        self._answers.append(lambda: self._answer(request))

    def fail(self, request: Accepted, fate: Fate, error: GaplessError) -> None:
        """Answer a request with an error, at the next `hand_out`."""
        self._answers.append(lambda: request.future.set_exception(error))
        self._leave(request)
        self.tally.count(request.name, fate)
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
        self.tally.answered(replace(served, outputs={}))
        self.log.ended(request, done_ns=served.done_ns)
        request.future.set_result(served)

    def _leave(self, request: Accepted) -> None:
        del self.by_number[request.waiting.number]
        self._networks[request.waiting.network].slots.give(request.slot)
        with self._lock:
            self.waiting -= 1
