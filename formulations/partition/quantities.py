"""What partitions are worth, and what rules speak about: loads, messages and bytes of each unit.

The load of a unit is the time of its layers and of the tensors that it sends or receives: of each tensor of
which its part holds some pins but not all, once (Tarnawski et al., section 4).
"""

from __future__ import annotations

from enum import StrEnum

from ..placed_layers import placed_quantities
from ..terms import UNIT, PlanNumbers, QuantityInfo, TermInfo, quantity_table, table
from ..terms import Dimension as D
from .tables import Code, LayerGraph


class PartTerm(StrEnum):
    """Names of what can be minimised; `TERMS` says what they are."""

    PERIOD = "period"
    TRANSFERS = "transfers"
    WORK = "work"
    UNITS = "units"


class PartQuantity(StrEnum):
    """Names of the variables that describe a plan, with their indices."""

    ON = "on"  # (layer, unit): the unit runs the layer
    USES = "uses"  # (unit): the unit runs at least one layer
    BUSY = "busy_us"  # (unit): its load, 0 when not used
    TRANSFER = "transfer_us"  # (unit): what it sends and receives, 0 when not used
    MEMORY = "memory_bytes"  # (unit): bytes of its layers
    PERIOD = "period_us"
    TRANSFERS = "transfers_us"
    WORK = "work_us"
    UNITS = "units"


class PartValues(PlanNumbers):
    """Every quantity of one well-formed plan, in exact integers."""

    def __init__(self, graph: LayerGraph, code: Code) -> None:
        self.graph, self.code = graph, code
        self.compute_us = dict.fromkeys(sorted(set(code)), 0)
        self.transfer_us = dict.fromkeys(self.compute_us, 0)
        for layer, unit in enumerate(code):
            self.compute_us[unit] += graph.layer_us[layer][unit] or 0
        self.memory_bytes = {
            unit: graph.weights.of(layer for layer, own in enumerate(code) if own == unit)
            for unit in self.compute_us
        }
        for pins in graph.tensors:
            holders = {code[layer] for layer in pins.layers}
            if pins.outside or len(holders) > 1:
                for unit in holders:
                    self.transfer_us[unit] += pins.us[unit]
        self.busy_us = {unit: time + self.transfer_us[unit] for unit, time in self.compute_us.items()}
        self.period_us = max(self.busy_us.values())
        self.transfers_us = sum(self.transfer_us.values())
        self.work_us = sum(self.busy_us.values())
        self.units = len(self.busy_us)
        self.peak_bytes = sum(self.memory_bytes.values())

    def unit_of(self, layer: int) -> int:
        """Return the unit of a layer."""
        return self.code[layer]


def _most_us(graph: LayerGraph, *_: int) -> int:
    return graph.most_us


TERMS = table(
    (
        TermInfo(
            PartTerm.PERIOD,
            "the largest load of a unit: its layers, and the tensors that it sends or receives",
            D.MICROSECONDS,
            most=_most_us,
        ),
        TermInfo(
            PartTerm.TRANSFERS,
            "time of all units for tensors that they send or receive",
            D.MICROSECONDS,
            most=_most_us,
        ),
        TermInfo(PartTerm.WORK, "sum of the loads of all units", D.MICROSECONDS, most=_most_us),
        TermInfo(PartTerm.UNITS, "number of units in use", most=lambda graph, *_: graph.unit_count),
    )
)
"""What can be minimised."""

QUANTITIES = quantity_table(
    (
        *placed_quantities("load of the unit: layers and transfers", _most_us),
        QuantityInfo(
            PartQuantity.TRANSFER,
            "time of the unit for tensors that it sends or receives",
            (UNIT,),
            most=_most_us,
        ),
    ),
    TERMS,
)
"""What rules can speak about."""

PartValues.terms, PartValues.quantities = TERMS, QUANTITIES
