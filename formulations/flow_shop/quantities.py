"""The quantities of a plan for a workload: what is minimised, and what rules speak about.

Each quantity is a variable in expressions and a number on a finished plan (`values.py`). Times are in
microseconds, with slowdown where something has run.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..expr import BoolVar, Expr
from ..jobs.quantities import MAKESPAN, REQUEST, REQUEST_QUANTITIES, most_us
from ..terms import UNIT, Index, Quantities, Quantity, QuantityInfo, Term, TermInfo, quantity_table, table
from .tables import FlowShop


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
