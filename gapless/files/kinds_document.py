"""A comparison of kinds of plans as a machine-readable document."""

from __future__ import annotations

from collections.abc import Sequence

from ..api.branching import branching
from ..api.kinds import KindResult
from ..api.layer_orders import OrderResult
from ..formulations.problem import Problem
from . import documents


def kinds_document(found: Sequence[KindResult]) -> documents.Document:
    """Return the document of `gapless compare --kinds`."""
    return {
        **documents.header("kinds"),
        "kinds": [
            {
                "kind": one.kind,
                "throughput_per_s": one.throughput,
                "problem": None if one.problem is None else documents.problem_data(one.problem),
                "result": None
                if one.problem is None or one.result is None
                else documents.result_data(one.problem, one.result),
                "failure": one.failure or None,
            }
            for one in found
        ],
    }


def orders_document(given: Problem, found: Sequence[OrderResult]) -> documents.Document:
    """Return the document of `gapless compare --layer-orders`."""
    return {
        **documents.header("layer_orders"),
        "problem": documents.problem_data(given),
        "branching": documents.plain_data(branching(given)),
        "orders": [
            {
                "order": one.order,
                "layers": None if one.problem is None else list(one.problem.network.order) or None,
                "result": None
                if one.problem is None or one.result is None
                else documents.result_data(one.problem, one.result),
                "period_as_chunks_us": one.chunks_us,
                "period_as_parts_us": one.parts_us,
                "failure": one.failure or None,
            }
            for one in found
        ],
    }
