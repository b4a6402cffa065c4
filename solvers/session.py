"""One way to solve: check, run, have the judge look at every plan, reconcile.

Backends make claims; only this module turns a claim into a `SolveResult`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from numbers import Real
from typing import Any, TypeVar

from ..formulations.errors import (
    BackendDisagreementError,
    BackendFailedError,
    BackendUnavailableError,
    GaplessError,
    InvalidInputError,
    InvalidPlanError,
    UnsupportedFeatureError,
)
from ..formulations.judge import rank_key, score
from ..formulations.problem import Problem
from ..formulations.terms import PERIOD, Objective
from .by_units import solve_by_units
from .conflict import Again, explain_infeasible
from .diverse import check_distance, has_same_plans, solve_diverse
from .families import takes_start
from .protocol import (
    Backend,
    Claim,
    Clock,
    Deadline,
    RuleHandling,
    SolveOptions,
    SolveStatus,
    StopReason,
    handling_of,
    warm_up,
)
from .registry import backend_names, get_backend, get_backends
from .result import Candidate, SolveResult
from .sandbox import run_isolated
from .sources import StartMode

T = TypeVar("T")

MAX_TIME_LIMIT_S = 1_000_000
"""Longest time limit: what the operating system's timers take in any unit."""

_WHOLE = (("top", 1, None), ("distance", 1, None), ("threads", 1, 1024), ("seed", 0, 2**31 - 1))
"""Options that are whole numbers, with the least and the largest one."""

Runner = Callable[[Backend, Problem, SolveOptions], tuple[Claim, float, float]]
"""Returns a claim, the seconds until the backend was ready, and those of the search."""


def solve(
    problem: Problem,
    backend: str | Backend = "native",
    options: SolveOptions | None = None,
    *,
    isolate: bool = False,
    strict_rules: bool = False,
    explain: bool = True,
) -> SolveResult:
    """Solve one problem with one backend, and judge the answer.

    `isolate`: run in a child process even if the backend does not need one: then the time limit is enforced
    by killing it; `strict_rules`: refuse backends that merely check or repair plans against the rules;
    `explain`: when infeasible, find a smallest set of rules and limits that contradict each other, as far as
    the time limit goes.
    Raises BackendFailedError: it crashed, was killed, or broke its protocol; BackendDisagreementError: the
    judge refutes what it claims.
    """
    started, options = time.monotonic(), options or SolveOptions()
    clock = options.clock or Clock()
    with clock.stopped():
        _check_options(options, problem)
        (worker,) = get_backends([backend])
        version = _check_backend(worker, problem, strict_rules=strict_rules)
        alone = isolate or worker.capabilities.isolated or options.memory_limit_bytes is not None
        run = run_isolated if alone else _run_here
        if not alone:
            _contained(worker.name, lambda: warm_up(worker, problem))
    loading_s = time.monotonic() - started
    options = replace(options, clock=clock)
    deadline = Deadline(options.time_limit_s, clock)
    if problem.objective.period_slack_permille is None:
        result = _solve_once(problem, worker, options, run)
    else:
        result = _solve_slack(problem, worker, options, run)
    result = replace(
        result,
        version=version,
        start=options.start if takes_start(worker, problem) else None,
        distance=options.distance,
        startup_s=loading_s + result.startup_s,
    )
    if result.status is SolveStatus.INFEASIBLE and explain:
        again = Again(partial(solve, isolate=isolate, explain=False), reconcile, worker, options)
        conflict, unfiltered = explain_infeasible(problem, again, worker.name, deadline)
        result = replace(result, conflict=conflict, unfiltered=unfiltered)
    return result


