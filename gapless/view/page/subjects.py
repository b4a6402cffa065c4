"""Reports: everything that is known of plans and executions, as one HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ...answers.comparing import SolverAnswer, answers_of
from ...api.comparison import Comparison
from ...executor.measurement import Measurement
from ...executor.progress import Report, silent
from ...executor.simulated import charged_for
from ...executor.tuning.result import TuningResult
from ...files.runs import RunDifferences
from ...formulations.deployment import Deployment
from ...formulations.errors import InvalidInputError
from ...formulations.files import save
from ...formulations.history import History
from ...formulations.judge import score
from ...formulations.operation import operation_of
from ...formulations.plan import Plan
from ...formulations.problem import Problem
from ...formulations.simulate import simulate, trace_usage
from ..explaining.explain import explain
from ..presenter import presenter_of
from .subject import Subject

DEFAULT_REQUESTS = 20
"""Requests of a stream that are played when nothing was measured."""

EXPLAIN_S = 5.0
"""Seconds that the explanation of one plan may take."""


def subject(
    problem: Problem,
    deployment: Plan | Deployment,
    *,
    title: str = "",
    requests: int | None = None,
    measured: History | None = None,
    measurement: Measurement | None = None,
    tuning: TuningResult | None = None,
    answers: Comparison | Sequence[SolverAnswer] = (),
    explained: float | None = EXPLAIN_S,
    sources: Sequence[str | Path] = (),
    report: Report = silent,
) -> Subject:
    """Return one plan or deployment as the subject of a report, with everything that follows from it.

    Parameters
    ----------
    problem
        What was planned.
    deployment
        The plan, or what runs (replicas).
    title
        What it is called; empty: what it does in words.
    requests
        How many requests of a stream are played. None: as many as were measured, otherwise 20.
    measured, measurement, tuning
        What really happened, as far as it is known.
    answers
        What backends answered to the problem. The explanation knows the plans and the proofs of a comparison.
    explained
        Seconds that the explanation of the plan may take; None: none is made.
    sources
        Files that the parts were read from.
    report
        Called with each step.

    Raises
    ------
    InvalidInputError
        The trace is of other streams than those that run.
    InvalidPlanError
        The plan is not valid for the problem; everything that it breaks is named.
    """
    planned = deployment if isinstance(deployment, Plan) else None
    runs = (
        deployment
        if isinstance(deployment, Deployment)
        else presenter_of(problem).arranged(problem, deployment)
    )
    _check_measured(measured, runs)
    found = Subject(
        title=title or str(runs),
        problem=problem,
        deployment=runs,
        planned=planned,
        measured=measured,
        measurement=measurement,
        tuning=tuning,
        answers=answers_of(answers) if isinstance(answers, Comparison) else tuple(answers),
        sources=tuple(map(str, sources)),
    )
    if found.runs:
        charged = charged_for(problem, runs)
        found = replace(found, steady=operation_of(charged).steady(charged, runs))
    plan = found.plan
    if plan is None:
        return found
    if found.runs:
        count = _count(requests, measured)
        played = predicted_trace(charged, runs, requests=count, saturated=measured is not None)
        found = replace(found, predicted=played, memory=trace_usage(charged, played))
    return replace(
        found,
        score=score(problem, plan),
        explanation=None
        if explained is None
        else explain(
            problem,
            plan,
            time_limit_s=explained,
            report=report,
            answers=answers.results if isinstance(answers, Comparison) else (),
        ),
    )


def _check_measured(measured: History | None, runs: Deployment) -> None:
    names = [stream.name for stream in runs.streams]
    others = [] if measured is None else [s.name for s in measured.streams if s.name not in names]
    if others:
        raise InvalidInputError(
            f"the trace is of {', '.join(map(repr, others))}, and what runs is called "
            f"{', '.join(map(repr, names))}: give the trace of this deployment"
        )


def predicted_trace(problem: Problem, deployment: Deployment, *, requests: int, saturated: bool) -> History:
    """Return a deployment of one plan, played on the costs of its problem.

    `saturated`: whether requests wait at the door, as when a period is measured, and always where task slots
    are given; otherwise one arrives each period.
    """
    plan = deployment.plan
    assert plan is not None
    if problem.formulation.arrivals(problem):
        return simulate(problem, plan)
    if deployment.is_dataflow:  # the very pieces that run
        return replace(operation_of(problem).play(problem, deployment, requests), deployment=None)
    waiting = saturated or any(stream.task_slots is not None for stream in deployment.streams)
    played = simulate(
        problem,
        plan,
        requests=requests,
        interval_us=0 if waiting else None,
        task_slots=max(stream.slots for stream in deployment.streams) if waiting else None,
    )
    if len(played.streams) > 1:
        return played
    # A plan of one stream does not know what the stream is called: the simulation calls it like its network.
    return replace(played, streams=(replace(played.streams[0], name=deployment.streams[0].name),))


def write_report(
    out: str | Path,
    subjects: Subject | Sequence[Subject],
    *,
    title: str = "",
    command: str = "",
    runs: Sequence[RunDifferences] = (),
) -> Path:
    """Write a report: one self-contained HTML file that needs no network.

    Parameters
    ----------
    out
        Where it goes.
    subjects
        What it is about (`gapless.reports.subject`), at least one.
    title
        Of the page; empty: made from the problem.
    command
        The command that made it, for its last section.
    runs
        Differences of runs (`run_differences`), which are shown first.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import gapless
    >>> problem = gapless.load_problem("pixel7a/alexnet-sparse")
    >>> result = gapless.plan(problem)
    >>> about = gapless.reports.subject(problem, result.plan)
    >>> path = gapless.write_report("report.html", about)  # doctest: +SKIP
    """
    from .page import report_page

    given = [subjects] if isinstance(subjects, Subject) else list(subjects)
    save(report_page(given, title=title, command=command, runs=runs), out)
    return Path(out)


def _count(requests: int | None, measured: History | None) -> int:
    if requests is not None:
        return requests
    if measured is None or not measured.events:
        return DEFAULT_REQUESTS
    return 1 + max(event.request for event in measured.events)
