"""Vertical alignment by work stealing: Algorithm 3 of Hetero2Pipe with its errata 22 to 25 repaired.

The model is the paper's: column j holds the chunks with position + unit = j, and lasts as long as its
longest chunk. In each window of K positions the request with the most work is *critical*; the others
hand layers along the chain until their chunk in each of its columns is no longer than its own. Work
moves towards the units that are not aligned yet, so that no alignment is undone, and an alignment
stays only if every unit can run what it got and the columns together do not last longer.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..protocol import NEVER, Deadline
from .arrays import FORBIDDEN, ChainArrays, Ints


class Alignment:
    """The cuts of requests in order, and how long their columns last.

    `arrays`: the network of each request, in order. `places`: cuts of each request as places among the legal
    boundaries, shape (K + 1,); not changed.
    """

    def __init__(self, arrays: Sequence[ChainArrays], places: Sequence[Ints]) -> None:
        self._arrays = arrays
        self.places = list(places)
        self.times = np.array([a.times_us(own) for a, own in zip(arrays, places, strict=True)])

    @property
    def columns_us(self) -> int:
        """Sum over the columns of their longest chunk, without slowdown."""
        return sum(self._column_us(column) for column in range(sum(self.times.shape) - 1))

    def steal(self, deadline: Deadline = NEVER) -> None:
        """Align every window of K positions with its critical request, one after the other, in time."""
        count, units = self.times.shape
        for start in range(count):
            if deadline.passed:
                return
            window = range(start, min(count, start + units))
            critical = max(window, key=lambda place: int(self.times[place].sum()))
            for place in window:
                if place != critical:
                    self._offer(place, self._aligned(place, critical))

    def _aligned(self, place: int, critical: int) -> Ints:
        """Return cuts with which no chunk takes longer than the critical one of its column, if possible."""
        later = place > critical
        return self._pushed(place, critical) if later else self._pulled(place, critical)

    def _pushed(self, place: int, critical: int) -> Ints:
        """Fill the units from the first on; what is left flows to later units."""
        arrays, cuts, distance = self._arrays[place], self.places[place].copy(), place - critical
        for unit in range(len(cuts) - 1 - distance):
            most = self.times[critical, unit + distance]
            stops = _row(arrays, unit, int(cuts[unit])) <= most
            cuts[unit + 1] = np.flatnonzero(stops)[-1]
            cuts[unit + 2 :] = np.maximum(cuts[unit + 2 :], cuts[unit + 1])
        return cuts

    def _pulled(self, place: int, critical: int) -> Ints:
        """Fill the units from the last on; what is left flows to earlier units."""
        arrays, cuts, distance = self._arrays[place], self.places[place].copy(), critical - place
        for unit in reversed(range(distance, len(cuts) - 1)):
            most = self.times[critical, unit - distance]
            starts = _column(arrays, unit, int(cuts[unit + 1])) <= most
            cuts[unit] = np.flatnonzero(starts)[0]
            cuts[:unit] = np.minimum(cuts[:unit], cuts[unit])
        return cuts

    def _offer(self, place: int, cuts: Ints) -> None:
        """Take new cuts of a request if the columns do not last longer."""
        times = self._arrays[place].times_us(cuts)
        if times.max() >= FORBIDDEN:
            return
        touched = range(place, place + len(times))
        old, before = self.times[place].copy(), sum(map(self._column_us, touched))
        self.times[place] = times
        if sum(map(self._column_us, touched)) <= before:
            self.places[place] = cuts
        else:
            self.times[place] = old

    def _column_us(self, column: int) -> int:
        count, units = self.times.shape
        return max(int(self.times[column - u, u]) for u in range(units) if 0 <= column - u < count)


def _row(arrays: ChainArrays, unit: int, start: int) -> Ints:
    """Return the times of the chunks of a unit from one boundary, by where they stop."""
    stops = np.arange(arrays.size + 1)
    times = arrays.tail[unit] + arrays.head[unit, start]
    times = np.where((stops < start) | (stops > arrays.last[unit, start]), FORBIDDEN, times)
    times[start] = 0
    return times


def _column(arrays: ChainArrays, unit: int, stop: int) -> Ints:
    """Return the times of the chunks of a unit to one boundary, by where they start."""
    starts = np.arange(arrays.size + 1)
    times = arrays.tail[unit, stop] + arrays.head[unit]
    times = np.where((starts > stop) | (arrays.last[unit] < stop), FORBIDDEN, times)
    times[stop] = 0
    return times
