"""A heuristic of your own for workloads: every request whole on one unit, the longest first, then others.

    gapless compare --instances workloads.json --backend longest_first.py:LongestFirst

It deals requests out like any list scheduler: each goes to the unit on which it would be done first. The
first order is the longest request first, further orders are drawn until the time is up. The judge says how
good each plan is. It proves nothing, and never cuts a network in two.
"""

from itertools import count
from random import Random
from typing import ClassVar

from gapless.formulations.availability import Availability
from gapless.formulations.flow_shop.tables import FlowShop, Schedule, shop_of
from gapless.formulations.judge import rank_key, score
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

ROUNDS = 200
"""Orders that are tried where no time is given."""


class LongestFirst:
    """Deals out requests whole, in many orders."""

    name: ClassVar[str] = "longest-first"
    capabilities: ClassVar[Capabilities] = Capabilities(
        summary="whole requests to the unit that is done first, the longest first",
        formulations={"flow_shop": PROPOSING},
    )

    def availability(self) -> Availability:
        """Say that it needs nothing but Python."""
        return Availability(ok=True)

    def solve(self, problem: Problem, options: SolveOptions) -> Claim:
        """Return the best of the plans that it comes by, and show each better one at once."""
        shop, rng, deadline = shop_of(problem), Random(options.seed), Deadline(options.time_limit_s)
        order = sorted(range(shop.request_count), key=lambda request: -least_us(shop, request))
        best: list[tuple[tuple[object, ...], Plan, tuple[int, ...]]] = []

        def claim(stop: StopReason) -> Claim:
            return Claim(
                status=SolveStatus.FEASIBLE if best else SolveStatus.NO_SOLUTION,
                stop=stop,
                plans=tuple(plan for _, plan, _ in best),
                values=best[0][2] if best else None,
                handling=handling_of(problem, self.capabilities),
            )

        for _ in range(ROUNDS) if options.time_limit_s is None else count():
            plan = dealt(shop, order)
            judged = None if plan is None else score(problem, plan)
            if plan is not None and judged is not None and judged.valid:
                found = (rank_key(problem, judged), plan, judged.values(problem.objective.terms))
                if not best or found[0] < best[0][0]:
                    best = [found]
                    options.publish(claim(StopReason.TIME_LIMIT))
            if deadline.passed:
                return claim(StopReason.TIME_LIMIT)
            if not shop.order_is_free:
                break
            rng.shuffle(order)
        return claim(StopReason.COMPLETE)


def whole_us(shop: FlowShop, request: int, unit: int) -> int | None:
    """Return how long a unit takes for a whole request; None: it cannot run it."""
    chain, whole = shop.chain(request), (0, shop.chain(request).layer_count, unit)
    return chain.busy_us(*whole) if chain.runs(*whole) else None


def least_us(shop: FlowShop, request: int) -> int:
    """Return how long the fastest unit takes for a request."""
    times = (whole_us(shop, request, unit) for unit in range(shop.unit_count))
    return min((time for time in times if time is not None), default=0)


def dealt(shop: FlowShop, order: list[int]) -> Plan | None:
    """Return the plan of an order; None: no unit can run all of some request."""
    free_us, cuts = [0] * shop.unit_count, {}
    for request in order:
        ends = {
            unit: free_us[unit] + time
            for unit in range(shop.unit_count)
            if (time := whole_us(shop, request, unit)) is not None
        }
        if not ends:
            return None
        unit = min(ends, key=lambda one: ends[one])
        free_us[unit] = ends[unit]
        layers = shop.chain(request).layer_count
        # Where each unit's part of the layers ends: none before the chosen unit, all from it on.
        cuts[request] = tuple(layers if one >= unit else 0 for one in range(-1, shop.unit_count))
    return shop.plan(Schedule(tuple(order), tuple(cuts[request] for request in range(len(order)))))
