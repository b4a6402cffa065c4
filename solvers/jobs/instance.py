"""Requests as the search and the bound see them: passages of their networks, and who slows down whom."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...formulations.jobs.tables import JobTables, Visits
from ...formulations.losses import LossTable
from ..company import Company, Runnable
from .passages import Passages


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """Requests of several networks on some units."""

    networks: tuple[Passages, ...]
    network_of: tuple[int, ...]  # by request
    release_us: tuple[int, ...]  # by request
    after: tuple[tuple[int, ...], ...]  # by request, those that it waits for
    losses: LossTable | None  # None: nothing slows anything down
    exclusive: tuple[frozenset[int], ...]  # for each unit those that never run at the same time
    visits: Visits  # which units a request may pass in which order

    @property
    def unit_count(self) -> int:
        """Number of units K."""
        return len(self.exclusive)

    @property
    def counts(self) -> tuple[int, ...]:
        """How many requests of each network there are."""
        return tuple(map(self.network_of.count, range(len(self.networks))))

    @property
    def longest_us(self) -> int:
        """A lower bound on the makespan: the longest that a request, and those before it, take alone."""
        alone = [network.alone for network in self.networks]
        ends: list[int] = []
        for number, release_us, before in zip(self.network_of, self.release_us, self.after, strict=True):
            own = alone[number]
            begin_us = max([release_us, *(ends[other] for other in before)])
            ends.append(begin_us + (0 if own is None else own[0]))
        return max(ends)

    @property
    def able(self) -> NDArray[np.bool_]:
        """Whether a unit can run some section of a network, shape (N, K)."""
        return np.array(
            [
                [any(last > border for border, last in enumerate(row)) for row in network.reach]
                for network in self.networks
            ]
        )

    def company(self) -> Company:
        """Return the sets of requests that can run at the same time."""
        size, units = len(self.networks), self.unit_count
        none = np.zeros((size, units, size, units), dtype=np.int64)
        return Company(
            Runnable(
                counts=self.counts,
                able=self.able,
                losses=none if self.losses is None else np.array(self.losses, dtype=np.int64),
                exclusive=self.exclusive,
            )
        )


def instance_of(tables: JobTables, units: Collection[int]) -> Instance:
    """Return the requests of a problem on some of its units."""
    return Instance(
        networks=tuple(
            Passages.of(chain, (0, *(section.stop for section in own)), units, tables.visits)
            for chain, own in zip(tables.chains, tables.sections, strict=True)
        ),
        network_of=tables.chain_of,
        release_us=tuple(request.release_us for request in tables.jobs.requests),
        after=tables.after,
        losses=tables.losses.permille if tables.losses.contended else None,
        exclusive=tables.chains[0].exclusive,
        visits=tables.visits,
    )
