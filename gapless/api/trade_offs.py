"""Trade-offs: every plan that no other plan is better than, in two or three terms."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Unpack

from ..executor.tuning.result import TuningRow
from ..formulations.energy import ENERGY, powers_of
from ..formulations.operation import operation_of
from ..formulations.problem import Problem
from ..question.question import Question
from ..question.values import names_in
from ..solvers.pareto import ParetoFront, ParetoPoint, ParetoSearch
from ..solvers.protocol import Backend, SolveOptions
from .asked import Words, asked_problem, for_backends
from .planning import default_backend

if TYPE_CHECKING:
    from .clusters import Planned


def pareto(
    problem: Planned | Question | None,
    terms: str | Sequence[str],
    *,
    backend: str | Backend | None = None,
    time_limit_s: float | None = None,
    memory_limit_bytes: int | None = None,
    strict_rules: bool = False,
    seed: int = 0,
    threads: int = 1,
    isolate: bool = False,
    on_point: Callable[[ParetoPoint], None] = lambda point: None,
    **words: Unpack[Words],
) -> ParetoFront:
    """Find all plans that no other plan is better than, in two or three terms of the objective.

    Parameters
    ----------
    problem, words
        What is asked, as for `plan`; its objective does not count, its limits and rules do.
    terms
        Two or three of the terms of the problem, as a list or as "period,energy".
    time_limit_s
        Seconds for all points together; what is known by then is the answer.
    on_point
        Called with each plan that is found.
    backend, memory_limit_bytes, strict_rules, seed, threads, isolate
        As for `plan`.

    Returns
    -------
    ParetoFront
        Each plan with its values, and whether it is proven; `complete` says whether these are proved to be
        all. A problem without plans has none, and is complete.

    Raises
    ------
    InvalidInputError, ExpressionError
        A term, a rule or an option is not valid, or the platform does not say the powers that energy needs.
    BackendError
        The backend cannot answer.

    Examples
    --------
    >>> import gapless
    >>> front = gapless.pareto("pixel7a/alexnet-sparse", "period,latency")
    >>> front.complete, [point.values for point in front.points][0]
    (True, (7648, 27463))
    """
    found = asked_problem(problem, words)
    asked = for_backends(found, [] if backend is None else [backend]).problem
    options = SolveOptions(
        time_limit_s=time_limit_s, memory_limit_bytes=memory_limit_bytes, seed=seed, threads=threads
    )
    return ParetoSearch(
        asked,
        parse_terms(terms),
        backend or default_backend(asked),
        options,
        isolate=isolate,
        strict_rules=strict_rules,
        on_point=on_point,
    ).run()


def parse_terms(terms: str | Sequence[str]) -> tuple[str, ...]:
    """Return terms that are given as a text with commas, or as a list."""
    return names_in("pareto", terms) if isinstance(terms, str) else tuple(terms)


def measured_front(front: ParetoFront, problem: Problem, rows: Iterable[TuningRow]) -> ParetoFront:
    """Return a front with what was measured of its plans.

    The period (of a batch: the makespan) is the median of the visits, the latency of one network the sum of
    the busy times of its chunks, as predictions count it. Energy is the mean power of the machine times the
    period where the machine says its power, else computed from busy times and period with the powers of the
    platform. What cannot be measured (units, memory) is left out.
    """
    operation = operation_of(problem)
    by_id = {row.candidate.key: row for row in rows}
    keys = [operation.deploy(problem, point.candidate.plan).deployment_id for point in front.points]
    found = [by_id.get(key) for key in keys]
    told = all(row is not None and row.watts is not None for row in found)
    points = tuple(
        point
        if row is None or row.period_us is None
        else replace(point, measured=_measured(problem, row, told=told))
        for point, row in zip(front.points, found, strict=True)
    )
    how = "measured by the machine" if told else "computed from measured times and the powers of the platform"
    energy = problem.formulation.terms[ENERGY].field if ENERGY in front.terms else ""
    return replace(front, points=points, energy_by=how if any(energy in p.measured for p in points) else "")


def _measured(problem: Problem, row: TuningRow, *, told: bool) -> dict[str, float]:
    """Return what was measured of a plan, by the names of scores; `told`: whether power was measured, too."""
    assert row.period_us is not None
    pace_us, pace = row.period_us.median, operation_of(problem).pace(problem)
    chunks = [chunk for stream in row.candidate.deployment.streams for chunk in stream.chunks]
    busy_us: dict[int, float] = {}
    for chunk, time_us in zip(chunks, row.chunk_us, strict=True):
        unit = problem.platform.index_of(chunk.unit)
        busy_us[unit] = busy_us.get(unit, 0.0) + time_us
    found = {problem.formulation.terms[pace].field: pace_us}
    if problem.formulation.one_network:
        found["latency_us"] = sum(row.chunk_us)
    powers = powers_of(problem.platform)
    if told and row.watts is not None:
        found["energy_nj"] = 1000 * row.watts * pace_us
    elif powers is not None:
        extra = sum(powers.extra_mw[unit] * time_us for unit, time_us in busy_us.items())
        found["energy_nj"] = extra + powers.idle_mw * pace_us
    return found
