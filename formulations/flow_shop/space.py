"""Every well-formed plan for a workload, and how many there are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise, permutations, product, zip_longest
from math import comb, factorial, prod

from .tables import Cuts, FlowShop, Schedule


def all_schedules(shop: FlowShop) -> Iterator[Schedule]:
    """Yield every schedule: all orders (if they are free), all legal cuts that the units can run."""
    orders = [tuple(range(shop.request_count))]
    if shop.order_is_free:
        orders = list(permutations(range(shop.request_count)))
    choices = [list(all_cuts(shop, request)) for request in range(shop.request_count)]
    for order in orders:
        for cuts in product(*choices):
            yield Schedule(order, cuts)


def all_cuts(shop: FlowShop, request: int) -> Iterator[Cuts]:
    """Yield every way to lay the layers of a request on the units, in order, units skipped or not."""
    chain = shop.chain(request)

    def extend(cuts: Cuts) -> Iterator[Cuts]:
        unit, at = len(cuts) - 1, cuts[-1]
        if unit == shop.unit_count:
            if at == chain.layer_count:
                yield cuts
            return
        for stop in chain.cuts:
            if stop == at or (stop > at and chain.runs(at, stop, unit)):
                yield from extend((*cuts, stop))

    return extend((0,))


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
