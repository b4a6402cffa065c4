"""What things cost: the one integer table that every backend and the judge read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from .errors import InvalidProblemError
from .validation import Defects, FileContent

T = TypeVar("T")

MOST_SLOWDOWN_PERMILLE = 100_000
"""Largest slowdown that is believed: a hundred times slower."""

CostRows = tuple[tuple[int | None, ...], ...]
"""Integer microseconds by [layer][unit]; None where the unit cannot run the layer."""

TransferRows = tuple[tuple[int, ...], ...]
"""Integer microseconds by [boundary 0..n][unit]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance(FileContent):
    """Where the numbers of a table come from."""

    source: str = ""
    """Publication, data set or measuring command."""
    method: str = ""
    """How the numbers were taken, e.g. "isolated" or "heavy"."""
    estimated: bool = False
    """Whether the numbers are computed by a model rather than measured."""
    notes: str = ""
    """Anything else that a reader of the numbers should know."""
    engine: str = ""
    """What ran the layers, with its version."""
    device: str = ""
    """What they ran on, as `gapless doctor` says it."""
    taken_at: str = ""
    """When, ISO 8601 with the offset from UTC."""
    hops: bool = False
    """Whether the copies are all of what a hop between units costs (`CostTable.knows_hops`), as measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkCosts(FileContent):
    """Costs of one network on every unit of a platform."""

    network: str
    """Name of the network."""
    layer_us: CostRows
    """Time of each layer on each unit, microseconds by [layer][unit]; None: cannot run there."""
    transfer_in_us: TransferRows = ()
    """Time to bring the tensors alive at a boundary into a unit, by [boundary 0..n][unit]. Empty: no cost."""
    transfer_out_us: TransferRows = ()
    """Time to take them out of a unit, by [boundary 0..n][unit]. Empty: no cost."""

    def __post_init__(self) -> None:
        defects = Defects(f"costs of network {self.network!r}")
        defects.check_name("network", self.network)
        if not self.layer_us:
            defects.add("layer_us is empty: at least one layer is needed")
        for layer, row in enumerate(self.layer_us):
            for unit, time_us in enumerate(row):
                if time_us is not None:
                    defects.check_count(f"layer_us[{layer}][{unit}]", time_us, least=1)
        for field in ("transfer_in_us", "transfer_out_us"):
            rows: TransferRows = getattr(self, field)
            if rows and len(rows) != len(self.layer_us) + 1:
                defects.add(
                    f"{field} has {len(rows)} rows, needs one for each boundary: {len(self.layer_us) + 1}"
                )
            for boundary, transfers in enumerate(rows):
                defects.check_counts(f"{field}[{boundary}]", transfers)
        if not defects.found:
            defects.check_count("the time of all layers and copies together, in us,", self._longest_us())
        defects.raise_as(InvalidProblemError)

    def of_columns(self, columns: Sequence[int]) -> NetworkCosts:
        """Return the costs on some of the units, in this order; a unit may be there several times."""

        def kept(rows: Sequence[Sequence[T]]) -> tuple[tuple[T, ...], ...]:
            return tuple(tuple(row[column] for column in columns) for row in rows)

        return replace(
            self,
            layer_us=kept(self.layer_us),
            transfer_in_us=kept(self.transfer_in_us),
            transfer_out_us=kept(self.transfer_out_us),
        )

    def _longest_us(self) -> int:
        slowest = sum(max((time for time in row if time is not None), default=0) for row in self.layer_us)
        copies = (max(map(max, rows), default=0) for rows in (self.transfer_in_us, self.transfer_out_us))
        return slowest + sum(copies)


@dataclass(frozen=True, slots=True, kw_only=True)
class CostTable(FileContent):
    """Costs of one or more networks on the units of one platform."""

    units: tuple[str, ...]
    """Names of the units, in the order of the columns."""
    networks: tuple[NetworkCosts, ...]
    """Costs of each network."""
    batch: int = 1
    """Inferences that one run of a layer stands for."""
    provenance: Provenance = Provenance()
    """Where the numbers come from."""

    def __post_init__(self) -> None:
        defects = Defects("cost table")
        defects.check_unique("units", self.units)
        defects.check_unique("networks", [costs.network for costs in self.networks])
        defects.check_count("batch", self.batch, least=1)
        for costs in self.networks:
            for field in ("layer_us", "transfer_in_us", "transfer_out_us"):
                for row, values in enumerate(getattr(costs, field)):
                    if len(values) != len(self.units):
                        defects.add(
                            f"{costs.network!r} {field}[{row}] has {len(values)} entries, "
                            f"needs one for each of the {len(self.units)} units"
                        )
        defects.raise_as(InvalidProblemError)

    @property
    def knows_hops(self) -> bool:
        """Whether it says what a hop between units costs: as measured, or as given by who wrote the table.

        Copies that gapless measured by themselves, or computed, are less than a hop.
        """
        told = self.provenance
        copies = (rows[1:-1] for one in self.networks for rows in (one.transfer_in_us, one.transfer_out_us))
        given = not (told.device or told.estimated) and any(any(map(any, inner)) for inner in copies)
        return told.hops or given

    def of(self, network: str) -> NetworkCosts:
        """Return the costs of one network.

        Raises InvalidProblemError: the table has no such network.
        """
        for costs in self.networks:
            if costs.network == network:
                return costs
        names = ", ".join(repr(costs.network) for costs in self.networks)
        raise InvalidProblemError(f"the cost table has no network {network!r}; it has {names}")


def shape_of(table: CostTable) -> tuple[object, ...]:
    """Return what tables for the same layers on the same units have in common: everything but the times."""
    return (
        table.units,
        table.batch,
        tuple(
            (
                costs.network,
                tuple(tuple(time is None for time in row) for row in costs.layer_us),
            )
            for costs in table.networks
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceContention(FileContent):
    """How consecutive layers of a network press on the memory that all units share, and suffer."""

    start: int
    stop: int
    """Their first layer, and one past the last."""
    intensity_permille: int = 1000
    sensitivity_permille: int = 1000
    """As of a network."""

    def __post_init__(self) -> None:
        defects = Defects(f"contention of layers [{self.start}, {self.stop})")
        defects.check_count("start", self.start)
        defects.check_count("stop", self.stop, least=self.start + 1)
        _check_contention(defects, self)
        defects.raise_as(InvalidProblemError)


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkContention(FileContent):
    """How one network presses on the memory that all units share, and how much it suffers."""

    network: str
    """Name of the network."""
    intensity_permille: int = 1000
    """Slowdown that it causes, relative to the network that the base slowdowns were measured with."""
    sensitivity_permille: int = 1000
    """Slowdown that it suffers, in the same way."""
    slices: tuple[SliceContention, ...] = ()
    """The same for its layers, from the first to the last, where they differ. Workloads and schedules go by
    them; everything else goes by the network as a whole. Empty: all layers are alike."""

    def __post_init__(self) -> None:
        defects = Defects(f"contention of network {self.network!r}")
        defects.check_name("network", self.network)
        _check_contention(defects, self)
        at = 0
        for place, own in enumerate(self.slices):
            if own.start != at:
                defects.add(f"slices[{place}] starts at layer {own.start}, must start at {at}")
            at = own.stop
        defects.raise_as(InvalidProblemError)


def _check_contention(defects: Defects, contention: SliceContention | NetworkContention) -> None:
    for field in ("intensity_permille", "sensitivity_permille"):
        value = getattr(contention, field)
        if defects.check_count(field, value) and value > MOST_SLOWDOWN_PERMILLE:
            defects.add(f"{field} is {value}, must be at most {MOST_SLOWDOWN_PERMILLE}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Interference(FileContent):
    """How much units slow each other down (formulations, section 4).

    While network a runs on unit u and network b on unit v, a takes longer by
    slowdown[u][v] x sensitivity(a) x intensity(b). Of networks with slices it is the chunks that run: the
    sensitivity and the intensity of a chunk are the means of its layers, by their time on its unit.
    """

    units: tuple[str, ...]
    """Names of the units, in the order of rows and columns."""
    slowdown_permille: tuple[tuple[int, ...], ...]
    """Base slowdown by [unit that suffers][unit that causes it], in permille of the time alone; 0 on the
    diagonal."""
    networks: tuple[NetworkContention, ...] = ()
    """Intensity and sensitivity of each network; 1000 for those that are not listed."""
    high_from_permille: int | None = None
    """Networks of at least this intensity are *high* (H in the paper's contention windows), the others *low*.
    None: no network is high."""
    provenance: Provenance = Provenance()
    """Where the numbers come from."""

    def __post_init__(self) -> None:
        defects = Defects("interference")
        defects.check_unique("units", self.units)
        defects.check_unique("networks", [entry.network for entry in self.networks])
        if len(self.slowdown_permille) != len(self.units):
            defects.add(f"slowdown_permille has {len(self.slowdown_permille)} rows, needs {len(self.units)}")
        for row, values in enumerate(self.slowdown_permille):
            if len(values) != len(self.units):
                defects.add(f"slowdown_permille[{row}] has {len(values)} entries, needs {len(self.units)}")
            for column, value in enumerate(values):
                where = f"slowdown_permille[{row}][{column}]"
                if not defects.check_count(where, value):
                    continue
                if value > MOST_SLOWDOWN_PERMILLE:
                    defects.add(f"{where} is {value}, must be at most {MOST_SLOWDOWN_PERMILLE}")
                if row == column and value:
                    defects.add(f"{where} is {value}: a unit does not slow itself down")
        if self.high_from_permille is not None:
            defects.check_count("high_from_permille", self.high_from_permille)
        defects.raise_as(InvalidProblemError)

    def of(self, network: str) -> NetworkContention:
        """Return the contention of a network; one that is not listed is like the reference."""
        found = next((entry for entry in self.networks if entry.network == network), None)
        return NetworkContention(network=network) if found is None else found

    def slowdown_of(self, victim: str, unit: int, aggressor: str, other: int) -> int:
        """Return by how many permille `victim` on a unit takes longer beside `aggressor` on another."""
        return self.slowdown(unit, other, self.pressure(victim, aggressor))

    def pressure(self, victim: str, aggressor: str) -> int:
        """Return how much `victim` minds `aggressor`: sensitivity times intensity, both in permille."""
        return self.of(victim).sensitivity_permille * self.of(aggressor).intensity_permille

    def slowdown(self, unit: int, other: int, pressure: int) -> int:
        """Return by how many permille a network takes longer under a `pressure`, as for `slowdown_of`."""
        return round(self.slowdown_permille[unit][other] * pressure / 1_000_000)

    def is_high(self, network: str) -> bool:
        """Return whether a network, as a whole, is of high contention."""
        return self.is_high_intensity(self.of(network).intensity_permille)

    def is_high_intensity(self, permille: int) -> bool:
        """Return whether what has this intensity is of high contention."""
        return self.high_from_permille is not None and permille >= self.high_from_permille
