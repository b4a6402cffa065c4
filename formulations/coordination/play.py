"""Playing a scenario: its requests come to a simulation, whatever the policy, and a record is made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count, islice
from random import Random
from typing import Protocol, TypeVar

from ..problem import Problem
from ..schedules import JobRequest, Jobs, SectionBorders
from ..terms import Objective
from .policy import Policy
from .record import Answered, FrameSpan, Record
from .scenario import Application, Frame, Scenario, UnitChange, Workflow, demand_of, frames_of, times_of
from .setting import Setting
from .simulation import Conditions, Simulation

_TimeT = TypeVar("_TimeT", int, float)


def problem_of(setting: Setting, jobs: Jobs, *terms: str) -> Problem:
    """Return the problem of serving requests that are all known, by one chunk at a time on each unit.

    `setting`: the units, and what networks cost on them; slowdown and behaviour do not count, so that what is
    proved holds whatever they are.
    """
    setting = setting.by_worker
    asked = {request.network for request in jobs.requests}
    networks = tuple(network for network in setting.networks if network.name in asked)
    borders = tuple(
        SectionBorders(network=name, cuts=cuts) for name, cuts in setting.borders.items() if name in asked
    )
    return Problem(
        platform=setting.platform,
        networks=networks,
        costs=setting.costs_of([network.name for network in networks]),
        objective=Objective(terms=terms),
        data=Jobs(requests=jobs.requests, borders=borders),
    )


def first_frames(scenario: Scenario, most: int, *, most_requests: int = 1_000) -> list[tuple[str, Jobs]]:
    """Return the first frames of the workflows of a scenario, in turns: the same as policies are given.

    `most`: how many frames at most.
    Name of the workflow with the number of the frame, and its requests, all released at 0.
    """
    drawn = []
    for workflow in scenario.workflows:
        frames = islice(frames_of(workflow, Random(f"{scenario.seed}/{workflow.name}")), 10 * most)
        named = [(f"{workflow.name} {number}", frame) for number, frame in enumerate(frames)]
        drawn.append([(name, _jobs_of(frame, workflow.deadline_us)) for name, frame in named])
    mixed = [entry for row in zip(*drawn, strict=False) for entry in row] if drawn else []
    return [entry for entry in mixed if len(entry[1].requests) <= most_requests][:most]


def first_stretch(setting: Setting, scenario: Scenario, most_requests: int) -> Jobs | None:
    """Return the first requests of the applications of a scenario; None: there are none."""
    found = sorted(
        (at_us, index, asker.name, asker)
        for index, asker in enumerate(scenario.applications)
        for at_us in islice(
            times_of(
                asker.arrivals,
                scenario.duration_us,
                Random(f"{scenario.seed}/{asker.name}/times"),
            ),
            most_requests,
        )
    )[:most_requests]
    if not found:
        return None
    serial = count()
    return Jobs(
        requests=tuple(
            JobRequest(
                name=f"{name}#{next(serial)}",
                network=asker.network,
                release_us=at_us,
                deadline_us=deadline_of(setting, asker),
                weight=asker.weight,
            )
            for at_us, _, name, asker in found
        )
    )


def deadline_of(setting: Setting, application: Application) -> int | None:
    """Return by when after its arrival a request of an application has to be done."""
    if application.deadline_permille is None:
        return application.deadline_us
    p99_us = setting.p99_us(setting.index(application.network))
    return round(p99_us * application.deadline_permille / 1000)


def play_jobs(setting: Setting, jobs: Jobs, policy: Policy, conditions: Conditions | None = None) -> Record:
    """Serve requests that are given one by one, in simulated time; errors as for `play`."""
    simulation = Simulation(setting, policy, conditions or Conditions())
    numbers = {name: number for number, name in enumerate(jobs.names)}
    coming = sorted(
        ((request.release_us, numbers[request.name], request) for request in jobs.requests),
        key=lambda entry: entry[:2],
    )
    while True:
        times = [simulation.next_us(), coming[0][0] if coming else None]
        at_us = min((at for at in times if at is not None), default=None)
        if at_us is None:
            break
        simulation.advance(at_us)
        while coming and coming[0][0] <= at_us:
            _, number, request = coming.pop(0)
            simulation.ask(
                Answered(
                    number=number,
                    application=0,
                    network=setting.index(request.network),
                    arrival_us=request.release_us,
                    deadline_us=_plus(request.release_us, request.deadline_us),
                    end_us=None,
                    after=tuple(numbers[name] for name in request.after),
                    weight=request.weight,
                )
            )
        simulation.decide()
    return simulation.record(("requests",), jobs_end_us(jobs))


def jobs_end_us(jobs: Jobs) -> int:
    """Return when the last request comes."""
    return max(request.release_us for request in jobs.requests)


def _jobs_of(frame: Frame, deadline_us: int | None) -> Jobs:
    return Jobs(
        requests=tuple(
            JobRequest(
                name=f"{request.network}#{place}",
                network=request.network,
                deadline_us=deadline_us,
                after=tuple(f"{frame[before].network}#{before}" for before in request.after),
            )
            for place, request in enumerate(frame)
        )
    )


def play(
    setting: Setting, scenario: Scenario, policy: Policy, conditions: Conditions | None = None
) -> Record:
    """Serve the requests of a scenario in simulated time.

    `scenario`: who asks. The same requests come under every policy, except that frames without arrivals come
    when the one before is done.
    Raises InvalidInputError: the scenario asks for a network, or has an event of a unit, that the setting has
    not; or the policy decides what cannot be.
    """
    demand = demand_of(scenario)
    setting = setting.served_by(policy)
    traffic = Traffic(setting, scenario)
    simulation = Simulation(
        setting,
        policy,
        conditions or Conditions(seed=scenario.seed),
        demand=[demand.get(network.name, 0.0) for network in setting.networks],
        ended=traffic.ended,
    )
    return traffic.run(simulation)


class RequestServer(Protocol):
    """Whoever serves the requests of a scenario: a simulation, or units at work."""

    @property
    def now_us(self) -> float:
        """The time, microseconds from the beginning."""

    @property
    def unanswered(self) -> Sequence[Answered]:
        """The requests that were asked for and not answered."""

    def ask(self, request: Answered, *, luck: str = "") -> None:
        """Let a request come now, or when those are done that it waits for."""

    def next_us(self) -> float | None:
        """Return when something happens by itself; None: nothing ever does."""

    def advance(self, until_us: float) -> None:
        """Let time pass until something happens, at most until then."""

    def decide(self) -> None:
        """Let the policy start what can start now."""

    def lose(self, unit: int, cause: str) -> None:
        """Take a unit away."""

    def give_back(self, unit: int) -> None:
        """Let a unit return."""

    def record(
        self, applications: tuple[str, ...], duration_us: int, frames: Iterable[FrameSpan] = ()
    ) -> Record:
        """Return what has happened."""


@dataclass(slots=True)
class _FrameAtWork:
    """A frame of which requests are not answered yet."""

    application: int
    number: int
    start_us: float
    left: int
    complete: bool = True


class Traffic:
    """The requests of a scenario as they come: frame after frame, and what comes at its own time."""

    def __init__(self, setting: Setting, scenario: Scenario) -> None:
        for name in scenario.networks:
            setting.index(name)
        self._setting = setting
        self._scenario = scenario
        self._coming: list[tuple[float, int, int]] = []  # when, in which order, who asks
        self._order = count()
        self._numbers = count()
        self._frames: dict[tuple[int, int], _FrameAtWork] = {}
        self._spans: list[FrameSpan] = []
        self._askers: list[Application | Workflow] = [*scenario.applications, *scenario.workflows]
        self._serials = [count() for _ in self._askers]
        self._times: list[Iterator[int]] = []
        self._drawn: list[Iterator[Frame]] = []

    def run(self, server: RequestServer) -> Record:
        """Have everything served, and return what happened; `ended` must hear of each answer."""
        self._server = server
        self._prepare()
        events = list(self._events())
        while True:
            times = [server.next_us()]
            times += [self._coming[0][0]] if self._coming else []
            # Units come and go as long as somebody waits for an answer, or will.
            times += [events[0][0]] if events and (self._coming or server.unanswered) else []
            at_us = min((at for at in times if at is not None), default=None)
            if at_us is None:
                break
            server.advance(at_us)
            at_us = server.now_us
            while events and events[0][0] <= at_us:
                _, unit, change = events.pop(0)
                if change == UnitChange.LOST:
                    server.lose(unit, "event")
                else:
                    server.give_back(unit)
            while self._coming and self._coming[0][0] <= at_us:
                self._come(heappop(self._coming)[2])
            server.decide()
        return self._record()

    def _prepare(self) -> None:
        """Draw each asker's requests from a generator of its own: others do not change them."""
        for index, asker in enumerate(self._askers):
            random = Random(f"{self._scenario.seed}/{asker.name}")
            self._drawn.append(frames_of(asker, random) if isinstance(asker, Workflow) else iter(()))
            of_times = Random(f"{self._scenario.seed}/{asker.name}/times")
            if asker.arrivals is None:
                self._times.append(iter(()))
                heappush(self._coming, (0.0, next(self._order), index))
            else:
                self._times.append(times_of(asker.arrivals, self._scenario.duration_us, of_times))
                self._expect(index)

    def _events(self) -> Iterator[tuple[float, int, UnitChange]]:
        for event in self._scenario.events:
            yield float(event.at_us), self._setting.platform.index_of(event.unit), event.change

    def _expect(self, asker: int) -> None:
        """Note when somebody asks next."""
        if (at_us := next(self._times[asker], None)) is not None:
            heappush(self._coming, (float(at_us), next(self._order), asker))

    def _come(self, index: int) -> None:
        asker = self._askers[index]
        self._expect(index)
        if isinstance(asker, Workflow):
            self._frame_comes(index, asker, next(self._drawn[index]))
        else:
            network = self._setting.index(asker.network)
            self._ask(index, network, deadline_us=deadline_of(self._setting, asker), weight=asker.weight)

    def _frame_comes(self, index: int, workflow: Workflow, frame: Frame) -> None:
        number = next(self._serials[index])
        self._frames[index, number] = _FrameAtWork(index, number, self._server.now_us, len(frame))
        numbers = [next(self._numbers) for _ in frame]
        for place, request in enumerate(frame):
            self._server.ask(
                Answered(
                    number=numbers[place],
                    application=index,
                    network=self._setting.index(request.network),
                    arrival_us=self._server.now_us,
                    deadline_us=_plus(self._server.now_us, workflow.deadline_us),
                    end_us=None,
                    frame=number,
                    after=tuple(numbers[before] for before in request.after),
                ),
                luck=f"{index}/{number}/{place}",
            )

    def _ask(self, index: int, network: int, *, deadline_us: int | None, weight: int) -> None:
        self._server.ask(
            Answered(
                number=next(self._numbers),
                application=index,
                network=network,
                arrival_us=self._server.now_us,
                deadline_us=_plus(self._server.now_us, deadline_us),
                end_us=None,
                weight=weight,
            ),
            luck=f"{index}/{next(self._serials[index])}",
        )

    def ended(self, request: Answered) -> None:
        """Take note of an answer: a frame without arrivals comes when the one before is done."""
        if request.frame < 0:
            return
        key = request.application, request.frame
        frame = self._frames[key]
        frame.left -= 1
        frame.complete &= not request.dropped
        if frame.left:
            return
        now_us = self._server.now_us
        workflow = self._askers[request.application]
        assert isinstance(workflow, Workflow)
        self._spans.append(
            FrameSpan(
                application=frame.application,
                frame=frame.number,
                start_us=frame.start_us,
                end_us=now_us if frame.complete else None,
                deadline_us=_plus(frame.start_us, workflow.deadline_us),
            )
        )
        del self._frames[key]
        if workflow.arrivals is None and now_us < self._scenario.duration_us:
            heappush(self._coming, (now_us, next(self._order), request.application))

    def _record(self) -> Record:
        server = self._server
        unfinished = [
            FrameSpan(
                application=frame.application,
                frame=frame.number,
                start_us=frame.start_us,
                end_us=None,
                deadline_us=_plus(
                    frame.start_us, getattr(self._askers[frame.application], "deadline_us", None)
                ),
            )
            for frame in self._frames.values()
        ]
        names = tuple(asker.name for asker in self._askers)
        return server.record(names, self._scenario.duration_us, [*self._spans, *unfinished])


def _plus(start_us: _TimeT, time_us: int | None) -> _TimeT | None:
    return None if time_us is None else start_us + time_us
