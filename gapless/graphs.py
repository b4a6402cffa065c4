"""Networks whose layers form a graph: parts on units, tasks side by side, and orders of layers."""

from __future__ import annotations

from .api.branching import Branching, branching
from .api.graphs import latency_graph, layer_graph, with_parts, with_side_by_side
from .api.groups import chunks_over_graph
from .api.layer_orders import OrderResult, compare_layer_orders, with_layer_order

__all__ = [
    "Branching",
    "OrderResult",
    "branching",
    "chunks_over_graph",
    "compare_layer_orders",
    "latency_graph",
    "layer_graph",
    "with_layer_order",
    "with_parts",
    "with_side_by_side",
]
