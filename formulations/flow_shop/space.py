"""Every well-formed plan for a workload, and how many there are."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations, product
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


def count_schedules(shop: FlowShop) -> int:
    """Return an upper bound on the number of schedules; exact if every unit runs every layer.

    K - 1 cuts among m + 1 places with repetition, for each request; times the orders.
    """
    units = shop.unit_count
    ways = prod(comb(len(shop.chain(r).cuts) + units - 2, units - 1) for r in range(shop.request_count))
    return ways * (factorial(shop.request_count) if shop.order_is_free else 1)
