"""Whether measurements are steady enough to plan with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median_low

from ..formulations.errors import NoisyMeasurementError
from .summary import Summary, Timing

MAX_SPREAD = 0.15
"""Quartile range, relative to the median, above which a measurement is taken again."""

MAX_DRIFT = 0.10
"""Difference between first and second half, relative to the median, above which it is taken again."""

WARN = 1.1
"""Ratio of the longest to the shortest measurement of the same thing that is worth a warning."""

FAR = 2.0
"""Ratio to the usual time from which on a measurement tells nothing of the unit."""

MOST_FAR = 1 / 2
"""Share of measurements that tell nothing from which on a profile is given up."""


ANY_NOISE = 2.0
"""The same where a profile is never given up."""


def defects(summary: Summary) -> tuple[str, ...]:
    """Return what is unsteady about a measurement, in words; empty for a good one."""
    found = []
    if summary.spread > MAX_SPREAD:
        found.append(f"the middle half of its runs spreads over {summary.spread:.0%} of the median")
    if abs(summary.drift) > MAX_DRIFT:
        found.append(f"its second half differs by {summary.drift:+.0%} from the first")
    return tuple(found)


def steadiest(measure: Callable[[], Timing], *, retries: int, known: Timing | None = None) -> Timing:
    """Measure, and again while it is unsteady; return the measurement that spreads and drifts least.

    `known`: an earlier measurement that is among those to choose from.
    """
    best = measure() if known is None else min(known, measure(), key=_unsteadiness)
    for _ in range(retries):
        if not defects(best.busy):
            break
        best = min(best, measure(), key=_unsteadiness)
    return best


def compare_references(
    unit: str, references: Sequence[Summary], *, most_far: float = MOST_FAR
) -> tuple[str, ...]:
    """Compare measurements of the same thing, spread over a profile; return warnings."""
    if not references:
        return ()
    times_us = [reference.typical_us for reference in references]
    usual_us, least_us, most_us = median_low(times_us), min(times_us), max(times_us)
    far = [time_us for time_us in times_us if not 1 / FAR <= time_us / usual_us <= FAR]
    what = (
        f"unit {unit!r}: the same layers took {least_us:.0f} to {most_us:.0f} us, "
        f"usually {usual_us:.0f}, in {len(times_us)} measurements spread over the profile"
    )
    if len(far) >= most_far * len(times_us) and far:
        raise NoisyMeasurementError(
            f"{what}; end what else runs on this machine, let it cool down or fix its clock frequency, and "
            "profile again with --resume, which measures again what was unsteady; give more time to each "
            "item with --item-seconds, or take the numbers as they are with --accept-noise (in Python: "
            "ProfileOptions, min_seconds_per_item and most_far)"
        )
    return (what,) if most_us / least_us > WARN else ()


def _unsteadiness(timing: Timing) -> float:
    return max(timing.busy.spread / MAX_SPREAD, abs(timing.busy.drift) / MAX_DRIFT)
