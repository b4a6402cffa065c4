"""Profiles: what every layer of a model costs on every unit, measured on this device."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ..executor.engine import Engine, PlacementReceipt
from ..executor.model import Model
from ..executor.progress import Forgetful, Ledger, Report, silent
from ..formulations.costs import CostTable
from ..formulations.errors import InvalidInputError
from ..formulations.files import Schema
from ..formulations.hardware import Platform
from ..formulations.network import Network
from ..formulations.plan import Chunk
from ..formulations.validation import Defects, FileContent
from .hops import HopCost
from .sampling import Effort
from .summary import MOST_FAR, Summary
from .transfers import CopyModel


class Method(StrEnum):
    """How a table is measured.

    ISOLATED
        Each layer on each unit, alone.
    HEAVY
        Each layer on each unit while the other units run the same layers.
    """

    ISOLATED = "isolated"
    HEAVY = "heavy"


class Basis(StrEnum):
    """How single layers are told apart.

    OPERATORS
        By the engine's times of operators inside the whole model; by chunks where it gives none.
    CHUNKS
        Each shortest chunk in a session of its own: for engines whose operator times are not to be trusted.
    """

    OPERATORS = "operators"
    CHUNKS = "chunks"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileOptions(FileContent):
    """How a profile is taken.

    Attributes
    ----------
    min_repetitions, min_seconds_per_item, max_seconds_per_item, warm_up_repetitions
        Each item is run until both minima are reached, or the maximum.
    steady
        Whether each item is warmed up until its times stop drifting (`sampling.Effort`).
    retries
        How often an item is measured again while it is unsteady.
    basis
        How single layers are told apart.
    checks
        Random chunks that are measured to check the table; 0: none.
    seed
        Of the inputs and of the chunks that are checked.
    most_workers
        Up to how many workers of a unit are measured at the same time; 1: none beside another.
    most_far
        Share of the repeated measurements of the same layers that may be off by a factor of two or more
        before the profile is given up. Above 1 it never is: for plans that are measured anyway.
    """

    min_repetitions: int = 30
    min_seconds_per_item: float = 0.06
    max_seconds_per_item: float = 1.0
    warm_up_repetitions: int = 3
    steady: bool = False
    retries: int = 2
    basis: Basis = Basis.OPERATORS
    checks: int = 6
    seed: int = 0
    most_workers: int = 1
    most_far: float = MOST_FAR

    def __post_init__(self) -> None:
        defects = Defects("profile options")
        for field, least in {
            "min_repetitions": 1,
            "warm_up_repetitions": 1,
            "retries": 0,
            "checks": 0,
            "most_workers": 1,
        }.items():
            defects.check_count(field, getattr(self, field), least=least)
        if not 0 <= self.min_seconds_per_item <= self.max_seconds_per_item <= MAX_SECONDS_PER_ITEM:
            defects.add(
                f"min_seconds_per_item ({self.min_seconds_per_item}) and max_seconds_per_item "
                f"({self.max_seconds_per_item}) must be in ascending order, from 0 to {MAX_SECONDS_PER_ITEM}"
            )
        defects.raise_as(InvalidInputError)

    @property
    def effort(self) -> Effort:
        """How long one thing is measured."""
        return Effort(
            min_repetitions=self.min_repetitions,
            min_seconds=self.min_seconds_per_item,
            max_seconds=self.max_seconds_per_item,
            warm_up_repetitions=self.warm_up_repetitions,
            steady=self.steady,
        )


MAX_SECONDS_PER_ITEM = 60.0
"""Longest time for one item: a worker has to answer within minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredChunk(FileContent):
    """A chunk that was measured in a session of its own."""

    chunk: Chunk
    """Which layers, and where."""
    beside: tuple[str, ...] = ()
    """Units that ran the same chunk in a loop meanwhile."""
    busy: Summary
    """Copies and run together."""
    copy_in_us: float
    run_us: float
    copy_out_us: float
    """Medians of its parts."""


