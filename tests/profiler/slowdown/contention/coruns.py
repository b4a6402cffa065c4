"""Co-runs for tests."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from gapless.profiler.slowdown.turns import CoRun

Units = tuple[str, str]


def corun(
    victim: str,
    aggressor: str,
    units: Units = ("u", "v"),
    *,
    alone: Sequence[float] = (1000.0,),
    beside: Sequence[float],
) -> CoRun:
    """Return a co-run."""
    return CoRun(
        victim=victim,
        victim_unit=units[0],
        aggressor=aggressor,
        aggressor_unit=units[1],
        alone_us=tuple(alone),
        beside_us=tuple(beside),
    )


def world(
    base: Mapping[Units, float],
    sensitivity: Mapping[str, float],
    intensity: Mapping[str, float],
    *,
    noise: float = 0.0,
    count: int = 7,
    seed: int = 0,
) -> list[CoRun]:
    """Return all co-runs of a world that obeys the rank-one model, with additive noise."""
    pick = random.Random(seed)
    return [
        corun(
            victim,
            aggressor,
            units,
            alone=(1000.0,) * count,
            beside=[1000 * (1 + slowdown * suffers * causes + pick.gauss(0.0, noise)) for _ in range(count)],
        )
        for units, slowdown in base.items()
        for victim, suffers in sensitivity.items()
        for aggressor, causes in intensity.items()
    ]
