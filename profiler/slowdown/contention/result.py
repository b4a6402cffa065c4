"""What measuring contention finds out, as it is stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median, quantiles

from ....formulations.costs import Interference
from ....formulations.errors import InvalidInputError
from ....formulations.files import Schema
from ....formulations.hardware import Platform
from ....formulations.validation import Defects, FileContent
from ..turns import CoRun, CoRunOptions
from .features import Features
from .probe import PROBE
from .rank_one import RankOne
from .ridge import Form, Ridge

DEFAULT_PERCENTILE = 50
"""Half of the networks are high: the paper ranks its networks and names no number."""


def high_from(intensities: Sequence[int], *, percentile: int = DEFAULT_PERCENTILE) -> int | None:
    """Return the least intensity that counts as high: the least one *above* the percentile.

    Equal networks are never parted: those on the percentile are all low. So of equal intensities none is
    high, and neither is a single network.

    `intensities`: one for each network, permille; `percentile`: 0 to 100, with linear interpolation between
    ranks.
    The result is for `Interference.high_from_permille`; None: no network is high.
    """
    if not 0 <= percentile <= 100:
        raise InvalidInputError(f"percentile is {percentile}, must be between 0 and 100")
    if not intensities:
        return None
    ordered = sorted(intensities)
    low, rest = divmod(percentile * (len(ordered) - 1), 100)
    high = ordered[min(low + 1, len(ordered) - 1)]
    border = ordered[low] + (high - ordered[low]) * rest / 100
    return min((intensity for intensity in ordered if intensity > border), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentionOptions(CoRunOptions):
    """How contention is measured; each round, each co-run is measured twice.

    Attributes
    ----------
    pairs
        Whether every network is measured beside every other one. Without, each is measured beside the
        probe and beside itself only: that takes time in proportion to their number, not to its square.
    parts
        In how many consecutive parts each network is measured against the probe as well; plans go by them
        (`Interference.networks`, slices). 0: none.
    percentile
        Networks with an intensity above this percentile are high.
    form
        What Eq. (1) is applied to where performance counters can be read.

    Raises
    ------
    InvalidInputError
        A number is out of range.
    """

    pairs: bool = True
    parts: int = 0
    percentile: int = DEFAULT_PERCENTILE
    form: Form = Form.CENTRED

    def check(self, defects: Defects) -> None:
        """Add what is wrong with the options of contention."""
        defects.check_count("parts", self.parts)
        if not 0 <= self.percentile <= 100:
            defects.add(f"percentile is {self.percentile}, must be between 0 and 100")


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration(FileContent):
    """The memory probe alone on one unit."""

    unit: str
    """Where."""
    bytes_a_sweep: int
    """What one sweep reads and writes."""
    sweeps_us: tuple[float, ...]
    """Median time of a sweep, one entry a measurement."""

    @property
    def bytes_per_s(self) -> float:
        """Bandwidth."""
        return 1e6 * self.bytes_a_sweep / median(self.sweeps_us)

    @property
    def spread(self) -> float:
        """Quartile range of the measurements relative to their median: what a smaller slowdown drowns in."""
        if len(self.sweeps_us) < 2:
            return 0.0
        first, _, third = quantiles(self.sweeps_us, n=4, method="inclusive")
        return (third - first) / median(self.sweeps_us)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part(FileContent):
    """Consecutive layers of one network, [start, stop)."""

    network: str
    start: int
    stop: int

    @property
    def label(self) -> str:
        """Its name in co-runs."""
        return f"{self.network}[{self.start}:{self.stop})"


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedFeatures(FileContent):
    """What performance counters tell of a network on a unit."""

    network: str
    unit: str
    features: Features


@dataclass(frozen=True, slots=True, kw_only=True)
class Contention(FileContent):
    """Measured contention of some networks on one platform."""

    platform: Platform
    networks: tuple[str, ...]
    options: ContentionOptions
    """What was measured, where, and how."""
    interference: Interference
    """What plans are made with: `probe_fit` or `pair_fit` in integers."""
    calibrations: tuple[Calibration, ...]
    """The probe alone on each unit that can run it."""
    coruns: tuple[CoRun, ...]
    """Everything that was timed."""
    probe_fit: RankOne | None = None
    """Model from co-runs with the probe, judged by co-runs of networks; None where no unit can run the probe.
    """
    pair_fit: RankOne | None = None
    """Model from co-runs of all networks with each other; None if only the probe was to be used."""
    parts: tuple[Part, ...] = ()
    """The parts that were measured against the probe."""
    counted: tuple[CountedFeatures, ...] = ()
    """Features from counters; empty where there are no counters."""
    regression: Ridge | None = None
    """From features to the slowdown that a network causes to the probe."""
    estimated: tuple[str, ...] = ()
    """Networks that ran alone only: their intensities are what `regression` predicts, and their sensitivities
    those of a typical network."""
    warnings: tuple[str, ...] = ()
    """What cannot run, was unsteady, or does not stand out from the noise."""
    seconds: float = 0.0
    """How long it took."""

    def caused(self, name: str) -> float | None:
        """Return by how much a network or part slows the probe: the median over the pairs of units."""
        return _median([one.slowdown for one in self.coruns if (one.victim, one.aggressor) == (PROBE, name)])

    def suffered(self, name: str) -> float | None:
        """Return by how much the probe slows a network: the median over the pairs of units."""
        return _median([one.slowdown for one in self.coruns if (one.victim, one.aggressor) == (name, PROBE)])

    @property
    def pairs(self) -> tuple[CoRun, ...]:
        """Co-runs of networks with each other."""
        return tuple(one for one in self.coruns if {one.victim, one.aggressor} <= set(self.networks))


CONTENTION = Schema(format="gapless.contention", version=1, content=Contention)


def _median(values: Sequence[float]) -> float | None:
    return median(values) if values else None