def _check_options(options: SolveOptions, problem: Problem) -> None:
    for name, least, most in _WHOLE:
        _check_whole(name, getattr(options, name), least, most)
    check_distance(options.distance, defined=problem.formulation.difference is not None)
    limit_s = options.time_limit_s
    number = isinstance(limit_s, Real) and not isinstance(limit_s, bool)
    if limit_s is not None and not (number and 0 < limit_s <= MAX_TIME_LIMIT_S):
        raise InvalidInputError(
            f"the time limit is {limit_s!r}, must be a number of seconds greater than 0 and at most "
            f"{MAX_TIME_LIMIT_S} (leave it out for no limit)"
        )
    if options.start is StartMode.BOTH:
        raise InvalidInputError(
            f"start is {options.start!s}, which is for comparisons: choose native or none for one search"
        )


def _check_whole(name: str, value: Any, least: int, most: int | None) -> None:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise InvalidInputError(f"{name} is {value!r}, must be a whole number")
    if value < least:
        raise InvalidInputError(f"{name} is {value}, must be at least {least}")
    if most is not None and value > most:
        raise InvalidInputError(f"{name} is {value}, must be at most {most}")


def _check_backend(backend: Backend, problem: Problem, *, strict_rules: bool) -> str:
    if problem.formulation.one_network:
        problem.network  # noqa: B018 - raises unless there is one network
    available = backend.availability()
    if not available.ok:
        raise BackendUnavailableError(f"backend {backend.name!r} is not available: {available.reason}")
    missing = backend.capabilities.missing(problem)
    if missing:
        able = [name for name in backend_names() if name != backend.name and _is_able(name, problem)]
        parts = problem.co_run_costs is not None
        why = " (co-run costs are solved for each number, or set, of units)" if parts else ""
        raise UnsupportedFeatureError(
            f"backend {backend.name!r} does not handle {', '.join(sorted(missing))}{why}; "
            f"backends that do: {', '.join(able) or 'none yet'}",
            missing,
        )
    if strict_rules and _is_weak(backend, problem):
        workers = (get_backend(name) for name in backend_names() if _is_able(name, problem))
        firm = [worker for worker in workers if not _is_weak(worker, problem)]
        # Those that walk all plans come last.
        firm.sort(key=lambda worker: RuleHandling.CUT in _handling(worker, problem))
        named = repr(firm[0].name) if firm else "one that proves"
        raise UnsupportedFeatureError(
            f"backend {backend.name!r} only checks or repairs rules, which strict_rules refuses; "
            f"use an exact backend such as {named}",
            {"strict_rules"},
        )
    return available.version


def _is_weak(backend: Backend, problem: Problem) -> bool:
    weak = {RuleHandling.CHECKED, RuleHandling.REPAIRED}
    return bool(weak & _handling(backend, problem))


def _handling(backend: Backend, problem: Problem) -> set[RuleHandling]:
    return set(handling_of(problem, backend.capabilities).values())


def _is_able(name: str, problem: Problem) -> bool:
    try:
        return not get_backend(name).capabilities.missing(problem)
    except BackendFailedError:  # somebody's broken entry point is no way out
        return False


def _run_here(backend: Backend, problem: Problem, options: SolveOptions) -> tuple[Claim, float, float]:
    started = time.perf_counter()
    try:
        claim = _contained(backend.name, lambda: backend.solve(problem, options))
    except MemoryError:
        claim = Claim(status=SolveStatus.NO_SOLUTION, stop=StopReason.MEMORY_LIMIT)
    return claim, 0.0, time.perf_counter() - started


def _contained(name: str, work: Callable[[], T]) -> T:
    """Return what a backend returns; what it raises that is not ours becomes its failure."""
    try:
        return work()
    except (GaplessError, MemoryError):
        raise
    except Exception as error:
        raise BackendFailedError(
            f"backend {name!r} failed: {type(error).__name__}: {error}. Please report this "
            "with the problem file; other backends are not affected"
        ) from error


