"""Prices of units that know who slows down whom, for requests that pass units in whatever way.

A small linear program whose columns come in one after the other, in floating point. Whoever uses the prices
that it finds makes them exact: nothing here has to be right to the last digit. `scipy.optimize` has better
programs, but takes longer to load than a plan may take.

Who can run at the same time, and how fast: the sets of pairs (unit, kind of request). A set has at most one
kind on each unit, no two units that share cores, a kind at most as often as it has requests (each is on one
unit at a time), no more requests than there are task slots, and no more bytes than the device has, each chunk
taken for the smallest piece.

Prices of units that know who slows down whom, for requests that pass units in whatever way. While a set S of
pairs (unit, kind) runs, each pair progresses at a rate r(S). For prices with

    sum over the pairs in S of price x r(S) <= 1   for every possible set S

the time that all chunks take without company, weighted by prices, is at most the makespan, and each request
pays at least its cheapest way. The best prices are a linear program over the time that each set runs, whose
columns are sets and ways. Whatever it finds is scaled to keep to the condition, so prices on the way give a
bound, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..formulations.losses import MOST_LOSS_PERMILLE
from .protocol import Deadline

Floats = NDArray[np.float64]

_TOLERANCE = 1e-9
_PIVOTS_TO_REFRESH = 60
_MOST_PIVOTS = 20_000


class Simplex:
    """Minimise costs x with columns x = right, x >= 0, by the revised simplex method.

    `columns`, `costs`: a basis to start from, shapes (m, m) and (m,); its solution must not be negative.
    `right`: the right-hand side, shape (m,).
    `columns`, `costs`: all columns so far, shapes (m, n) and (n,).
    """

    def __init__(self, columns: Floats, costs: Floats, right: Floats) -> None:
        self.columns, self.costs = columns, costs
        self._right = right
        self._basis = np.arange(len(right))
        self._pivots = 0
        self._refresh()

    def add(self, columns: Floats, costs: Floats) -> None:
        """Add columns, shapes (m, n) and (n,)."""
        self.columns = np.concatenate([self.columns, columns], axis=1)
        self.costs = np.concatenate([self.costs, costs])

    @property
    def prices(self) -> Floats:
        """What one more unit of each row costs, at the present basis, shape (m,)."""
        found: Floats = self.costs[self._basis] @ self._inverse
        return found

    @property
    def values(self) -> Floats:
        """How much of each column is used, shape (n,)."""
        found = np.zeros(len(self.costs))
        found[self._basis] = self._level
        return found

    def solve(self, deadline: Deadline) -> bool:
        """Pivot until no column is worth more than it costs; return whether that was reached."""
        while self._pivots < _MOST_PIVOTS:
            reduced = self.costs - self.prices @ self.columns
            entering = int(reduced.argmin())
            if reduced[entering] >= -_TOLERANCE:
                return True
            self._pivots += 1
            if not self._pivot(entering) or (self._pivots % 16 == 0 and deadline.passed):
                return False
        return False

    def _pivot(self, entering: int) -> bool:
        """Take one column into the basis; return whether there was a row to leave it."""
        change = self._inverse @ self.columns[:, entering]
        rising = np.flatnonzero(change > _TOLERANCE)
        if not len(rising):
            return False
        ratios = self._level[rising] / change[rising]
        near = rising[ratios <= ratios.min() + _TOLERANCE]
        leaving = int(near[change[near].argmax()])
        self._basis[leaving] = entering
        if self._pivots % _PIVOTS_TO_REFRESH == 0:
            self._refresh()
            return True
        pivot = self._inverse[leaving] / change[leaving]
        step = self._level[leaving] / change[leaving]
        self._inverse -= change[:, None] * pivot
        self._inverse[leaving] = pivot
        self._level -= step * change
        self._level[leaving] = step
        np.maximum(self._level, 0.0, out=self._level)
        return True

    def _refresh(self) -> None:
        self._inverse = np.linalg.inv(self.columns[:, self._basis])
        self._level = np.maximum(self._inverse @ self._right, 0.0)


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


PRICE_SCALE = 2**20
"""Prices are integers, in parts of this: it stands for 1."""

_MOST_ROUNDS, _SETS_PER_ROUND = 400, 40
"""Most times that the program is solved; most sets that come in at once."""

_NEAR = 1e-5
"""The program ends when its value is known up to this share."""

_NOT_ALONE = 100.0
"""Cost of the time in which a pair runs alone that only runs beside others: more than any is worth."""

_NUDGE, _NUDGED = 1e-7, 1e-6
"""Work that is added to each pair, as a share of all, without which the program can stand still; a set that
runs for a smaller share than the second one may be there for nothing else."""

_SAFE = 1 - 1e-9
"""More than the rounding of floating point in the worth of a set."""

Way = tuple[Any, ...]
"""How a request passes the units, as its kind writes it."""


class Passing(Protocol):
    """Requests that are alike, and the ways in which each may pass the units."""

    @property
    def count(self) -> int:
        """How many requests there are."""
        ...

    def cheapest(self, prices: Ints, discounts: Ints) -> tuple[int, Way]:
        """Return what a request pays at least, in parts of `PRICE_SCALE`, and on which way.

        `prices`: what a microsecond on each unit costs; `discounts`: what each chunk pays less, shape (K,).
        """
        ...

    def times_us(self, way: Way) -> Ints:
        """Return the time of a way on each unit without company, shape (K,)."""
        ...

    def allows(self, way: Way) -> bool:
        """Return whether a request can pass in a way that another program has found."""
        ...


class Running(Protocol):
    """Who can run at the same time, and how fast (`Company`)."""

    @property
    def able(self) -> NDArray[np.bool_]:
        """Whether each pair can run."""
        ...

    @property
    def alone(self) -> NDArray[np.bool_]:
        """Whether each pair can run without others."""
        ...

    @property
    def rounding(self) -> Ints:
        """How many thousandths of a microsecond a play can take off what one pair loses to another one."""
        ...

    def best(self, prices: Floats, most: int) -> tuple[Floats, float]:
        """Return rates of the sets that are worth most at some prices, and a bound on what any is worth."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """The best prices that were found.

    `sets`, `times_us`: who should run together: the kind on each unit or -1, shape (Q, K); and for how long,
    shape (Q,). `ways`, `shares`: by kind: ways, and which share of its requests takes them.
    """

    total: int  # what all requests pay at least, in parts of `PRICE_SCALE`
    prices: Ints
    """What a microsecond of a chunk without company costs the whole, in parts of `PRICE_SCALE`; integers by
    [kind][unit], shape (N, K)."""
    discounts: Ints
    """What a chunk pays less than the prices say, because a play rounds losses down; of the same kind."""
    sets: Ints
    times_us: Floats
    ways: tuple[tuple[Way, ...], ...]
    shares: tuple[Floats, ...]


class Program:
    """The linear program: a row for the work of each pair, and one for the requests of each kind."""

    def __init__(self, company: Running, kinds: Sequence[Passing], units: int) -> None:
        self._kinds = tuple(kinds)
        self._company = company
        self._units, self._size = units, len(kinds)
        self._pairs = self._units * self._size
        self._prices, self._bound = np.zeros((self._size, self._units), dtype=np.int64), -1
        self._ways: list[dict[Way, int]] = [{} for _ in kinds]
        """Columns of the program by kind and way."""
        self._unit_us = 1.0
        first = np.full(self._pairs, 1 / self._units)
        worth = company.best(first, 1)[1]
        # Of modes a microsecond may do more than one of work: then not even these keep to the condition.
        starts = self._ask(first if worth <= 1000 * (1 + 1e-9) else first * _SAFE * 1000 / worth)
        columns = [self._column(number, way) for number, way in enumerate(starts)]
        self._unit_us = max(1.0, -float(sum(column[: self._pairs].sum() for column in columns)))
        self._simplex = self._started(starts)

    def _started(self, starts: Sequence[Way]) -> Simplex:
        """Return the program in which everything runs alone, at a cost where it cannot."""
        able, rows = self._company.able, self._pairs + self._size
        basis, surplus = np.eye(rows), -np.eye(rows, self._pairs)[:, able]
        basis[: self._pairs][:, : self._pairs][~able] *= -1
        for number, way in enumerate(starts):
            basis[:, self._pairs + number] = self._column(number, way)
            self._ways[number] = {way: self._pairs + number}
        alone = np.where(self._company.alone, 1.0, _NOT_ALONE)
        costs = np.concatenate([np.where(able, alone, 0.0), np.zeros(self._size)])
        rng = np.random.default_rng(0)
        work = np.where(able, _NUDGE * rng.uniform(1.0, 2.0, self._pairs), 0.0)
        simplex = Simplex(basis, costs, np.concatenate([work, np.ones(self._size)]))
        simplex.add(surplus, np.zeros(surplus.shape[1]))
        return simplex

    def _column(self, number: int, way: Way) -> Floats:
        """Return the column of "all requests of a kind pass like this"."""
        column = np.zeros(self._pairs + self._size)
        kind = self._kinds[number]
        column[number : self._pairs : self._size] = -kind.count * kind.times_us(way) / self._unit_us
        column[self._pairs + number] = 1.0
        return column

    def recall(self, sets: Ints, ways: Sequence[Iterable[Way]]) -> None:
        """Take in the sets and ways of another program that are still possible."""
        assert isinstance(self._company, Company)
        sets = sets[self._company.possible(sets)]
        columns = np.concatenate([self._company.rates_of(sets).T / 1000, np.zeros((self._size, len(sets)))])
        self._simplex.add(columns, np.ones(len(sets)))
        taken: list[Floats] = []
        for number, (kind, known) in enumerate(zip(self._kinds, ways, strict=True)):
            for way in known:
                if way not in self._ways[number] and kind.allows(way):
                    self._ways[number][way] = len(self._simplex.costs) + len(taken)
                    taken.append(self._column(number, way))
        if taken:
            self._simplex.add(np.array(taken).T, np.zeros(len(taken)))

    def improve(self, deadline: Deadline) -> None:
        """Take in sets and ways while they help."""
        for _ in range(_MOST_ROUNDS):
            done = self._simplex.solve(deadline)
            prices = np.maximum(self._simplex.prices, 0.0)
            rates, worth = self._company.best(prices[: self._pairs], _SETS_PER_ROUND)
            if not done or deadline.passed:
                self._ask(prices[: self._pairs] * _SAFE * 1000 / max(worth, 1.0))
                return
            if worth > 1000 * (1 + 1e-7):
                self._take_sets(rates, prices[: self._pairs])
                continue
            found = self._ask(prices[: self._pairs] * _SAFE * 1000 / max(worth, 1000.0))
            value = float(prices[self._pairs :].sum()) * self._unit_us
            near = self._bound >= PRICE_SCALE * value * (1 - _NEAR)
            if near or not self._take_ways(found, prices):
                return

    def _take_sets(self, rates: Floats, prices: Floats) -> None:
        """Take in the sets that are worth most, and more than their time."""
        worth = rates @ prices
        chosen = rates[worth > 1000 * (1 + 1e-7)].T / 1000
        columns = np.concatenate([chosen, np.zeros((self._size, chosen.shape[1]))])
        self._simplex.add(columns, np.ones(chosen.shape[1]))

    def _take_ways(self, found: Sequence[Way], prices: Floats) -> bool:
        """Take in the ways that are cheaper than those that are there; return whether there are any."""
        taken: list[Floats] = []
        for number, way in enumerate(found):
            column = self._column(number, way)
            if way not in self._ways[number] and prices @ column > 1e-9:
                self._ways[number][way] = len(self._simplex.costs) + len(taken)
                taken.append(column)
        if taken:
            self._simplex.add(np.array(taken).T, np.zeros(len(taken)))
        return bool(taken)

    def _ask(self, prices: Floats) -> list[Way]:
        """Return the cheapest way of each kind at prices that keep to the condition; remember the best."""
        exact = np.floor(prices * PRICE_SCALE).astype(np.int64).reshape(self._units, self._size).T
        total, found = 0, []
        for kind, own, less in zip(self._kinds, exact, self._discounts(exact), strict=True):
            least, way = kind.cheapest(own, less)
            total += kind.count * least
            found.append(way)
        if total > self._bound:
            self._bound, self._prices = total, exact
        return found

    def _discounts(self, prices: Ints) -> Ints:
        """Return how much less than the prices say a chunk can take, in parts of the scale, shape (N, K).

        A play rounds the loss of a chunk to each other chunk down. Two chunks that meet are counted with
        the one that starts later: it meets one chunk a unit then.
        """
        lost = prices.T.reshape(-1, 1) * self._company.rounding
        each = (lost + lost.T).reshape(self._pairs, self._units, self._size).max(axis=2).sum(axis=1)
        found: Ints = -(-each.reshape(self._units, self._size).T // 1000)
        return found

    def result(self) -> Priced:
        """Return what is known."""
        columns, values = self._simplex.columns[: self._pairs], self._simplex.values
        chosen = np.flatnonzero((values > _NUDGED) & (self._simplex.costs > 0))
        running = columns[:, chosen].T.reshape(-1, self._units, self._size)
        return Priced(
            total=self._bound,
            prices=self._prices,
            discounts=self._discounts(self._prices),
            sets=np.where(running.any(axis=2), running.argmax(axis=2), -1),
            times_us=values[chosen] * self._unit_us,
            ways=tuple(map(tuple, self._ways)),
            shares=tuple(values[list(ways.values())] for ways in self._ways),
        )
