"""The tables of a workload as numpy arrays over legal boundaries.

The time of the layers between two boundaries a < b on unit k is `tail[k][b] + head[k][a]`, so every
minimum over a is a minimum of `head` plus something: that is what the fast recursions live on.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...formulations.chain import Chain
from ...formulations.flow_shop.tables import Cuts
from ..weights import reaches

Ints = NDArray[np.int64]

FORBIDDEN = 2**50
"""Time of a chunk that its unit cannot run: more than any plan takes, and sums of it do not overflow."""


@dataclass(frozen=True)
class ChainArrays:
    """One network; boundaries are counted among the legal ones: 0, ..., m.

    `head`, `tail`: microseconds by [unit][boundary], shape (K, m + 1).
    """

    cuts: Ints  # the legal boundaries in layers, shape (m + 1,); the first is 0, the last n
    head: Ints
    tail: Ints
    last: Ints
    """The last boundary that a chunk which starts at a boundary can reach on a unit, limited by layers that
    it cannot run and by its memory; shape (K, m + 1)."""

    @property
    def unit_count(self) -> int:
        """Number of units K."""
        return len(self.head)

    @property
    def size(self) -> int:
        """Number of pieces m between legal boundaries."""
        return len(self.cuts) - 1

    @cached_property
    def times(self) -> Ints:
        """Microseconds by [unit][a][b], 0 for a = b and `FORBIDDEN` where it cannot be; (K, m+1, m+1)."""
        return np.stack([self.unit_times(unit) for unit in range(self.unit_count)])

    def unit_times(self, unit: int) -> Ints:
        """Return the same for one unit, which is not kept."""
        stops = np.arange(self.size + 1)
        table: Ints = self.tail[unit] + self.head[unit][:, None]
        table[(stops < stops[:, None]) | (stops > self.last[unit][:, None])] = FORBIDDEN
        np.fill_diagonal(table, 0)
        return table

    def times_us(self, places: Ints) -> Ints:
        """Return the time on each unit for cuts given as places among the boundaries, shape (..., K + 1)."""
        starts, stops = places[..., :-1], places[..., 1:]
        units = np.arange(self.unit_count)
        time = self.tail[units, stops] + self.head[units, starts]
        time = np.where(stops > self.last[units, starts], FORBIDDEN, time)
        return np.where(starts == stops, 0, time)

    def cuts_of(self, places: Ints) -> Cuts:
        """Return cuts in layers from places among the boundaries."""
        return tuple(self.cuts[places].tolist())

    def places_of(self, cuts: Cuts) -> Ints:
        """Return places among the boundaries from cuts in layers, all of them legal."""
        return np.searchsorted(self.cuts, np.array(cuts, dtype=np.int64))


def without(last: Ints, units: slice, start: int, stop: int) -> Ints:
    """Return `ChainArrays.last` where some units do not run the pieces from one boundary to another."""
    found = last.copy()
    found[units, :stop] = np.minimum(found[units, :stop], np.maximum(start, np.arange(stop)))
    return found


def build_arrays(chain: Chain) -> ChainArrays:
    """Return the arrays of one network."""
    cuts = np.array(chain.cuts, dtype=np.int64)
    prefix = np.array(chain.prefix_us, dtype=np.int64)[:, cuts]
    into, out = (
        np.array(rows, dtype=np.int64)[cuts].T for rows in (chain.transfer_in_us, chain.transfer_out_us)
    )
    last = np.array([reaches(chain, unit, cuts) for unit in range(chain.unit_count)], dtype=np.int64)
    return ChainArrays(cuts=cuts, head=into - prefix, tail=prefix + out, last=last)
