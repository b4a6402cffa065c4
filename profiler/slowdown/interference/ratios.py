"""What is found out about interference: times alone and beside load, and their ratios, as they are stored."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from statistics import mean, median

from ....executor.engine import PlacementReceipt
from ....formulations.costs import CostTable, Provenance
from ....formulations.errors import InvalidInputError
from ....formulations.files import Schema
from ....formulations.hardware import Platform
from ....formulations.plan import Chunk, Plan
from ....formulations.validation import Defects, FileContent
from ...profile import ProfileOptions, check_rounds
from ..corun import companions

ALL_OTHERS = "all others"
"""The load of as many other units as can run at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InterferenceOptions(FileContent):
    """How interference is measured.

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
        defects = Defects("interference options")
        check_rounds(defects, rounds=self.rounds, seconds_per_item=self.seconds_per_item)
        defects.raise_as(InvalidInputError)

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
class CoRunRatio(FileContent):
    """Consecutive layers on one unit, timed alone and beside load, in turn.

    Attributes
    ----------
    chunk
        Which layers, and where.
    load
        What the load is called: the units that make it, or `ALL_OTHERS`.
    beside
        The units that make it; none: it stayed alone.
    alone_us, beside_us
        Time without and with the load, one entry a round, microseconds: copies and run. Each `alone_us` is
        the mean of what was measured right before and right after its `beside_us`, so that what drifts
        slowly cancels.

    Raises
    ------
    InvalidInputError
        Nothing was timed, or a time is not above zero.
    """

    chunk: Chunk
    load: str
    beside: tuple[str, ...]
    alone_us: tuple[float, ...]
    beside_us: tuple[float, ...]

    def __post_init__(self) -> None:
        chunk = self.chunk
        defects = Defects(f"layers [{chunk.start}, {chunk.stop}) on {chunk.unit!r} beside {self.load}")
        if not self.alone_us or len(self.alone_us) != len(self.beside_us):
            defects.add(
                f"{len(self.alone_us)} times alone and {len(self.beside_us)} beside load: both need one for "
                "each round"
            )
        if not all(0 < time_us < float("inf") for time_us in (*self.alone_us, *self.beside_us)):
            defects.add("a time is not above 0")
        defects.raise_as(InvalidInputError)

    @property
    def ratio(self) -> float:
        """Time beside the load over time alone: the median over the rounds."""
        return median(self._ratios())

    @property
    def spread(self) -> float:
        """Largest minus smallest ratio of the rounds, relative to their median."""
        ratios = self._ratios()
        return (max(ratios) - min(ratios)) / median(ratios)

    def _ratios(self) -> list[float]:
        return [beside / alone for alone, beside in zip(self.alone_us, self.beside_us, strict=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Foretold(FileContent):
    """What somebody says of the period of a plan, microseconds."""

    by: str
    period_us: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanInterference(FileContent):
    """The chunks of a plan, each alone and while all other chunks run in a loop on their units."""

    plan: Plan
    """What was taken apart."""
    chunks: tuple[CoRunRatio, ...]
    """Its chunks, in order."""
    predicted: tuple[Foretold, ...] = ()
    """What the judge says of the period with the costs of each co-run cost model."""
    period_us: float | None = None
    """What the whole plan took when it ran; None: not known."""

    @property
    def foretold(self) -> tuple[Foretold, ...]:
        """Periods: the largest load of a unit, of chunks alone and beside the rest, then those predicted."""
        alone_us, beside_us = defaultdict[str, float](float), defaultdict[str, float](float)
        for one in self.chunks:
            alone_us[one.chunk.unit] += median(one.alone_us)
            beside_us[one.chunk.unit] += median(one.beside_us)
        return (
            Foretold(by="chunks beside the rest", period_us=max(beside_us.values())),
            Foretold(by="chunks alone", period_us=max(alone_us.values())),
            *self.predicted,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class InterferenceRatios(FileContent):
    """How much longer, or less, layers take on the units of one platform while others are busy."""

    platform: Platform
    """The units."""
    ratios: tuple[CoRunRatio, ...] = ()
    """Groups of layers beside each load, by network."""
    plans: tuple[PlanInterference, ...] = ()
    """Plans whose chunks were measured beside each other."""
    options: InterferenceOptions | None = None
    """How it was measured; None: the ratios are those of two tables of costs."""
    provenance: Provenance = Provenance()
    """Where the numbers come from."""
    receipts: tuple[PlacementReceipt, ...] = ()
    """What the engine granted to each unit."""
    warnings: tuple[str, ...] = ()
    """What cannot run, or was unsteady."""
    seconds: float = 0.0
    """How long it took."""


INTERFERENCE = Schema(format="gapless.interference", version=1, content=InterferenceRatios)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatMap:
    """Mean ratios, as in Fig. 8 of BetterTogether (IISWC 2025).

    `rows`, `columns`: units, and networks or loads.
    """

    title: str  # what it shows
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[tuple[float | None, ...], ...]  # mean ratio by [row][column]; None: not measured


def heat_maps(found: InterferenceRatios) -> tuple[HeatMap, ...]:
    """Return the mean ratios of units: beside one load by network, beside several a map for each network.

    A cell is the mean over the groups of layers; "all" is the mean over those of all networks, which comes
    nearest to what the paper prints (`paper.py`).
    """
    networks = tuple(dict.fromkeys(one.chunk.network for one in found.ratios))
    units = found.platform.unit_names
    loads = sorted(
        dict.fromkeys(one.load for one in found.ratios),
        key=lambda load: units.index(load) if load in units else len(units),
    )
    if len(loads) == 1:
        by_network = {name: tuple(r for r in found.ratios if r.chunk.network == name) for name in networks}
        if len(networks) > 1:
            by_network["all"] = found.ratios
        return (_heat_map(found.platform, f"{found.platform.name}, beside {loads[0]}", by_network),)
    return tuple(
        _heat_map(
            found.platform,
            f"{name} on {found.platform.name}, beside",
            {
                load: tuple(r for r in found.ratios if (r.chunk.network, r.load) == (name, load))
                for load in loads
            },
        )
        for name in networks
    )


def _heat_map(platform: Platform, title: str, columns: dict[str, tuple[CoRunRatio, ...]]) -> HeatMap:
    measured = {one.chunk.unit for ratios in columns.values() for one in ratios}
    rows = tuple(unit for unit in platform.unit_names if unit in measured)
    cells = [
        [[one.ratio for one in ratios if one.chunk.unit == unit] for ratios in columns.values()]
        for unit in rows
    ]
    return HeatMap(
        title=title,
        rows=rows,
        columns=tuple(columns),
        cells=tuple(tuple(mean(cell) if cell else None for cell in row) for row in cells),
    )


def table_ratios(platform: Platform, isolated: CostTable, heavy: CostTable) -> tuple[CoRunRatio, ...]:
    """Return the ratios of two tables: of each layer on each unit, all other units busy over alone.

    Units that can run beside no other one have the same costs in both, and no ratio.
    """
    beside = {name: companions(platform, name, able=platform.unit_names) for name in platform.unit_names}
    return tuple(
        CoRunRatio(
            chunk=Chunk(network=costs.network, start=layer, stop=layer + 1, unit=unit),
            load=ALL_OTHERS,
            beside=beside[unit],
            alone_us=(float(alone),),
            beside_us=(float(busy),),
        )
        for costs in isolated.networks
        for layer, rows in enumerate(zip(costs.layer_us, heavy.of(costs.network).layer_us, strict=True))
        for unit, alone, busy in zip(isolated.units, *rows, strict=True)
        if alone is not None and busy is not None and beside[unit]
    )
