"""The event simulation: requests come, a policy decides, units work as they would.

The dispatcher: holds what waits, asks the policy, and knows which unit does what. The event simulation and
the coordinator of real workers are both built on it, so that a policy cannot tell them apart. It has no
clock, and starts nothing itself: it says what to start.

The event simulation: requests come, a policy decides, units work as they would. One chunk at a time on a unit
takes what the table of costs says, so a plan that is played here takes exactly what the judge says. Beyond
that a setting can have slowdown by other units, several inferences at once on one unit (of applications that
know nothing of each other, and of layers that fall back silently), units that are cold or too hot, and noise.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from time import perf_counter_ns

from ..errors import InvalidInputError
from .policy import Conduct, Decision, Place, Policy, UnitState, Waiting
from .record import Answered, FrameSpan, Ran, Record, UnitSpan
from .sections import legs_of
from .setting import Setting
from .times import SMOOTHING, Times, shortest_latency_us
from .truth import Noise, Truth, Warmth, distortion


class Late(StrEnum):
    """What becomes of a request that cannot meet its deadline any more, by expected times.

    DROP
        It is answered with nothing. The released code of Band does that; its paper is silent.
    KEEP
        It runs all the same.
    """

    DROP = "drop"
    KEEP = "keep"


@dataclass(frozen=True, slots=True)
class Start:
    """A chunk that is to start now.

    `stop`, `unit`: see `Decision`.
    """

    number: int  # of the start; unique
    request: Waiting  # the request as it waited: `done` is the first section of the chunk
    stop: int
    unit: int
    at_us: int
    expected_us: int  # how long it is expected to take


class Dispatcher:
    """What waits, what runs, and who decides. Times are microseconds of whoever owns it.

    `demand`: see `Policy.begin`; empty: as many requests of each network. `exclusive`: by unit, the units
    that share a core with it: only one of them runs at a time. Empty: none do. `late`: what becomes of
    requests that cannot meet their deadline any more. `remembered`: how many of the last decisions have
    their time in `decisions_ns`.
    """

    def __init__(
        self,
        policy: Policy,
        times: Times,
        *,
        demand: Sequence[float] = (),
        exclusive: Sequence[frozenset[int]] = (),
        late: Late = Late.KEEP,
        remembered: int = 100_000,
    ) -> None:
        self.policy = policy
        self.times = times
        self.late = late
        # how long each call of the policy took that decided something, most recent last
        self.decisions_ns: deque[int] = deque(maxlen=remembered)
        self._queue: list[Waiting] = []
        self._running: list[dict[int, Start]] = [{} for _ in times.units]
        self._available = [True] * len(times.units)
        self._rivals = [tuple(exclusive[u]) if exclusive else () for u in range(len(times.units))]
        self._starts = 0
        self.prepare(demand)

    def prepare(self, demand: Sequence[float] = ()) -> None:
        """Let the policy know the networks: at the start, and when `times` has more of them."""
        self.policy.begin(self.times, demand or (1.0,) * self.times.network_count)

    @property
    def queue(self) -> Sequence[Waiting]:
        """What waits, in order."""
        return self._queue

    def running(self, unit: int) -> tuple[Start, ...]:
        """Return what a unit runs."""
        return tuple(self._running[unit].values())

    def available(self, unit: int) -> bool:
        """Return whether a unit may be used."""
        return self._available[unit]

    def submit(self, request: Waiting) -> None:
        """Take a request: it waits behind all others."""
        self._queue.append(request)

    def cancel(self, number: int) -> bool:
        """Take a request out that waits; return whether it did."""
        before = len(self._queue)
        self._queue = [waiting for waiting in self._queue if waiting.number != number]
        return len(self._queue) < before

    def drop_late(self, now_us: int) -> list[Waiting]:
        """Take out and return the requests that are to be dropped at this time."""
        if not any(map(self.may_drop, self._queue)):
            return []
        kept: list[Waiting] = []
        dropped: list[Waiting] = []
        for waiting in self._queue:
            late = self.may_drop(waiting) and self._too_late(waiting, now_us)
            (dropped if late else kept).append(waiting)
        self._queue = kept
        return dropped

    def may_drop(self, waiting: Waiting) -> bool:
        """Return whether a request is dropped when it cannot meet its deadline."""
        return waiting.deadline_us is not None and (waiting.expires or self.late is Late.DROP)

    def decide(self, now_us: int) -> Iterator[Start]:
        """Yield what to start now: the units count as busy from then on.

        The policy is first shown the requests of the smallest priority number; while it starts none of them,
        those of the next number as well.

        Raises InvalidInputError: the policy wants what cannot be; the message says what.
        """
        while self._queue:
            states = self.states(now_us)
            before_ns = perf_counter_ns()
            decision = self._decision(now_us, states)
            took_ns = perf_counter_ns() - before_ns
            if decision is None:
                return
            self.decisions_ns.append(took_ns)
            yield self._start(decision, states, now_us)

    def _decision(self, now_us: int, states: Sequence[UnitState]) -> Decision | None:
        levels = {waiting.priority for waiting in self._queue}
        if len(levels) == 1:
            return self.policy.next(now_us, self._queue, states, self.times)
        for level in sorted(levels):
            urgent = [waiting for waiting in self._queue if waiting.priority <= level]
            if (decision := self.policy.next(now_us, urgent, states, self.times)) is not None:
                return decision
        return None

    def states(self, now_us: int) -> list[UnitState]:
        """Return the units as policies see them."""
        return [
            self._state(unit, now_us) if self._running[unit] or self._rivals[unit] else UnitState(available)
            for unit, available in enumerate(self._available)
        ]

    def finished(self, start: Start, took_us: float) -> Waiting | None:
        """Take note that a chunk is done; return what is left of its request, which waits again, or None."""
        del self._running[start.unit][start.number]
        request = start.request
        decision = Decision(request.number, start.stop, start.unit)
        self.policy.ended(request)
        self.policy.took(request, decision, took_us, start.expected_us)
        self.times.observe(request.network, request.done, start.stop, start.unit, took_us)
        if start.stop == self.times.sections(request.network):
            return None
        rest = request._replace(done=start.stop)
        self._put(rest, self.policy.requeue(rest))
        return rest

    def put_back(self, start: Start) -> None:
        """Take note that a chunk did not end: its request waits again, ahead of all others (Band, 4.3.1)."""
        del self._running[start.unit][start.number]
        self.policy.ended(start.request)
        self._put(start.request, Place.HEAD)

    def withdraw(self, unit: int) -> tuple[Start, ...]:
        """Take a unit away; return what it runs, for whoever owns this to end it and put it back."""
        self._available[unit] = False
        self.policy.changed(self.states(0))
        return self.running(unit)

    def restore(self, unit: int) -> None:
        """Give a unit back."""
        self._available[unit] = True
        self.policy.changed(self.states(0))

    def _state(self, unit: int, now_us: int) -> UnitState:
        """Return the state of a unit; it waits for those that share a core with it, too."""
        starts = [start for each in (unit, *self._rivals[unit]) for start in self._running[each].values()]
        last_us = max((start.at_us + start.expected_us for start in starts), default=now_us)
        return UnitState(self._available[unit], len(starts), max(0, last_us - now_us))

    def _put(self, request: Waiting, place: Place) -> None:
        if place is Place.HEAD:
            self._queue.insert(0, request)
        else:
            self._queue.append(request)

    def _too_late(self, waiting: Waiting, now_us: int) -> bool:
        if waiting.deadline_us is None:
            return False
        least_us = shortest_latency_us(self.times, waiting.network, waiting.done)
        return least_us is not None and now_us + least_us > waiting.deadline_us

    def _start(self, decision: Decision, states: Sequence[UnitState], now_us: int) -> Start:
        number, stop, unit = decision
        index = next((i for i, waiting in enumerate(self._queue) if waiting.number == number), None)
        if index is None:
            raise self._refused(decision, "no such request waits")
        request = self._queue[index]
        if not 0 <= unit < len(states) or not states[unit].available:
            raise self._refused(decision, "the unit is not there, or was taken away")
        if states[unit].running and self.policy.conduct is not Conduct.ALONE:
            raise self._refused(decision, "the unit is busy")
        expected_us = self.times.chunk_us(request.network, request.done, stop, unit)
        if expected_us is None:
            raise self._refused(decision, f"the unit cannot run the sections from {request.done} on to there")
        if not self.times.may_start(request.network, request.done, stop, unit):
            raise self._refused(decision, f"sections {request.done} to {stop - 1} are not loaded on the unit")
        del self._queue[index]
        self._starts += 1
        start = Start(self._starts, request, stop, unit, now_us, expected_us)
        self._running[unit][start.number] = start
        return start

    def _refused(self, decision: Decision, why: str) -> InvalidInputError:
        return InvalidInputError(
            f"policy {self.policy.name!r} decided {decision}, which cannot be: {why}; waiting: "
            f"requests {', '.join(str(waiting.number) for waiting in self._queue[:20])}"
        )


MOST_LOSS = 0.75
"""Most of its speed that a chunk loses to all other units together; as for workloads."""


@dataclass(slots=True, eq=False)
class Task:
    """A chunk, or a whole network, that was started.

    `unit`, `began_us`: where it runs, and since when.
    """

    start: Start  # what was decided
    legs: tuple[tuple[int, int, int], ...]
    """First section, one past the last, and unit of its parts, in order; of a chunk there is one."""
    leg: int = 0  # which of them runs
    unit: int = -1
    began_us: float = 0.0
    left_us: float = 0.0  # what is left of it, as if it were alone
    pace: float = 1.0  # how much of that passes in a microsecond


class UnitsAtWork:
    """All that runs; a change of what runs changes how fast the rest goes on."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._places = setting.platform.places
        self._workers = [
            [other for other, place in enumerate(self._places) if place == own] for own in self._places
        ]
        self._tasks: list[list[Task]] = [[] for _ in setting.platform.units]
        self._idle_since_us = [0.0] * len(self._tasks)
        self._names = [network.name for network in setting.networks]

    def count(self, unit: int) -> int:
        """Return how much runs on a unit, by all its workers."""
        return sum(len(self._tasks[worker]) for worker in self._workers[unit])

    def tasks(self) -> list[Task]:
        """Return all that runs."""
        return [task for tasks in self._tasks for task in tasks]

    def idle_us(self, unit: int, now_us: float) -> float:
        """Return for how long a unit has had nothing to do."""
        return 0.0 if self.count(unit) else now_us - self._idle_since_us[self._places[unit]]

    def begin(self, task: Task, unit: int, time_us: float, now_us: float) -> None:
        """Begin a leg of a task on a unit; alone it would take `time_us`."""
        task.unit, task.began_us, task.left_us = unit, now_us, time_us
        self._tasks[unit].append(task)
        self._set_paces()

    def stop(self, task: Task, now_us: float) -> None:
        """Take a task from its unit."""
        self._tasks[task.unit].remove(task)
        self._idle_since_us[self._places[task.unit]] = now_us
        self._set_paces()

    def next_us(self, now_us: float) -> float | None:
        """Return when the next leg is done if nothing changes; None: nothing runs."""
        ends = [now_us + task.left_us / task.pace for tasks in self._tasks for task in tasks]
        return min(ends, default=None)

    def advance(self, time_us: float) -> None:
        """Let time pass: not more than until the next leg is done."""
        for tasks in self._tasks:
            for task in tasks:
                task.left_us -= time_us * task.pace

    def done(self, epsilon_us: float) -> list[Task]:
        """Return the tasks whose leg is done."""
        return [task for tasks in self._tasks for task in tasks if task.left_us <= epsilon_us]

    def _set_paces(self) -> None:
        for unit, tasks in enumerate(self._tasks):
            if tasks:
                shared = self._setting.behaviours[unit].shared_permille(self.count(unit)) / 1000
                for task in tasks:
                    task.pace = 1 / (shared * self._beside_others(task))

    def _beside_others(self, task: Task) -> float:
        """Return how many times as long a task takes because of what runs on other units.

        As for workloads, a slowdown of d is a loss of d / (1 + d) of the speed, and losses add up.
        """
        interference = self._setting.interference
        if interference is None:
            return 1.0
        victim = self._names[task.start.request.network]
        beside: dict[int, set[str]] = {}  # workers of one unit slow others down as that unit does
        for other in self.tasks():
            if self._places[other.unit] != self._places[task.unit]:
                names = beside.setdefault(self._places[other.unit], set())
                names.add(self._names[other.start.request.network])
        lost = 0.0
        for place, names in beside.items():
            slower = max(interference.slowdown_of(victim, task.unit, name, place) for name in names)
            lost += slower / (1000 + slower)
        return 1 / (1 - min(lost, MOST_LOSS))


