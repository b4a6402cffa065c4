"""Ordering: which request is served when (P3), in four ways that suit different problems.

FixedOrder
    Nothing to decide.
Precedences
    One literal a pair, "i before j", transitive. For the asynchronous model, where pairs of chunks
    compete for a unit.
Places
    One literal for each request and place. For columns, and where only the order is asked for.
Pattern
    One literal a place, "a high request stands here". Contention and displacement depend on nothing
    else if the relative order inside the high and inside the low ones is kept, which is never worse:
    a network matrix with integral corners, solved in milliseconds (Property 3 and Eqs. 9, 10 of the
    paper in corrected form).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, combinations, pairwise, permutations
from typing import Protocol

from ..expr import FALSE, TRUE, BoolExpr, BoolVar, Const, Expr, VariableKey, abs_of, linear, max_of
from ..model import Values
from ..terms import Quantity
from .tables import FlowShop
from .values import WorkloadValues


class Order(Protocol):
    """An encoding of the order of the requests."""

    def constraints(self) -> Iterator[BoolExpr]:
        """Yield the rows."""
        ...

    def contention(self) -> Expr:
        """Return the weighted number of high requests that are close."""
        ...

    def displacement(self) -> Expr:
        """Return by how many places the requests are moved."""
        ...

    def decode(self, values: Values) -> tuple[int, ...]:
        """Return the order of a solution."""
        ...

    def differs(self, order: Sequence[int]) -> Iterator[BoolExpr]:
        """Yield conditions of which one holds in every solution with another order."""
        ...

    def assign(self, values: WorkloadValues) -> dict[VariableKey, int]:
        """Return the value of every variable on a schedule."""
        ...


class RankedOrder(Order, Protocol):
    """An encoding that tells who is before whom."""

    def before(self, first: int, second: int) -> BoolExpr:
        """Return "the first request is served before the second"."""
        ...

    def position(self, request: int) -> Expr:
        """Return the place of a request."""
        ...


def order_definitions(
    shop: FlowShop, order: RankedOrder | Pattern, quantities: frozenset[Quantity]
) -> dict[VariableKey, Expr]:
    """Return the definitions of those quantities of the order that are asked for.

    A `Pattern` has no `position` and `before`.
    """
    requests = range(shop.request_count)
    makers: dict[Quantity, Callable[..., Expr]] = {
        Quantity.CONTENTION: order.contention,
        Quantity.DISPLACEMENT: order.displacement,
    }
    found: dict[VariableKey, Expr] = {}
    for quantity in quantities & set(makers):
        found[quantity, ()] = makers[quantity]()
    if isinstance(order, Pattern):
        return found
    if Quantity.POSITION in quantities:
        found |= {(Quantity.POSITION, (i,)): order.position(i) for i in requests}
    if Quantity.BEFORE in quantities:
        found |= {(Quantity.BEFORE, p): order.before(*p) for p in permutations(requests, 2)}
    return found


def windows(shop: FlowShop, high_before: Callable[[int], Expr]) -> Expr:
    """Return the contention: over all windows of K places, the pairs of high requests inside.

    A pair at distance d < K lies in K - d windows. `high_before(p)` is the number of high requests among
    the first p places. C(n, 2) = sum over t >= 1 of max(0, n - t).
    """
    count, units = shop.request_count, shop.unit_count
    terms = []
    for first in range(1 - units, count):
        inside = high_before(min(first + units, count)) - high_before(max(first, 0))
        terms += [(1, max_of((Const(0), inside - t))) for t in range(1, units)]
    return linear(terms)


class FixedOrder:
    """The order of arrival, in constants."""

    def __init__(self, shop: FlowShop) -> None:
        self._shop = shop

    def before(self, first: int, second: int) -> BoolExpr:
        """Return whether the first request arrives before the second."""
        return TRUE if first < second else FALSE

    def position(self, request: int) -> Expr:
        """Return the place of a request."""
        return Const(request)

    def at(self, request: int, place: int) -> BoolExpr:
        """Return whether the request stands at the place."""
        return TRUE if request == place else FALSE

    def constraints(self) -> Iterator[BoolExpr]:
        """Yield nothing."""
        return iter(())

    def contention(self) -> Expr:
        """Return the contention, a constant."""
        high = tuple(accumulate(self._shop.surely_high, initial=0))
        return windows(self._shop, lambda place: Const(high[place]))

    def displacement(self) -> Expr:
        """Return zero: nobody is moved."""
        return Const(0)

    def decode(self, values: Values) -> tuple[int, ...]:
        """Return the order of arrival."""
        return tuple(range(self._shop.request_count))

    def differs(self, order: Sequence[int]) -> Iterator[BoolExpr]:
        """Yield nothing: there is no other order."""
        return iter(())

    def assign(self, values: WorkloadValues) -> dict[VariableKey, int]:
        """Return nothing."""
        return {}


class Precedences:
    """One literal for each pair of requests.

    `alike`: groups of requests that may be served in the given order without loss.
    """

    def __init__(self, shop: FlowShop, alike: Sequence[Sequence[int]]) -> None:
        self._shop = shop
        self._alike = alike
        self._requests = range(shop.request_count)

    def before(self, first: int, second: int) -> BoolExpr:
        """Return "the first request is served before the second"."""
        literal = BoolVar("b", (min(first, second), max(first, second)))
        return literal if first < second else ~literal

    def position(self, request: int) -> Expr:
        """Return the place of a request: how many are before it."""
        return linear((1, self._number(j, request)) for j in self._requests if j != request)

    def _number(self, first: int, second: int) -> Expr:
        literal = BoolVar("b", (min(first, second), max(first, second)))
        return literal if first < second else 1 - literal

    def constraints(self) -> Iterator[BoolExpr]:
        """Yield transitivity: in no triple may the first be before the second before the third before it."""
        for i, j, k in combinations(self._requests, 3):
            turns = self._number(i, j) + self._number(j, k) - self._number(i, k)
            yield (turns >= 0) & (turns <= 1)
        for group in self._alike:
            yield from (self.before(*pair) for pair in pairwise(group))

    def contention(self) -> Expr:
        """Return the sum over pairs of high requests."""
        high = (i for i in self._requests if self._shop.surely_high[i])
        return linear((1, self._closeness(*pair)) for pair in combinations(high, 2))

    def displacement(self) -> Expr:
        """Return the sum of the moves."""
        return linear((1, abs_of(self.position(i) - i)) for i in self._requests)

    def _closeness(self, one: int, other: int) -> Expr:
        """Return max(0, K - distance) of two requests: the larger of two numbers of which one is <= 0."""
        units, most = self._shop.unit_count, self._shop.unit_count + self._shop.request_count
        distance = self.position(other) - self.position(one)
        first = units - distance - most * self._number(other, one)
        second = units + distance - most * self._number(one, other)
        return max_of((Const(0), first, second))

    def decode(self, values: Values) -> tuple[int, ...]:
        """Return the order of a solution."""
        return tuple(sorted(self._requests, key=lambda i: self.position(i).evaluate(values)))

    def differs(self, order: Sequence[int]) -> Iterator[BoolExpr]:
        """Yield "two neighbours stand the other way round"."""
        return (self.before(second, first) for first, second in pairwise(order))

    def assign(self, values: WorkloadValues) -> dict[VariableKey, int]:
        """Return the value of every literal on a schedule."""
        at = values.position
        return {("b", (i, j)): int(at[i] < at[j]) for i, j in combinations(self._requests, 2)}


class Places:
    """One literal for each request and place; parameters as `Precedences`."""

    def __init__(self, shop: FlowShop, alike: Sequence[Sequence[int]]) -> None:
        self._shop = shop
        self._alike = alike
        self._requests = range(shop.request_count)

    def at(self, request: int, place: int) -> BoolVar:
        """Return "the request stands at the place"."""
        return BoolVar("at", (request, place))

    def position(self, request: int) -> Expr:
        """Return the place of a request."""
        return linear((place, self.at(request, place)) for place in self._requests)

    def before(self, first: int, second: int) -> BoolExpr:
        """Return "the first request is served before the second"."""
        return self.position(first) + 1 <= self.position(second)

    def constraints(self) -> Iterator[BoolExpr]:
        """Yield "one request a place, one place a request"."""
        for one in self._requests:
            yield linear((1, self.at(one, place)) for place in self._requests) == 1
            yield linear((1, self.at(request, one)) for request in self._requests) == 1
        for group in self._alike:
            yield from (self.before(*pair) for pair in pairwise(group))

    def contention(self) -> Expr:
        """Return the sum over windows."""
        return windows(self._shop, self._high_before)

    def displacement(self) -> Expr:
        """Return the sum of the moves."""
        requests = self._requests
        return linear((abs(place - i), self.at(i, place)) for i in requests for place in requests)

    def _high_before(self, place: int) -> Expr:
        high = (i for i in self._requests if self._shop.surely_high[i])
        return linear((1, self.at(i, earlier)) for i in high for earlier in range(place))

    def decode(self, values: Values) -> tuple[int, ...]:
        """Return the order of a solution."""
        return tuple(sorted(self._requests, key=lambda i: self.position(i).evaluate(values)))

    def differs(self, order: Sequence[int]) -> Iterator[BoolExpr]:
        """Yield "somebody stands elsewhere"."""
        return (~self.at(request, place) for place, request in enumerate(order))

    def assign(self, values: WorkloadValues) -> dict[VariableKey, int]:
        """Return the value of every literal on a schedule."""
        places = enumerate(values.position)
        return {("at", (i, place)): int(at == place) for i, at in places for place in self._requests}


class Pattern:
    """One literal a place: whether a high request stands there."""

    def __init__(self, shop: FlowShop) -> None:
        self._shop = shop
        self._places = range(shop.request_count)

    def _high(self, place: int) -> BoolVar:
        return BoolVar("high", (place,))

    def _high_before(self, place: int) -> Expr:
        return linear((1, self._high(earlier)) for earlier in range(place))

    def constraints(self) -> Iterator[BoolExpr]:
        """Yield "as many high places as high requests"."""
        yield self._high_before(self._shop.request_count) == sum(self._shop.surely_high)

    def contention(self) -> Expr:
        """Return the sum over windows."""
        return windows(self._shop, self._high_before)

    def displacement(self) -> Expr:
        """Return the sum of the moves, the relative orders being kept.

        It is twice the sum over all places of how many high requests more (or fewer) stand before it
        than at arrival: earth moved along a line.
        """
        arrived = tuple(accumulate(self._shop.surely_high, initial=0))
        return linear((2, abs_of(self._high_before(p) - arrived[p])) for p in self._places)

    def decode(self, values: Values) -> tuple[int, ...]:
        """Return the order with this pattern that keeps the relative orders."""
        high = iter([i for i in self._places if self._shop.surely_high[i]])
        low = iter([i for i in self._places if not self._shop.surely_high[i]])
        return tuple(next(high if values(self._high(place)) else low) for place in self._places)

    def differs(self, order: Sequence[int]) -> Iterator[BoolExpr]:
        """Yield "a place has changed between high and low"."""
        for place, request in enumerate(order):
            yield ~self._high(place) if self._shop.surely_high[request] else self._high(place)

    def assign(self, values: WorkloadValues) -> dict[VariableKey, int]:
        """Return the value of every literal on a schedule."""
        order = enumerate(values.schedule.order)
        return {("high", (place,)): int(self._shop.surely_high[request]) for place, request in order}
