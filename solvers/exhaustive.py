"""The oracle: every plan, judged one by one. Slow, short and easy to trust."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import ClassVar

from ..formulations.availability import Availability
from ..formulations.judge import ranked
from ..formulations.plan import Plan
from ..formulations.problem import Problem
from .protocol import (
    Capabilities,
    Claim,
    Deadline,
    Guarantee,
    RuleHandling,
    SolveOptions,
    SolveStatus,
    StopReason,
    Support,
    handling_of,
)

MAX_PLANS = 2_000_000
"""Largest space that is walked; about a minute."""

MOST_WALKED, _WALK_S = 3_000, 2.0
"""Spaces of so many plans are walked by native searches, too: a proof whatever the objective and the rules.

So long that may take; with less time there is the search.
"""

_Key = tuple[tuple[int, ...], tuple[int, ...]]


class ExhaustiveBackend:
    """Scores every plan of a small problem: what all other backends are tested against."""

    name: ClassVar[str] = "exhaustive"
    capabilities: ClassVar[Capabilities] = Capabilities(
        summary=f"scores every plan; spaces up to {MAX_PLANS:,} plans",
        others=Support(guarantee=Guarantee.EXACT, rules=RuleHandling.CUT, opaque_rules=RuleHandling.CUT),
    )

    def availability(self) -> Availability:
        """Say yes: it needs nothing."""
        return Availability(ok=True)

    def solve(self, problem: Problem, options: SolveOptions) -> Claim:
        """Walk the whole space, or say that it is too large."""
        deadline, space = Deadline(options.time_limit_s, options.clock), count_plans(problem)
        handling = handling_of(problem, self.capabilities)
        if space > MAX_PLANS:
            return Claim(
                status=SolveStatus.NO_SOLUTION,
                stop=StopReason.SPACE_LIMIT,
                handling=handling,
                statistics={"space": space},
            )
        valid: list[tuple[_Key, Plan]] = []
        best: _Key = (), ()
        stop = StopReason.COMPLETE
        for plan in all_plans(problem):
            if deadline.passed:
                stop = StopReason.TIME_LIMIT
                break
            key = ranked(problem, plan)
            if key is None:
                continue
            if not valid or key < best:
                best = key
                options.publish(_incumbent(problem, plan, key[0], handling))
            valid.append((key, plan))
        plans = tuple(plan for _, plan in heapq.nsmallest(options.top, valid))
        done = stop is StopReason.COMPLETE
        values = min(valid)[0][0][: len(problem.objective.terms)] if valid else None
        return Claim(
            status=SolveStatus.of(found=bool(plans), proven=done, exhausted=done),
            stop=stop,
            plans=plans,
            values=values,
            bound=values[0] if values and done else None,
            proven=len(plans) if done else 0,
            exhausted=done and len(plans) == len(valid),
            handling=handling,
            statistics={"space": space, "valid": len(valid)},
        )


def walked(problem: Problem, options: SolveOptions) -> Claim | None:
    """Return what walking all plans comes to; None: there are too many, or there is too little time."""
    hurried = options.time_limit_s is not None and options.time_limit_s < _WALK_S
    if hurried or count_plans(problem) > MOST_WALKED:
        return None
    return ExhaustiveBackend().solve(problem, options)


def all_plans(problem: Problem) -> Iterator[Plan]:
    """Yield every well-formed plan."""
    return (problem.formulation.plan(problem, code) for code in problem.formulation.codes(problem))


def count_plans(problem: Problem) -> int:
    """Return an upper bound on the number of well-formed plans."""
    return problem.formulation.count(problem)


def _incumbent(
    problem: Problem, plan: Plan, values: tuple[int, ...], handling: dict[str, RuleHandling]
) -> Claim:
    return Claim(
        status=SolveStatus.FEASIBLE,
        stop=StopReason.TIME_LIMIT,
        plans=(plan,),
        values=values[: len(problem.objective.terms)],
        handling=handling,
    )
