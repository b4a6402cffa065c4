"""Every well-formed plan of single requests, and how many there are at most."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import comb, factorial, prod
from typing import Generic, TypeVar

from ..expr import BoolExpr, count
from ..formulation import Difference
from ..plan import Plan
from ..play import Part
from ..rules import RuleFunction, named
from .tables import JobPlan, JobTables, ScheduleTables
from .view import JobView

T = TypeVar("T")

_MOST_COUNTED = 200
"""Most chunks of all requests whose orders are counted one number of chunks after the other."""

_MOST_SECTIONS = 40
"""Most sections of a network whose ways are counted."""

Route = tuple[Part, ...]
"""The chunks of one request."""

Place = tuple[str, int, str]
"""A layer of a request on a unit."""


def all_plans(tables: ScheduleTables) -> Iterator[JobPlan]:
    """Yield every plan once: all ways through the sections, all orders that differ on some unit."""
    choices = [_Kept(all_routes(tables, chain)) for chain in tables.chain_of]
    for parts in _one_of_each(choices):
        seen = set()
        for order in _orders(tables, parts):
            plan = tables.ordered(order, parts)
            if plan.order not in seen:
                seen.add(plan.order)
                yield plan


class _Kept(Generic[T]):
    """What comes from an iterator, one by one, and once more for whoever asks when all has come.

    There may be millions, of which the first ones are wanted at once.
    """

    def __init__(self, source: Iterator[T]) -> None:
        self._source, self._known = source, list[T]()

    def __iter__(self) -> Iterator[T]:
        yield from self._known
        for each in self._source:
            self._known.append(each)
            yield each


def _one_of_each(choices: Sequence[Iterable[T]]) -> Iterator[tuple[T, ...]]:
    """Yield what `itertools.product` does, which first asks for all choices."""
    if not choices:
        yield ()
        return
    for first in choices[0]:
        for rest in _one_of_each(choices[1:]):
            yield (first, *rest)


def all_routes(tables: ScheduleTables, chain: int) -> Iterator[Route]:
    """Yield all ways through the sections of a network, given by index, that the passage allows."""
    count = tables.section_count(tables.chain_of.index(chain))

    def extend(route: Route, at: int, state: int) -> Iterator[Route]:
        if at == count:
            yield route
        for option in tables.options[chain]:
            if option.start == at and (after := tables.visits.after(state, option.unit)) is not None:
                yield from extend((*route, option.part), option.stop, after)

    return extend((), 0, 0)


def _orders(tables: ScheduleTables, parts: Sequence[Route]) -> Iterator[tuple[int, ...]]:
    """Yield the orders of the chunks of requests in which nothing stands before what it waits for.

    Of those that differ only by swaps of neighbours which no unit and no request notices, the first one.
    """
    left, near, after = [len(own) for own in parts], tables.near, tables.after
    order: list[tuple[int, int]] = []  # request and unit

    def came_before(request: int, unit: int) -> bool:
        for other, place in reversed(order):
            if other == request or place in near[unit] or other in after[request]:
                return False
            if other > request:
                return True
        return False

    def extend() -> Iterator[tuple[int, ...]]:
        if not any(left):
            yield tuple(request for request, _ in order)
        for request, chunks in enumerate(left):
            if not chunks or any(left[other] for other in after[request]):
                continue
            unit = parts[request][-chunks][2]
            if not came_before(request, unit):
                left[request] -= 1
                order.append((request, unit))
                yield from extend()
                order.pop()
                left[request] += 1

    return extend()


def count_plans(tables: JobTables) -> int:
    """Return an upper bound on the number of plans: ways through the sections, times orders of their chunks.

    For many chunks the orders are those of as many chunks as each request can have.
    """
    if max(map(len, tables.sections)) > _MOST_SECTIONS:
        return _more_plans(tables)
    by_chain = [_counts(tables, chain) for chain in range(len(tables.chains))]
    counts = [by_chain[chain] for chain in tables.chain_of]
    most = [max(own, default=0) for own in counts]
    if sum(most) > _MOST_COUNTED:
        ways: int = prod(sum(own.values()) for own in counts)
        orders: int = factorial(sum(most)) // prod(map(factorial, most))
        return ways * orders
    found = {0: 1}
    for own in counts:
        before, found = found, {}
        for so_far, plans in before.items():
            for chunks, ways in own.items():
                after = so_far + chunks
                found[after] = found.get(after, 0) + plans * ways * comb(after, chunks)
    return sum(found.values())


def _more_plans(tables: JobTables) -> int:
    """Return a number of plans that is too large: as if each unit could run every section."""
    sections = [tables.section_count(request) for request in range(tables.request_count)]
    ways: int = prod(tables.unit_count * (tables.unit_count + 1) ** (count - 1) for count in sections)
    orders: int = factorial(sum(sections)) // prod(map(factorial, sections))
    return ways * orders


def _counts(tables: JobTables, chain: int) -> dict[int, int]:
    """Return how many ways through the sections of a network there are, by number of chunks."""
    last = len(tables.sections[chain])
    ways: list[dict[tuple[int, int], int]] = [{} for _ in range(last + 1)]
    ways[0][0, 0] = 1
    for option in tables.options[chain]:  # in the order of their starts
        own = ways[option.stop]
        for (state, chunks), number in ways[option.start].items():
            after = tables.visits.after(state, option.unit)
            if after is not None:
                own[after, chunks + 1] = own.get((after, chunks + 1), 0) + number
    found: dict[int, int] = {}
    for (_, chunks), number in ways[last].items():
        found[chunks] = found.get(chunks, 0) + number
    return found


def places(plan: Plan) -> Iterator[Place]:
    """Yield each layer of each request with its unit."""
    for chunk in plan.chunks:
        yield from ((chunk.request, layer, chunk.unit) for layer in range(chunk.start, chunk.stop))


def placed_elsewhere(first: Plan, second: Plan) -> int:
    """Return how many layers of requests run on other units; a metric of placements.

    Which of several equal requests is which counts, and in which order units serve them does not.
    """
    return sum(1 for _ in places(first)) - len({*places(first)} & {*places(second)})


def differs(plan: Plan, at_least: int) -> RuleFunction:
    """Return the rule "at least a number of layers on other units than in this plan" (`placed_elsewhere`)."""

    def build(view: JobView) -> BoolExpr:
        same = [view.on(*place) for place in places(plan)]
        return count(same) <= len(same) - at_least

    text = f"at least {at_least} layers of requests run on other units than in plan {plan.plan_id}"
    return named(f"differs({plan.plan_id}, {at_least})", text, build)


DIFFERENCE = Difference(between=placed_elsewhere, rule=differs)