def _solve_slack(problem: Problem, backend: Backend, options: SolveOptions, run: Runner) -> SolveResult:
    """Slack mode: the least period first, then the terms among all plans close to it."""
    slack = problem.objective.period_slack_permille or 0
    deadline = Deadline(options.time_limit_s, options.clock)
    asked = replace(problem.objective, period_slack_permille=None)
    fastest = problem.with_objective(Objective(terms=(PERIOD,)))
    first = _solve_once(fastest, backend, replace(options, top=1), run)
    if first.objective is None:
        return replace(first, asked=problem.objective, bound=None, fingerprint=problem.fingerprint)
    cap = first.objective * (1000 + slack) // 1000
    given = problem.limits.max_period_us
    capped = problem.with_limits(max_period_us=cap if given is None else min(cap, given))
    capped = capped.with_objective(asked)
    if deadline.passed:  # the fastest plan is all there is
        plans = tuple(candidate.plan for candidate in first.candidates)
        claim = Claim(
            status=SolveStatus.FEASIBLE, stop=StopReason.TIME_LIMIT, plans=plans, handling=first.handling
        )
        result = reconcile(capped, backend, claim, options.top, 0.0)
    else:
        result = _solve_once(capped, backend, replace(options, time_limit_s=deadline.left_s), run)
    if first.status is not SolveStatus.OPTIMAL:
        # Without the least period the cap is a guess: nothing that holds under it is a proof.
        status = SolveStatus.FEASIBLE if result.candidates else SolveStatus.NO_SOLUTION
        result = replace(result, status=status, bound=None, proven=0, exhausted=False, stop=first.stop)
    statistics = {
        **result.statistics,
        "least_period_us": first.objective,
        "period_cap_us": cap,
    }
    return replace(
        result,
        asked=problem.objective,
        fingerprint=problem.fingerprint,
        runtime_s=first.runtime_s + result.runtime_s,
        startup_s=first.startup_s + result.startup_s,
        start_s=first.start_s + result.start_s,
        statistics=statistics,
    )


def _solve_once(problem: Problem, backend: Backend, options: SolveOptions, run: Runner) -> SolveResult:
    def solve_list(part: Problem, share: SolveOptions) -> SolveResult:
        return _solve_list(part, backend, share, run)

    if options.top > 1 and (options.distance > 1 or has_same_plans(problem)):
        return solve_diverse(problem, options, backend.capabilities, solve_list, _present)
    return solve_list(problem, options)


def _solve_list(problem: Problem, backend: Backend, options: SolveOptions, run: Runner) -> SolveResult:
    """Solve for a list of the best plans, however near they are to each other."""

    def solve_part(part: Problem, share: SolveOptions) -> SolveResult:
        return _solve_list(part, backend, share, run)

    if problem.co_run_costs is not None:
        return solve_by_units(problem, options, solve_part, _present)
    claim, startup_s, elapsed_s = run(backend, problem, options)
    return replace(reconcile(problem, backend, claim, options.top, elapsed_s), startup_s=startup_s)


def reconcile(problem: Problem, backend: Backend, claim: Claim, top: int, elapsed_s: float) -> SolveResult:
    """Turn a claim into a result, after the judge has seen every plan.

    Raises BackendFailedError: the claim contradicts itself; BackendDisagreementError: the claim is a proof
    and the judge refutes it.
    """
    _check_claim(backend.name, claim, top)
    judged, refused = _judge(problem, claim)
    support = backend.capabilities.support(problem)
    exact = support is not None and support.proves
    proof = exact and claim.status is SolveStatus.OPTIMAL
    if proof:
        _check_proof(problem, backend.name, claim, judged, refused)
    ranked = judged if proof else sorted(judged, key=lambda c: rank_key(problem, c.score))
    status, statistics = _status(claim, exact=exact, found=bool(ranked)), dict(claim.statistics)
    if refused:
        statistics["refused_by_judge"] = len(refused)
    values = ranked[0].score.values(problem.objective.terms) if ranked else None
    bound = claim.bound if status is not SolveStatus.INFEASIBLE else None
    if bound is not None and values is not None and bound > values[0]:
        # The judge holds a valid plan below the "bound": the plan stays, the bound is refuted.
        statistics["refuted_bound"], bound = bound, None
    if bound is not None and bound <= 0 and not proof:
        bound = None  # no term is ever less than nothing: that says nothing
    return SolveResult(
        status=status,
        stop=claim.stop,
        backend=backend.name,
        asked=problem.objective,
        fingerprint=problem.fingerprint,
        plan_class=problem.plan_class,
        searches="" if support is None else support.searches,
        runtime_s=elapsed_s,
        start_s=claim.start_s,
        candidates=_present(problem, ranked),
        objective=values[0] if values else None,
        values=values,
        bound=bound,
        plan_source=claim.plan_source,
        bound_source=claim.bound_source,
        proven=claim.proven if proof else 0,
        exhausted=claim.exhausted and (proof or status is SolveStatus.INFEASIBLE),
        handling=claim.handling,
        statistics=statistics,
    )


