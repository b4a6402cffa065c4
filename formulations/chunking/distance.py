"""How far two plans of one network are apart."""

from __future__ import annotations

from ..errors import InvalidPlanError
from ..plan import Plan


def plan_distance(first: Plan, second: Plan) -> int:
    """Return how many layers two plans of one network place on different units.

    0 for equal plans, at most the number of layers; a metric (the Hamming distance of the placements).
    """
    names, layers = {chunk.network for chunk in first.chunks + second.chunks}, first.chunks[-1].stop
    if len(names) > 1 or second.chunks[-1].stop != layers or first.order or second.order:
        raise InvalidPlanError(f"[{first}] and [{second}] are not plans of one network: no distance")
    pairs = ((a, b) for a in first.chunks for b in second.chunks if a.unit == b.unit)
    return layers - sum(max(0, min(a.stop, b.stop) - max(a.start, b.start)) for a, b in pairs)
