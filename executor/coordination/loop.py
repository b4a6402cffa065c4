"""The thread of a coordinator: asks the policy, starts chunks, hears of their ends, and of lost workers."""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Collection
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from time import monotonic, monotonic_ns
from typing import Any, TypeVar

from ...formulations.coordination.policy import Waiting
from ...formulations.coordination.simulation import Dispatcher, Start
from ...formulations.coordination.times import NetworkTimes, soonest
from ...formulations.errors import (
    DroppedRequestError,
    ExecutionError,
    GaplessError,
    RefusedRequestError,
    UnfitNumbersError,
    UnitLostError,
)
from ...formulations.hardware import Platform
from ...formulations.printing import printable
from ...formulations.processes import readable
from ..workers import Message
from .outstanding import OpenNetwork, Outstanding
from .requests import Accepted, RanChunk, Served
from .restarts import Restarts
from .seat import Errand, Opened, Run, Seat, failure
from .tally import Fate
from .workers import Workers

T = TypeVar("T")

_log = logging.getLogger(__name__)

ATTEMPTS = 3
"""After this number of lost workers or failed engines a request is answered with the error."""

_WATCH_S = 1.0
"""How often somebody looks whether a worker hangs, while one works."""

_END_PATIENCE_S = 1.0


@dataclass(frozen=True, slots=True)
class Outage:
    """Since when nothing is left to serve with, by the monotonic clock; why; and whether that stays so."""

    since_s: float
    why: str
    for_good: bool