def _check_claim(name: str, claim: Claim, top: int) -> None:
    has_plan = claim.status in (SolveStatus.OPTIMAL, SolveStatus.FEASIBLE)
    wrong = []
    if has_plan != bool(claim.plans):
        wrong.append(f"status {claim.status} with {len(claim.plans)} plans")
    if len(claim.plans) > top:
        wrong.append(f"{len(claim.plans)} plans where {top} were asked for")
    if len(set(claim.plans)) < len(claim.plans):
        wrong.append("the same plan twice")
    if claim.status is SolveStatus.OPTIMAL and not 1 <= claim.proven <= len(claim.plans):
        wrong.append(f"an optimum with {claim.proven} proven plans of {len(claim.plans)}")
    if claim.status is SolveStatus.INFEASIBLE and claim.stop is not StopReason.COMPLETE:
        wrong.append(f"infeasible, but stopped by {claim.stop}")
    if wrong:
        raise BackendFailedError(f"backend {name!r} broke its protocol: {'; '.join(wrong)}")


def _judge(problem: Problem, claim: Claim) -> tuple[list[Candidate], list[str]]:
    valid, refused = [], []
    for plan in claim.plans:
        try:
            judged = score(problem, plan)
        except InvalidPlanError as error:
            refused.append(str(error))
            continue
        if judged.valid:
            valid.append(Candidate(plan=plan, score=judged))
        else:
            broken = "; ".join(f"{v.rule}: {v.message}" for v in judged.violations)
            refused.append(f"[{plan}] breaks {broken}")
    return valid, refused


def _check_proof(
    problem: Problem, name: str, claim: Claim, judged: list[Candidate], refused: list[str]
) -> None:
    """Compare a claimed optimum with the judge's numbers."""
    if refused:
        raise BackendDisagreementError(
            f"backend {name!r} claims an optimum, but the judge finds: {refused[0]}"
        )
    values = judged[0].score.values(problem.objective.terms)
    if claim.values != values:
        raise BackendDisagreementError(
            f"backend {name!r} claims an optimum of {claim.values} for {problem.objective}, "
            f"but the judge scores its plan [{judged[0].plan}] with {values}"
        )
    if claim.bound != values[0]:
        raise BackendDisagreementError(
            f"backend {name!r} claims an optimum with the bound {claim.bound}, "
            f"but the judge scores its plan [{judged[0].plan}] with {values[0]}"
        )
    keys = [rank_key(problem, c.score) for c in judged]
    if keys[: claim.proven] != sorted(keys)[: claim.proven]:
        raise BackendDisagreementError(
            f"backend {name!r} claims that its first {claim.proven} plans are the best in order, "
            f"but the judge scores them {[key[0] for key in keys]}"
        )


def _status(claim: Claim, *, exact: bool, found: bool) -> SolveStatus:
    if claim.status is SolveStatus.INFEASIBLE:
        return SolveStatus.INFEASIBLE if exact else SolveStatus.NO_SOLUTION
    if not found:
        return SolveStatus.NO_SOLUTION
    if claim.status is SolveStatus.OPTIMAL and exact:
        return SolveStatus.OPTIMAL
    return SolveStatus.FEASIBLE


def _present(problem: Problem, ranked: list[Candidate]) -> tuple[Candidate, ...]:
    shown = problem.objective.present_by
    if shown is None:
        return tuple(ranked)
    return tuple(sorted(ranked, key=lambda candidate: candidate.score.value(shown)))
