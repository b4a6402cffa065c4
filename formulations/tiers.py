"""Performance tiers: plans that predictions do not tell apart."""

from __future__ import annotations

from collections.abc import Sequence

TOLERANCE = 0.05
"""Within which values form a tier: what good predictions are off by (BetterTogether III-D: 5 to 6 %)."""


def tiers(values: Sequence[float], tolerance: float = TOLERANCE) -> tuple[int, ...]:
    """Return the tier of each value, from 1 for the least.

    A tier begins with its least value, and holds everything up to `1 + tolerance` times that
    (BetterTogether III-D: the best plans come in groups, because they agree in where the expensive layers
    run). Within a tier, only measuring says which plan is faster.

    `values`: predicted values in any order and unit, at least 0; less is better. `tolerance`: share of the
    least value of a tier.
    """
    found: dict[float, int] = {}
    tier, limit = 0, -1.0
    for value in sorted(values):
        if value > limit:
            tier, limit = tier + 1, value * (1 + tolerance)
        found[value] = tier
    return tuple(found[value] for value in values)
