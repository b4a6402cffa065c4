"""What is found out about interference: times alone and beside load, and their ratios, as they are stored."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from statistics import mean, median

from ....executor.engine import PlacementReceipt
from ....formulations.costs import CostTable, Provenance
from ....formulations.files import Schema
from ....formulations.hardware import Platform
from ....formulations.plan import Chunk, Plan
from ....formulations.validation import FileContent
from ..corun import companions
from ..turns import CoRunOptions, CoRunRatio

ALL_OTHERS = "all others"
"""The load of as many other units as can run at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedPeriod(FileContent):
    """What somebody says of the period of a plan, in microseconds."""

    by: str
    period_us: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanInterference(FileContent):
    """The chunks of a plan, each alone and while all other chunks run in a loop on their units."""

    plan: Plan
    """What was taken apart."""
    chunks: tuple[CoRunRatio, ...]
    """Its chunks, in order."""
    predicted: tuple[PredictedPeriod, ...] = ()
    """What the judge says of the period with the costs of each co-run cost model."""
    period_us: float | None = None
    """What the whole plan took when it ran; None: not known."""

    @property
    def periods(self) -> tuple[PredictedPeriod, ...]:
        """Periods: the largest load of a unit, of chunks alone and beside the rest, then those predicted."""
        alone_us, beside_us = defaultdict[str, float](float), defaultdict[str, float](float)
        for one in self.chunks:
            alone_us[one.chunk.unit] += median(one.alone_us)
            beside_us[one.chunk.unit] += median(one.beside_us)
        return (
            PredictedPeriod(by="chunks beside the rest", period_us=max(beside_us.values())),
            PredictedPeriod(by="chunks alone", period_us=max(alone_us.values())),
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
    options: CoRunOptions | None = None
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
