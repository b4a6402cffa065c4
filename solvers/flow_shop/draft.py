"""Schedules while they are searched: cuts as places among the legal boundaries.

A stretch of the order between what comes before and what comes after it, without slowdown. The makespan is
the longest path through a plan, and every path crosses a place in the order on one unit. So with *heads*
(when a unit is free) and *tails* (how long it is still needed up to the end), a request can be put back at
its best place, with its best cuts, without looking at the others again: Taillard's acceleration for flow
shops, extended to cuts (formulations, section 6, "replan one request").
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...formulations.flow_shop.tables import FlowShop, Schedule
from .arrays import Ints
from .ways import UNREACHABLE, Ways

Row = tuple[int, ...]
"""Microseconds of one request on each unit; 0 where it skips the unit."""

_PRECISION = 8
"""The precision that is usual: a few permille."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """What is around a stretch."""

    ready_us: Row  # when each unit is free before it
    after_us: Row  # how long each unit is needed after it, up to the end of the plan
    late_us: int = 0  # end of the plan as far as requests after it that arrive late need it


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """Where a request can go: an index in the order, cuts as places, and the end of the plan then."""

    index: int
    places: tuple[int, ...]
    limit_us: int


def heads(rows: Sequence[Row], arrivals_us: Sequence[int], ready_us: Row) -> list[Row]:
    """Return when each unit is free before each request, and after the last one."""
    free = list(ready_us)
    found = [ready_us]
    for row, arrival in zip(rows, arrivals_us, strict=True):
        at = arrival
        for unit, work in enumerate(row):
            if work:
                before = free[unit]
                at = free[unit] = (before if before > at else at) + work
        found.append(tuple(free))
    return found


def tails(rows: Sequence[Row], arrivals_us: Sequence[int], sides: Sides) -> list[tuple[Row, int]]:
    """Return (`after_us`, `late_us`) as in `Sides` of each place in the order, one more than requests."""
    after, late = list(sides.after_us), sides.late_us
    units = range(len(after) - 1, -1, -1)
    found = [(sides.after_us, late)]
    for row, arrival in zip(reversed(rows), reversed(arrivals_us), strict=True):
        needed = 0
        for unit in units:
            work = row[unit]
            if work:
                behind = after[unit]
                needed = after[unit] = (behind if behind > needed else needed) + work
        if arrival and needed:  # who takes no time ends nothing
            late = max(late, arrival + needed)
        found.append((tuple(after), late))
    found.reverse()
    return found


def end_us(rows: Sequence[Row], arrivals_us: Sequence[int], sides: Sides) -> int:
    """Return the makespan of the whole plan with these requests in the stretch."""
    last = heads(rows, arrivals_us, sides.ready_us)[-1]
    return max(sides.late_us, *map(int.__add__, last, sides.after_us))


def put_back(
    ways: Ways,
    arrival_us: int,
    others: tuple[Sequence[Row], Sequence[int]],
    sides: Sides,
    *,
    limit_us: int,
    rng: random.Random,
    indices: Sequence[int] | None = None,
    precision: int = _PRECISION,
) -> Spot | None:
    """Return the best place and cuts of one request among others that stay as they are.

    Cuts that were good before are tried first (`Ways.known_ends`); then the least end of the plan is found by
    bisection. All places in the order are asked at once.

    `others`: rows and arrivals of the others, in order. `indices`: places in the order that are allowed, 0 to
    the number of others; None: all. `precision`: the end of the plan is searched to one part in two to the
    power of this.
    None: the plan cannot end in time. The end found is the least one up to twice the precision.
    """
    rows, arrivals = others
    before = np.array(heads(rows, arrivals, sides.ready_us))
    behind = tails(rows, arrivals, sides)
    after = np.array([needed for needed, _ in behind])
    base = np.maximum((before + after).max(axis=1), [late for _, late in behind])
    open_ = np.arange(len(base)) if indices is None else np.array(indices)

    def possible(limit: int) -> Ints:
        kept: Ints = open_[base[open_] <= limit]
        if not len(kept):
            return kept
        ends = ways.earliest(before[kept], after[kept], arrival_us, limit)
        return np.compress(ends < UNREACHABLE, kept)

    spot = _known_spot(ways, arrival_us, (before[open_], after[open_], base[open_]), limit_us, rng)
    if spot is not None:
        spot = replace(spot, index=int(open_[spot.index]))
        limit_us = spot.limit_us - max(1, spot.limit_us >> precision)
    open_ = possible(limit_us)
    if not len(open_):
        return spot
    low, high = int(base[open_].min()) - 1, limit_us
    while high - low > max(1, high >> precision):
        middle = (low + high) // 2
        kept = possible(middle)
        if len(kept):
            open_, high = kept, middle
        else:
            low = middle
    index = int(open_[rng.randrange(len(open_))])
    places = ways.places_within(before[index].tolist(), after[index].tolist(), arrival_us, high)
    ways.remember(places)
    return Spot(index=index, places=places, limit_us=high)


def _known_spot(
    ways: Ways, arrival_us: int, sides: tuple[Ints, Ints, Ints], limit_us: int, rng: random.Random
) -> Spot | None:
    """Return about the best place for cuts that were good somewhere before; indices count the sides."""
    before, after, base = sides
    known, ends = ways.known_ends(before, after, arrival_us)
    if not ends.size:
        return None
    ends = np.maximum(ends, base[:, None])
    least = int(ends.min())
    if least > limit_us:
        return None
    rows, columns = np.nonzero(ends <= min(limit_us, least + (least >> _PRECISION)))
    pick = rng.randrange(len(rows))
    row, column = int(rows[pick]), int(columns[pick])
    return Spot(index=row, places=known[column], limit_us=int(ends[row, column]))


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
