"""Branch and price for workloads: the contention bound (`contention_bound`), with more and more decided.

The linear program behind the bound mixes cuts of one request, and lets requests run together that cannot: who
is served later may be ahead, or wait for company. So a part of all plans is split in two, at what its program
mixes most (`splits`), and the program of each half starts from the sets and cuts of the whole. The part with
the least bound is split first, so its bound holds for all plans. Each program suggests a plan: the cuts with
the largest shares, in the order in which requests are ahead. Parts without a better plan are dropped, and
those in which few plans can be better are walked (`branching`): so the search ends with a proof.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from functools import cache, cached_property

import numpy as np

from ...formulations.deployment import Mode
from ...formulations.flow_shop.tables import FlowShop
from ..company import Company, are_few
from ..protocol import NEVER, Deadline
from .arrays import FORBIDDEN
from .bounds import TermBounds
from .branching import Branching
from .company import able_of, company_of
from .contention_bound import ContentionBound, contention_bound
from .draft import Draft, DraftContext
from .measure import KeptSchedules, Measure
from .part import Pairs, Part
from .splits import Split, Splits, ahead_us, even_split

_FEW_PLANS, _FEW_ORDERS = 5_000, 200_000
"""Parts of this number of plans, and this number of orders of requests whose cuts are known, are walked."""

_WALK = 10
"""As how many linear programs one walk counts."""


class BranchAndPrice:
    """The search for a better plan in one context, or for the proof that there is none.

    `measure`, `kept`: how plans compare, and the best ones so far; better ones are added.
    """

    def __init__(
        self,
        context: DraftContext,
        bounds: TermBounds,
        groups: Sequence[Sequence[int]],
        measure: Measure,
        kept: KeptSchedules,
    ) -> None:
        self._context, self._bounds, self._groups = context, bounds, groups
        self._shop, self._measure, self._kept = context.shop, measure, kept
        self._deadline = NEVER
        self._splits = Splits()
        self._open: list[tuple[int, int, Part, ContentionBound]] = []
        """Parts that may hold a better plan, by bound and number, and the programs behind them."""
        self._programs = 0

    @staticmethod
    def applies(shop: FlowShop) -> bool:
        """Return whether requests are served once, and who can run together are few enough to be listed."""
        return shop.workload.mode is Mode.BATCH and are_few(shop.request_count, shop.unit_count)

    @cached_property
    def _whole(self) -> Part:
        """The part that all plans are in."""
        count = self._shop.request_count
        ways = {request: kind.ways for kind in self._bounds.contention.kinds for request in kind.requests}
        group = {request: own[0] for own in self._groups for request in own}
        before = np.triu(np.ones((count, count), dtype=np.bool_), 1)
        workload, units = self._shop.workload, {unit for own in ways.values() for unit in own.units}
        phased = workload.task_slots is None and len({own.arrival_us for own in workload.requests}) == 1
        return Part(
            ways=tuple(ways[request] for request in range(count)),
            before=before & (not self._shop.order_is_free),
            group=tuple(group.get(request, request) for request in range(count)),
            first=min(units) if phased else None,
            spans=((0, 2 * self._shop.unit_count),) * count,
        )

    @cached_property
    def _company(self) -> Company:
        return company_of(self._shop, self._whole.kinds(self._shop.chain_of))

    def prove(self, deadline: Deadline, most_programs: float, on_bound: Callable[[int], None]) -> bool:
        """Split what can be better; return whether nothing is left. Asked again, it goes on.

        `deadline`, `most_programs`: when to give up: at a time, or after this number of linear programs.
        """
        self._deadline = deadline
        if not self._open:
            self._add(self._whole, 0, None)
        while self._open and self._open[0][0] <= self._most:
            on_bound(self._open[0][0])
            if deadline.passed or self._programs >= most_programs:
                return False
            bound_us, number, part, program = heapq.heappop(self._open)
            split = self._split(part, program)
            if split is not None:
                gained = [self._add(half, bound_us, program) for half in split.halves(part)]
                self._splits.learn(split, sum(gained))
            elif deadline.passed:
                heapq.heappush(self._open, (bound_us, number, part, program))
                return False
        return True

    @property
    def _most(self) -> int:
        """The largest makespan of a better plan."""
        best = self._kept.best
        return FORBIDDEN - 1 if best is None else best[1] - (len(best) == 2)

    def _add(self, part: Part | None, least_us: int, known: ContentionBound | None) -> int:
        """Bound a part, and keep it if it can hold a better plan; return by how much its bound is better."""
        most = self._most
        if part is None:
            return most - least_us
        kinds = part.kinds(self._shop.chain_of)
        company = self._company.within(able_of(kinds, self._shop.unit_count), part.apart())
        program = contention_bound(self._shop, kinds, self._deadline, company=company, known=known)
        self._programs += 1
        bound_us = max(program.bound_us, least_us)
        if bound_us <= most:
            self._suggest(part, program)
            heapq.heappush(self._open, (bound_us, self._programs, part, program))
        return min(bound_us, most) - least_us

    def _suggest(self, part: Part, program: ContentionBound) -> None:
        """Try the plan that a program is about."""
        ahead = ahead_us(program)
        left, order = list(range(self._shop.request_count)), list[int]()
        while left:
            free = [i for i in left if not part.before[left, i].any()]
            order.append(max(free, key=lambda i: float((ahead[i, left] - ahead[left, i]).sum())))
            left.remove(order[-1])
        pairs = zip(program.cuts, program.shares, strict=True)
        places = tuple(tuple(cuts[shares.argmax()].tolist()) for cuts, shares in pairs)
        schedule = self._context.schedule(Draft(tuple(order), places))
        key = self._measure.of(schedule).key
        if self._kept.wants(key):
            self._kept.add(key, schedule)

    def _split(self, part: Part, program: ContentionBound) -> Split | None:
        """Return how to split a part, or None if no plan in it is better than the best one, or time is up."""
        split, before = self._splits.best(part, program), part.settled()
        orders = orders_within(before, _FEW_PLANS if split else _FEW_ORDERS)
        if orders is None and split:
            return split
        walk = Branching(
            self._context,
            self._bounds.prices.best,
            program,
            before,
            measure=self._measure,
            kept=self._kept,
            deadline=self._deadline,
            most_cuts=math.inf,
        )
        near = walk.near
        if near is not None and orders is not None:
            cuts = math.prod(map(len, near.values()))
            if cuts <= 1 or orders * cuts <= _FEW_PLANS:
                self._programs += _WALK
                if walk.prove():
                    return None
        return split or even_split(part, near)


def orders_within(before: Pairs, most: int) -> int | None:
    """Return in how many orders the requests can be served, or None if that is more than so many."""
    free = max(np.count_nonzero(~before.any(axis=0)), np.count_nonzero(~before.any(axis=1)))
    if math.factorial(free) > most:
        return None
    needed = [sum(1 << int(i) for i in np.flatnonzero(column)) for column in before.T]

    @cache
    def count(placed: int) -> int:
        ready = [i for i, own in enumerate(needed) if not placed >> i & 1 and own & placed == own]
        return sum(count(placed | 1 << i) for i in ready) if ready else 1

    found = count(0)
    return found if found <= most else None
