"""Who can run at the same time, and how fast: the sets of pairs (unit, kind of request).

A set has at most one kind on each unit, no two units that
share cores, a kind at most as often as it has requests (each is on one unit at a time), no more requests
than there are task slots, and no more bytes than the device has, each chunk taken for the smallest piece.
"""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..formulations.losses import MOST_LOSS_PERMILLE
from .simplex import Floats

Ints = NDArray[np.int64]

_MOST_SETS = 40_000
"""More sets than this are not listed: those that matter at some prices are searched for."""

_FRONT = 4_000
"""Sets that are grown together when they are searched for."""

_LEAST_RATE = 1000.0 - MOST_LOSS_PERMILLE
"""Progress in permille that is left in any company."""

_NOBODY = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Runnable:
    """What can run, by kind of request and unit, and what it needs."""

    counts: tuple[int, ...]  # how many requests of each kind there are
    able: NDArray[np.bool_]  # whether the unit can run some piece of the kind, shape (N, K)
    losses: Ints
    """Permille of its speed that kind a on unit u loses at least beside kind b on unit v, by [a][u][b][v]."""
    most_losses: Ints  # the same at most
    exclusive: tuple[frozenset[int], ...]  # for each unit those that it excludes
    slots: int | None = None  # most requests at once
    least_bytes: Ints | None = None  # of a chunk, shape (N, K)
    room: int | None = None  # bytes for all chunks at once