MOST_OTHERS = 0.1
"""Share of the cores of a unit that others keep busy from which on it is not known how many workers pay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedUnit(FileContent):
    """Several workers of a unit at work at the same time, each in a session of its own, against one."""

    unit: str
    workers: int
    """How many."""
    alone_us: float
    beside_us: float
    """How long one inference takes alone, and beside those of the others."""
    others: float = 0.0
    """Share of its cores that other programs kept busy, 0 to 1: each worker takes its part from them."""

    @property
    def is_told(self) -> bool:
        """Whether other programs left the cores alone enough to say how many workers pay."""
        return self.others < MOST_OTHERS

    @property
    def permille(self) -> int:
        """How long it takes beside the others, in permille of its time alone."""
        return max(1000, round(1000 * self.beside_us / self.alone_us))

    @property
    def gain(self) -> float:
        """How many inferences the workers do together in the time in which one worker does one."""
        return self.workers * self.alone_us / self.beside_us


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitFit(FileContent):
    """How a column of a table was made from measurements."""

    unit: str
    method: Method
    """Which column of which table."""
    factor: float
    """What times of single layers were multiplied with to fit the run of the whole."""
    overhead_us: float
    """Constant cost of a session; part of the copy-in at a chunk's start."""
    copy_in: CopyModel
    copy_out: CopyModel
    """Cost of copies by bytes and tensors."""
    hop_us: float = 0.0
    """What it costs to come to the unit from another one besides that; part of the copy-in at each border
    inside of the network. 0: it was not measured (`Profile.hops`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkCheck(FileContent):
    """What the isolated table says of a chunk that is no part of its making, and what it really takes."""

    chunk: Chunk
    predicted_us: int
    measured_us: float

    @property
    def error(self) -> float:
        """Predicted minus measured, relative to measured."""
        return self.predicted_us / self.measured_us - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile(FileContent):
    """Measured costs of one network on one platform.

    Attributes
    ----------
    network, platform
        What, and where; the units say how many workers pay, where that was measured.
    options
        How it was taken.
    tables
        One for each method that was asked for; its provenance says which.
    fits
        How the columns were made, by method and unit.
    measured
        Every chunk that was measured on the way.
    checks
        The isolated table against other chunks.
    hops
        What hops between units cost besides copies; part of the tables. Empty: hops are predicted by copies
        only, because no plan has any, or because the profile is of an earlier version.
    shared
        Units with several workers at work; empty: that was not measured.
    receipts
        What the engine granted to each unit.
    warnings
        What was unsteady, cannot run, or was cut off.
    seconds
        How long it took.
    """

    network: Network
    platform: Platform
    options: ProfileOptions
    tables: tuple[CostTable, ...]
    fits: tuple[UnitFit, ...] = ()
    measured: tuple[MeasuredChunk, ...] = ()
    checks: tuple[ChunkCheck, ...] = ()
    hops: tuple[HopCost, ...] = ()
    shared: tuple[SharedUnit, ...] = ()
    receipts: tuple[PlacementReceipt, ...] = ()
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0

    def table(self, method: Method) -> CostTable:
        """Return the table of a method.

        Raises
        ------
        InvalidInputError
            It was not measured.
        """
        for table in self.tables:
            if table.provenance.method == method:
                return table
        known = ", ".join(table.provenance.method for table in self.tables)
        raise InvalidInputError(
            f"the profile of {self.network.name!r} has no table {str(method)!r}, only {known}"
        )

    @property
    def check_error(self) -> float | None:
        """Mean absolute relative error of the checks; None without checks."""
        if not self.checks:
            return None
        return sum(abs(check.error) for check in self.checks) / len(self.checks)


PROFILE = Schema(format="gapless.profile", version=1, content=Profile)


def profile(
    model: Model,
    platform: Platform,
    engine: Engine,
    *,
    methods: tuple[Method, ...] = (Method.ISOLATED, Method.HEAVY),
    options: ProfileOptions = ProfileOptions(),
    ledger: Ledger = Forgetful(),
    report: Report = silent,
) -> Profile:
    """Measure what every layer of a model costs on every unit of a platform.

    Parameters
    ----------
    model, platform, engine
        What is run, where, and by what.
    methods
        Which tables to make.
    options
        How long to measure.
    ledger
        Where each finished measurement is kept: what it holds already is not measured again.
    report
        Told of each finished measurement.

    Raises
    ------
    LayerNotRunnableError
        No unit can run some layer.
    NoisyMeasurementError
        The device changed so much meanwhile that the numbers mean nothing.
    PlacementError
        A unit granted something else than was asked.
    UnitLostError
        A worker died; with a ledger, profiling again continues there.
    """
    from .survey import survey

    with survey(model, platform, engine, options=options, ledger=ledger, report=report) as taken:
        return taken.profile(methods)
