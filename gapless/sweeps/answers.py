"""The answer to one task of a sweep, and how it is found."""

from __future__ import annotations

import os
import socket
import time
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ..api.asked import Subject, settled
from ..api.asked import problem_of as asked_problem
from ..api.planning import default_backend, default_backends
from ..files.rules_file import add_rules
from ..formulations.errors import BackendFailedError, GaplessError
from ..formulations.files import dump_plan
from ..formulations.json_files import Schema
from ..formulations.network import Network
from ..formulations.plugins import trust
from ..formulations.problem import Problem
from ..formulations.validation import STRICT
from ..question.question import Question
from ..solvers.course import Recorder
from ..solvers.protocol import SolveOptions
from ..solvers.result import Milestone, SolveResult
from ..solvers.session import solve
from ..solvers.sources import Source, StartMode, start_mode
from .tasks import Solving, SweepTask


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskAnswer:
    """What came of one task; a task that failed has an error, and no status.

    Attributes
    ----------
    error
        Why there is no answer, in words; empty: there is one.
    failure
        The kind of the error.
    worker
        Host and process that answered.
    attempts
        How often the task was tried.
    total_s
        Seconds from the task to the answer: the problem made, planned, and its plan judged.
    backend, backend_version
        Who planned.
    status, stop
        As in `SolveResult`.
    platform, networks
        Names in the problem.
    layers, units
        How many the problem has.
    fingerprint
        Of the problem.
    estimated
        Whether its costs are estimates.
    objective, term
        What was minimised, and its first term.
    value, bound
        Of the first term; null: none.
    start, plan_source, bound_source
        As in `SolveResult`.
    score
        All terms of the plan, by name with unit.
    per_second
        Inferences a second; null: has no meaning.
    runtime_s, startup_s, start_s
        As in `SolveResult`.
    plan, plan_id
        The plan in words, and its digest.
    plan_file
        The plan as the text of a plan file.
    course, plan_class
        As in `SolveResult` (older files do not say the latter).
    """

    __pydantic_config__: ClassVar[Any] = STRICT

    error: str = ""
    failure: str = ""
    worker: str = ""
    total_s: float = 0.0
    attempts: int = 1
    backend: str = ""
    backend_version: str = ""
    status: str = ""
    stop: str = ""
    platform: str = ""
    networks: tuple[str, ...] = ()
    layers: int = 0
    units: int = 0
    fingerprint: str = ""
    estimated: bool = False
    objective: str = ""
    term: str = ""
    value: int | None = None
    bound: int | None = None
    start: StartMode | None = None
    plan_source: Source | None = None
    bound_source: Source | None = None
    score: dict[str, int] = field(default_factory=dict)
    per_second: float | None = None
    runtime_s: float = 0.0
    startup_s: float = 0.0
    start_s: float = 0.0
    plan: str = ""
    plan_id: str = ""
    plan_file: str = ""
    course: tuple[Milestone, ...] = ()
    plan_class: str = ""

    @property
    def lost(self) -> bool:
        """Whether a process died: that may not happen again."""
        return self.failure == BackendFailedError.__name__


ANSWER = Schema(format="gapless.sweep_answer", version=1, content=TaskAnswer)


def problem_of(task: SweepTask, network: Network | None = None) -> Problem:
    """Return the problem of a task.

    `network`: its model, where it is planned over a cluster and was opened before; None: it is opened.
    Raises GaplessError: a name, a file, an objective, a limit or a rule is not valid.
    """
    base = task.base
    trust(base.asked.problem or "")  # by whoever made the sweep: its file may name code
    problem = asked_problem(base.asked, Subject(model=network)) if base.made is None else base.made
    return add_rules(problem, task.rules) if task.rules else problem


def answer(task: SweepTask, network: Network | None = None) -> TaskAnswer:
    """Return the answer to a task: errors are answers, too."""
    started = time.perf_counter()
    try:
        return solved(problem_of(task, network), task.solving, task.base.asked, started=started)
    except GaplessError as error:
        return failed(error, started)


def failed(error: GaplessError, started: float) -> TaskAnswer:
    """Return the answer of a task that cannot be solved."""
    return TaskAnswer(
        error=str(error),
        failure=type(error).__name__,
        worker=_this_worker(),
        total_s=time.perf_counter() - started,
    )


def solved(problem: Problem, solving: Solving, asked: Question, *, started: float) -> TaskAnswer:
    """Solve a problem as a task asks; what a backend or the judge refuses is raised."""
    backend = solving.backend or default_backend(problem)
    recorder = Recorder(problem)
    options = SolveOptions(
        time_limit_s=solving.time_limit_s or default_backends(problem).time_limit_s,
        memory_limit_bytes=solving.memory_limit_bytes,
        seed=solving.seed,
        threads=solving.threads,
        start=start_mode(solving.start),
        publish=recorder.publish,
        clock=recorder.clock,
    )
    result = solve(problem, backend, options, isolate=solving.isolate, explain=False)
    return TaskAnswer(
        worker=_this_worker(),
        backend=result.backend,
        backend_version=result.version,
        status=str(result.status),
        stop=str(result.stop),
        platform=problem.platform.name,
        networks=tuple(network.name for network in problem.networks),
        layers=sum(len(network.layers) for network in problem.networks),
        units=len(problem.platform.units),
        fingerprint=problem.fingerprint,
        estimated=problem.costs.provenance.estimated,
        objective=str(problem.objective),
        term=problem.objective.terms[0],
        value=result.objective,
        bound=result.bound,
        start=result.start,
        plan_source=result.plan_source,
        bound_source=result.bound_source,
        plan_class=result.plan_class,
        runtime_s=result.runtime_s,
        startup_s=result.startup_s,
        start_s=result.start_s,
        course=recorder.course(result),
        **_of_plan(problem, result, asked),
        total_s=time.perf_counter() - started,
    )


def _of_plan(problem: Problem, result: SolveResult, asked: Question) -> dict[str, Any]:
    best = result.best
    if best is None:
        return {}
    rate = best.score.throughput
    return {
        "score": dict(best.score.terms),
        # The rate of a plan over devices is that of its items, each of a whole batch.
        "per_second": None if rate is None else rate * (asked.batch or 1),
        "plan": str(best.plan),
        "plan_id": best.plan.plan_id,
        "plan_file": dump_plan(best.plan, problem, settled(asked, problem)[0].texts()),
    }


def _this_worker() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"
