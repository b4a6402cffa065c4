"""How fast the units of a platform are, in a handful of numbers each.

The time of a layer in a batch of b inferences is

    launch + weights / bandwidth + b (operations / rate + tensors / bandwidth),

with one rate for matrix products and one for all other layers. Operations and bytes do not overlap: so
depthwise convolutions and work element by element, which move many bytes for each operation, are far from
the rate of large convolutions without a rate of their own, and the time of a batch is affine in b, as
Hetero2Pipe found it (Appendix D). Where the time of a whole network is known, its layers are scaled to it.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...formulations.costs import Provenance
from ...formulations.errors import InvalidProblemError
from ...formulations.files import Schema
from ...formulations.operators import rule_problems
from ...formulations.validation import Defects, FileContent

METHOD = "analytic"
"""How such costs are named among the tables of costs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownTotal(FileContent):
    """Time of a whole network on one unit, its input brought there included."""

    network: str
    """Name of the network."""
    total_us: int
    """The time of one inference, alone."""
    printed: bool
    """Whether a publication prints it; otherwise it was derived from one that is printed."""
    source: str
    """Where it stands, or how it was derived."""

    def __post_init__(self) -> None:
        defects = Defects(f"known total of {self.network!r}")
        defects.check_name("network", self.network)
        defects.check_count("total_us", self.total_us, least=1)
        defects.raise_as(InvalidProblemError)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitModel(FileContent):
    """One processing unit."""

    unit: str
    """Its name."""
    flops_per_us: int
    product_flops_per_us: int
    """Operations a microsecond of convolutions and all that is no product; of matrix products."""
    bytes_per_us: int
    """Bandwidth of weights and tensors."""
    launch_us: int
    """What each layer takes on top."""
    copy_us: int
    copy_bytes_per_us: int
    """What it takes to bring tensors from another unit: always, and for their bytes."""
    unsupported: tuple[str, ...] = ()
    """Rules about the operators that it cannot run: types, or types with attributes, as "Softplus" and
    "ConvTranspose[stride>=4]" (`formulations.operators`)."""
    totals: tuple[KnownTotal, ...] = ()
    """Times of whole networks that are known."""

    def __post_init__(self) -> None:
        defects = Defects(f"model of unit {self.unit!r}")
        defects.check_name("unit", self.unit)
        for field in ("flops_per_us", "product_flops_per_us", "bytes_per_us", "copy_bytes_per_us"):
            defects.check_count(field, getattr(self, field), least=1)
        for field in ("launch_us", "copy_us"):
            defects.check_count(field, getattr(self, field))
        for problem in rule_problems(self.unsupported):
            defects.add(problem)
        defects.check_unique("totals", [total.network for total in self.totals])
        defects.raise_as(InvalidProblemError)

    def total_of(self, network: str) -> int | None:
        """Return the known time of a network in microseconds, or None."""
        return next((total.total_us for total in self.totals if total.network == network), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalyticModel(FileContent):
    """The units of one platform."""

    units: tuple[UnitModel, ...]
    """In the order of the platform."""
    source: str
    """Publication that the printed numbers stand in."""
    notes: str
    """How all the other numbers were chosen."""

    @property
    def provenance(self) -> Provenance:
        """What a reader of the computed costs should know: which few of them are no estimates."""
        printed = [
            f"{total.network} on {unit.unit} {total.total_us / 1000:g} ms ({total.source})"
            for unit in self.units
            for total in unit.totals
            if total.printed
        ]
        return Provenance(
            source=self.source,
            method=METHOD,
            estimated=True,
            notes=f"Printed: {'; '.join(printed) or 'nothing'}. {self.notes}",
        )


ANALYTIC = Schema(format="gapless.analytic", version=1, content=AnalyticModel)
