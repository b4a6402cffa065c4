"""The oracle: every plan, judged one by one. Slow, short and easy to trust."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import ClassVar

from ..formulations.availability import Availability
from ..formulations.chain import Chain, Part
from ..formulations.judge import rank_key, score
from ..formulations.plan import Plan
from ..formulations.problem import Problem
from ..formulations.scores import Score
from .flow_shop.walk import all_schedules, count_schedules
from .protocol import (
    Capabilities,
    Claim,
    Deadline,
    RuleHandling,
    SolveOptions,
    SolveStatus,
    StopReason,
    exact_capabilities,
    handling_of,
)

MAX_PLANS = 2_000_000
"""Largest space that is walked; about a minute."""


class ExhaustiveBackend:
    """Scores every plan of a small problem: what all other backends are tested against."""

    name: ClassVar[str] = "exhaustive"
    capabilities: ClassVar[Capabilities] = exact_capabilities(
        f"scores every plan; spaces up to {MAX_PLANS:,} plans",
        isolated=False,
        rules=RuleHandling.CUT,
        gives_bound=False,
    )

    def availability(self) -> Availability:
        """Say yes: it needs nothing."""
        return Availability(ok=True)

    def solve(self, problem: Problem, options: SolveOptions) -> Claim:
        """Walk the whole space, or say that it is too large."""
        deadline, space = Deadline(options.time_limit_s), count_plans(problem)
        handling = handling_of(problem, self.capabilities)
        if space > MAX_PLANS:
            return Claim(
                status=SolveStatus.NO_SOLUTION,
                stop=StopReason.SPACE_LIMIT,
                handling=handling,
                statistics={"space": space},
            )
        valid: list[tuple[tuple[object, ...], Plan]] = []
        best: tuple[object, ...] = ()
        stop = StopReason.COMPLETE
        for plan in all_plans(problem):
            if deadline.passed:
                stop = StopReason.TIME_LIMIT
                break
            judged = score(problem, plan)
            if not judged.valid:
                continue
            key = rank_key(problem, plan, judged)
            if not valid or key < best:
                best = key
                options.publish(_incumbent(problem, plan, judged, handling))
            valid.append((key, plan))
        plans = tuple(plan for _, plan in heapq.nsmallest(options.top, valid))
        done = stop is StopReason.COMPLETE
        values = score(problem, plans[0]).values(problem.objective.terms) if plans else None
        return Claim(
            status=_status(done=done, found=bool(plans)),
            stop=stop,
            plans=plans,
            values=values,
            bound=values[0] if values and done else None,
            proven=len(plans) if done else 0,
            exhausted=done and len(plans) == len(valid),
            handling=handling,
            statistics={"space": space, "valid": len(valid)},
        )


def all_plans(problem: Problem) -> Iterator[Plan]:
    """Yield every well-formed plan."""
    if problem.workload is not None:
        return map(problem.flow_shop.plan, all_schedules(problem.flow_shop))
    return map(problem.chain.plan, all_parts(problem.chain))


def count_plans(problem: Problem) -> int:
    """Return an upper bound on the number of well-formed plans."""
    if problem.workload is not None:
        return count_schedules(problem.flow_shop)
    return count_parts(problem.chain)


def all_parts(chain: Chain) -> Iterator[tuple[Part, ...]]:
    """Yield the chunks of every well-formed plan: contiguous, supported, each unit at most once."""

    def extend(parts: tuple[Part, ...], at: int, left: frozenset[int]) -> Iterator[tuple[Part, ...]]:
        if at == chain.layer_count:
            yield parts
            return
        for unit in sorted(left):
            for stop in chain.cuts:
                if stop > at and chain.runs(at, stop, unit):
                    yield from extend((*parts, (at, stop, unit)), stop, left - {unit})

    return extend((), 0, frozenset(range(chain.unit_count)))


def count_parts(chain: Chain) -> int:
    """Return an upper bound on the number of well-formed plans.

    With N pieces between legal cuts and M units it is sum over k of C(N-1, k-1) * M!/(M-k)!, which is
    exact when every unit can run every layer (BetterTogether III-D counts 4^9 = 262K for 9 layers on
    4 units, ignoring contiguity; it is 2,116).
    """
    gaps, total, ways = len(chain.cuts) - 2, 0, 1
    for chunks in range(1, chain.unit_count + 1):
        ways = ways * (chain.unit_count - chunks + 1)
        choose = 1
        for i in range(chunks - 1):
            choose = choose * (gaps - i) // (i + 1)
        total += choose * ways
    return total


def _incumbent(problem: Problem, plan: Plan, judged: Score, handling: dict[str, RuleHandling]) -> Claim:
    return Claim(
        status=SolveStatus.FEASIBLE,
        stop=StopReason.TIME_LIMIT,
        plans=(plan,),
        values=judged.values(problem.objective.terms),
        handling=handling,
    )


def _status(*, done: bool, found: bool) -> SolveStatus:
    if found:
        return SolveStatus.OPTIMAL if done else SolveStatus.FEASIBLE
    return SolveStatus.INFEASIBLE if done else SolveStatus.NO_SOLUTION
