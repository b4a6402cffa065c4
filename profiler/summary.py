"""Samples in a few numbers: what something takes, and whether that is steady enough to plan with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median_low

from ..executor.engine import PlacementReceipt
from ..formulations.errors import NoisyMeasurementError, ProfilingError
from ..formulations.validation import FileContent
from .sampling import Samples

BLOCK_NS = 40_000_000
"""Length of the blocks whose means stand for an emulated unit: many periods of its quota (4 ms and more).

A run shorter than the period of a quota either misses the pause that the quota brings or gets all of it,
so its median tells the speed of the unit without the quota. Means over many periods tell the sustained
speed, which is what a unit that is busy all the time has; the median over the blocks is still deaf to
rare disturbances. Several workers of one unit take turns on its cores in the same way.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary(FileContent):
    """Order statistics of one quantity, microseconds."""

    typical_us: float
    """The median: of single runs, or of means over blocks on emulated units (see `BLOCK_NS`)."""
    least_us: float
    q1_us: float
    q3_us: float
    p95_us: float
    """Minimum, quartiles and 95th percentile of the same runs or blocks."""
    early_us: float
    late_us: float
    """Median of the first and of the second half in time."""
    count: int
    """Number of runs."""

    @property
    def spread(self) -> float:
        """Quartile range relative to the median."""
        return (self.q3_us - self.q1_us) / self.typical_us if self.typical_us > 0 else 0.0

    @property
    def drift(self) -> float:
        """Difference between the second and the first half, relative to the median."""
        return (self.late_us - self.early_us) / self.typical_us if self.typical_us > 0 else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing(FileContent):
    """What one piece takes on one unit."""

    busy: Summary
    copy_in: Summary
    run: Summary
    copy_out: Summary
    """The whole of a run, and its parts."""
    receipt: PlacementReceipt
    """What the engine granted."""
    load_shares: tuple[float, ...] = ()
    """For each unit that ran something else meanwhile: the processor time of its process by the time that
    passed. Less than in other measurements: other programs took its cores."""


def timing(samples: Samples, receipt: PlacementReceipt, *, sustained: bool = False) -> Timing:
    """Summarise the runs of one piece; `sustained`: by means over blocks of runs, as on emulated units.

    Raises ProfilingError: there are none, or a time is negative, or no run took any time.
    """
    parts = {
        "busy": samples.busy_ns,
        "copy_in": samples.copy_in_ns,
        "run": samples.run_ns,
        "copy_out": samples.copy_out_ns,
    }
    _check(parts, receipt)
    sustained = sustained or receipt.quota_permille is not None
    sizes = _blocks(samples.busy_ns) if sustained else [1] * len(samples.run_ns)
    busy, copy_in, run, copy_out = (_summarise(ns, sizes) for ns in parts.values())
    return Timing(busy=busy, copy_in=copy_in, run=run, copy_out=copy_out, receipt=receipt)


def _check(parts: dict[str, tuple[int, ...]], receipt: PlacementReceipt) -> None:
    what = f"measuring {receipt.piece!r} on unit {receipt.unit!r}"
    if not parts["run"]:
        raise ProfilingError(f"{what} gave no samples")
    for name, values in parts.items():
        for row, value in enumerate(values):
            if value < 0 or (value == 0 and name == "run"):
                raise ProfilingError(f"{what}: {name}[{row}] is {value} ns; the clock cannot be trusted")


def _blocks(busy_ns: Sequence[int]) -> list[int]:
    """Return how many consecutive runs make each block; what is left at the end joins the last one."""
    sizes, runs, filled = [], 0, 0
    for time_ns in busy_ns:
        runs, filled = runs + 1, filled + time_ns
        if filled >= BLOCK_NS:
            sizes.append(runs)
            runs = filled = 0
    if not sizes:
        return [runs]
    sizes[-1] += runs
    return sizes


def _summarise(samples_ns: Sequence[int], sizes: Sequence[int]) -> Summary:
    import numpy as np

    starts = np.cumsum([0, *sizes[:-1]])
    points = np.add.reduceat(np.asarray(samples_ns, dtype=np.float64), starts) / np.asarray(sizes) / 1e3
    least, q1, median, q3, p95 = np.percentile(points, [0, 25, 50, 75, 95]).tolist()
    half = max(1, len(points) // 2)
    return Summary(
        typical_us=median,
        least_us=least,
        q1_us=q1,
        q3_us=q3,
        p95_us=p95,
        early_us=float(np.median(points[:half])),
        late_us=float(np.median(points[-half:])),
        count=len(samples_ns),
    )


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
