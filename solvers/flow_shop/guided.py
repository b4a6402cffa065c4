"""Schedules that do what the program behind the contention bound says: which cuts, and who beside whom.

The program says which share of the requests of a kind takes which cuts. The order is built from the front:
whenever a unit has nothing to do, one of the requests that need it is next, if it is their turn. What a
schedule takes longer than the bound is what its company loses, over time, against the best company (the
reduced cost of a set of the program), and what its cuts cost more than the cheapest ones. So a beam of
partial orders is played, with the slowdown, and those are kept that have lost least and have taken requests
of all groups alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ..contention import PRICE_SCALE
from ..protocol import Deadline
from .company import company_of
from .contention_bound import ContentionBound
from .draft import Draft, DraftContext, Places

_WIDTH = 4
"""Partial orders that are kept."""

_MOST_DRAFTS = 3
"""Orders that are played in full."""

_EVEN = 0.3
"""What it counts, in parts of its price, that a request too many or too few of a group has been taken; for
more of them by the square."""

_AHEAD = 0.5
"""How many requests of a group may be taken before their turn."""

_ROUNDING_US = 1e-6
"""A chunk that has less work left has ended."""


def guided_drafts(context: DraftContext, bound: ContentionBound, deadline: Deadline) -> Iterator[Draft]:
    """Yield drafts that follow the program behind a bound; with a fixed order its cuts only."""
    groups = [group for number in range(len(bound.kinds)) for group in _shared_out(bound, number)]
    of_request: dict[int, Places] = {request: cuts for _, cuts, own in groups for request in own}
    places = tuple(of_request[request] for request in range(len(of_request)))
    if not context.shop.order_is_free:
        yield Draft(tuple(range(len(places))), places)
        return
    for found in _Dispatch(context, bound, groups).orders(deadline):
        waiting = [iter(own) for _, _, own in groups]
        yield Draft(tuple(next(waiting[group]) for group in found), places)


def _shared_out(bound: ContentionBound, number: int) -> list[tuple[int, Places, list[int]]]:
    """Return (kind, cuts, requests) for the cuts of one kind that requests should take."""
    requests = list(bound.kinds[number].requests)
    wanted = bound.shares[number] / max(bound.shares[number].sum(), 1e-9) * len(requests)
    counts = np.floor(wanted + 1e-6).astype(np.int64)
    missing = len(requests) - int(counts.sum())
    counts[np.argsort(counts - wanted)[:missing]] += 1
    groups = []
    for cuts, count in zip(bound.cuts[number].tolist(), counts.tolist(), strict=True):
        if count:
            groups.append((number, tuple(cuts), requests[:count]))
            requests = requests[count:]
    return groups


class _State(NamedTuple):
    """A schedule while it is played, up to where a unit has nothing to do."""

    lines: tuple[tuple[tuple[int, int], ...], ...]
    """Whom each unit serves next: (position in the order, group)."""

    left_us: tuple[float, ...]
    """Work that the first in each line still has; 0: it does not run."""

    lost_us: float
    """What the company has lost so far."""


class _Partial(NamedTuple):
    """A partial order: the last group, the order before, what is left of each group, and how it is played."""

    score: float
    state: _State
    left: tuple[int, ...]
    group: int = -1
    before: _Partial | None = None

    @property
    def order(self) -> list[int]:
        """The groups in order."""
        found, partial = list[int](), self
        while partial.before is not None:
            found.append(partial.group)
            partial = partial.before
        return found[::-1]


class _Dispatch:
    """Plays orders of groups of requests, all of which are cut alike."""

    def __init__(
        self, context: DraftContext, bound: ContentionBound, groups: Sequence[tuple[int, Places, list[int]]]
    ) -> None:
        self._kinds = [number for number, _, _ in groups]
        self._counts = np.array([len(own) for _, _, own in groups])
        self._rows = [tuple(map(float, context.row(own[0], cuts))) for _, cuts, own in groups]
        self._prices = bound.prices / PRICE_SCALE
        self._worth = (np.array(self._rows) * self._prices[self._kinds]).sum(axis=1)
        self._units = range(context.shop.unit_count)
        self._sets = company_of(context.shop, bound.kinds)
        self._known: dict[tuple[int, ...], tuple[list[float], float]] = {}

    def orders(self, deadline: Deadline) -> Iterator[list[int]]:
        """Yield orders of groups, each as often as it has requests; none if the time is up before."""
        nothing = _State(((),) * len(self._units), (0.0,) * len(self._units), 0.0)
        beam = [_Partial(0.0, nothing, tuple(self._counts.tolist()))]
        for position in range(int(self._counts.sum())):
            if deadline.passed:
                return
            found: dict[tuple[int, tuple[int, ...]], _Partial] = {}
            for partial in sorted(self._next(beam, position), key=lambda each: each.score):
                found.setdefault((round(partial.state.lost_us), partial.left), partial)
                if len(found) == _WIDTH:
                    break
            beam = list(found.values())
        yield from (partial.order for partial in beam[:_MOST_DRAFTS])

    def _next(self, beam: Sequence[_Partial], position: int) -> Iterator[_Partial]:
        """Yield what each partial order can become by one request."""
        for partial in beam:
            groups, _ = self._turns(partial.left)
            lines = partial.state.lines
            idle = [unit for unit in self._needed(groups) if not lines[unit]] or self._units
            for group in groups:
                row = self._rows[group]
                if any(row[unit] for unit in idle):
                    left = (*partial.left[:group], partial.left[group] - 1, *partial.left[group + 1 :])
                    queued = ((position, group),)
                    joined = tuple(
                        line + queued if work else line for line, work in zip(lines, row, strict=True)
                    )
                    then, uneven_us = self._turns(left)
                    state = self._played(partial.state._replace(lines=joined), self._needed(then))
                    yield _Partial(state.lost_us + _EVEN * uneven_us, state, left, group, partial)

    def _turns(self, left: Sequence[int]) -> tuple[list[int], float]:
        """Return the groups whose turn it is, and how far groups are from their turns, squared."""
        waiting = np.array(left)
        due = self._counts * (waiting @ self._worth) / max(float(self._counts @ self._worth), _ROUNDING_US)
        early = due - waiting
        groups = np.flatnonzero((waiting > 0) & (early < _AHEAD)).tolist()
        return groups, float(self._worth @ early**2)

    def _needed(self, groups: Sequence[int]) -> list[int]:
        """Return the units that some groups need."""
        return [unit for unit in self._units if any(self._rows[group][unit] for group in groups)]

    def _played(self, state: _State, needed: Sequence[int]) -> _State:
        """Play until a unit has nothing to do that is needed, or nothing is left."""
        lines, works, lost_us = list(state.lines), list(state.left_us), state.lost_us
        while True:
            for unit, line in enumerate(lines):
                if line and not works[unit]:
                    position, group = line[0]
                    if all(position != other for before in lines[:unit] for other, _ in before):
                        works[unit] = self._rows[group][unit]
            if not any(works) or not all(lines[unit] for unit in needed):
                return _State(tuple(lines), tuple(works), lost_us)
            running = (
                self._kinds[line[0][1]] if work else -1 for line, work in zip(lines, works, strict=True)
            )
            rates, loss = self._company(tuple(running))
            time_us = min(work / rate for work, rate in zip(works, rates, strict=True) if work)
            lost_us += time_us * loss
            for unit, work in enumerate(works):
                if work:
                    works[unit] = work - time_us * rates[unit]
                    if works[unit] < _ROUNDING_US:
                        works[unit], lines[unit] = 0.0, lines[unit][1:]

    def _company(self, running: tuple[int, ...]) -> tuple[list[float], float]:
        """Return how fast each unit is, and what a microsecond loses; kind on each unit, -1 for none."""
        known = self._known.get(running)
        if known is None:
            pairs = self._sets.rates_of(np.array([running])).reshape(self._prices.T.shape) / 1000
            loss = 1.0 - float((self._prices.T * pairs).sum())
            known = self._known[running] = pairs.sum(axis=1).tolist(), loss
        return known
