"""Schedules while they are searched: cuts as places among the legal boundaries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...formulations.flow_shop.tables import FlowShop, Schedule
from .line import Row
from .ways import Ways

Places = tuple[int, ...]
"""Cuts of one request, as places among the legal boundaries of its network."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A schedule: the requests in order, and the places of each request by its index."""

    order: tuple[int, ...]
    places: tuple[Places, ...]

    def with_places(self, changes: dict[int, Places]) -> Draft:
        """Return the same draft with other cuts of some requests."""
        places = list(self.places)
        for request, wanted in changes.items():
            places[request] = wanted
        return replace(self, places=tuple(places))


class DraftContext:
    """What a search works with: the networks as they may be cut, and the requests.

    `networks`: the ways to cut each network, by index of the chain.
    """

    def __init__(self, shop: FlowShop, networks: Sequence[Ways]) -> None:
        self.shop = shop
        self.networks = networks
        self.arrivals_us = [request.arrival_us for request in shop.workload.requests]

    def ways(self, request: int) -> Ways:
        """Return the ways to cut a request."""
        return self.networks[self.shop.chain_of[request]]

    def row(self, request: int, places: Places) -> Row:
        """Return the time of a request on each unit, without slowdown."""
        return self.ways(request).times_us(places)

    def rows(self, draft: Draft, requests: Sequence[int], rates: Sequence[Row] | None = None) -> list[Row]:
        """Return the rows of some requests, perhaps with the slowdown that each has (permille by request)."""
        rows = [self.row(request, draft.places[request]) for request in requests]
        if rates is None:
            return rows
        return [slowed(row, rates[request]) for request, row in zip(requests, rows, strict=True)]

    def draft(self, schedule: Schedule) -> Draft | None:
        """Return a schedule as a draft, or None if it uses other units."""
        places = [
            tuple(self.ways(request).arrays.places_of(cuts).tolist())
            for request, cuts in enumerate(schedule.cuts)
        ]
        if all(self.ways(request).allows(own) for request, own in enumerate(places)):
            return Draft(schedule.order, tuple(places))
        return None

    def schedule(self, draft: Draft) -> Schedule:
        """Return a draft as a schedule."""
        cuts = (self.ways(request).cuts_of(places) for request, places in enumerate(draft.places))
        return Schedule(draft.order, tuple(cuts))


def slowed(row: Row, rate: Row) -> Row:
    """Return the times of a request with the slowdown that it has on each unit, in permille."""
    return tuple(work * permille // 1000 for work, permille in zip(row, rate, strict=True))
