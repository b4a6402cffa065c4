"""Limits on what requests wait, and lists of plans by that from lists by what they take at least.

Of a plan that has begun searches know that no request is faster than its busy times; how long it waits only
finished plans tell (`cycles.py`). So lists are by these lower bounds, and their plans are judged. A plan is
among the best ones if nothing behind the list can be before it by its bound; otherwise a longer list is asked
for.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from ...formulations.chain import Part
from ...formulations.chunking.quantities import PlanValues
from ...formulations.limits import Limits
from ...formulations.problem import Problem
from ...formulations.terms import PlanNumbers, Term
from ..chunking.pool import Pool
from ..chunking.verdicts import Verdicts
from ..protocol import Claim, RuleHandling, SolveOptions, SolveStatus, Statistics, StopReason

WAITS = frozenset((Term.STREAM_LATENCY, Term.IN_FLIGHT))
"""Terms that only finished plans tell."""


WAIT_LIMITS = ("max_stream_latency_us", "max_in_flight")
"""Limits that only finished plans can be asked for."""


def allowed_us(limits: Limits, period_us: int) -> int:
    """Return the longest latency in the stream that limits allow plans of a period."""
    most = sys.maxsize if limits.max_stream_latency_us is None else limits.max_stream_latency_us
    return most if limits.max_in_flight is None else min(most, limits.max_in_flight * period_us)


def least_values(numbers: PlanNumbers, terms: Sequence[str]) -> tuple[int, ...]:
    """Return the terms of a plan as if no request waited."""
    assert isinstance(numbers, PlanValues)
    least = {
        Term.STREAM_LATENCY: numbers.latency_us,
        Term.IN_FLIGHT: -(-numbers.latency_us // numbers.period_us),
    }
    return tuple(least[Term(term)] if term in WAITS else numbers.term(term) for term in terms)


def judged_claim(
    pool: Pool,
    listed: Sequence[tuple[Part, ...]],
    frontier: tuple[int, ...] | None,
    stop: StopReason,
    *,
    verdicts: Verdicts,
    problem: Problem,
    options: SolveOptions,
    handling: Mapping[str, RuleHandling],
    statistics: Statistics,
) -> Claim:
    """Return what a pool of plans by their lower bounds allows to claim; parameters as for `claim_of`."""
    found, count = [], len(problem.ranking)
    # What no plan that was not judged is before, by its bound and so by its terms.
    limit = frontier
    if frontier is None and pool.full:
        limit = tuple(pool.ranks[:, -1].tolist())
    for place, parts in enumerate(listed):
        if verdicts.exhausted:
            stop, left = StopReason.REJECTION_LIMIT, tuple(pool.ranks[:, place].tolist())
            limit = left if limit is None else min(left, limit)
            break
        plan = verdicts.ask(parts)
        if plan is not None:
            numbers = problem.formulation.numbers(problem, parts)
            path = pool.ranks[count:, place].tolist()
            found.append(((*numbers.values(problem.ranking), *path), plan))
    found.sort(key=lambda entry: entry[0])
    before = [limit is None or key[: len(limit)] < limit or key == limit for key, _ in found]
    proven = min([*before, False].index(False), options.top)
    best = found[0][0] if found else None
    exhausted = limit is None and stop is StopReason.COMPLETE
    firsts = [key[0] for key in (best, limit) if key]
    chosen = found[: options.top]
    return Claim(
        status=SolveStatus.of(found=bool(found), proven=proven > 0, exhausted=exhausted),
        stop=stop,
        plans=tuple(plan for _, plan in chosen),
        values=None if best is None else best[: len(problem.objective.terms)],
        bound=None if limit == () else min(firsts, default=None),
        proven=proven,
        exhausted=exhausted and len(found) <= options.top,
        handling=dict(handling),
        statistics={**statistics, "rejected_plans": verdicts.rejected},
    )
