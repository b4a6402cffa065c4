"""Every well-formed plan of single requests, and how many there are at most."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import factorial, prod

from .tables import JobPlan, JobTables, Part

Route = tuple[Part, ...]
"""The chunks of one request."""


def all_plans(tables: JobTables) -> Iterator[JobPlan]:
    """Yield every plan once: all ways through the sections, all orders that differ on some unit."""
    choices = [list(all_routes(tables, chain)) for chain in tables.chain_of]
    for parts in product(*choices):
        seen = set()
        for order in _orders(tables, [len(own) for own in parts]):
            plan = tables.ordered(order, parts)
            if plan.order not in seen:
                seen.add(plan.order)
                yield plan


def all_routes(tables: JobTables, chain: int) -> Iterator[Route]:
    """Yield all ways through the sections of a network, given by index."""
    count = len(tables.sections[chain])

    def extend(route: Route, at: int) -> Iterator[Route]:
        if at == count:
            yield route
        for option in tables.options[chain]:
            if option.start == at:
                yield from extend((*route, option.part), option.stop)

    return extend((), 0)


def _orders(tables: JobTables, left: list[int]) -> Iterator[tuple[int, ...]]:
    """Yield all orders of so many chunks of each request in which nothing stands before what it waits for."""
    order: list[int] = []

    def extend() -> Iterator[tuple[int, ...]]:
        if not any(left):
            yield tuple(order)
        for request, count in enumerate(left):
            if count and not any(left[other] for other in tables.after[request]):
                left[request] -= 1
                order.append(request)
                yield from extend()
                order.pop()
                left[request] += 1

    return extend()


def count_plans(tables: JobTables) -> int:
    """Return an upper bound on the number of plans: ways through the sections, times orders of chunks.

    The orders of as many chunks as each request has sections: fewer chunks have fewer orders.
    """
    ways = prod(_route_count(tables, chain) for chain in tables.chain_of)
    chunks = [tables.section_count(request) for request in range(tables.request_count)]
    return ways * factorial(sum(chunks)) // prod(map(factorial, chunks))


def _route_count(tables: JobTables, chain: int) -> int:
    ways = [1] + [0] * len(tables.sections[chain])
    for option in tables.options[chain]:  # in the order of their starts
        ways[option.stop] += ways[option.start]
    return ways[-1]
