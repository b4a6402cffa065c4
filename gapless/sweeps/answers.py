"""The answer to one task of a sweep, and how it is found."""

from __future__ import annotations

import os
import socket
import time
from dataclasses import dataclass, field, replace
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
from ..solvers.result import Answer, SolveResult, figures
from ..solvers.session import solve
from ..solvers.sources import start_mode
from .tasks import Solving, SweepTask


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskAnswer(Answer):
    """What came of one task; a task that failed has an error, and no status."""

    __pydantic_config__: ClassVar[Any] = STRICT

    error: str = ""
    """Why there is no answer, in words; empty: there is one."""
    failure: str = ""
    """The kind of the error."""
    worker: str = ""
    """Host and process that answered."""
    attempts: int = 1
    """How often the task was tried."""
    total_s: float = 0.0
    """Seconds from the task to the answer: the problem made, planned, and its plan judged."""
    backend_version: str = ""
    """Of the solver; empty where it has none."""
    platform: str = ""
    networks: tuple[str, ...] = ()
    """Names in the problem."""
    layers: int = 0
    units: int = 0
    """How many the problem has."""
    fingerprint: str = ""
    """Of the problem."""
    estimated: bool = False
    """Whether its costs are estimates."""
    objective: str = ""
    term: str = ""
    """What was minimised, and its first term."""
    value: int | None = None
    """Of the first term; None: there is no plan."""
    score: dict[str, int] = field(default_factory=dict)
    """All terms of the plan, by name with unit."""
    per_second: float | None = None
    """Inferences a second; None: has no meaning."""
    plan: str = ""
    plan_id: str = ""
    """The plan in words, and its digest."""
    plan_file: str = ""
    """The plan as the text of a plan file."""

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
        **figures(replace(result, course=recorder.course(result))),
        worker=_this_worker(),
        backend_version=result.version,
        platform=problem.platform.name,
        networks=tuple(network.name for network in problem.networks),
        layers=sum(len(network.layers) for network in problem.networks),
        units=len(problem.platform.units),
        fingerprint=problem.fingerprint,
        estimated=problem.costs.provenance.estimated,
        objective=str(problem.objective),
        term=problem.objective.terms[0],
        value=result.objective,
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
