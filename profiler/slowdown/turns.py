"""The one way in which something is measured beside load: alone, beside it, alone, in rounds.

While something is measured on one unit, other units each run something in a loop. Each measurement beside
load lies between two alone, and everything is repeated in rounds: what drifts slowly cancels in the ratio,
and a disturbance of some seconds hits one round of a few. What a worker says of its loop in the end tells
whether the load ran all the time: other programs on its cores make it less.

Simplification: load runs all the time. In a pipeline it pauses now and then, so what is measured tells the
dear end of what can happen.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt
from statistics import median, quantiles

from ...executor.engine import PlacementReceipt
from ...formulations.errors import InvalidInputError
from ...formulations.plan import Chunk
from ...formulations.validation import Defects, FileContent
from ..probes import Probe
from ..profile import MAX_SECONDS_PER_ITEM, ProfileOptions
from ..records import ALONE, RecordedBench

MAX_ROUNDS = 1000
"""Most repetitions of everything that is measured in rounds."""

FEWEST_FOR_NOISE = 3
"""Fewest measurements whose quartiles say something."""

LEAST_SHARE = 0.1
"""Smallest part of the time for which load ran that is extrapolated from."""

STOLEN = 0.9
"""Share of its cores that load usually gets below which a warning is due."""

_MEDIAN_ERROR = 1.2533 / 1.349
"""Standard error of a median times the root of the count, over the quartile range, of a normal sample."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoRunOptions(FileContent):
    """How long something is measured beside load.

    Attributes
    ----------
    rounds
        How often each thing is measured beside each load, between two measurements of it alone.
    seconds_per_item
        Least time of one measurement; what is slow takes longer, because it runs at least three times.
    seed
        Of the inputs.

    Raises
    ------
    InvalidInputError
        A number is out of range.
    """

    rounds: int = 3
    seconds_per_item: float = 0.1
    seed: int = 0

    def __post_init__(self) -> None:
        defects = Defects("options of co-runs")
        if defects.check_count("rounds", self.rounds, least=1) and self.rounds > MAX_ROUNDS:
            defects.add(f"rounds is {self.rounds}, must be at most {MAX_ROUNDS}")
        if not 0 < self.seconds_per_item <= MAX_SECONDS_PER_ITEM:
            defects.add(
                f"seconds_per_item is {self.seconds_per_item}, must be above 0, and at most "
                f"{MAX_SECONDS_PER_ITEM:g}"
            )
        self.check(defects)
        defects.raise_as(InvalidInputError)

    def check(self, defects: Defects) -> None:
        """Add what is wrong with further options."""

    @property
    def profiling(self) -> ProfileOptions:
        """The same for the profiler: nothing twice, because everything comes in rounds."""
        return ProfileOptions(
            min_repetitions=3,
            min_seconds_per_item=self.seconds_per_item,
            max_seconds_per_item=max(1.0, self.seconds_per_item),
            warm_up_repetitions=1,
            retries=0,
            checks=0,
            seed=self.seed,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns(FileContent, ABC):
    """Something on one unit, timed alone and beside load, in turn.

    Attributes
    ----------
    alone_us, beside_us
        Time without and with the load, one entry each turn, microseconds. Each `alone_us` is the mean of what
        was measured right before and right after its `beside_us`, so that what drifts slowly cancels.
    shares
        For which part of each `beside_us` the load really ran, as far as it can run (1), one entry each time;
        of several units the least; empty: all the time. Other programs on its cores make it less.

    Raises
    ------
    InvalidInputError
        Nothing was timed, a time is not above zero, or the load runs on the same unit.
    """

    alone_us: tuple[float, ...]
    beside_us: tuple[float, ...]
    shares: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        defects = Defects(f"co-run [{self.label}]")
        if not self.alone_us or len(self.alone_us) != len(self.beside_us):
            defects.add(
                f"alone_us has {len(self.alone_us)} entries and beside_us {len(self.beside_us)}: "
                "both need one for each measurement"
            )
        for name in ("alone_us", "beside_us"):
            for row, time_us in enumerate(getattr(self, name)):
                if not 0 < time_us < float("inf"):
                    defects.add(f"{name}[{row}] is {time_us}, must be above 0")
        if self.shares and len(self.shares) != len(self.beside_us):
            defects.add(f"shares has {len(self.shares)} entries, needs none or one for each measurement")
        for row, share in enumerate(self.shares):
            if not 0 < share <= 1:
                defects.add(f"shares[{row}] is {share}, must be above 0 and at most 1")
        unit, *others = self.units
        if unit in others:
            defects.add(f"both run on unit {unit!r}, where only one chunk runs at a time")
        defects.raise_as(InvalidInputError)

    @property
    @abstractmethod
    def label(self) -> str:
        """What ran beside what, in words."""

    @property
    @abstractmethod
    def units(self) -> tuple[str, ...]:
        """Where it ran, and then where the load did."""

    @property
    def ratio(self) -> float:
        """Time beside the load over time alone: the median over the turns."""
        return median(self._ratios())

    @property
    def spread(self) -> float:
        """Largest minus smallest ratio, relative to their median."""
        ratios = self._ratios()
        return (max(ratios) - min(ratios)) / median(ratios)

    @property
    def slowdown(self) -> float:
        """By which part of its time alone it takes longer beside a load that always runs.

        The median of all turns; load that ran for part of the time only slows it in that part of the time.
        Negative where it ran faster, as noise has it, and as clocks that rise with load have it.
        """
        return median(self._slowdowns())

    @property
    def noise(self) -> float | None:
        """Standard error of the slowdown, from the quartiles; None with fewer than three."""
        if len(self.alone_us) < FEWEST_FOR_NOISE:
            return None
        first, _, third = quantiles(self._slowdowns(), n=4, method="inclusive")
        return _MEDIAN_ERROR * (third - first) / sqrt(len(self.alone_us))

    def _ratios(self) -> list[float]:
        return [beside / alone for alone, beside in zip(self.alone_us, self.beside_us, strict=True)]

    def _slowdowns(self) -> list[float]:
        shares = self.shares or (1.0,) * len(self.beside_us)
        return [(ratio - 1) / share for ratio, share in zip(self._ratios(), shares, strict=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class CoRun(Turns):
    """A network (or a part of one) beside another one."""

    victim: str
    victim_unit: str
    """What was timed, and where."""
    aggressor: str
    aggressor_unit: str
    """What ran in a loop meanwhile, and where."""

    @property
    def label(self) -> str:
        """What ran beside what, in words."""
        return f"{self.victim} on {self.victim_unit} beside {self.aggressor} on {self.aggressor_unit}"

    @property
    def units(self) -> tuple[str, ...]:
        """Where it ran, and then where the load did."""
        return self.victim_unit, self.aggressor_unit


@dataclass(frozen=True, slots=True, kw_only=True)
class CoRunRatio(Turns):
    """Consecutive layers on one unit beside load."""

    chunk: Chunk
    """Which layers, and where."""
    load: str
    """What the load is called: the units that make it, all others, or the rest of a plan."""
    beside: tuple[str, ...]
    """The units that make it; none: it stayed alone."""

    @property
    def label(self) -> str:
        """What ran beside what, in words."""
        chunk = self.chunk
        return f"layers [{chunk.start}, {chunk.stop}) on {chunk.unit!r} beside {self.load}"

    @property
    def units(self) -> tuple[str, ...]:
        """Where it ran, and then where the load did."""
        return self.chunk.unit, *self.beside


@dataclass(slots=True)
class Times:
    """What was measured beside one load so far: see `Turns`; the shares are those of the processor."""

    alone_us: list[float] = field(default_factory=list)
    beside_us: list[float] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Job:
    """What is measured: pieces that run one after the other on a unit, and all that they run beside."""

    unit: str
    probes: Sequence[Probe]
    loads: dict[str, dict[str, Probe]]
    """By name: which units make load, and what each of them runs in a loop."""
    occasion: str
    """Tells it apart from other jobs of the same pieces, in what is kept of measurements."""
    times: dict[str, Times] = field(default_factory=lambda: defaultdict(Times))
    receipt: PlacementReceipt | None = None
    """What was granted to the unit."""


def measure_jobs(
    bench: RecordedBench, jobs: Sequence[Job], *, rounds: int, turns: int = 1
) -> tuple[str, ...]:
    """Measure jobs beside each of their loads, and alone before, between and after them; return warnings.

    `rounds`: how often all of it; `turns`: how often in a row beside one load, each between two times alone.
    """
    pieces = sum(len(job.probes) * (1 + 2 * turns * len(job.loads)) for job in jobs)
    bench.progress.total = bench.progress.done + rounds * pieces
    for number in range(rounds):
        for job in jobs:
            _measure_once(bench, job, f"{job.occasion}, round {number}", turns)
    return _settle_shares(jobs)


def _timed(
    bench: RecordedBench, job: Job, load: Mapping[str, Probe], occasion: str
) -> tuple[float, list[float]]:
    """Return the busy time of the pieces of a job, and the shares of their cores that the loads had."""
    found = [bench.timing(job.unit, probe, beside=load, occasion=occasion) for probe in job.probes]
    job.receipt = found[0].receipt
    shares = [share for timing in found for share in timing.load_shares]
    return sum(timing.busy.typical_us for timing in found), shares


def _measure_once(bench: RecordedBench, job: Job, occasion: str, turns: int) -> None:
    before_us, _ = _timed(bench, job, ALONE, occasion)
    for name, load in job.loads.items():
        for turn in range(turns):
            again = f" turn {turn}" if turn else ""
            beside_us, shares = _timed(bench, job, load, f"{occasion} beside {name}{again}")
            after_us, _ = _timed(bench, job, ALONE, f"{occasion} after {name}{again}")
            times = job.times[name]
            times.alone_us.append((before_us + after_us) / 2)
            times.beside_us.append(beside_us)
            times.shares += [min(shares)] if shares else []
            before_us = after_us


def _settle_shares(jobs: Sequence[Job]) -> tuple[str, ...]:
    """Relate shares to the most that the same load ever had; return a warning where that is usually less."""
    most: dict[tuple[tuple[str, str], ...], float] = defaultdict(float)
    rows = []
    for job in jobs:
        for name, load in job.loads.items():
            key = tuple((unit, probe.prepared.artifact.digest) for unit, probe in load.items())
            most[key] = max([most[key], *job.times[name].shares])
            rows.append((key, job.times[name]))
    for key, times in rows:
        whole = len(times.shares) == len(times.beside_us) and most[key] > 0
        times.shares = [max(share / most[key], LEAST_SHARE) for share in times.shares] if whole else []
    shares = [share for _, times in rows for share in times.shares]
    if not shares or median(shares) >= STOLEN:
        return ()
    return (
        f"other programs took {1 - median(shares):.0%} of the cores of what ran in a loop: end what else "
        "runs, and measure again",
    )
