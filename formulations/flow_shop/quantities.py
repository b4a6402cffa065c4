"""The quantities of a plan for a workload, and which of them its encoding needs.

Each quantity is a variable in expressions and a number on a finished plan (`values.py`). Times are in
microseconds, with slowdown where something has run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..deployment import Mode
from ..expr import And, BoolVar, Expr, IntVar, LessEq, Linear, Max, Not, Or, Variable
from ..jobs.quantities import MAKESPAN, REQUEST, REQUEST_QUANTITIES, most_us
from ..limits import LIMITS
from ..problem import Problem
from ..terms import UNIT, Index, Quantities, Quantity, QuantityInfo, Term, TermInfo, quantity_table, table
from ..workload import LoadPolicy
from .tables import FlowShop, shop_of


def quantities_of(shop: FlowShop) -> Quantities:
    """Return the quantities of a workload as variables."""
    return Quantities(QUANTITIES, shop)


def beside(first: int, second: int) -> BoolVar:
    """Return "chunks of both requests run at the same time": one variable for both orders."""
    return BoolVar(str(Quantity.BESIDE), (min(first, second), max(first, second)))


def idle_excess(shop: FlowShop, permille: int) -> Expr:
    """Return an expression that is at most 0 exactly if idle <= `permille`.

    With K units, makespan C and work W: idle = ceil(1000 (K C - W) / (K C)).
    """
    variables = quantities_of(shop)
    makespan, work = variables.number(Quantity.MAKESPAN), variables.number(Quantity.WORK)
    return (1000 - permille) * shop.unit_count * makespan - 1000 * work


def _others(shop: FlowShop, first: int) -> Sequence[int]:
    return [request for request in range(shop.request_count) if request != first]


def _most_load_us(shop: FlowShop, unit: int) -> int:
    return sum(shop.chain(request).most_busy_us(unit) for request in range(shop.request_count))


def _most_bytes(shop: FlowShop, *_: int) -> int:
    return shop.most_bytes


def most_energy_nj(shop: FlowShop) -> int:
    """Return an upper bound on the energy; 0 where powers are not known."""
    every = dict.fromkeys(range(shop.unit_count), shop.horizon_us)
    return 0 if shop.powers is None else shop.powers.energy_nj(every, shop.horizon_us)


_OTHER = Index(name="other request", allowed=_others)
_CUT = Index(name="boundary", allowed=lambda shop, request: range(1, shop.chain(request).layer_count))

TERMS = table(
    (
        TermInfo(
            Term.PERIOD,
            "largest load of a unit; of a stream with slowdown or task slots the time of a round, "
            "if that is more",
            most=most_us,
        ),
        TermInfo(Term.GAPNESS, "largest minus smallest load of the units in use", most=most_us),
        TermInfo(
            Term.LATENCY,
            "sum over all requests of arrival to exit",
            label="total latency",
            most=lambda shop: shop.request_count * shop.horizon_us,
        ),
        TermInfo(
            Term.BUBBLES,
            "idle time of each unit between its first start and its last end",
            most=lambda shop: shop.unit_count * shop.horizon_us,
        ),
        TermInfo(Term.PEAK_MEMORY, "most bytes in use at any instant", most=_most_bytes),
        TermInfo(
            Term.IDLE,
            "share of the makespan of all units that is no work, rounded up",
            label="idle share",
            excess=idle_excess,
        ),
        MAKESPAN,
        TermInfo(
            Term.BOTTLENECK,
            "sum over the requests of their longest chunk: each request's own slicing (P1)",
            most=most_us,
        ),
        TermInfo(Term.WORK, "busy time of all chunks, without slowdown", most=most_us),
        TermInfo(
            Term.CONTENTION,
            "number of pairs of high slices in one column (P3); without slowdown by slice that is the sum "
            "over pairs of high requests at distance d < K in the order of K - d",
            most=lambda shop: shop.unit_count * shop.request_count**2,
        ),
        TermInfo(
            Term.DISPLACEMENT,
            "sum over the requests of the distance from their position of arrival (P3)",
            most=lambda shop: shop.request_count**2,
        ),
        TermInfo(
            Term.ENERGY,
            "energy of all units until the last request is done (of a stream: in a round), at work as "
            "long as chunks run, slowdown included, and idle, by the powers of the platform",
            most=most_energy_nj,
        ),
        TermInfo(Term.UNITS, "number of units in use", most=lambda shop: shop.unit_count),
    )
)
"""What can be minimised (formulations, section 6)."""

QUANTITIES = quantity_table(
    (
        *REQUEST_QUANTITIES,
        QuantityInfo(
            Quantity.CUT,
            "a chunk of the request ends at this boundary and the next one starts",
            (REQUEST, _CUT),
            read=lambda plan, request, boundary: int(boundary in plan.schedule.cuts[request]),
        ),
        QuantityInfo(
            Quantity.POSITION,
            "place of the request in the order, 0 is first",
            (REQUEST,),
            most=lambda shop, _: shop.request_count - 1,
        ),
        QuantityInfo(Quantity.BEFORE, "the first request is served before the second", (REQUEST, _OTHER)),
        QuantityInfo(
            Quantity.CHUNK_US,
            "time of the request on the unit without slowdown, 0 when not used",
            (REQUEST, UNIT),
            most=lambda shop, request, unit: shop.chain(request).most_busy_us(unit),
            read=lambda plan, request, unit: plan.times_us[request][unit],
        ),
        QuantityInfo(
            Quantity.BUSY, "time of all chunks on the unit without slowdown", (UNIT,), most=_most_load_us
        ),
        QuantityInfo(Quantity.BESIDE, "chunks of both requests run at the same time", (REQUEST, _OTHER)),
        QuantityInfo(
            Quantity.MEMORY_WHILE,
            "most bytes in use while a chunk of the request runs",
            (REQUEST,),
            most=_most_bytes,
            read=lambda plan, request: plan.usage.while_bytes[request],
        ),
    ),
    TERMS,
)
"""What rules can speak about."""


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
