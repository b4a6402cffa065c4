"""One network on some units, measured and executed, in the numbers that the learned co-run model reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations

import numpy as np

from ...formulations.co_run import INTERPOLATED, combine
from ...formulations.costs import CostTable, NetworkCosts
from ...formulations.errors import InvalidInputError
from ...formulations.hardware import Platform, ProcessingUnit
from ...formulations.network import Network
from ...formulations.plan import Plan
from .executions import ExecutedPlan, Executions
from .noisy_or import Array, Indices, Items

NEEDED = frozenset({"isolated", "heavy"})
"""Methods of the tables that the model needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Something that runs on one unit beside others: a chunk, or any cells of it."""

    unit: int  # index of the unit
    company: tuple[int, ...]  # indices of the other units in use
    cells: Sequence[int]  # which cells it is the sum of (`Numbers`)
    own: float = 0.0  # its share of the whole network's time on the unit; 0 where that does not matter


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """The tables of a session as arrays: of its cells, layers come first, then copies in, then copies out."""

    expected_us: Array
    """Interpolated times by [used units - 1][cell][unit], microseconds; 0 where there is none."""
    isolated_us: Array  # isolated times by [cell][unit]
    slopes: Array  # ln(heavy / isolated) by [cell][unit]; 0 where one of both is 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What one session on a device knows: tables, and plans that were executed.

    `isolated`, `heavy`: the measured tables.
    """

    platform: Platform
    network: Network
    isolated: CostTable
    heavy: CostTable
    numbers: Numbers  # both as arrays
    executed: tuple[ExecutedPlan, ...] = ()  # plans with their times; may be none

    @classmethod
    def of(cls, found: Executions) -> Session:
        """Return executed plans as a session.

        Raises InvalidInputError: a table is missing.
        """
        return session(found.platform, found.network, found.tables, found.executed)

    @property
    def layers(self) -> int:
        """How many layers the network has."""
        return len(self.network.layers)

    @property
    def key(self) -> tuple[str, ...]:
        """What distinguishes networks: the names of network and layers."""
        return (self.network.name, *self.network.layer_names)

    def pieces(self, one: ExecutedPlan | Plan, *, own_share: bool = False) -> list[Piece]:
        """Return the chunks of a plan; of one that was executed, without layers that did not run."""
        plan = one if isinstance(one, Plan) else one.plan
        skipped = () if isinstance(one, Plan) else one.skipped_layers
        units = [self.platform.index_of(chunk.unit) for chunk in plan.chunks]
        found = []
        for chunk, unit in zip(plan.chunks, units, strict=True):
            layers = [layer for layer in range(chunk.start, chunk.stop) if layer not in skipped]
            copies = [self.layers + chunk.start, 2 * self.layers + 1 + chunk.stop]
            found.append(
                Piece(
                    unit=unit,
                    company=tuple(other for other in dict.fromkeys(units) if other != unit),
                    cells=layers + copies,
                    own=self._own(layers, unit) if own_share else 0.0,
                )
            )
        return found

    def sets(self) -> list[tuple[int, ...]]:
        """Return all sets of units that can run at once, the small ones first."""
        excluded = self.platform.exclusive
        units = range(len(self.platform.units))
        every = chain.from_iterable(combinations(units, size) for size in range(1, len(units) + 1))
        return [one for one in every if not any(v in excluded[u] for u, v in combinations(one, 2))]

    def _own(self, layers: Iterable[int], unit: int) -> float:
        column = self.numbers.isolated_us[: self.layers, unit]
        return float(column[list(layers)].sum() / column.sum())


def session(
    platform: Platform, network: Network, tables: Iterable[CostTable], executed: Iterable[ExecutedPlan] = ()
) -> Session:
    """Return a session from tables in any order."""
    known = {table.provenance.method: table for table in tables}
    missing = sorted(NEEDED - known.keys())
    if missing:
        raise InvalidInputError(
            f"the table {', '.join(missing)} is missing: who slows whom is learned between both tables, "
            f"isolated and heavy; measured are {', '.join(known) or 'none'}"
        )
    return Session(
        platform=platform,
        network=network,
        isolated=known["isolated"],
        heavy=known["heavy"],
        numbers=_numbers(known["isolated"], known["heavy"], platform, network),
        executed=tuple(executed),
    )