class Loop:
    """The thread that owns the dispatcher and the workers; others only leave it word.

    `restarts`: how many times within a minute the worker of each unit may be started again.
    `engines`: those of all units, by name.
    """

    def __init__(
        self,
        platform: Platform,
        dispatcher: Dispatcher,
        workers: Workers,
        *,
        restarts: int,
        engines: Collection[str],
    ) -> None:
        self.dispatcher = dispatcher
        self.workers = workers
        self.networks: list[OpenNetwork] = []  # what is held, by index
        self.requests = Outstanding(self.networks)  # what is accepted and not answered
        self.decisions = 0  # how many chunks were started
        self.seats: list[Seat] = []  # the units
        self._calls: deque[Callable[[], None]] = deque()
        self._until_s: float | None = None
        # since when, and why, there is no unit left to serve with; None: there is one
        self.outage: Outage | None = None
        self._loss: GaplessError | None = None  # the last of units that do not come back soon
        self._lock = threading.Lock()
        self._wake_up = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._ended = False
        try:
            for index, unit in enumerate(platform.units):
                self.seats.append(Seat(index, unit, workers, restarts=Restarts(restarts), engines=engines))
        except BaseException:
            for seat in self.seats:
                seat.end()
            os.close(self._wake_up)
            raise
        for one, other in platform.conflicts:
            self.seats[one].rivals.append(self.seats[other])
            self.seats[other].rivals.append(self.seats[one])
        self._starting = [seat.task.answer for seat in self.seats if isinstance(seat.task, Errand)]
        self._thread = threading.Thread(target=self._work, name="gapless coordinator", daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether it works."""
        return not self._ended

    def ready(self) -> None:
        """Wait until all workers have started; raises what one of them says instead."""
        for answer in self._starting:
            answer.result()

    def call(self, function: Callable[[], T]) -> Future[T]:
        """Have a function called by the thread."""
        answer: Future[T] = Future()

        def called() -> None:
            try:
                answer.set_result(function())
            except Exception as error:
                answer.set_exception(error)

        self._leave_word(called)
        return answer

    def submit(self, request: Accepted) -> None:
        """Have a request served that `requests` has admitted."""
        self._leave_word(lambda: self._enter(request))

    def errand(self, unit: int, message: Message) -> Future[Message]:
        """Have the worker of a unit do something between two chunks."""
        errand = Errand(message)

        def add() -> None:
            if self.seats[unit].lost:
                errand.answer.set_exception(UnitLostError(f"unit {self.seats[unit].unit.name!r} is lost"))
            else:
                self.seats[unit].errands.append(errand)
                self._settle(self.seats[unit])

        self._leave_word(add)
        return errand.answer

    def remember(self, unit: int, network: int, opened: Opened) -> None:
        """Have later workers of a unit open a network, too, and run a chunk of it as a probe."""
        self.call(lambda: self.seats[unit].opened.update({network: opened})).result()

    def add(self, network: OpenNetwork, times: NetworkTimes) -> None:
        """Take a network that is open on all its units."""

        def added() -> None:
            self.networks.append(network)
            self.dispatcher.times.add(times)
            self.dispatcher.prepare()

        self.call(added).result()

    def add_again(self, index: int, network: OpenNetwork) -> None:
        """Take a network that was closed, and is open on all its units again."""

        def added() -> None:
            self.networks[index] = network

        self.call(added).result()

    def retire(self, index: int) -> None:
        """Close a network of which no request is outstanding; its index is kept for `add_again`."""

        def retired() -> None:
            self.networks[index] = replace(self.networks[index], closed=True)

        self.call(retired).result()
        self.forget(index)
        self.networks[index].slots.close()

    def forget(self, network: int) -> None:
        """Have workers close a network, if they have opened it."""

        def shut() -> None:
            for seat in self.seats:
                if seat.opened.pop(network, None) is not None and not seat.lost:
                    seat.errands.append(Errand({"kind": "shut", "network": network}))
                    self._settle(seat)

        with suppress(ExecutionError):
            self._leave_word(shut)

    def withdraw(self, workers: Collection[int], why: str, *, finish: bool = False) -> None:
        """Take a unit away: all its workers, before it is decided what becomes of what they run.

        That is put back where other units can run it, or goes on (`finish`).
        """
        leaving = [self.seats[worker] for worker in workers]
        for seat in leaving:
            seat.reasons.add(why)
        for seat in leaving:
            self._settle(seat)
        for seat in leaving if not finish else []:
            task = seat.task
            if isinstance(task, Run) and not task.stale and self._runs(task.start, self._free()):
                slots = self.networks[task.start.request.network].slots
                task.stale = True
                task.request.slot = slots.take()  # the worker still writes to the old one
                slots.fill(task.request.slot, slots.tensors(task.slot))
                self.dispatcher.put_back(task.start)

    def restore(self, workers: Collection[int], why: str) -> None:
        """Give a unit back: its workers are probed first."""
        for found in [self.seats[worker] for worker in workers]:
            if why in found.reasons:
                found.reasons.discard(why)
                found.check()
            self._settle(found)

    def abandon(self, answer: Future[Served]) -> None:
        """Drop a request of which nothing runs now."""
        for request in list(self.requests.by_number.values()):
            if request.future is answer and self.dispatcher.cancel(request.waiting.number):
                error = DroppedRequestError(f"{request} is dropped: its client has left")
                self.requests.fail(request, Fate.LEFT, error)

    def can_serve(self, network: int) -> bool:
        """Return whether units that are there, or come back by themselves, can run a network."""
        wait_us = [None if seat.reasons else 0 for seat in self.seats]
        return soonest(self.dispatcher.times, network, 0, wait_us) is not None

    def close(self, patience_s: float) -> tuple[str, ...]:
        """End when nothing waits any more, or after a while; return what could not be answered."""

        def end() -> None:
            until_s = monotonic() + patience_s
            self._until_s = until_s if self._until_s is None else min(until_s, self._until_s)

        with suppress(ExecutionError):
            self._leave_word(end)
        if threading.current_thread() is not self._thread:
            try:
                self._thread.join()
            except KeyboardInterrupt:  # asked twice
                patience_s = 0.0
                with suppress(ExecutionError):
                    self._leave_word(end)
                self._thread.join()
                raise
        return self.requests.unanswered

    def _leave_word(self, call: Callable[[], None]) -> None:
        with self._lock:
            if self._ended:
                raise RefusedRequestError("the coordinator is closed; open a new one")
            self._calls.append(call)
            os.eventfd_write(self._wake_up, 1)

    def _work(self) -> None:
        error: Exception | None = None
        try:
            while not self._over():
                self._step()
        except Exception as wrong:  # of a policy, usually: whoever waits must hear of it
            error = wrong
            self.outage = Outage(monotonic(), f"{type(error).__name__}: {error}", for_good=True)
            _log.critical("the coordinator has ended: %s", self.outage.why, exc_info=error)
        with self._lock:
            self._ended = True
        while self._calls:
            self._calls.popleft()()
        self.requests.fail_all(error)
        for seat in self.seats:
            seat.give_up(ExecutionError("the coordinator was closed"))
            seat.end(patience_s=0.0 if seat.task else _END_PATIENCE_S)
        for network in self.networks:
            network.slots.close()
        os.close(self._wake_up)

    def _over(self) -> bool:
        return self._until_s is not None and (not self.requests.by_number or monotonic() >= self._until_s)

    def _step(self) -> None:
        """Decide, start, hand out answers, and sleep until something happens."""
        now_us = monotonic_ns() // 1000
        for waiting in self.dispatcher.drop_late(now_us):
            request = self.requests.by_number[waiting.number]
            self.requests.fail(
                request, Fate.DROPPED, DroppedRequestError(f"{request} cannot meet its deadline any more")
            )
        for start in self.dispatcher.decide(now_us):
            self._start(start)
        for seat in self.seats:
            if seat.due:
                self._begin_again(seat)
        for seat in self.seats:
            self._guarded(seat, seat.do_errand)
        self.requests.hand_out()  # behind the starts: units do not wait for copies
        self._sleep()
        while self._calls:
            self._calls.popleft()()

    def _sleep(self) -> None:
        workers = {seat.worker.descriptor: seat for seat in self.seats if seat.worker is not None}
        for descriptor in readable([self._wake_up, *workers], self._longest_sleep_s()):
            if descriptor == self._wake_up:
                os.eventfd_read(self._wake_up)
            else:
                seat = workers[descriptor]
                self._guarded(seat, partial(self._listen, seat))
        for seat in self.seats:
            if seat.hangs():
                self._lose(seat, UnitLostError(f"the worker of unit {seat.unit.name!r} hangs and is ended"))

    def _longest_sleep_s(self) -> float | None:
        """Return how long nothing has to be looked at; None: until something happens."""
        if self._calls or self._over():
            return 0.0
        queue = self.dispatcher.queue
        limits = [_WATCH_S] if queue or any(seat.task is not None for seat in self.seats) else []
        limits += [wait_s for seat in self.seats if (wait_s := seat.due_in_s) is not None]
        if self._until_s is not None:
            limits.append(self._until_s - monotonic())
        deadlines_us = [waiting.deadline_us for waiting in queue if self.dispatcher.may_drop(waiting)]
        limits += [at_us / 1e6 - monotonic() for at_us in deadlines_us if at_us is not None]
        return max(0.0, min(limits)) if limits else None

    def _guarded(self, seat: Seat, action: Callable[[], Any]) -> None:
        if seat.worker is None:
            return
        try:
            action()
        except GaplessError as error:  # the worker is gone, or has raised something itself
            self._lose(seat, error)

    def _enter(self, request: Accepted) -> None:
        self.requests.by_number[request.waiting.number] = request
        self.dispatcher.submit(request.waiting)
        self._fail_if_hopeless(request.waiting)  # it was admitted before, maybe when all units were there

    def _start(self, start: Start) -> None:
        seat, request = self.seats[start.unit], self.requests.by_number[start.request.number]
        self.decisions += 1
        message = {
            "kind": "run",
            "network": start.request.network,
            "start": start.request.done,
            "stop": start.stop,
            "slot": request.slot,
        }
        self._guarded(seat, lambda: seat.run(Run(start, request, request.slot), message))

    def _listen(self, seat: Seat) -> None:
        message, task = seat.listen(), seat.task
        if message is None or task is None:
            return
        seat.task = None
        if isinstance(task, Errand):
            if not seat.heard(task, message):
                self._lose(seat, failure(message))
        elif message["kind"] == "done":
            self._done(seat, task, message["times_ns"])
        else:
            self._failed(seat, task, failure(message))
        if seat.proved():
            self.outage = None
            _log.warning("unit %r works again", seat.unit.name)
        self._settle(seat)

    def _done(self, seat: Seat, run: Run, times_ns: tuple[int, int, int, int]) -> None:
        seat.chunks += 1
        seat.busy_ns += times_ns[-1] - times_ns[0]
        network = self.networks[run.start.request.network]
        self.requests.log.ran(run.start, times_ns, cut_off=run.stale)
        if run.stale:
            network.slots.give(run.slot)
            return
        start, stop = network.held.layers(run.start.request.done, run.start.stop)
        run.request.chunks.append(
            RanChunk(start=start, stop=stop, unit=seat.unit.name, times_ns=(*times_ns,))
        )
        rest = self.dispatcher.finished(run.start, (times_ns[-1] - times_ns[0]) / 1000)
        if rest is None:
            self.requests.answer(run.request)
        else:
            self._fail_if_hopeless(rest)

    def _failed(self, seat: Seat, run: Run, error: GaplessError) -> None:
        """Put back what an engine failed to run, and see whether the unit still works."""
        seat.check()
        if run.stale:
            self.networks[run.start.request.network].slots.give(run.slot)
        else:
            self._put_back(run, error)

    def _put_back(self, run: Run, error: GaplessError) -> None:
        self.dispatcher.put_back(run.start)
        run.request.attempts += 1
        if run.request.attempts >= ATTEMPTS:
            self.dispatcher.cancel(run.request.waiting.number)
            words = f"{run.request} failed {ATTEMPTS} times, the last time so: {error}"
            if isinstance(error, UnfitNumbersError):
                words = f"{run.request} cannot be computed: {error}"
            self.requests.fail(run.request, Fate.FAILED, type(error)(words))
        else:
            self._fail_if_hopeless(run.start.request)

    def _begin_again(self, seat: Seat) -> None:
        try:
            seat.begin_again()
        except UnitLostError as error:
            self._lose(seat, error)

    def _lose(self, seat: Seat, error: GaplessError) -> None:
        run = seat.lose(error)
        _log.warning("unit %r: %s; %s", seat.unit.name, printable(str(error)), seat.prospect)
        if run is not None and run.stale:
            self.networks[run.start.request.network].slots.give(run.slot)
        elif run is not None:
            self._put_back(run, error)
        self._settle(seat)
        if seat.lost:
            self._loss = error
            for waiting in list(self.dispatcher.queue):
                self._fail_if_hopeless(waiting)
        if self.outage is None and all(each.lost for each in self.seats):
            for_good = all(each.due_s is None for each in self.seats)
            self.outage = Outage(monotonic(), str(error), for_good=for_good)
            _log.error("no unit is left to serve with")

    def _settle(self, changed: Seat) -> None:
        """Tell the dispatcher whether a unit, and those that share a core with it, may be used."""
        for seat in (changed, *changed.rivals):
            if seat.usable == self.dispatcher.available(seat.index):
                continue
            if seat.usable:
                self.dispatcher.restore(seat.index)
                self.requests.log.returned(seat.index)
            else:
                self.dispatcher.withdraw(seat.index)
                self.requests.log.left(seat.index, ", ".join(seat.why))

    def _free(self) -> list[int | None]:
        return [0 if seat.usable else None for seat in self.seats]

    def _runs(self, start: Start, wait_us: list[int | None]) -> bool:
        request = start.request
        return soonest(self.dispatcher.times, request.network, request.done, wait_us) is not None

    def _fail_if_hopeless(self, waiting: Waiting) -> None:
        """Answer a waiting request that nothing can run: lost units do not come back soon."""
        if self._loss is None:
            return
        wait_us = [None if seat.lost else 0 for seat in self.seats]
        if soonest(self.dispatcher.times, waiting.network, waiting.done, wait_us) is None:
            self.dispatcher.cancel(waiting.number)
            request = self.requests.by_number[waiting.number]
            words = f"{request} cannot be run any more: {self._loss}"
            self.requests.fail(request, Fate.FAILED, UnitLostError(words))
