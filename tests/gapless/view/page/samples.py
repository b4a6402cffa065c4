"""Subjects of all kinds: streams, workloads, replicas, races; made without any engine.

`python -m tests.gapless.view.page.samples FOLDER` writes a page for each, to look at.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import gapless
from gapless.answers.comparing import SolverAnswer
from gapless.api.tuning import tune_simulated
from gapless.executor.measurement import Measurement
from gapless.executor.runner import Budget, Runner
from gapless.executor.simulated import SimulatedRunner
from gapless.executor.tuning.racing import Rung, TuningOptions
from gapless.formulations.chunking.operation import deploy
from gapless.formulations.costs import Interference
from gapless.formulations.deployment import Deployment, Mode, replicas
from gapless.formulations.flow_shop.formulation import deploy as deploy_rounds
from gapless.formulations.flow_shop.tables import workload_of
from gapless.formulations.history import History
from gapless.formulations.plan import Chunk, Plan
from gapless.formulations.problem import Problem
from gapless.formulations.schedules import JobRequest, Jobs
from gapless.formulations.workload import LoadPolicy, Workload
from gapless.solvers.course import Pace
from gapless.solvers.result import Milestone
from gapless.solvers.sources import Source, StartMode
from gapless.view.page.page import report_page
from gapless.view.page.subject import Subject
from gapless.view.page.subjects import subject
from tests.pipeline_boards import TWO, six_devices

NOISE_PERMILLE = 40

HOSTILE = "</script><script>alert(1)</script>\"'&<b>{{x}}\N{HEBREW LETTER ALEF}evil"
"""A name that breaks pages which do not escape."""

TURNED = f"{HOSTILE}\N{RIGHT-TO-LEFT OVERRIDE}turned\x07"
"""The same with characters that names of units and layers cannot have, but paths and messages can."""


@cache
def pixel() -> Problem:
    """Return a shipped problem with one network."""
    return gapless.load_problem("pixel7a/alexnet-sparse")


@cache
def best(problem: Problem) -> Plan:
    """Return the best plan."""
    found = gapless.plan(problem, time_limit_s=1.0 if isinstance(problem.data, Workload) else None).plan
    assert found is not None
    return found


def runner(problem: Problem, noise_permille: int = NOISE_PERMILLE) -> Runner:
    """Return a device that obeys the costs of a problem, more or less."""
    return SimulatedRunner(problem, noise_permille=noise_permille, seed=1)


def as_measured(found: Measurement) -> Measurement:
    """Return what a simulated device did as if a real one had done it."""
    return replace(found, simulated=False)


def traced(problem: Problem, deployment: Deployment, requests: int) -> History:
    """Return the trace of an execution."""
    return runner(problem).trace(deployment, requests=requests)


@cache
def small() -> Subject:
    """Return a stream of one network, only planned."""
    return subject(pixel(), best(pixel()), requests=8)


@cache
def measured(requests: int = 20) -> Subject:
    """Return a stream of one network, planned, explained, compared and executed."""
    problem, plan = pixel(), best(pixel())
    truth = gapless.load_problem("pixel7a/alexnet-sparse", costs="isolated")
    deployment = deploy(plan)
    return subject(
        problem,
        plan,
        title="AlexNet",
        measured=traced(truth, deployment, requests),
        measurement=as_measured(runner(truth).measure(deployment, Budget(requests=50))),
        answers=gapless.compare(problem, backends=["native", "exhaustive"]),
        sources=("plan.json",),
    )


@cache
def long(requests: int = 300) -> Subject:
    """Return a stream of many requests through eight chunks, predicted and measured."""
    units = [f"unit{number}" for number in range(8)]
    times = {f"layer{n}": [1 + ((7 * n + 3 * u) % 11) / 3 for u in range(8)] for n in range(24)}
    problem = gapless.table_problem(times, units, network="deep")
    plan = Plan(
        chunks=tuple(
            Chunk(network="deep", start=3 * index, stop=3 * index + 3, unit=unit)
            for index, unit in enumerate(units)
        )
    )
    slower = {name: [1.1 * time + 0.1 for time in row] for name, row in times.items()}
    truth = gapless.table_problem(slower, units, network="deep")
    trace = traced(truth, deploy(plan), requests)
    return subject(problem, plan, title="deep", measured=trace, explained=None)


@cache
def workload() -> Subject:
    """Return five requests of three networks that slow each other down, over and over."""
    problem = _five()
    return replace(_workload(problem, best(problem)), answers=_answers())


@cache
def arriving(arrivals_us: tuple[int, ...]) -> Subject:
    """Return the same five requests, each with its arrival."""
    problem = _five()
    requests = tuple(
        replace(request, arrival_us=arrival_us)
        for request, arrival_us in zip(problem.data.requests, arrivals_us, strict=True)
    )
    problem = replace(problem, data=replace(problem.data, requests=requests))
    plan = gapless.plan(problem, backend="hetero2pipe").plan
    assert plan is not None
    return _workload(problem, plan)


def _five() -> Problem:
    return gapless.load_workload(
        "yolov4,bert,mobilenetv2x3",
        platform="kirin990",
        load_policy=LoadPolicy.RESIDENT,
        passage="ordered",
    )


@cache
def returning() -> Subject:
    """Return the same requests where they may come back to a unit, as an online policy plans them."""
    problem = gapless.load_workload("yolov4,bert,mobilenetv2x3", platform="kirin990")
    plan = gapless.plan(problem, backend="sel").plan
    assert plan is not None
    return subject(problem, plan, explained=None)


@cache
def unexecutable() -> Subject:
    """Return a workload with a load policy that the runtime does not serve, so that it is only planned."""
    problem = gapless.load_workload("yolov4,bert,mobilenetv2x3", platform="kirin990", passage="ordered")
    return subject(problem, best(problem), explained=None)


@cache
def steady() -> Subject:
    """Return requests that are served as a stream of rounds, back to back."""
    problem = gapless.load_workload(
        "vit,squeezenetx2", platform="kirin990", mode=Mode.STREAM, load_policy=LoadPolicy.RESIDENT
    )
    return _workload(problem, best(problem))


def _workload(problem: Problem, plan: Plan) -> Subject:
    deployment = deploy_rounds(plan, workload_of(problem))
    return subject(
        problem,
        plan,
        measured=traced(problem, deployment, 40),
        measurement=as_measured(runner(problem).measure(deployment, Budget(requests=40))),
        explained=2.0,
    )


COURSE = (
    Milestone(at_s=0.1, value=1_328_226, plan_source=Source.OWN),
    Milestone(
        at_s=0.4,
        value=1_071_029,
        bound=700_000,
        plan_source=Source.OWN,
        bound_source=Source.START,
    ),
    Milestone(
        at_s=1.4,
        value=1_071_029,
        bound=789_659,
        plan_source=Source.OWN,
        bound_source=Source.OWN,
    ),
)
"""Two better plans; a bound that was handed over, then one of its own."""


NATIVE = SolverAnswer(
    backend="native",
    guarantee="heuristic",
    status="feasible",
    objective=1_071_029,
    bound=789_659,
    gap=0.2627,
    runtime_s=2.0,
    startup_s=0.3,
    version="1.0",
    stop="complete",
    plan="a plan",
    course=COURSE,
    pace=Pace(first_plan_s=0.1, near_best_s=0.4, primal_integral_s=0.158),
)


def _answers() -> tuple[SolverAnswer, ...]:
    """Return what backends could have answered, with everything that can go wrong."""
    return (
        NATIVE,
        SolverAnswer(
            backend="cpsat",
            guarantee="exact",
            status="feasible",
            objective=1_180_000,
            bound=901_000,
            gap=0.236,
            runtime_s=2.1,
            startup_s=0.3,
            version="9.15",
            stop="time_limit",
            plan="another plan",
            start=StartMode.NATIVE,
            plan_source=Source.OWN,
            bound_source=Source.START,
        ),
        SolverAnswer(
            backend="z3",
            guarantee="exact",
            status="no_solution",
            objective=None,
            bound=None,
            gap=None,
            runtime_s=2.0,
            startup_s=0.3,
            version="5.4",
            stop="time_limit",
            plan="",
        ),
        SolverAnswer(
            backend="pulp",
            version="",
            guarantee="exact",
            status="",
            stop="",
            objective=None,
            bound=None,
            gap=None,
            runtime_s=0.0,
            startup_s=0.3,
            plan="",
            failure="highspy is not installed; pip install 'gapless[milp]'",
        ),
    )


@cache
def side_by_side() -> Subject:
    """Return replicas of a network, which are no plan."""
    problem, layers = pixel(), len(pixel().network.layers)
    deployment = replicas(problem.network.name, layers, ("Little", "Medium", "Big"))
    return subject(
        problem,
        deployment,
        title="replicas",
        measured=traced(problem, deployment, 10),
        measurement=as_measured(runner(problem).measure(deployment, Budget(requests=50))),
    )


@cache
def raced() -> Subject:
    """Return the winner of a race on a simulated device that obeys other costs than were planned with."""
    planned = gapless.load_problem("pixel7a/alexnet-sparse", costs="isolated")
    truth = gapless.load_problem("pixel7a/alexnet-sparse", costs="interpolated")
    options = TuningOptions(rungs=(Rung(seconds=0.2), Rung(seconds=0.2)))
    tuned = tune_simulated(planned, truth, top=8, noise_permille=NOISE_PERMILLE, options=options)
    assert tuned.deployment is not None
    return subject(
        planned,
        tuned.deployment,
        title="winner of the race",
        tuning=replace(tuned.result, simulated=False),
        measured=traced(truth, tuned.deployment, 30),
        requests=30,
        answers=gapless.compare(planned, backends=["native", "exhaustive"]),
    )


@cache
def hostile() -> Subject:
    """Return a plan whose names try to break the page."""
    problem = _hostile()
    found = subject(problem, best(problem), title=TURNED, requests=2, sources=(TURNED,))
    return replace(found, answers=(replace(_answers()[-1], failure=TURNED),))


@cache
def hostile_requests() -> Subject:
    """Return two requests with such names, which slow each other down."""
    one = _hostile()
    requests = tuple(JobRequest(name=f"{HOSTILE} {name}", network=HOSTILE) for name in ("one", "two"))
    problem = replace(
        one,
        data=Jobs(requests=requests),
        objective=gapless.Objective(terms=("makespan",)),
        interference=Interference(units=one.platform.unit_names, slowdown_permille=((0, 300), (300, 0))),
    )
    plan = gapless.plan(problem, backend="exhaustive").plan
    assert plan is not None
    return subject(problem, plan, title=TURNED, explained=None)


def _hostile() -> Problem:
    layers = {f"{HOSTILE}{number}": [2.0, 3.0] for number in range(3)}
    return gapless.table_problem(layers, [f"{HOSTILE} unit", "x" * 90], network=HOSTILE)


def over_devices() -> Subject:
    """Return two pipelines over five of six devices, with messages on links."""
    return subject(six_devices(host="pi-3"), TWO, title="over devices", explained=None)


SAMPLES: dict[str, Callable[[], Subject]] = {
    "small": small,
    "measured": measured,
    "long": long,
    "workload": workload,
    "returning": returning,
    "unexecutable": unexecutable,
    "steady": steady,
    "replicas": side_by_side,
    "raced": raced,
    "over devices": over_devices,
    "hostile": hostile,
    "hostile requests": hostile_requests,
}


def main(folder: Path) -> None:
    """Write the page of each sample, and one of several."""
    for name, make in SAMPLES.items():
        (folder / f"{name}.html").write_text(report_page([make()]))
    several = [measured(), raced(), side_by_side()]
    (folder / "several.html").write_text(report_page(several, title="Three ways", command="gapless report"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