def _numbers(isolated: CostTable, heavy: CostTable, platform: Platform, network: Network) -> Numbers:
    found = combine(INTERPOLATED, (isolated, heavy), platform)
    alone, busy = (_cells(table.of(network.name)) for table in (isolated, heavy))
    known = (alone > 0) & (busy > 0)
    counts = range(1, len(platform.units) + 1)
    return Numbers(
        expected_us=np.stack([_cells(found.table(used).of(network.name)) for used in counts]),
        isolated_us=alone,
        slopes=np.log(np.where(known, busy, 1) / np.where(known, alone, 1)),
    )


def _cells(costs: NetworkCosts) -> Array:
    layers = [[time or 0 for time in row] for row in costs.layer_us]
    nothing = [[0] * len(layers[0])] * (len(layers) + 1)
    copies = [list(map(list, rows)) or nothing for rows in (costs.transfer_in_us, costs.transfer_out_us)]
    return np.array([*layers, *copies[0], *copies[1]], float)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """All cells of some pieces: expected times, and what the prior sees of them."""

    items: Items  # one row a cell
    time_us: Array  # expected time of each
    owner: Indices  # index of its piece
    count: int  # number of pieces

    def summed(self, deviation: Array) -> tuple[Items, Array]:
        """Return the pieces themselves, and their times, where cells deviate by some logarithms.

        Pieces are linearised there: each is the mean of its cells, weighted by their times.
        """
        time_us = self.time_us * np.exp(deviation)
        whole = np.bincount(self.owner, time_us, self.count).astype(np.float64)
        return self.items.merged(self.owner, time_us / whole[self.owner], self.count), whole


@dataclass(frozen=True, slots=True)
class Places:
    """Which indices the units, networks and sessions have that are learned from together.

    Units are the same where all that is known of them is, and networks where all names are.
    """

    units: Mapping[ProcessingUnit, int]
    networks: Mapping[tuple[str, ...], int]
    most_layers: int

    @classmethod
    def of(cls, sessions: Sequence[Session]) -> Places:
        """Return the indices for some sessions."""
        units = dict.fromkeys(unit for one in sessions for unit in one.platform.units)
        networks = dict.fromkeys(one.key for one in sessions)
        return cls(
            {unit: index for index, unit in enumerate(units)},
            {key: index for index, key in enumerate(networks)},
            max(one.layers for one in sessions),
        )

    def cells(self, one: Session, number: int, pieces: Sequence[Piece]) -> Cells:
        """Return the cells of pieces of a session, which has a number."""
        place = [self.units[unit] for unit in one.platform.units]
        lengths = np.array([len(piece.cells) for piece in pieces], np.intp)
        owner = np.repeat(np.arange(len(pieces)), lengths)
        cell = np.array([c for piece in pieces for c in piece.cells], np.intp)
        unit = np.array([piece.unit for piece in pieces], np.intp)
        beside = np.zeros((len(pieces), len(self.units)))
        for row, piece in enumerate(pieces):
            beside[row, [place[other] for other in piece.company]] = 1
        used = np.array([len(piece.company) for piece in pieces], np.intp)
        shares = np.zeros((len(cell), self.most_layers))
        rows = np.flatnonzero(cell < one.layers)
        shares[rows, cell[rows]] = 1
        return Cells(
            items=Items(
                session=np.full(len(cell), number),
                network=np.full(len(cell), self.networks[one.key]),
                unit=np.array(place, np.intp)[unit[owner]],
                company=beside[owner],
                slope=one.numbers.slopes[cell, unit[owner]],
                own=np.array([piece.own for piece in pieces], float)[owner],
                shares=shares,
            ),
            time_us=one.numbers.expected_us[used[owner], cell, unit[owner]],
            owner=owner,
            count=len(pieces),
        )


def units_of(one: Session, members: Sequence[int]) -> tuple[str, ...]:
    """Return the names of some units of a session."""
    return tuple(one.platform.unit_names[unit] for unit in members)
