"""What a tile of a chunk takes by its number of rows: a fixed part, and so much a row.

A tile is measured alone on its unit, on the real tensors, for a few numbers of rows. The fixed part holds
what every session takes, and the rows that tiles inside a map compute beside their own: those that are
measured lie in the middle. Source: PICO 3.2.2 (Eq. 5) takes the time as proportional to the operations; here
its two parts are fitted to measurements. Fitted to operations instead of rows, the fixed part has no halo in
it: that is what costs of groups of units take, whose halos are counted with their operations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import linear_regression

from ..executor.engine import Engine, PlacementReceipt
from ..executor.graph.tiling import Tiler
from ..executor.model import Model
from ..executor.progress import Forgetful, Ledger, Report, Step, silent
from ..formulations.hardware import Platform
from ..formulations.spatial import Axis, Interval
from ..formulations.validation import FileContent
from .feed import Feed
from .measuring import PreparedPiece, WorkerBench
from .probes import Probe, Span
from .records import MeasuringProgress, RecordedBench, setting_of
from .sampling import Effort

EIGHTHS = (1, 2, 4, 6)
"""Shares of the rows that are measured; the whole chunk is no tile, and has no rows beside its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TileSample(FileContent):
    """One size of a tile, measured.

    Attributes
    ----------
    rows, work
        Its rows, and its share of the operations of the chunk, halo included.
    busy_us, run_us
        Medians of its copies and run together, and of its run.
    """

    rows: int
    busy_us: float
    work: float = 0.0
    run_us: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TileTimes(FileContent):
    """What tiles of one chunk take on one unit."""

    unit: str
    """Its name."""
    span: Span
    """The layers [start, stop)."""
    axis: Axis
    """Whether the tiles are rows or columns."""
    total: int
    """Into how many rows (or columns) the chunk can be divided."""
    samples: tuple[TileSample, ...]
    """The measured sizes, ascending."""
    fixed_us: float
    row_us: float
    """The straight line that fits them best by least squares: what any tile takes, and what each row adds."""
    receipt: PlacementReceipt
    """What the unit was granted."""

    def predicted_us(self, rows: int) -> float:
        """Return what a tile of a given number of rows takes by the line."""
        return self.fixed_us + self.row_us * rows

    def fixed_share(self, overhead_us: float) -> float:
        """Return which share of the run of the whole chunk does not grow with operations.

        The overhead of the session, which any chunk has once, does not count.
        """
        fixed_us, varying_us = line([s.work for s in self.samples], [s.run_us for s in self.samples])
        fixed_us = max(0.0, fixed_us - overhead_us)
        return fixed_us / (fixed_us + varying_us) if fixed_us else 0.0

    @property
    def misfit(self) -> float:
        """Largest difference between a sample and the line, relative to the sample."""
        return max(abs(self.predicted_us(s.rows) - s.busy_us) / s.busy_us for s in self.samples)