class Company:
    """The sets that can run at the same time.

    Pairs are flattened: kind n on unit k has the index k N + n. A member of a set of kind n on unit k
    progresses at 1000 - sum of losses permille at most, of which it loses at most the cap, as in the play.
    """

    def __init__(self, runnable: Runnable) -> None:
        self._runs = runnable
        self._size, self._units = runnable.able.shape
        pairs = self._units * self._size
        # permille of its speed that one pair loses beside another, shape (K N, K N)
        self.losses: Floats = runnable.losses.transpose(1, 0, 3, 2).reshape(pairs, pairs).astype(np.float64)
        self._beside = np.pad(self.losses, (0, 1))
        """The same; the last one is nobody."""
        self.able: NDArray[np.bool_] = runnable.able.T.ravel()
        self._first = int(self.able.argmax()) // self._size
        """The first unit that can run anything."""
        self._apart: NDArray[np.bool_] | None = None
        # how many thousandths of a microsecond a play can take off what one pair loses to one chunk of
        # another that it meets, shape (K N, K N); 0 where they never meet
        self.rounding = self._shortened()
        self._bytes = np.zeros(pairs + 1, dtype=np.int64)
        if runnable.least_bytes is not None:
            self._bytes[:-1] = runnable.least_bytes.T.ravel()

    def _shortened(self) -> Ints:
        """Return `rounding`."""
        losses, pairs = self.losses.astype(np.int64), self.losses.shape
        most = self._runs.most_losses.transpose(1, 0, 3, 2).reshape(pairs)
        units, numbers = np.divmod(np.arange(len(losses)), self._size)
        alone = np.array([count == 1 for count in self._runs.counts])[numbers]
        never = (units[:, None] == units) | ((numbers[:, None] == numbers) & alone)
        for unit, others in enumerate(self._runs.exclusive):
            never |= (units == unit)[:, None] & np.isin(units, list(others))
        return np.where(never, 0, rounded_off(losses, most))

    @cached_property
    def rates(self) -> Floats | None:
        """Rates of the members of all sets in permille, shape (Q, K N); None if they are too many."""
        most = math.prod(len(self._runnable(unit)) + 1 for unit in range(self._units))
        if all(count == 1 for count in self._runs.counts):
            most = min(most, _most_sets(self._size, self._units))
        if most > 4 * _MOST_SETS:
            return None
        members = self._grown()[0]
        return self.rates_of(members) if len(members) <= _MOST_SETS else None

    @cached_property
    def members(self) -> Ints:
        """The same sets: the kind on each unit, -1 for none, shape (Q, K)."""
        if self.rates is None:
            return np.empty((0, self._units), dtype=np.int64)
        running = (self.rates > 0).reshape(-1, self._units, self._size)
        return np.where(running.any(axis=2), running.argmax(axis=2), _NOBODY)

    def within(self, able: NDArray[np.bool_], apart: NDArray[np.bool_]) -> Company:
        """Return the sets that are left when kinds can run on fewer units, and pairs never meet.

        `able`: where, shape (N, K). `apart`: pairs that do not run together, shape (K N + 1, K N + 1);
        last, the first unit that does not run.
        """
        other = copy(self)
        other.able = able.T.ravel()
        other._apart = apart | np.diag(np.append(~other.able, False))
        never = apart[:-1, :-1] | ~other.able | ~other.able[:, None]
        other.rounding = np.where(never, 0, self.rounding)
        if self.rates is not None:
            other.__dict__ |= {"rates": self.rates[other.possible(self.members)]}
        other.__dict__.pop("members", None)
        return other

    def possible(self, members: Ints) -> NDArray[np.bool_]:
        """Return which of some sets are left after `within`, shape (Q,)."""
        found = np.ones(len(members), dtype=np.bool_)
        if self._apart is None:
            return found
        apart, nobody = np.pad(self._apart, (0, 1)), np.full(self._units, len(self._apart))
        nobody[self._first] -= 1
        pairs = np.where(members >= 0, members + self._size * np.arange(self._units), nobody)
        for unit in range(self._units):
            for other in range(unit, self._units):
                found &= ~apart[pairs[:, unit], pairs[:, other]]
        return found

    @property
    def alone(self) -> NDArray[np.bool_]:
        """Whether each pair can run without others, shape (K N,)."""
        units, numbers = np.divmod(np.arange(len(self.able)), self._size)
        members = np.where(np.arange(self._units) == units[:, None], numbers[:, None], _NOBODY)
        return self.able & self.possible(members)

    def rates_of(self, members: Ints) -> Floats:
        """Return the rates of the members of some sets: the kind on each unit, -1 for none, shape (Q, K)."""
        found = np.zeros((len(members), self._units * self._size))
        busy = members >= 0
        for unit in range(self._units):
            rows = np.flatnonzero(busy[:, unit])
            own = unit * self._size + members[rows, unit]
            rate = np.full(len(rows), 1000.0)
            for other in range(self._units):
                beside = busy[rows, other] & (other != unit)
                there = other * self._size + np.maximum(members[rows, other], 0)
                rate -= np.where(beside, self.losses[own, there], 0.0)
            found[rows, own] = np.maximum(rate, _LEAST_RATE)
        return found

    def best(self, prices: Floats, most: int) -> tuple[Floats, float]:
        """Return rates of the sets that are worth most at some prices, and a bound on what any is worth.

        `prices`: by pair, not negative. A set is worth the sum of price x rate (permille).
        """
        rates, dropped = self.rates, 0.0
        if rates is None:
            members, dropped = self._grown(prices)
            rates = self.rates_of(members)
        worth = rates @ prices
        chosen = np.argpartition(-worth, most)[:most] if most < len(worth) else slice(None)
        return rates[chosen], max(float(worth.max()), dropped)

    def _runnable(self, unit: int) -> Ints:
        return np.flatnonzero(self.able.reshape(self._units, self._size)[unit])

    def _grown(self, prices: Floats | None = None) -> tuple[Ints, float]:
        """Return sets grown unit by unit, and a bound on those that were left out at some prices."""
        dropped = 0.0
        pairs = np.full((1, self._units), len(self.losses))
        """The pair on each unit; nobody is the last one, which loses, takes and costs nothing."""
        taken = np.zeros((1, self._size + 1), dtype=np.int64)
        """How often each kind is in the set; last, the bytes."""
        worth, lost = np.zeros(1), np.zeros((1, 0 if prices is None else self._units))
        """At prices: what each set is worth, and what each of its members loses."""
        ahead = np.zeros(self._units + 1)
        if prices is not None:
            ahead[:-1] = 1000 * prices.reshape(self._units, self._size).max(axis=1)[::-1].cumsum()[::-1]
            prices = np.append(prices, 0.0)
        for unit in range(self._units):
            rows, joins, values = [np.arange(len(pairs))], [np.full(len(pairs), len(self.losses))], [worth]
            for own in unit * self._size + self._runnable(unit):
                able = np.flatnonzero(self._allowed(pairs, taken, unit, own))
                rows.append(able)
                joins.append(np.full(len(able), own))
                values.append(
                    worth[able]
                    if prices is None
                    else self._worth(prices, pairs[able, :unit], lost[able, :unit], own)
                )
            chosen, joined, worth = (np.concatenate(parts) for parts in (rows, joins, values))
            if prices is not None and len(worth) > _FRONT:
                order = np.argsort(-worth)
                dropped = max(dropped, float(worth[order[_FRONT]] + ahead[unit + 1]))
                kept = order[:_FRONT]
                chosen, joined, worth = chosen[kept], joined[kept], worth[kept]
            pairs, taken, lost = pairs[chosen], taken[chosen], lost[chosen]
            self._join(pairs, taken, lost, unit, joined)
        return np.where(pairs < len(self.losses), pairs % self._size, _NOBODY), dropped

    def _allowed(self, pairs: Ints, taken: Ints, unit: int, own: int) -> NDArray[np.bool_]:
        """Return the sets that a pair can join on its unit."""
        number = own % self._size
        allowed: NDArray[np.bool_] = taken[:, number] < self._runs.counts[number]
        shared = [other for other in self._runs.exclusive[unit] if other < unit]
        if shared:
            allowed &= (pairs[:, shared] == len(self.losses)).all(axis=1)
        if self._runs.slots is not None:
            allowed &= taken[:, :-1].sum(axis=1) < self._runs.slots
        if self._runs.room is not None:
            allowed &= taken[:, -1] + self._bytes[own] <= self._runs.room
        return allowed

    def _worth(self, prices: Floats, before: Ints, lost: Floats, own: int) -> Floats:
        """Return what some sets are worth with one more pair; it makes those that are there no faster."""
        takes, loses = self._beside[:, own], self._beside[own]
        rates = np.maximum(1000.0 - (lost + takes[before]), _LEAST_RATE)
        rate = np.maximum(1000.0 - loses[before].sum(axis=1), _LEAST_RATE)
        found: Floats = (prices[before] * rates).sum(axis=1) + prices[own] * rate
        return found

    def _join(self, pairs: Ints, taken: Ints, lost: Floats, unit: int, joined: Ints) -> None:
        """Put a pair, or nobody, on a unit of each set."""
        pairs[:, unit] = joined
        taken[np.arange(len(taken)), joined % self._size] += joined < len(self.losses)
        taken[:, -1] += self._bytes[joined]
        if lost.size:
            before, own = pairs[:, :unit], joined[:, None]
            lost[:, :unit] += self._beside[before, own]
            lost[:, unit] = self._beside[own, before].sum(axis=1)


def rounded_off(least: Ints, most: Ints) -> Ints:
    """Return how many thousandths of a microsecond a play takes off a loss at most, which it rounds down.

    `least`, `most`: between which the loss is, in permille. One that is known is a multiple of what it has in
    common with 1000.
    """
    known: Ints = 1000 - np.gcd(least, 1000)
    return np.where(most == 0, 0, np.where(least == most, known, 999))


def are_few(requests: int, units: int) -> bool:
    """Return whether the sets of single requests can be listed."""
    return _most_sets(requests, units) <= _MOST_SETS


def _most_sets(requests: int, units: int) -> int:
    """Return how many sets of single requests there are at most."""
    return sum(math.comb(units, k) * math.perm(requests, k) for k in range(units + 1))
