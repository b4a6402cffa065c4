"""Prices of units that know who slows down whom, for requests that pass units in whatever way.

While a set S of pairs (unit, kind) runs, each pair progresses at a rate r(S). For prices with

    sum over the pairs in S of price x r(S) <= 1   for every possible set S

the time that all chunks take without company, weighted by prices, is at most the makespan, and each request
pays at least its cheapest way. The best prices are a linear program over the time that each set runs, whose
columns are sets and ways. Whatever it finds is scaled to keep to the condition, so prices on the way give a
bound, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .company import Company, Ints
from .protocol import Deadline
from .simplex import Floats, Simplex

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
