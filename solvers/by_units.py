"""One solve for each number, or each set, of used units: how every backend handles co-run costs, exactly.

With co-run costs (`Problem.co_run_costs`) a plan is charged by the table of the units that it uses. Every
plan uses exactly one number of units, and exactly one set of them, so the plans fall apart into at most M
problems "exactly k units, with the table of k", or into one problem for each set, each with one table like
any other problem. Their answers are merged: the best plan of all is the best of the bests, the least bound
bounds all, and a leading plan of the merged list is proven as long as every part still has something proven
to compare it with.

Parts with a bound that is cheap (`Search.set_bounds`) are solved from the least bound on. Once as many
plans are known as are wanted, a part whose bound lies beyond the last of them is not solved: its bound says
enough.

What the parts publish on the way is passed on as what is known about the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from ..formulations.judge import rank_key
from ..formulations.parts import Part
from ..formulations.problem import Problem
from .families import search_of
from .protocol import LEAST_S, Claim, Deadline, SolveOptions, SolveStatus, StopReason
from .result import Candidate, SolveResult
from .sources import Source

SolveOne = Callable[[Problem, SolveOptions], SolveResult]
"""Solves a problem with one table of costs, and judges the answer."""

Present = Callable[[Problem, list[Candidate]], tuple[Candidate, ...]]


def solve_by_units(
    problem: Problem, options: SolveOptions, solve_one: SolveOne, present: Present
) -> SolveResult:
    """Solve a problem with co-run costs.

    `problem`, `options`: what is asked; a time limit is for all parts together, and what one leaves is for
    the next ones. Parts that the time does not suffice for are not asked: nothing is proven then. `present`:
    brings candidates into the order in which they are shown.
    """
    deadline = Deadline(options.time_limit_s, options.clock)
    search = search_of(problem)
    find = None if search is None else search.set_bounds
    bounds: Mapping[Part, int] = {} if find is None else find(problem)
    parts = sorted(problem.parts, key=lambda part: bounds.get(part, 0))
    answers: dict[Part, SolveResult] = {}
    pruned: dict[Part, int] = {}

    def tell(claim: Claim) -> None:
        options.publish(_so_far(problem, answers.values(), claim, options.top))

    for place, part in enumerate(parts):
        least = bounds.get(part, 0)
        if _is_beyond(problem, answers.values(), options.top, least):
            pruned[part] = least
            continue
        share = deadline.left_s
        if share is not None:
            share = max(share / (len(parts) - place), LEAST_S)
        asked = replace(options, time_limit_s=share, publish=tell)
        answers[part] = found = solve_one(problem.using(part.key), asked)
        tell(Claim(status=SolveStatus.NO_SOLUTION, stop=found.stop, handling=found.handling))
        if found.stop is StopReason.INTERRUPTED or deadline.passed:
            break
    complete = len(answers) + len(pruned) == len(parts)
    return _merged(problem, options.top, answers, pruned, present, complete=complete)


def _is_beyond(problem: Problem, answers: Collection[SolveResult], top: int, least: int) -> bool:
    """Return whether plans from a bound on come behind all that are wanted."""
    known = _ranked(problem, answers)[:top]
    return len(known) == top and least > known[-1].score.values(problem.objective.terms)[0]


def _so_far(problem: Problem, answers: Collection[SolveResult], claim: Claim, top: int) -> Claim:
    """Return what is known about the whole: plans of the parts that are done, and of a claim about the next.

    The claim was not judged, so only the numbers that it gives say which plans come first. It proves
    nothing about the other parts.
    """
    terms = problem.objective.terms
    done = _ranked(problem, answers)[:top]
    known = (
        [(done[0].score.values(terms), tuple(c.plan for c in done), _plan_source(answers))] if done else []
    )
    known += [(claim.values, claim.plans, claim.plan_source)] if claim.values is not None else []
    known.sort(key=lambda entry: entry[0])
    plans = tuple(plan for _, listed, _ in known for plan in listed)[:top]
    return replace(
        claim,
        status=SolveStatus.FEASIBLE if plans else SolveStatus.NO_SOLUTION,
        plans=plans,
        values=known[0][0] if plans else None,
        plan_source=known[0][2] if plans else Source.OWN,
        bound=None,
        proven=0,
        exhausted=False,
    )


def _ranked(problem: Problem, answers: Collection[SolveResult]) -> list[Candidate]:
    """Return the plans of all parts, best first; each was judged by the table that holds for it."""
    found = [candidate for part in answers for candidate in part.candidates]
    return sorted(found, key=lambda candidate: rank_key(problem, candidate.score))


def _merged(
    problem: Problem,
    top: int,
    answers: Mapping[Part, SolveResult],
    pruned: Mapping[Part, int],
    present: Present,
    *,
    complete: bool,
) -> SolveResult:
    """Return the answer to the whole from those to its parts."""
    parts = tuple(answers.values())
    ranked = _ranked(problem, parts)
    values = ranked[0].score.values(problem.objective.terms) if ranked else None
    infeasible = complete and all(part.status is SolveStatus.INFEASIBLE for part in parts)
    # No plan of a pruned part comes before any that is listed: plans were pruned behind the last one.
    proven = min(_proven(problem, parts), top) if complete else 0
    bound = _bound(parts, pruned.values()) if complete else None
    if infeasible:
        status = SolveStatus.INFEASIBLE
    elif not ranked:
        status = SolveStatus.NO_SOLUTION
    else:
        status = SolveStatus.OPTIMAL if proven else SolveStatus.FEASIBLE
    return SolveResult(
        status=status,
        stop=StopReason.COMPLETE if proven == top else _stop(parts, complete=complete),
        backend=parts[0].backend,
        asked=problem.objective,
        fingerprint=problem.fingerprint,
        plan_class=problem.plan_class,
        runtime_s=sum(part.runtime_s for part in parts),
        startup_s=sum(part.startup_s for part in parts),
        start_s=sum(part.start_s for part in parts),
        candidates=present(problem, ranked[:top]),
        objective=values[0] if values else None,
        values=values,
        bound=bound,
        plan_source=_plan_source(parts),
        bound_source=next((part.bound_source for part in parts if part.bound == bound), None),
        proven=proven,
        exhausted=complete and not pruned and len(ranked) <= top and all(part.exhausted for part in parts),
        handling=next((part.handling for part in parts if part.handling), {}),
        statistics={
            **({"parts_solved": len(parts), "parts_pruned": len(pruned)} if pruned else {}),
            **{
                f"{key}: {name}": value
                for key, part in answers.items()
                for name, value in part.statistics.items()
            },
        },
    )


def _plan_source(parts: Collection[SolveResult]) -> Source:
    """Return where the best plan of all parts comes from."""
    best = min((p for p in parts if p.values is not None), key=lambda p: p.values or (), default=None)
    return Source.OWN if best is None or best.plan_source is None else best.plan_source


def _bound(parts: Sequence[SolveResult], pruned: Iterable[int]) -> int | None:
    """Return the least bound of the parts that may have plans; None where one of them has no bound."""
    bounds = [part.bound for part in parts if part.status is not SolveStatus.INFEASIBLE]
    known = [bound for bound in bounds if bound is not None]
    return min([*known, *pruned], default=None) if len(known) == len(bounds) else None


def _proven(problem: Problem, parts: Sequence[SolveResult]) -> int:
    """Return how many leading plans of the merged list are the best ones of all parts, in order.

    Walking along the merged list, a part that has run out of proven plans, and may have more, ends the
    proof: what comes next could be one of its unknown plans. Until then the next plan is proven, if no
    unproven part can have a better one by its bound.

    A part's only proven plan may tie with an unknown one in all terms of the objective (`Claim.proven`).
    The first plan of the whole may do so, too; the order of several must not depend on such a tie.
    """
    terms = problem.objective.terms
    known = []
    for part in parts:
        listed = sorted((rank_key(problem, c.score), c.score.values(terms)) for c in part.candidates)
        known.append(listed if part.exhausted else listed[: part.proven])
    ties = {part.values for part in parts if part.proven == 1 and not part.exhausted}
    left = [len(listed) for listed in known]
    count = 0
    for (_, values), index in sorted((entry, i) for i, listed in enumerate(known) for entry in listed):
        spent = [part for part, rest in zip(parts, left, strict=True) if not rest and not part.exhausted]
        if any(_could_beat(part, values[0]) for part in spent) or (count and values in ties):
            break
        left[index] -= 1
        count += 1
    return count


def _could_beat(part: SolveResult, value: int) -> bool:
    """Return whether an unknown plan of a part without further proven ones could come before this value.

    Only the first term has a bound; after proven plans the unknown ones lie behind them, which the
    bound does not say, so that such a part counts as able.
    """
    if part.status is SolveStatus.INFEASIBLE:
        return False
    return part.proven > 0 or part.bound is None or part.bound <= value


def _stop(parts: Sequence[SolveResult], *, complete: bool) -> StopReason:
    """Return why the first part that did not finish stopped; an interruption is about the whole."""
    reasons = [part.stop for part in parts if part.stop is not StopReason.COMPLETE]
    if StopReason.INTERRUPTED in reasons:
        return StopReason.INTERRUPTED
    return next(iter(reasons), StopReason.COMPLETE if complete else StopReason.TIME_LIMIT)
