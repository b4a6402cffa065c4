"""Solving with progress on standard error, and Ctrl-C that loses nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...api.planning import Comparison, compare_backends, default_backend, default_backends
from ...formulations.problem import Problem
from ...solvers.protocol import Backend, Claim, SolveOptions, SolveStatus, StopReason, handling_of
from ...solvers.registry import get_backend, get_backends
from ...solvers.result import SolveResult
from ...solvers.session import reconcile, solve
from ..base.progress import Progress


def plan_watched(
    problem: Problem, backend: str | None, options: SolveOptions, *, strict_rules: bool = False
) -> tuple[SolveResult, bool]:
    """Plan with progress; `backend` None: the usual one.

    Returns
    -------
    SolveResult, bool
        The answer, and whether the user stopped the search. If so, the answer is the best that the
        backend had shown until then, judged like any other.
    """
    backend = backend or default_backend(problem)
    with Progress(problem, time_limit_s=options.time_limit_s) as progress:
        watched = replace(options, publish=progress.publish)
        progress.start(backend)
        try:
            result = solve(problem, backend, watched, strict_rules=strict_rules)
        except KeyboardInterrupt:
            return _so_far(problem, get_backend(backend), progress, options.top), True
    return result, False


def plan_uninterrupted(problem: Problem, backend: str | None, options: SolveOptions) -> SolveResult:
    """Plan with progress one of several problems that are all needed: an interruption ends the command."""
    result, interrupted = plan_watched(problem, backend, options)
    if interrupted:
        raise KeyboardInterrupt
    return result


def compare_watched(
    problem: Problem,
    backends: Sequence[str | Backend] | None,
    options: SolveOptions,
    *,
    strict_rules: bool = False,
) -> tuple[Comparison, bool]:
    """Compare with progress; parameters as for `compare_backends`.

    Returns
    -------
    Comparison, bool
        The answers, and whether the user stopped before all were there. If so, the backend that was at
        work counts with the best that it had shown.
    """
    results: list[SolveResult] = []
    usual = default_backends(problem)
    limit_s = options.time_limit_s or usual.time_limit_s
    workers = get_backends(usual.names if backends is None else backends)
    names = [worker.name for worker in workers]
    with Progress(problem, time_limit_s=limit_s, backends=names) as progress:
        try:
            done = compare_backends(
                problem,
                replace(options, publish=progress.publish),
                backends=workers,
                strict_rules=strict_rules,
                on_backend=progress.start,
                on_result=results.append,
            )
        except KeyboardInterrupt:
            if progress.backend not in names:  # not even the first one has started
                raise
            stopped = _so_far(problem, workers[names.index(progress.backend)], progress, options.top)
            partial = Comparison(problem=problem, results=(*results, stopped), failures=(), disagreements=())
            return partial, True
    return done, False


def _so_far(problem: Problem, backend: Backend, progress: Progress, top: int) -> SolveResult:
    """Return what the interrupted backend had shown, as a judged result."""
    shown = progress.claim
    plans = shown.plans[:top] if shown is not None else ()
    slack = problem.objective.period_slack_permille is not None
    claim = Claim(
        status=SolveStatus.FEASIBLE if plans else SolveStatus.NO_SOLUTION,
        stop=StopReason.INTERRUPTED,
        plans=plans,
        # In slack mode the bound may be one on the period, which comes first there.
        bound=None if shown is None or slack else shown.bound,
        handling=handling_of(problem, backend.capabilities),
    )
    return reconcile(problem, backend, claim, top, progress.elapsed_s)
