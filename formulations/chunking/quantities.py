"""The quantities of a plan of one network: what is minimised, rules speak about and the judge computes.

Each quantity is a variable (`BoolVar` or `IntVar`) in expressions, and a number on a finished plan. The
definitions below are the only ones.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..chain import Chain, Part
from ..deployment import UNQUEUED
from ..expr import Expr
from ..terms import (
    UNIT,
    Index,
    PlanNumbers,
    Quantities,
    Quantity,
    QuantityInfo,
    Term,
    TermInfo,
    quantity_table,
    table,
)


def idle_excess(chain: Chain, permille: int, infos: Mapping[str, QuantityInfo] | None = None) -> Expr:
    """Return an expression that is at most 0 exactly if idle <= `permille`.

    With M resources, period P and loads L_u: idle = ceil(1000 (M P - sum L) / (M P)). The quantities are
    those of the formulation, `QUANTITIES` unless another table is given.
    """
    variables = Quantities(QUANTITIES if infos is None else infos, chain)
    period, latency = variables.number(Quantity.PERIOD), variables.number(Quantity.LATENCY)
    return (1000 - permille) * chain.resource_count * period - 1000 * latency


class PlanValues(PlanNumbers):
    """Every quantity of one well-formed plan, in exact integers.

    `parts`: chunks by index, in order of their layers; neighbours on different units. Units of one resource
    take turns: what counts loads counts those of resources (`loads_us`).
    """

    def __init__(self, chain: Chain, parts: tuple[Part, ...]) -> None:
        self.chain = chain
        self.parts = parts
        self.chunks_of: dict[int, list[Part]] = {}
        for part in parts:
            self.chunks_of.setdefault(part[2], []).append(part)
        self.busy_us = {unit: sum(chain.busy_us(*p) for p in own) for unit, own in self.chunks_of.items()}
        self.memory_bytes = {unit: _resident(chain, own) for unit, own in self.chunks_of.items()}
        self.loads_us = chain.pooled(self.busy_us)
        loads = self.loads_us.values()
        self.period_us = max(loads)
        self.latency_us = sum(loads)
        self.paper_gapness_us = self.period_us - min(loads)
        self.units = len(self.busy_us)
        self.hops = len(parts) - 1
        lonely = len(loads) == 1 and chain.resource_count > 1
        self.gapness_us = self.period_us if lonely else self.paper_gapness_us
        self.bubbles_us = len(loads) * self.period_us - self.latency_us
        self.peak_bytes = sum(self.memory_bytes.values())
        powers = chain.powers
        self.energy_nj = 0 if powers is None else powers.energy_nj(self.busy_us, self.period_us)

    @property
    def stream_latency_us(self) -> int:
        """Latency at the period of the plan: nobody waits where each unit has one chunk."""
        return self.latency_us

    @property
    def in_flight(self) -> int:
        """Requests that are on their way at once."""
        return -(-self.stream_latency_us // self.period_us)

    @property
    def idle_permille(self) -> int:
        """Unused share of all resources over one period, permille, rounded up."""
        whole = self.chain.resource_count * self.period_us
        return -(-1000 * (whole - self.latency_us) // whole)

    def on(self, layer: int, unit: int) -> int:
        """Return whether the unit runs the layer."""
        return int(any(start <= layer < stop and u == unit for start, stop, u in self.parts))

    def uses(self, unit: int) -> int:
        """Return whether the unit runs at least one layer."""
        return int(unit in self.busy_us)

    def cut(self, boundary: int) -> int:
        """Return whether a chunk begins at the boundary."""
        return int(any(start == boundary for start, _, _ in self.parts))


def _resident(chain: Chain, parts: list[Part]) -> int:
    """Return the bytes of the chunks of a unit: weights once, and the live tensors of each session."""
    if len(parts) == 1:
        return chain.memory_bytes(parts[0][0], parts[0][1])
    layers = (layer for start, stop, _ in parts for layer in range(start, stop))
    return chain.weights.of(layers) + sum(max(chain.working_bytes[start:stop]) for start, stop, _ in parts)


def _most_bytes(chain: Chain, *_: int) -> int:
    return chain.weights.whole + max(chain.working_bytes, default=0)


def _most_busy_us(chain: Chain, *_: int) -> int:
    return max(map(chain.most_busy_us, range(chain.unit_count)))


def _most_latency_us(chain: Chain) -> int:
    slowest = sum(max((t or 0 for t in row), default=0) for row in chain.layer_us)
    return slowest + sum(map(chain.copies_us, range(chain.unit_count)))


def most_energy_nj(chain: Chain) -> int:
    """Return an upper bound on the energy of a request; 0 where powers are not known."""
    if chain.powers is None:
        return 0
    busy = {unit: chain.most_busy_us(unit) for unit in range(chain.unit_count)}
    return chain.powers.energy_nj(busy, max(busy.values()))


_LAYER = Index(name="layer", allowed=lambda chain, *_: range(chain.layer_count))
_CUT = Index(name="boundary", allowed=lambda chain, *_: range(1, chain.layer_count))

TERMS = table(
    (
        TermInfo(Term.PERIOD, "largest busy time of a unit", most=_most_busy_us),
        TermInfo(
            Term.GAPNESS,
            "largest minus smallest busy time of the units in use; a plan on one unit of several has "
            "its period (idle units count as 0)",
            most=_most_busy_us,
        ),
        TermInfo(
            Term.PAPER_GAPNESS,
            "the gapness without that exception: a plan on one unit has 0, as in BetterTogether (O1)",
            most=_most_busy_us,
        ),
        TermInfo(
            Term.LATENCY,
            "one request from entry to exit, without waiting: the sum of the busy times",
            label=UNQUEUED,
            most=_most_latency_us,
        ),
        TermInfo(
            Term.BUBBLES,
            "idle time of the units in use per period",
            most=lambda chain: chain.unit_count * _most_busy_us(chain),
        ),
        TermInfo(
            Term.PEAK_MEMORY,
            "bytes of weights and live tensors while every chunk runs at once",
            most=lambda chain: chain.unit_count * _most_bytes(chain),
        ),
        TermInfo(
            Term.IDLE,
            "share of the platform that is not used, rounded up: 1000 - utilisation",
            label="idle share",
            excess=idle_excess,
        ),
        TermInfo(
            Term.ENERGY,
            "energy of all units from one result to the next, at work and idle, by the powers of the "
            "platform",
            label="energy per request",
            most=most_energy_nj,
        ),
        TermInfo(Term.UNITS, "number of units in use", most=lambda chain: chain.unit_count),
        TermInfo(
            Term.HOPS,
            "number of borders between chunks: how often a request goes from one unit to another",
            most=lambda chain: min(chain.unit_count, chain.layer_count) - 1,
        ),
        TermInfo(
            Term.STREAM_LATENCY,
            "one request in the stream, from entry to exit at the period of the plan, with its waits in "
            "the cycle of units that have several chunks",
            label="latency in the stream",
            most=_most_latency_us,
        ),
        TermInfo(
            Term.IN_FLIGHT,
            "requests that are on their way at once at the period of the plan: the latency in the "
            "stream over the period, rounded up",
            most=lambda chain: chain.unit_count,
        ),
    )
)
"""What can be minimised (formulations, sections 1 and 3)."""

QUANTITIES = quantity_table(
    (
        QuantityInfo(Quantity.ON, "the unit runs the layer", (_LAYER, UNIT)),
        QuantityInfo(Quantity.USES, "the unit runs at least one layer", (UNIT,)),
        QuantityInfo(Quantity.CUT, "a chunk ends at this boundary and the next one starts", (_CUT,)),
        QuantityInfo(
            Quantity.BUSY,
            "busy time of a unit per period, 0 when not used",
            (UNIT,),
            most=lambda chain, unit: chain.most_busy_us(unit),
        ),
        QuantityInfo(
            Quantity.MEMORY, "weights and live tensors on a unit, 0 when not used", (UNIT,), most=_most_bytes
        ),
    ),
    TERMS,
)
"""What rules can speak about."""

PlanValues.terms, PlanValues.quantities = TERMS, QUANTITIES
