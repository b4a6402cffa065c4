"""What partitions are worth, and what rules speak about: loads, messages and bytes of each unit.

The load of a unit is the time of its layers and of the tensors that it sends or receives: of each tensor of
which its part holds some pins but not all, once (Tarnawski et al., section 4).
"""

from __future__ import annotations

from ..placed_layers import placed_quantities
from ..terms import UNIT, PlanNumbers, Quantity, QuantityInfo, Term, TermInfo, quantity_table, table
from .tables import Code, LayerGraph


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
            Term.PERIOD,
            "the largest load of a unit: its layers, and the tensors that it sends or receives",
            most=_most_us,
        ),
        TermInfo(Term.TRANSFERS, "time of all units for tensors that they send or receive", most=_most_us),
        TermInfo(Term.WORK, "sum of the loads of all units", most=_most_us),
        TermInfo(Term.UNITS, "number of units in use", most=lambda graph, *_: graph.unit_count),
    )
)
"""What can be minimised."""

QUANTITIES = quantity_table(
    (
        *placed_quantities("load of the unit: layers and transfers", _most_us),
        QuantityInfo(
            Quantity.TRANSFER,
            "time of the unit for tensors that it sends or receives",
            (UNIT,),
            most=_most_us,
        ),
    ),
    TERMS,
)
"""What rules can speak about."""

PartValues.terms, PartValues.quantities = TERMS, QUANTITIES
