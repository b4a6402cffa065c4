"""The quantities of a plan for a workload: what is minimised, and what rules speak about.

Each quantity is a variable in expressions and a number on a finished plan (`values.py`). Times are in
microseconds, with slowdown where something has run.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from ..expr import BoolVar, Expr
from ..terms import Dimension, Index, Quantities, QuantityInfo, TermInfo, table
from .tables import FlowShop


class FlowTerm(StrEnum):
    """Names of what can be minimised; `TERMS` says what they are."""

    PERIOD = "period"
    GAPNESS = "gapness"
    LATENCY = "latency"
    BUBBLES = "bubbles"
    PEAK_MEMORY = "peak_memory"
    IDLE = "idle"
    MAKESPAN = "makespan"
    BOTTLENECK = "bottleneck"
    WORK = "work"
    CONTENTION = "contention"
    DISPLACEMENT = "displacement"
    ENERGY = "energy"
    UNITS = "units"


class FlowQuantity(StrEnum):
    """Names of the variables that describe a plan for a workload, with their indices."""

    ON = "on"  # (request, layer, unit): the unit runs the layer
    USES = "uses"  # (request, unit): the unit runs at least one layer of the request
    CUT = "cut"  # (request, boundary): a chunk ends and the next one starts here
    POSITION = "position"  # (request): place in the order, 0 is first
    BEFORE = "before"  # (request, request): the first is served before the second
    CHUNK_US = "chunk_us"  # (request, unit): time without slowdown, 0 when not used
    LOAD = "busy_us"  # (unit): time of all its chunks without slowdown
    START = "start_us"  # (request): when its first chunk starts
    FINISH = "finish_us"  # (request): when its last chunk ends
    BESIDE = "beside"  # (request, request), lower first: chunks of both run at the same time
    MEMORY_WHILE = "memory_while_bytes"  # (request): most bytes in use while a chunk of it runs
    PERIOD = "period_us"
    GAPNESS = "gapness_us"
    LATENCY = "latency_us"
    BUBBLES = "bubbles_us"
    PEAK = "peak_bytes"
    MAKESPAN = "makespan_us"
    BOTTLENECK = "bottleneck_us"
    WORK = "work_us"
    CONTENTION = "contention"
    DISPLACEMENT = "displacement"
    ENERGY = "energy_nj"
    UNITS = "units"


def quantities_of(shop: FlowShop) -> Quantities:
    """Return the quantities of a workload as variables."""
    return Quantities(QUANTITIES, shop)


def beside(first: int, second: int) -> BoolVar:
    """Return "chunks of both requests run at the same time": one variable for both orders."""
    return BoolVar(str(FlowQuantity.BESIDE), (min(first, second), max(first, second)))


def idle_excess(shop: FlowShop, permille: int) -> Expr:
    """Return an expression that is at most 0 exactly if idle <= `permille`.

    With K units, makespan C and work W: idle = ceil(1000 (K C - W) / (K C)).
    """
    variables = quantities_of(shop)
    makespan, work = variables.number(FlowQuantity.MAKESPAN), variables.number(FlowQuantity.WORK)
    return (1000 - permille) * shop.unit_count * makespan - 1000 * work


TERMS = table(
    (
        TermInfo(
            name=FlowTerm.PERIOD,
            field="period_us",
            dimension=Dimension.MICROSECONDS,
            text="largest load of a unit; of a stream with slowdown or task slots the time of a round, "
            "if that is more",
            label="period",
        ),
        TermInfo(
            name=FlowTerm.GAPNESS,
            field="gapness_us",
            dimension=Dimension.MICROSECONDS,
            text="largest minus smallest load of the units in use",
            label="gapness",
        ),
        TermInfo(
            name=FlowTerm.LATENCY,
            field="latency_us",
            dimension=Dimension.MICROSECONDS,
            text="sum over all requests of arrival to exit",
            label="total latency",
        ),
        TermInfo(
            name=FlowTerm.BUBBLES,
            field="bubbles_us",
            dimension=Dimension.MICROSECONDS,
            text="idle time of each unit between its first start and its last end",
            label="bubbles",
        ),
        TermInfo(
            name=FlowTerm.PEAK_MEMORY,
            field="peak_bytes",
            dimension=Dimension.BYTES,
            text="most bytes in use at any instant",
            label="peak memory",
        ),
        TermInfo(
            name=FlowTerm.IDLE,
            field="idle_permille",
            dimension=Dimension.PERMILLE,
            text="share of the makespan of all units that is no work, rounded up",
            label="idle share",
            excess=idle_excess,
        ),
        TermInfo(
            name=FlowTerm.MAKESPAN,
            field="makespan_us",
            dimension=Dimension.MICROSECONDS,
            text="end of the last request",
            label="makespan",
        ),
        TermInfo(
            name=FlowTerm.BOTTLENECK,
            field="bottleneck_us",
            dimension=Dimension.MICROSECONDS,
            text="sum over the requests of their longest chunk: each request's own slicing (P1)",
            label="bottleneck",
        ),
        TermInfo(
            name=FlowTerm.WORK,
            field="work_us",
            dimension=Dimension.MICROSECONDS,
            text="busy time of all chunks, without slowdown",
            label="work",
        ),
        TermInfo(
            name=FlowTerm.CONTENTION,
            field="contention",
            dimension=Dimension.COUNT,
            text="sum over pairs of high requests at distance d < K in the order of K - d (P3)",
            label="contention",
        ),
        TermInfo(
            name=FlowTerm.DISPLACEMENT,
            field="displacement",
            dimension=Dimension.COUNT,
            text="sum over the requests of the distance from their position of arrival (P3)",
            label="displacement",
        ),
        TermInfo(
            name=FlowTerm.ENERGY,
            field="energy_nj",
            dimension=Dimension.NANOJOULES,
            text="energy of all units until the last request is done (of a stream: in a round), at work as "
            "long as chunks run, slowdown included, and idle, by the powers of the platform",
            label="energy",
        ),
        TermInfo(
            name=FlowTerm.UNITS,
            field="units",
            dimension=Dimension.COUNT,
            text="number of units in use",
            label="units",
        ),
    )
)
"""What can be minimised (formulations, section 6)."""


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


_REQUEST = Index(name="request", allowed=lambda shop, *_: range(shop.request_count))
_OTHER = Index(name="other request", allowed=_others)
_UNIT = Index(name="unit", allowed=lambda shop, *_: range(shop.unit_count))
_LAYER = Index(name="layer", allowed=lambda shop, request: range(shop.chain(request).layer_count))
_CUT = Index(name="boundary", allowed=lambda shop, request: range(1, shop.chain(request).layer_count))

QUANTITIES = table(
    (
        QuantityInfo(
            name=FlowQuantity.ON,
            text="the unit runs the layer of the request",
            indices=(_REQUEST, _LAYER, _UNIT),
        ),
        QuantityInfo(
            name=FlowQuantity.USES,
            text="the unit runs at least one layer of the request",
            indices=(_REQUEST, _UNIT),
        ),
        QuantityInfo(
            name=FlowQuantity.CUT,
            text="a chunk of the request ends at this boundary and the next one starts",
            indices=(_REQUEST, _CUT),
            read=lambda plan, request, boundary: int(boundary in plan.schedule.cuts[request]),
        ),
        QuantityInfo(
            name=FlowQuantity.POSITION,
            text="place of the request in the order, 0 is first",
            indices=(_REQUEST,),
            most=lambda shop, _: shop.request_count - 1,
        ),
        QuantityInfo(
            name=FlowQuantity.BEFORE,
            text="the first request is served before the second",
            indices=(_REQUEST, _OTHER),
        ),
        QuantityInfo(
            name=FlowQuantity.CHUNK_US,
            text="time of the request on the unit without slowdown, 0 when not used",
            indices=(_REQUEST, _UNIT),
            most=lambda shop, request, unit: shop.chain(request).most_busy_us(unit),
            read=lambda plan, request, unit: plan.times_us[request][unit],
        ),
        QuantityInfo(
            name=FlowQuantity.LOAD,
            text="time of all chunks on the unit without slowdown",
            indices=(_UNIT,),
            most=_most_load_us,
        ),
        QuantityInfo(
            name=FlowQuantity.START,
            text="when the first chunk of the request starts",
            indices=(_REQUEST,),
            most=lambda shop, *_: shop.horizon_us,
        ),
        QuantityInfo(
            name=FlowQuantity.FINISH,
            text="when the last chunk of the request ends",
            indices=(_REQUEST,),
            most=lambda shop, *_: shop.horizon_us,
        ),
        QuantityInfo(
            name=FlowQuantity.BESIDE,
            text="chunks of both requests run at the same time",
            indices=(_REQUEST, _OTHER),
        ),
        QuantityInfo(
            name=FlowQuantity.MEMORY_WHILE,
            text="most bytes in use while a chunk of the request runs",
            indices=(_REQUEST,),
            most=_most_bytes,
            read=lambda plan, request: plan.usage.while_bytes[request],
        ),
        QuantityInfo(
            name=FlowQuantity.PERIOD, text="largest load of a unit", most=lambda shop, *_: shop.horizon_us
        ),
        QuantityInfo(
            name=FlowQuantity.GAPNESS,
            text="largest minus smallest load of the units in use",
            most=lambda shop, *_: shop.horizon_us,
        ),
        QuantityInfo(
            name=FlowQuantity.LATENCY,
            text="sum over the requests of arrival to exit",
            most=lambda shop: shop.request_count * shop.horizon_us,
        ),
        QuantityInfo(
            name=FlowQuantity.BUBBLES,
            text="idle time of all units between their first start and last end",
            most=lambda shop: shop.unit_count * shop.horizon_us,
        ),
        QuantityInfo(name=FlowQuantity.PEAK, text="most bytes in use at any instant", most=_most_bytes),
        QuantityInfo(
            name=FlowQuantity.MAKESPAN, text="end of the last request", most=lambda shop, *_: shop.horizon_us
        ),
        QuantityInfo(
            name=FlowQuantity.BOTTLENECK,
            text="sum over the requests of their longest chunk",
            most=lambda shop, *_: shop.horizon_us,
        ),
        QuantityInfo(
            name=FlowQuantity.WORK,
            text="time of all chunks without slowdown",
            most=lambda shop, *_: shop.horizon_us,
        ),
        QuantityInfo(
            name=FlowQuantity.CONTENTION,
            text="weighted number of pairs of high requests that are close in the order",
            most=lambda shop: shop.unit_count * shop.request_count**2,
        ),
        QuantityInfo(
            name=FlowQuantity.DISPLACEMENT,
            text="by how many positions the requests are moved",
            most=lambda shop: shop.request_count**2,
        ),
        QuantityInfo(name=FlowQuantity.ENERGY, text="energy of all requests", most=most_energy_nj),
        QuantityInfo(
            name=FlowQuantity.UNITS, text="number of units in use", most=lambda shop: shop.unit_count
        ),
    )
)
"""What rules can speak about."""
