"""All plans for a workload: how many, which are near, which count as one plan, how far apart they are.

How large the space of pipelines is: Eqs. 12 to 14 of Hetero2Pipe, corrected (errata 28 and 29). As printed,
the lower limit of Eq. 13, max(1, P' + C - C_b), leaves every sum empty for 4 big and 4 little cores: only the
"+ 1" of each P remains, 9 in all. With max(1, P' - (C - C_b)), and the "+ 1" once instead of once for each P,
it is the published 449. Eq. 14 weighs S_P with the ways to cut a network into P chunks: 2.99e8 for
MobileNetV2 (28 layers), or 2.91e8 with the "+ 1" once. The published "3.6B" is 449 x sum over P of C(27,
P - 1) = 3.678e9: the two sums multiplied, a twelvefold over-count.

Neither the order of the requests nor skipped units are in these numbers; `count_plans` of the exhaustive
backend counts what gapless searches.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import combinations, pairwise, permutations, product, zip_longest
from math import comb, factorial, prod

from ..errors import InvalidInputError
from ..expr import BoolExpr, count
from ..formulation import Difference
from ..jobs.space import all_routes, placed_elsewhere, places
from ..plan import Plan
from ..problem import Problem
from ..rules import RuleFunction, named
from .quantities import needs_of
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


def pipelines(big: int, little: int) -> int:
    """Return the number of processor pipelines of a device with a GPU and an NPU (Eq. 12, all P).

    A cluster of cores may be split into consecutive groups. The formula counts the pipelines of one
    cluster alone once for each number of groups of the other, so the distinct ones are fewer (323
    instead of 449 for 4 and 4); it is kept because the paper's numbers come from it.

    Parameters
    ----------
    big, little
        Cores of each cluster, at least 1: C_b and C - C_b.

    Raises
    ------
    InvalidInputError
        A number is too small.
    """
    depths = _depths(big, little)
    return sum(_of_depth(big, little, depth) for depth in depths) - (len(depths) - 1)


def split_points(layers: int, big: int, little: int) -> int:
    """Return the number of ways to cut one network for all these pipelines (Eq. 14).

    The counts of several networks multiply.

    Parameters
    ----------
    layers
        Layers n of the network, at least 1.
    big, little
        As in `pipelines`.

    Raises
    ------
    InvalidInputError
        A number is too small.
    """
    if layers < 1:
        raise InvalidInputError(f"layers is {layers}, must be at least 1")
    depths = _depths(big, little)
    return sum(comb(layers - 1, depth - 1) * _of_depth(big, little, depth) for depth in depths)


def _depths(big: int, little: int) -> range:
    """Return the depths P: two for GPU and NPU, and as many as there are cores."""
    for name, cores in (("big", big), ("little", little)):
        if cores < 1:
            raise InvalidInputError(f"{name} is {cores}, must be at least 1")
    return range(2, big + little + 3)


def _of_depth(big: int, little: int, depth: int) -> int:
    """Return S_P of Eq. 12: P' = P - 2 groups of cores, P_b of them big."""
    groups = depth - 2
    total = 1
    for of_big in range(max(1, groups - little), min(big, groups - 1) + 1):
        ways_big, ways_little = comb(big - 1, of_big - 1), comb(little - 1, groups - of_big - 1)
        total += 4 * ways_big * ways_little + 3 * ways_big + 3 * ways_little
    return total
