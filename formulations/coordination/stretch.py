"""Frames and recorded stretches, with everything known beforehand: what the bound of policies is about."""

from __future__ import annotations

from itertools import count, islice
from random import Random

from ..job_requests import JobRequest, Jobs, SectionBorders
from ..objective import Objective
from ..problem import Problem
from .arrivals import Frame, frames_of, times_of
from .policy import Policy
from .record import Answered, Record
from .scenario import Application, Scenario
from .setting import Setting
from .simulation import Conditions, Simulation


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


def _plus(start_us: int, time_us: int | None) -> int | None:
    return None if time_us is None else start_us + time_us
