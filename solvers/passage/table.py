"""One network as arrays over pieces: the layers between two boundaries where a chunk may end.

With T[p][u] the time of a piece on a unit, E[b][u] the copy in where a chunk starts at a boundary and X[b][u]
the copy out where one ends, a plan is a unit per piece. Its loads are sums of T, and of E and X where the
unit changes: whatever happens at one boundary needs to know two pieces only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice, pairwise

import numpy as np
from numpy.typing import NDArray

from ...formulations.chain import Chain, Part
from ...formulations.errors import InvalidProblemError
from ...formulations.hardware import free_sets
from ...formulations.weights import Weights
from ..chunking.ranking import Flags, Ints
from ..chunking.tables import Restrictions

Floats = NDArray[np.float64]
Units = NDArray[np.int8]
"""Units of pieces."""

_MOST_TOTAL = 1 << 51
"""Sums of times must be exact in floating point."""

_FINEST = 1 << 16

_MOST_SETS = 64
"""Sets of units that are searched one by one, at most."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Table:
    """Arrays of one chain, restricted by what rules forbid outright.

    Attributes
    ----------
    chain, restrictions
        The integer tables, and what rules forbid or demand.
    cuts
        First layer after each boundary, by [boundary 0..count].
    time, able
        Time of a piece on a unit (0 where it cannot run), and whether it can, by [piece][unit].
    enter, leave
        Copies where a chunk starts or ends, by [boundary][unit].
    must
        Whether a chunk has to end at a boundary, by [boundary].
    weights, working
        Weights of the pieces, and the bytes of the tensors while a piece runs, by [piece].
    scale
        Prices are whole numbers up to this one, a power of two.
    """

    chain: Chain
    restrictions: Restrictions
    cuts: Ints
    time: Ints
    able: Flags
    enter: Ints
    leave: Ints
    must: Flags
    weights: Weights
    working: Ints
    scale: int

    @property
    def count(self) -> int:
        """Number of pieces."""
        return len(self.time)

    @property
    def units(self) -> int:
        """Number of units."""
        return int(self.time.shape[1])

    @cached_property
    def most_load(self) -> Ints:
        """What each unit cannot be busier than, because of rules."""
        caps = np.full(self.units, np.iinfo(np.int64).max)
        for unit, most in self.restrictions.most_busy.items():
            caps[unit] = most
        return caps

    @cached_property
    def most_bytes(self) -> Ints:
        """What each unit cannot hold more than."""
        caps = np.full(self.units, np.iinfo(np.int64).max)
        for unit, size in enumerate(self.chain.unit_memory):
            caps[unit] = min(
                (m for m in (size, self.restrictions.most_bytes.get(unit)) if m is not None),
                default=caps[unit],
            )
        return caps

    @cached_property
    def first(self) -> Ints:
        """For each unit the first one of its resource, in whose row the loads of all of them are added up."""
        return np.array(self.chain.resources, dtype=np.int64)

    @cached_property
    def pools(self) -> Ints:
        """Whether a unit is one of a resource, by [first unit of the resource][unit]; other rows are 0."""
        found: Ints = (np.arange(self.units)[:, None] == self.first).astype(np.int64)
        return found

    def pooled(self, loads: Ints) -> Ints:
        """Return the loads of resources from those of units, both by [unit][plan]."""
        found: Ints = loads if bool(self.pools.diagonal().all()) else self.pools @ loads
        return found

    def in_use(self, mask: Ints) -> Flags:
        """Return which resources are in use, by [first unit][plan], from a bit per unit."""
        found: Flags = (mask & (self.pools @ self.bits)[:, None]) != 0
        return found

    @cached_property
    def bits(self) -> Ints:
        """One bit per unit."""
        return np.left_shift(1, np.arange(self.units, dtype=np.int64))

    @cached_property
    def conflicts(self) -> Ints:
        """The bits of the units that each one excludes, of those that can run anything."""
        busy = set(np.flatnonzero(self.able.any(axis=0)).tolist())
        bits = [sum(1 << other for other in others & busy) for others in self.chain.exclusive]
        return np.array([bit if unit in busy else 0 for unit, bit in enumerate(bits)], dtype=np.int64)

    def compatible(self) -> list[Table]:
        """Return arrays for each largest set of units without conflicts; the whole if there are too many."""
        if not self.conflicts.any():
            return [self]
        sets = list(islice(free_sets(self.chain.exclusive), _MOST_SETS + 1))
        if len(sets) > _MOST_SETS:
            return [self]
        units = range(self.units)
        return [replace(self, able=self.able & np.array([u in found for u in units])) for found in sets]

    def parts_of(self, units: Sequence[int]) -> tuple[Part, ...]:
        """Return the chunks of a plan from the unit of each piece."""
        borders = [0, *(b for b in range(1, self.count) if units[b] != units[b - 1]), self.count]
        cuts = self.cuts.tolist()
        return tuple((cuts[a], cuts[b], int(units[a])) for a, b in pairwise(borders))

    def units_of(self, parts: Sequence[Part]) -> tuple[int, ...]:
        """Return the unit of each piece of a plan."""
        cuts = self.cuts.tolist()
        return tuple(unit for start, stop, unit in parts for cut in cuts[:-1] if start <= cut < stop)


def build_table(chain: Chain, restrictions: Restrictions) -> Table:
    """Return the arrays of a chain.

    Raises
    ------
    InvalidProblemError
        Its times are too large to add them up.
    """
    cuts = np.array([cut for cut in chain.cuts if cut not in restrictions.uncut], dtype=np.int64)
    prefix = np.array(chain.prefix_us, dtype=np.int64)[:, cuts]
    blocked = np.array([[t is None for t in row] for row in chain.layer_us])
    for layer, unit in restrictions.blocked:
        blocked[layer, unit] = True
    enter, leave = (
        np.array(rows, dtype=np.int64)[cuts] for rows in (chain.transfer_in_us, chain.transfer_out_us)
    )
    total = int(prefix[:, -1].sum() + enter.sum() + leave.sum())
    if total > _MOST_TOTAL:
        raise InvalidProblemError(
            f"all times together are {total} us, native adds up at most {_MOST_TOTAL}: give times in a "
            "coarser unit, or use --backend z3"
        )
    piece = np.repeat(np.arange(len(cuts) - 1), np.diff(cuts))
    return Table(
        chain=chain,
        restrictions=restrictions,
        cuts=cuts,
        time=np.diff(prefix, axis=1).T.copy(),
        able=~np.logical_or.reduceat(blocked, cuts[:-1], axis=0),
        enter=enter,
        leave=leave,
        must=np.array([int(cut) in restrictions.cut for cut in cuts]),
        weights=chain.weights.grouped(piece.tolist(), len(cuts) - 1),
        working=np.maximum.reduceat(np.array(chain.working_bytes, dtype=np.int64), cuts[:-1]),
        scale=min(_FINEST, 1 << ((_MOST_TOTAL // max(total, 1)) | 1).bit_length() - 1),
    )
