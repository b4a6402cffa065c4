"""All plans for a workload: how many, which are near, which count as one plan, how far apart two are."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import combinations, pairwise, permutations, product, zip_longest
from math import comb, factorial, prod

from ..expr import BoolExpr, count
from ..formulation import Difference
from ..jobs.space import all_routes, placed_elsewhere, places
from ..plan import Plan
from ..problem import Problem
from ..rules import RuleFunction, named
from .needs import needs_of
from .tables import Cuts, FlowShop, Schedule, shop_of, workload_of
from .view import WorkloadView


def all_schedules(shop: FlowShop) -> Iterator[Schedule]:
    """Yield every schedule: all orders (if they are free), all legal cuts that the units can run."""
    orders = [tuple(range(shop.request_count))]
    if shop.order_is_free:
        orders = list(permutations(range(shop.request_count)))
    choices = [all_cuts(shop, request) for request in range(shop.request_count)]
    for order in orders:
        for cuts in product(*choices):
            yield Schedule(order, cuts)


def all_cuts(shop: FlowShop, request: int) -> list[Cuts]:
    """Return every way to lay the layers of a request on the units, in order, units skipped or not."""
    return sorted(map(shop.cuts_of, all_routes(shop, shop.chain_of[request])))


def near_schedules(shop: FlowShop, schedule: Schedule) -> Iterator[Schedule]:
    """Yield schedules with one cut elsewhere, or with a request a place away or at an end of the order.

    A cut pushes those that are in its way along, so that a unit can be left or taken in one change.
    """
    if shop.order_is_free:
        last = shop.request_count - 1
        for place, request in enumerate(schedule.order):
            others = schedule.order[:place] + schedule.order[place + 1 :]
            for there in {0, place - 1, place + 1, last} - {place, -1, last + 1}:
                yield replace(schedule, order=(*others[:there], request, *others[there:]))
    # One change of each request after the other, so that the first so many are about all of them.
    for changes in zip_longest(*(_near_cuts(shop, *one) for one in enumerate(schedule.cuts))):
        for request, cuts in enumerate(changes):
            if cuts is not None:
                yield replace(schedule, cuts=(*schedule.cuts[:request], cuts, *schedule.cuts[request + 1 :]))


def _near_cuts(shop: FlowShop, request: int, cuts: Cuts) -> Iterator[Cuts]:
    """Yield the cuts of a request with one of them elsewhere, as far as its units can run them."""
    chain = shop.chain(request)
    for place in range(1, shop.unit_count):
        for cut in chain.cuts:
            before, after = (min(c, cut) for c in cuts[:place]), (max(c, cut) for c in cuts[place + 1 :])
            found = (*before, cut, *after)
            runs = (a == b or chain.runs(a, b, unit) for unit, (a, b) in enumerate(pairwise(found)))
            if cut != cuts[place] and all(runs):
                yield found


def count_schedules(shop: FlowShop) -> int:
    """Return an upper bound on the number of schedules; exact if every unit runs every layer.

    K - 1 cuts among m + 1 places with repetition, for each request; times the orders.
    """
    units = shop.unit_count
    ways = prod(comb(len(shop.chain(r).cuts) + units - 2, units - 1) for r in range(shop.request_count))
    return ways * (factorial(shop.request_count) if shop.order_is_free else 1)


Groups = tuple[tuple[int, ...], ...]
"""Indices of requests that nothing tells apart, those of a group in ascending order.

Plans that differ by who of them is who are one plan.
"""


def alike(shop: FlowShop, named: Collection[int]) -> Groups:
    """Return the groups of requests of one network that come and are due at the same times.

    `named`: requests that rules tell from others: in no group.
    """
    groups: dict[tuple[object, ...], list[int]] = {}
    for request, facts in enumerate(shop.workload.requests):
        if request not in named:
            kind = (facts.network, facts.arrival_us, facts.deadline_us)
            groups.setdefault(kind, []).append(request)
    return tuple(tuple(group) for group in groups.values() if len(group) > 1)


def groups_of(problem: Problem) -> Groups:
    """Return the groups that can trade places; none where the order is given, or rules are opaque."""
    shop = shop_of(problem)
    if not shop.order_is_free or problem.opaque_rules:
        return ()
    return alike(shop, needs_of(problem).named)


def settled(schedule: Schedule, groups: Groups) -> Schedule:
    """Return the schedule that stands for all that are alike: of a group, the first is served first.

    It is as good as the others, its displacement is the least of them, and it comes first in the canonical
    order.
    """
    order, cuts = list(schedule.order), list(schedule.cuts)
    place = {request: index for index, request in enumerate(schedule.order)}
    for group in groups:
        for request, stands_for in zip(group, sorted(group, key=place.__getitem__), strict=True):
            order[place[stands_for]] = request
            cuts[request] = schedule.cuts[stands_for]
    return Schedule(tuple(order), tuple(cuts))


def neighbours_in(groups: Groups) -> Sequence[tuple[int, int]]:
    """Return the pairs of requests of which the first is served first in settled schedules."""
    return [pair for group in groups for pair in pairwise(group)]


def workload_distance(first: Plan, second: Plan) -> int:
    """Return how many layers of requests run on other units, plus how many pairs are in the other order.

    0 for equal plans; a metric. Plans that differ by who of several equal requests is who are compared as
    they stand: `settled` ones are those that say something.
    """
    turned = {*combinations(first.order, 2)} - {*combinations(second.order, 2)}
    return placed_elsewhere(first, second) + len(turned)


def differs(plan: Plan, at_least: int) -> RuleFunction:
    """Return the rule "at least so far from this plan" (`workload_distance`)."""

    def build(view: WorkloadView) -> BoolExpr:
        pairs = list(combinations(plan.order, 2))
        same = (*(view.on(*place) for place in places(plan)), *(view.before(*pair) for pair in pairs))
        return count(same) <= len(same) - at_least

    text = f"at least {at_least} layers or pairs of requests differ from plan {plan.plan_id}"
    return named(f"differs({plan.plan_id}, {at_least})", text, build)


def settled_plan(problem: Problem, plan: Plan) -> Plan:
    """Return the plan that stands for all that differ from it by who of several equal requests is who."""
    groups = groups_of(problem)
    if not groups:
        return plan
    shop = shop_of(problem)
    return shop.plan(settled(shop.schedule(plan), groups))


def settling_rules(problem: Problem) -> tuple[RuleFunction, ...]:
    """Return the rules that hold of settled plans only."""
    names = workload_of(problem).names
    pairs = ((names[one], names[other]) for one, other in neighbours_in(groups_of(problem)))
    return tuple(_in_order(first, second) for first, second in pairs)


def _in_order(first: str, second: str) -> RuleFunction:
    text = f"{first} is served before {second}, which is like it"
    return named(f"before({first}, {second})", text, lambda view: view.before(first, second))


DIFFERENCE = Difference(between=workload_distance, rule=differs, settle=settled_plan, settling=settling_rules)