def measure_tiles(
    model: Model,
    platform: Platform,
    engine: Engine,
    spans: Sequence[Span],
    *,
    units: Sequence[str] | None = None,
    axis: Axis = Axis.ROWS,
    effort: Effort = Effort(),
    seed: int = 0,
    ledger: Ledger = Forgetful(),
    report: Report = silent,
) -> tuple[TileTimes, ...]:
    """Measure tiles of some chunks on some units.

    Parameters
    ----------
    model, platform, engine
        What runs where, by what.
    spans
        The chunks: layers [start, stop).
    units
        Names of units; None: all.
    axis
        Whether to divide into rows or columns.
    effort
        How long to measure each size of a tile.
    seed
        Of the sample inputs.
    ledger
        Where each finished measurement is kept: what it holds already is not measured again.
    report
        Told before each chunk.

    Returns
    -------
    tuple of TileTimes
        For each span, one for each unit, in order.

    Raises
    ------
    InvalidPlanError
        A chunk cannot be divided; the message names the operators that are in the way.
    ConversionError, PlacementError, ExecutionError
        As for `Engine.prepare` and `WorkerBench.timing`.
    """
    chunks = _prepared(Tiler(model), engine, spans, axis)
    names = platform.unit_names if units is None else tuple(units)
    feed = Feed(model, seed=seed)
    feed.announce(tile.probe.prepared.piece for chunk in chunks for tile in chunk.tiles)
    found = []
    try:
        with WorkerBench(platform, feed, engines=[engine.name]) as own:
            bench = RecordedBench(
                bench=own,
                platform=platform,
                setting=setting_of(engine),
                ledger=ledger,
                effort=effort,
                retries=0,
                progress=MeasuringProgress(report=silent),
            )
            for number, (chunk, unit) in enumerate(product(chunks, names)):
                text = f"tiles of layers {chunk.span[0]} to {chunk.span[1] - 1} on {unit}"
                report(Step(text=text, done=number, total=len(chunks) * len(names)))
                times = {tile: bench.timing(unit, tile.probe) for tile in chunk.tiles}
                samples = [
                    TileSample(
                        rows=tile.rows, busy_us=t.busy.typical_us, work=tile.work, run_us=t.run.typical_us
                    )
                    for tile, t in times.items()
                ]
                fixed_us, row_us = fitted(samples)
                found.append(
                    TileTimes(
                        unit=unit,
                        span=chunk.span,
                        axis=axis,
                        total=chunk.total,
                        samples=tuple(samples),
                        fixed_us=fixed_us,
                        row_us=row_us,
                        receipt=next(iter(times.values())).receipt,
                    )
                )
    finally:
        feed.close()
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Tile:
    """A tile of a given number of rows, with its share of the operations."""

    rows: int
    work: float
    probe: Probe


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chunk:
    """A chunk with its tiles."""

    span: Span
    total: int
    tiles: tuple[_Tile, ...]


def _prepared(tiler: Tiler, engine: Engine, spans: Sequence[Span], axis: Axis) -> list[_Chunk]:
    totals = [tiler.rows(*span, axis) for span in spans]
    parts = [list(_parts(total)) for total in totals]
    pieces = [tiler.piece(*span, axis, part) for span, own in zip(spans, parts, strict=True) for part in own]
    artifacts = zip(pieces, engine.prepare(pieces), strict=True)
    ready = (PreparedPiece(piece=piece, artifact=artifact) for piece, artifact in artifacts)
    found = []
    for span, total, own in zip(spans, totals, parts, strict=True):
        tiles = tuple(
            _Tile(
                rows=part[1] - part[0],
                work=tiler.work(*span, axis, part),
                probe=Probe(span=span, prepared=next(ready)),
            )
            for part in own
        )
        found.append(_Chunk(span=span, total=total, tiles=tiles))
    return found


def fitted(samples: Sequence[TileSample]) -> tuple[float, float]:
    """Return (fixed part, time a row) of the line that fits some samples best (`line`)."""
    return line([float(s.rows) for s in samples], [s.busy_us for s in samples])


def line(sizes: Sequence[float], times_us: Sequence[float]) -> tuple[float, float]:
    """Return (fixed part, slope) of the line that fits some times best by least squares; neither is negative.

    A line that would begin below zero goes through zero; one that would fall is level.
    """
    if len(set(sizes)) == 1:
        return 0.0, sum(times_us) / sum(sizes)
    found = linear_regression(sizes, times_us)
    if found.slope < 0:
        return sum(times_us) / len(times_us), 0.0
    if found.intercept < 0:
        return 0.0, linear_regression(sizes, times_us, proportional=True).slope
    return found.intercept, found.slope


def _parts(total: int) -> Iterator[Interval]:
    """Yield tiles in the middle of a given number of rows, of the sizes that are measured."""
    for rows in dict.fromkeys(max(1, total * share // 8) for share in EIGHTHS):
        start = (total - rows) // 2
        yield start, start + rows