_EPSILON_US = 1e-6
"""Times closer than this are the same: sums of floats are not exact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """How requests are served, whatever the policy.

    Attributes
    ----------
    late
        What becomes of requests that cannot meet their deadline any more.
    smoothing
        Share of the last observation in an expected time; 0: expectations stay as they are.
    noise
        Errors of estimates and times.
    rest_kelvin
        So far below the limit of its heat model a unit is given nothing more, until it is cool enough: it
        leaves before it throttles. None: it works until it is lost, as in the paper.
    seed
        Of all that is drawn here.
    """

    late: Late = Late.KEEP
    smoothing: float = SMOOTHING
    noise: Noise = Noise()
    rest_kelvin: float | None = None
    seed: int = 0


@dataclass(slots=True)
class _Open:
    """A request that was asked for and is not answered yet."""

    answered: Answered
    luck: str
    missing: int


class Simulation:
    """Requests and units in simulated time, microseconds.

    Whoever owns it asks for requests and sets it forward; `ended` tells of each that is answered.
    """

    def __init__(
        self,
        setting: Setting,
        policy: Policy,
        conditions: Conditions,
        *,
        demand: Sequence[float] = (),
        ended: Callable[[Answered], None] = lambda _: None,
    ) -> None:
        setting = setting.served_by(policy)
        self.setting = setting
        self._places = setting.platform.places
        self.now_us = 0.0
        self.ran: list[Ran] = []
        self.away: list[UnitSpan] = []
        self.answered: dict[int, Answered] = {}
        self._conditions = conditions
        self._ended = ended
        noise = conditions.noise
        times = Times(
            setting.platform.unit_names,
            setting.network_times(policy),
            smoothing=conditions.smoothing,
            distortion=distortion(noise.estimates_permille, conditions.seed),
        )
        exclusive = setting.chains[0].exclusive
        self.dispatcher = Dispatcher(policy, times, demand=demand, exclusive=exclusive, late=conditions.late)
        self._truth = Truth(setting, times_permille=noise.times_permille, seed=conditions.seed)
        self._work = UnitsAtWork(setting)
        self._open: dict[int, _Open] = {}
        self._waiting_for: dict[int, list[int]] = {}
        self._warmth = self._warmths()

    def _warmths(self) -> dict[int, Warmth]:
        found = {}
        for unit, behaviour in enumerate(self.setting.behaviours):
            if behaviour.heat is not None and self._places[unit] == unit:
                early = self._conditions.rest_kelvin or 0.0
                found[unit] = Warmth(behaviour, behaviour.heat, behaviour.heat.limit_c - early)
        return found

    def ask(self, request: Answered, *, luck: str = "") -> None:
        """Let a request come: at its arrival, which is now, or when those are done that it waits for.

        `luck`: what is drawn for it depends on this; empty: on its number.
        """
        ahead = [number for number in request.after if number not in self.answered]
        self._open[request.number] = _Open(request, luck or str(request.number), len(ahead))
        for number in ahead:
            self._waiting_for.setdefault(number, []).append(request.number)
        if not ahead:
            self._release(request.number)

    def next_us(self) -> float | None:
        """Return when something happens by itself; None: nothing ever does."""
        times = [self._work.next_us(self.now_us)]
        times += [warmth.next_us() for warmth in self._warmth.values()] if self._open else []
        return min((at for at in times if at is not None), default=None)

    def advance(self, until_us: float) -> None:
        """Let time pass, to when something happens at the latest, and take note of it."""
        self._work.advance(until_us - self.now_us)
        self.now_us = until_us
        for task in self._work.done(_EPSILON_US):
            self._leg_ended(task)
        for unit, warmth in self._warmth.items():
            at_us = warmth.next_us()
            if at_us is not None and at_us <= self.now_us + _EPSILON_US:
                warmth.hot = not warmth.hot
                (self._too_hot if warmth.hot else self.give_back)(unit)

    def decide(self) -> None:
        """Let the policy start what can start now."""
        now = round(self.now_us)
        for dropped in self.dispatcher.drop_late(now):
            self._answer(dropped.number, dropped=True)
        for start in self.dispatcher.decide(now):
            self._begin(start)

    def lose(self, unit: int, cause: str) -> None:
        """Take a unit away with all its workers: what they run is put back."""
        for worker in self._workers(unit):
            self._lose(worker, cause)

    def _workers(self, unit: int) -> list[int]:
        return [other for other, place in enumerate(self._places) if place == self._places[unit]]

    def _lose(self, unit: int, cause: str) -> None:
        if not self.dispatcher.available(unit):
            return
        starts = {start.number: start for start in self.dispatcher.withdraw(unit)}
        for task in self._work.tasks():
            if task.start.number in starts or task.unit == unit:
                self._note(task, cut_off=True)
                self._stop(task)
                self.dispatcher.put_back(task.start)
        self.away.append(UnitSpan(unit=unit, start_us=self.now_us, end_us=None, cause=cause))

    def give_back(self, unit: int) -> None:
        """Let a unit return with all its workers."""
        for worker in self._workers(unit):
            if not self.dispatcher.available(worker):
                self.dispatcher.restore(worker)
        for index, span in enumerate(self.away):
            if self._places[span.unit] == self._places[unit] and span.end_us is None:
                self.away[index] = replace(span, end_us=self.now_us)

    def record(
        self, applications: tuple[str, ...], duration_us: int, frames: Iterable[FrameSpan] = ()
    ) -> Record:
        """Return what has happened."""
        setting = self.setting
        requests = [*self.answered.values(), *self.unanswered]
        record = Record(
            policy=self.dispatcher.policy.name,
            units=setting.platform.unit_names,
            networks=tuple(network.name for network in setting.networks),
            applications=applications,
            duration_us=duration_us,
            end_us=self.now_us,
            requests=tuple(sorted(requests, key=lambda request: request.number)),
            ran=tuple(self.ran),
            frames=tuple(sorted(frames, key=lambda span: span.start_us)),
            away=tuple(self.away),
            decisions_ns=tuple(self.dispatcher.decisions_ns),
        )
        return replace(record, energy_mj=setting.energy_mj(self.ran, record.end_us))

    @property
    def unanswered(self) -> tuple[Answered, ...]:
        """The requests that were asked for and not answered."""
        return tuple(each.answered for each in self._open.values())

    def _too_hot(self, unit: int) -> None:
        if self._conditions.rest_kelvin is not None:  # what runs there goes on
            for worker in self._workers(unit):
                self.dispatcher.withdraw(worker)
            self.away.append(UnitSpan(unit=unit, start_us=self.now_us, end_us=None, cause="rest"))
        else:
            self.lose(unit, "heat")

    def _release(self, number: int) -> None:
        request = self._open[number].answered
        arrival_us = max(self.now_us, request.arrival_us)
        self.dispatcher.submit(
            Waiting(
                number=number,
                network=request.network,
                application=request.application,
                arrival_us=round(arrival_us),
                deadline_us=None if request.deadline_us is None else round(request.deadline_us),
                weight=request.weight,
            )
        )

    def _begin(self, start: Start) -> None:
        policy, request = self.dispatcher.policy, start.request
        if policy.conduct is Conduct.CHUNKS:
            legs: tuple[tuple[int, int, int], ...] = ((request.done, start.stop, start.unit),)
        else:
            parts = self.setting.sections[request.network]
            legs = legs_of(parts, start.unit, policy.fallback, self.setting.processor(policy))
        self._next_leg(Task(start=start, legs=legs))

    def _next_leg(self, task: Task) -> None:
        """Begin the next leg; one that falls back goes to the processor that has least to do."""
        first, last, unit = task.legs[task.leg]
        if unit != task.start.unit:
            unit = min(self.setting.processors, key=self._work.count)
        request = task.start.request
        idle_us = self._work.idle_us(unit, self.now_us)
        luck = self._open[request.number].luck
        time_us = self._truth.time_us(luck, request.network, first, last, unit, idle_us)
        place = self._places[unit]
        if not self._work.count(unit) and place in self._warmth:
            self._warmth[place].work(self.now_us, busy=True)
        self._work.begin(task, unit, time_us, self.now_us)

    def _leg_ended(self, task: Task) -> None:
        self._note(task)
        self._stop(task)
        task.leg += 1
        if task.leg < len(task.legs):
            self._next_leg(task)
            return
        start = task.start
        if self.dispatcher.finished(start, self.now_us - start.at_us) is None:
            self._answer(start.request.number)

    def _note(self, task: Task, *, cut_off: bool = False) -> None:
        first, last, _ = task.legs[task.leg]
        self.ran.append(
            Ran(
                unit=task.unit,
                start_us=task.began_us,
                end_us=self.now_us,
                request=task.start.request.number,
                first=first,
                last=last,
                silent=task.unit != task.start.unit,
                cut_off=cut_off,
            )
        )

    def _stop(self, task: Task) -> None:
        self._work.stop(task, self.now_us)
        place = self._places[task.unit]
        if not self._work.count(task.unit) and place in self._warmth:
            self._warmth[place].work(self.now_us, busy=False)

    def _answer(self, number: int, *, dropped: bool = False) -> None:
        """Answer a request; those that wait for it come now, or are dropped with it."""
        request = self._open.pop(number).answered
        arrival_us = max([request.arrival_us, *(self.answered[n].end_us or 0.0 for n in request.after)])
        end_us = None if dropped else self.now_us
        done = replace(request, arrival_us=arrival_us, end_us=end_us, dropped=dropped)
        self.answered[number] = done
        self._ended(done)
        for follower in self._waiting_for.pop(number, ()):
            if follower not in self._open:
                continue
            self._open[follower].missing -= 1
            if dropped:
                self._answer(follower, dropped=True)
            elif not self._open[follower].missing:
                self._release(follower)
