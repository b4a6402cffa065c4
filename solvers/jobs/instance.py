"""Requests as the search and the bound see them: passages of their networks, and who slows down whom."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...formulations.jobs.tables import JobTables, Visits
from ...formulations.losses import Losses, Mark
from ..company import Company, Runnable
from .passages import Part, Passages


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """Requests of several networks on some units."""

    networks: tuple[Passages, ...]
    network_of: tuple[int, ...]  # by request
    release_us: tuple[int, ...]  # by request
    after: tuple[tuple[int, ...], ...]  # by request, those that it waits for
    losses: Losses | None  # None: nothing slows anything down
    borders: tuple[tuple[int, ...], ...]  # by network, the layers at which it may be cut: 0, ..., n
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
        least = most = np.zeros((size, units, size, units), dtype=np.int64)
        if self.losses is not None:
            least = np.array(self.losses.least_permille, dtype=np.int64)
            most = np.array(self.losses.most_permille, dtype=np.int64)
        return Company(
            Runnable(
                counts=self.counts, able=self.able, losses=least, most_losses=most, exclusive=self.exclusive
            )
        )

    def mark(self, network: int, part: Part) -> Mark:
        """Return how sensitive and how intense a chunk of a network is."""
        assert self.losses is not None
        start, stop, unit = part
        borders = self.borders[network]
        return self.losses.mark(network, borders[start], borders[stop], unit)


def instance_of(tables: JobTables, units: Collection[int]) -> Instance:
    """Return the requests of a problem on some of its units."""
    borders = tuple((0, *(section.stop for section in own)) for own in tables.sections)
    return Instance(
        networks=tuple(
            Passages.of(chain, own, units, tables.visits)
            for chain, own in zip(tables.chains, borders, strict=True)
        ),
        network_of=tables.chain_of,
        release_us=tuple(request.release_us for request in tables.jobs.requests),
        after=tables.after,
        losses=tables.losses if tables.losses.contended else None,
        borders=borders,
        exclusive=tables.chains[0].exclusive,
        visits=tables.visits,
    )
