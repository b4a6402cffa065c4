"""One solve for each number of used units: how every backend handles costs that depend on it, exactly.

With co-run costs (`Problem.co_run_costs`) a plan is charged by the table of the number of units that it
uses. Every plan uses exactly one number of units, so the plans fall apart into at most M problems
"exactly k units, with the table of k", each with one table like any other problem. Their answers are
merged: the best plan of all is the best of the bests, the least bound bounds all, and a leading plan of
the merged list is proven as long as every part still has something proven to compare it with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ..formulations.judge import rank_key, score
from ..formulations.problem import Problem
from .protocol import Deadline, SolveOptions, SolveStatus, StopReason
from .result import Candidate, SolveResult

SolveOne = Callable[[Problem, SolveOptions], SolveResult]
"""Solves a problem with one table of costs, and judges the answer."""

Present = Callable[[Problem, list[Candidate]], tuple[Candidate, ...]]


def solve_by_units(
    problem: Problem, options: SolveOptions, solve_one: SolveOne, present: Present
) -> SolveResult:
    """Solve a problem with co-run costs.

    Parameters
    ----------
    problem, options
        What is asked; a time limit is for all parts together, and what one leaves is for the next ones.
    solve_one
        Solves one part.
    present
        Brings candidates into the order in which they are shown.
    """
    deadline = Deadline(options.time_limit_s)
    counts = problem.unit_counts
    answers: dict[int, SolveResult] = {}
    for place, used in enumerate(counts):
        share = deadline.left_s
        if share is not None:
            share = max(share / (len(counts) - place), 0.001)
        answers[used] = solve_one(problem.using(used), replace(options, time_limit_s=share))
        if answers[used].stop is StopReason.INTERRUPTED:
            break
    return _merged(problem, options.top, answers, present, asked=len(counts))


def _merged(
    problem: Problem, top: int, answers: Mapping[int, SolveResult], present: Present, *, asked: int
) -> SolveResult:
    """Return the answer to the whole from those to its parts; `asked`: how many parts there should be."""
    parts = tuple(answers.values())
    found = [Candidate(plan=c.plan, score=score(problem, c.plan)) for part in parts for c in part.candidates]
    ranked = sorted(found, key=lambda candidate: rank_key(problem, candidate.plan, candidate.score))
    values = ranked[0].score.values(problem.objective.terms) if ranked else None
    complete = len(parts) == asked
    bound = _bound(parts) if complete else None
    if bound is not None and values is not None:
        bound = min(bound, values[0])
    proven = min(_proven(problem, parts), top) if complete else 0
    infeasible = complete and all(part.status is SolveStatus.INFEASIBLE for part in parts)
    if infeasible:
        status = SolveStatus.INFEASIBLE
    elif not ranked:
        status = SolveStatus.NO_SOLUTION
    else:
        status = SolveStatus.OPTIMAL if proven else SolveStatus.FEASIBLE
    handling = next((part.handling for part in parts if part.handling), {})
    return SolveResult(
        status=status,
        stop=_stop(parts, complete=complete),
        backend=parts[0].backend,
        asked=problem.objective,
        fingerprint=problem.fingerprint,
        runtime_s=sum(part.runtime_s for part in parts),
        candidates=present(problem, ranked[:top]),
        objective=values[0] if values else None,
        values=values,
        bound=None if infeasible else bound,
        proven=proven,
        exhausted=complete and len(ranked) <= top and all(part.exhausted for part in parts),
        handling=handling,
        statistics={
            f"{used} {'unit' if used == 1 else 'units'}: {name}": value
            for used, part in answers.items()
            for name, value in part.statistics.items()
        },
    )


def _bound(parts: Sequence[SolveResult]) -> int | None:
    """Return the least bound of the parts that may have plans; None where one of them has no bound."""
    bounds = [part.bound for part in parts if part.status is not SolveStatus.INFEASIBLE]
    known = [bound for bound in bounds if bound is not None]
    return min(known, default=None) if len(known) == len(bounds) else None


def _proven(problem: Problem, parts: Sequence[SolveResult]) -> int:
    """Return how many leading plans of the merged list are the best ones of all parts, in order.

    Walking along the merged list, a part that has run out of proven plans, and may have more, ends the
    proof: what comes next could be one of its unknown plans. Until then the next plan is proven, if no
    unproven part can have a better one by its bound.
    """
    heads = []
    for index, part in enumerate(parts):
        keys = sorted(rank_key(problem, c.plan, c.score) for c in part.candidates)
        heads += [(key, index) for key in keys[: part.proven]]
    left = [part.proven for part in parts]
    open_parts = {index for index, part in enumerate(parts) if not part.exhausted}
    count = 0
    for key, index in sorted(heads):
        if any(left[other] == 0 and _could_beat(parts[other], key) for other in open_parts):
            break
        left[index] -= 1
        count += 1
    return count


def _could_beat(part: SolveResult, key: tuple[object, ...]) -> bool:
    """Return whether an unknown plan of a part could come before a plan with this key.

    Only the first term has a bound; after proven plans the unknown ones lie behind them, which the
    bound does not say, so that such a part counts as able.
    """
    if part.status is SolveStatus.INFEASIBLE:
        return False
    values = key[0]
    assert isinstance(values, tuple)
    return part.proven > 0 or part.bound is None or part.bound <= values[0]


def _stop(parts: Sequence[SolveResult], *, complete: bool) -> StopReason:
    reasons = [part.stop for part in parts if part.stop is not StopReason.COMPLETE]
    if reasons:
        return reasons[0] if complete else reasons[-1]
    return StopReason.COMPLETE
