"""What a problem with a workload asks of its encoding: which quantities, and how exactly."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..deployment import Mode
from ..expr import And, BoolVar, Expr, IntVar, LessEq, Linear, Max, Not, Or, Variable
from ..limits import LIMITS
from ..problem import Problem
from ..terms import Quantity
from ..workload import LoadPolicy
from .quantities import TERMS
from .tables import FlowShop, shop_of

CLOCK_QUANTITIES = frozenset(
    {
        Quantity.START,
        Quantity.FINISH,
        Quantity.BESIDE,
        Quantity.MEMORY_WHILE,
        Quantity.LATENCY,
        Quantity.BUBBLES,
        Quantity.PEAK,
        Quantity.MAKESPAN,
    }
)
"""Quantities that depend on when chunks run."""

ORDER_QUANTITIES = frozenset({Quantity.POSITION, Quantity.BEFORE, Quantity.CONTENTION, Quantity.DISPLACEMENT})
"""Quantities that depend on the order of the requests and on nothing else."""

_DECIDED = ORDER_QUANTITIES | {Quantity.ON, Quantity.CUT}
"""Quantities that every encoding states exactly: nothing is won by pretending another value."""

_REGULAR = frozenset(
    {
        Quantity.USES,
        Quantity.CHUNK_US,
        Quantity.BUSY,
        Quantity.FINISH,
        Quantity.PERIOD,
        Quantity.LATENCY,
        Quantity.MAKESPAN,
        Quantity.BOTTLENECK,
        Quantity.WORK,
        Quantity.ENERGY,
        Quantity.UNITS,
    }
)
"""Quantities that never grow when chunks get shorter or start earlier."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What an encoding has to offer."""

    quantities: frozenset[Quantity]
    """Those that the objective, the limits, the deadlines, the memory of the device or a rule mention."""
    exact: bool
    """Whether anything could gain from a quantity that is larger than it is (a chunk that takes longer, or
    starts later than it could). If not, "at least" conditions are enough: they make the smallest values come
    out right, and leave the solver fewer choices."""
    named: frozenset[int]  # requests that rules tell from equal ones

    @property
    def clocks(self) -> bool:
        """Whether it matters when chunks run."""
        return bool(self.quantities & CLOCK_QUANTITIES)

    @property
    def order(self) -> bool:
        """Whether the order of the requests is asked for by itself."""
        return bool(self.quantities & ORDER_QUANTITIES)


def needs_of(problem: Problem) -> Needs:
    """Return what a problem asks of its encoding."""
    shop = shop_of(problem)
    uses = [*_of_terms(problem.objective.terms), *_of_limits(problem), *_of_facts(problem)]
    named: set[int] = set()
    for rule in problem.expression_rules:
        for variable, larger_pays in _of_rule(rule.expr, larger_pays=True):
            quantity = Quantity(variable.name)
            uses.append((quantity, larger_pays))
            named.update(_told_apart(shop, quantity, variable))
    for quantity, larger_pays in tuple(uses):
        if quantity is Quantity.ENERGY:
            streams = shop.workload.mode is Mode.STREAM
            uses.append((Quantity.PERIOD if streams else Quantity.MAKESPAN, larger_pays))
            # Who starts later can escape company, and so take less.
            uses.append((quantity, larger_pays or shop.losses.contended))
    exact = any(
        quantity not in _DECIDED and (larger_pays or quantity not in _REGULAR)
        for quantity, larger_pays in uses
    )
    return Needs(quantities=frozenset(quantity for quantity, _ in uses), exact=exact, named=frozenset(named))


_Use = tuple[Quantity, bool]
"""A quantity, and whether a larger value of it can pay."""


def _of_terms(terms: tuple[str, ...]) -> Iterator[_Use]:
    for term in terms:
        if term == "idle":
            yield from ((Quantity.MAKESPAN, False), (Quantity.WORK, True))
        else:
            yield Quantity(TERMS[term].field), False


_OTHER_LIMITS: dict[str, tuple[_Use, ...]] = {
    "max_request_latency_us": ((Quantity.FINISH, False),),
    "min_units": ((Quantity.USES, True),),
    "max_units": ((Quantity.USES, False),),
    "min_balance_permille": ((Quantity.PERIOD, True), (Quantity.GAPNESS, False)),
    "min_utilisation_permille": ((Quantity.MAKESPAN, False), (Quantity.WORK, True)),
}


def _of_limits(problem: Problem) -> Iterator[_Use]:
    for name in problem.limits.in_use():
        if name in _OTHER_LIMITS:
            yield from _OTHER_LIMITS[name]
        elif LIMITS[name].read is None:
            yield Quantity(LIMITS[name].quantity), False


def _of_facts(problem: Problem) -> Iterator[_Use]:
    shop = shop_of(problem)
    if any(request.deadline_us is not None for request in shop.workload.requests):
        yield Quantity.FINISH, False
    capacity = shop.chains[0].device_memory
    if capacity is not None and capacity < most_bytes(shop):
        yield Quantity.PEAK, False


def most_bytes(shop: FlowShop) -> int:
    """Return an upper bound on the bytes that any plan needs at any instant.

    Each request holds at most its largest working set; weights are on as many units as there are
    requests of the network, or with each request while it runs.
    """
    total = 0
    for index, chain in enumerate(shop.chains):
        requests = shop.chain_of.count(index)
        copies = requests
        if shop.workload.load_policy is LoadPolicy.RESIDENT:
            copies = min(requests, shop.unit_count)
        total += copies * chain.weights.copied + requests * max(chain.working_bytes, default=0)
    return total


def _of_rule(expr: Expr, *, larger_pays: bool) -> Iterator[tuple[Variable, bool]]:
    """Yield the variables of an expression, with whether it pays when they are larger.

    `larger_pays` says so of the whole expression; a truth that is wanted is one that pays when larger.
    """
    match expr:
        case BoolVar() | IntVar():
            yield expr, larger_pays
        case Linear():
            for factor, term in expr.terms:
                yield from _of_rule(term, larger_pays=larger_pays == (factor > 0))
        case LessEq():
            yield from _of_rule(expr.left, larger_pays=not larger_pays)
            yield from _of_rule(expr.right, larger_pays=larger_pays)
        case Not():
            yield from _of_rule(expr.arg, larger_pays=not larger_pays)
        case And() | Or() | Max():
            for arg in expr.args:
                yield from _of_rule(arg, larger_pays=larger_pays)


def _told_apart(shop: FlowShop, quantity: Quantity, variable: Variable) -> Iterable[int]:
    """Return the requests whose names a quantity depends on."""
    match quantity:
        case Quantity.DISPLACEMENT:
            return range(shop.request_count)
        case Quantity.BEFORE | Quantity.BESIDE:
            return variable.args
        case Quantity.BUSY:
            return ()
        case _:
            return variable.args[:1]
