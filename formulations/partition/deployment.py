"""How a partition becomes a stream: the layers part by part, cut between the parts."""

from __future__ import annotations

from itertools import accumulate, pairwise

from ..plan import Chunk, Plan
from ..problem import Problem
from ..streams import Stream
from .tables import chain_of, graph_of


def stream_of(problem: Problem, plan: Plan, *, task_slots: int | None = None) -> Stream:
    """Return a plan as a stream: an order of the layers in which each part is one chunk.

    Layers of a part keep the order of the network, so that each comes after what it reads.

    Raises MalformedPlanError: the parts are not convex, or do not fit the problem.
    """
    graph = graph_of(problem)
    code = problem.formulation.code(problem, plan)
    chain = chain_of(graph, code) or ()
    order = tuple(layer for unit in chain for layer, own in enumerate(code) if own == unit)
    ends = pairwise(accumulate((code.count(unit) for unit in chain), initial=0))
    return Stream(
        name=graph.network,
        chunks=tuple(
            Chunk(network=graph.network, start=start, stop=stop, unit=graph.units[unit])
            for unit, (start, stop) in zip(chain, ends, strict=True)
        ),
        task_slots=task_slots,
        order=() if order == tuple(range(len(code))) else order,
    )
