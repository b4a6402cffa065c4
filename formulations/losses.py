"""What chunks lose to others that run at the same time: one table for plays, bounds and models.

A chunk has a *mark*: its sensitivity and its intensity. Where all layers of a network are alike, it is that
of the network; else the mean of its layers, by their time on the unit (`Losses.mark`). What two chunks that
run at the same time lose follows from their units and their marks alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from .costs import CostRows, Interference

MOST_LOSS_PERMILLE = 750
"""Most of its speed that a chunk can lose to all that runs beside it at an instant."""

Mark = tuple[int, int]
"""Sensitivity and intensity of a chunk, in permille."""

Loss = Callable[[int, Mark, int, Mark], int]
"""Share of its speed, in permille, that a chunk on a unit with a mark loses beside another one (the same)."""

LossTable = tuple[tuple[tuple[tuple[int, ...], ...], ...], ...]
"""Permille by [chain a][unit u][chain b][unit v]."""

_Sums = tuple[tuple[int, int, int], ...]
"""By boundary, of the layers before it: time, sensitivity x time, intensity x time."""


@dataclass(frozen=True, kw_only=True)  # no slots: what is computed is kept
class Losses:
    """What chunks of some networks lose to each other on the units of one platform."""

    networks: tuple[str, ...]  # name of the network of each chain
    unit_count: int  # number of units
    interference: Interference | None  # how much units slow each other down, or None
    layer_us: tuple[CostRows, ...] = ()
    """Time of the layers of each chain on each unit; empty where no network has slices."""

    @cached_property
    def sliced(self) -> tuple[bool, ...]:
        """By chain, whether some of its layers differ from the network in what they lose or take."""
        both = zip(self._layers, self.marks, strict=True)
        return tuple(any(mark != whole for mark in layers) for layers, whole in both)

    @cached_property
    def marks(self) -> tuple[Mark, ...]:
        """The mark of each network as a whole."""
        if self.interference is None:
            return ((0, 0),) * len(self.networks)
        entries = map(self.interference.of, self.networks)
        return tuple((entry.sensitivity_permille, entry.intensity_permille) for entry in entries)

    def mark(self, chain: int, start: int, stop: int, unit: int) -> Mark:
        """Return the mark of the layers [start, stop) of a chain on a unit; layers that it lacks count 0."""
        if not self.sliced[chain]:
            return self.marks[chain]
        sums = self._sums[chain][unit]
        (before, sensitive, intense), (behind, suffers, presses) = sums[start], sums[stop]
        time = max(1, behind - before)
        return (
            (2 * (suffers - sensitive) + time) // (2 * time),
            (2 * (presses - intense) + time) // (2 * time),
        )

    def loss(self, unit: int, mine: Mark, other: int, theirs: Mark) -> int:
        """Return the share of its speed that a chunk loses while another one runs, in permille (`Loss`).

        A slowdown of d means a loss of d / (1 + d). Losses to several chunks that run at an instant add up
        to at most `MOST_LOSS_PERMILLE`; that depends on which run, so this does not know it.
        """
        key = unit, other, mine[0] * theirs[1]
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._lost(*key)
        return found

    def is_high(self, chain: int, start: int, stop: int, unit: int) -> bool:
        """Return whether the layers [start, stop) of a chain are of high contention on a unit."""
        known = self.interference
        return (
            known is not None
            and start < stop
            and known.is_high_intensity(self.mark(chain, start, stop, unit)[1])
        )

    def is_high_by_cuts(self, chain: int) -> bool:
        """Return whether it may depend on the cuts of a chain on which units it is of high contention.

        Of a chain that is sliced no chunk is high on units that it skips; a mean is at most the most intense
        layer. Where neither the network nor a layer is high, no chunk is.
        """
        known = self.interference
        marks = (self.marks[chain], *self._layers[chain]) if self.sliced[chain] else ()
        return known is not None and any(known.is_high_intensity(intensity) for _, intensity in marks)

    @cached_property
    def least_permille(self) -> LossTable:
        """What a chunk of chain a on unit u loses at least to any chunk of chain b on v, by [a][u][b][v]."""
        return self._table(0)

    @cached_property
    def most_permille(self) -> LossTable:
        """The same at most; the two are equal where no network has slices."""
        return self._table(1) if any(self.sliced) else self.least_permille

    @cached_property
    def worst_permille(self) -> tuple[tuple[int, ...], ...]:
        """What chain a on unit u would lose to the worst chain on each other unit together, by [a][u]."""
        units = range(self.unit_count)
        return tuple(
            tuple(sum(max(row[v] for row in losses) for v in units) for losses in rows)
            for rows in self.most_permille
        )

    @cached_property
    def capped(self) -> bool:
        """Whether company can ever take more than a chunk can lose."""
        return any(most > MOST_LOSS_PERMILLE for row in self.worst_permille for most in row)

    @cached_property
    def contended(self) -> bool:
        """Whether any chunk ever slows another one down."""
        return any(loss for a in self.most_permille for u in a for b in u for loss in b)

    def slowest_us(self, work_us: int, *, chunks: int = 1) -> int:
        """Return how long some chunks with so much work take at most, one after the other.

        What the cap spares a chunk counts in whole microseconds.
        """
        if not self.contended:
            return work_us
        return -(-1000 * (work_us + chunks * self.capped) // (1000 - MOST_LOSS_PERMILLE))

    @cached_property
    def _layers(self) -> tuple[tuple[Mark, ...], ...]:
        """The mark of each layer of a chain; none of a network without slices."""
        found: list[tuple[Mark, ...]] = []
        for name in self.networks:
            slices = () if self.interference is None else self.interference.of(name).slices
            marks = (
                ((own.sensitivity_permille, own.intensity_permille),) * (own.stop - own.start)
                for own in slices
            )
            found.append(sum(marks, ()))
        return tuple(found)

    @cached_property
    def _sums(self) -> tuple[tuple[_Sums, ...], ...]:
        """By chain and unit: sums over the layers before each boundary."""
        found = []
        for marks, rows in zip(self._layers, self.layer_us, strict=True):
            own = []
            for unit in range(self.unit_count if marks else 0):
                times = [row[unit] or 0 for row in rows]
                parts = [
                    times,
                    [time * mark[0] for time, mark in zip(times, marks, strict=True)],
                    [time * mark[1] for time, mark in zip(times, marks, strict=True)],
                ]
                own.append(tuple(zip(*(accumulate(part, initial=0) for part in parts), strict=True)))
            found.append(tuple(own))
        return tuple(found)

    def _extremes(self, chain: int, unit: int) -> tuple[Mark, Mark]:
        """Return the least and the greatest mark of the chunks of a chain on a unit, each number by itself.

        A mean is between those of its layers.
        """
        marks = [self.marks[chain]]
        if self.sliced[chain]:
            rows = zip(self._layers[chain], self.layer_us[chain], strict=True)
            marks = [mark for mark, row in rows if row[unit] is not None] or marks
        sensitivities, intensities = zip(*marks, strict=True)
        return (min(sensitivities), min(intensities)), (max(sensitivities), max(intensities))

    def _table(self, which: int) -> LossTable:
        chains, units = range(len(self.networks)), range(self.unit_count)
        marks = [[self._extremes(chain, unit)[which] for unit in units] for chain in chains]
        return tuple(
            tuple(
                tuple(tuple(self.loss(u, marks[a][u], v, marks[b][v]) for v in units) for b in chains)
                for u in units
            )
            for a in chains
        )

    @cached_property
    def _known(self) -> dict[tuple[int, int, int], int]:
        return {}

    def _lost(self, unit: int, other: int, pressure: int) -> int:
        if self.interference is None or unit == other:
            return 0
        slowdown = self.interference.slowdown(unit, other, pressure)
        return min(MOST_LOSS_PERMILLE, round(1000 * slowdown / (1000 + slowdown)))
