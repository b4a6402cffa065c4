"""A backend of your own: for each order of the units, the least time into which their shares fit.

    gapless.plan(problem, backend=SharesBackend())

It is a heuristic, about a hundred lines long, and shows everything that a backend has to do: say what it can,
say whether it can run here, look at the clock, and claim no more than it knows.
"""

from collections.abc import Iterator
from itertools import permutations
from typing import ClassVar

from gapless.formulations.availability import Availability
from gapless.formulations.chain import Chain, Part
from gapless.formulations.chunking.tables import chain_of
from gapless.formulations.judge import check, rank_key, score
from gapless.formulations.plan import Plan
from gapless.formulations.problem import Problem
from gapless.solvers.protocol import (
    PROPOSING,
    Capabilities,
    Claim,
    Deadline,
    SolveOptions,
    SolveStatus,
    StopReason,
    handling_of,
)

MOST_UNITS = 4


class SharesBackend:
    """Fills the units in every order, each up to a target time; a binary search lowers the target."""

    name: ClassVar[str] = "shares"
    capabilities: ClassVar[Capabilities] = Capabilities(
        summary="fills the units in every order, up to the least time that works out",
        formulations={"chunking": PROPOSING},
    )

    def availability(self) -> Availability:
        """Say that it needs nothing but Python."""
        return Availability(ok=True)

    def solve(self, problem: Problem, options: SolveOptions) -> Claim:
        """Return the best of the plans that it comes by; it proves nothing."""
        deadline, stop = Deadline(options.time_limit_s), StopReason.COMPLETE
        found: set[Plan] = set()
        for plan in plans_of(chain_of(problem)):
            if deadline.passed:
                stop = StopReason.TIME_LIMIT
                break
            if plan not in found and not check(problem, plan):
                found.add(plan)
        best = sorted(found, key=lambda plan: rank_key(problem, score(problem, plan)))[: options.top]
        return Claim(
            status=SolveStatus.FEASIBLE if best else SolveStatus.NO_SOLUTION,
            stop=stop,
            plans=tuple(best),
            values=score(problem, best[0]).values(problem.objective.terms) if best else None,
            handling=handling_of(problem, self.capabilities),
        )


def plans_of(chain: Chain) -> Iterator[Plan]:
    """Yield a plan for each order of the units: the one with the least target that works out."""
    for count in range(1, min(MOST_UNITS, chain.unit_count) + 1):
        for order in permutations(range(chain.unit_count), count):
            low, high = 1, max(chain.most_busy_us(unit) for unit in order)
            best = filled(chain, order, high)
            while best is not None and low < high:
                middle = (low + high) // 2
                parts = filled(chain, order, middle)
                if parts is None:
                    low = middle + 1
                else:
                    best, high = parts, middle
            if best is not None:
                yield chain.plan(best)


def filled(chain: Chain, order: tuple[int, ...], target_us: int) -> tuple[Part, ...] | None:
    """Return chunks in this order of the units, each as long as the target allows; None: it is too low."""
    parts: list[Part] = []
    start = 0
    for unit in order:
        behind = [stop for stop in chain.cuts if stop > start and chain.runs(start, stop, unit)]
        fitting = [stop for stop in behind if chain.busy_us(start, stop, unit) <= target_us]
        if fitting:
            parts.append((start, max(fitting), unit))
            start = max(fitting)
    return tuple(parts) if start == chain.layer_count else None
