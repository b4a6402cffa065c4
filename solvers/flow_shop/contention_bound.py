"""A lower bound on the makespan that knows who slows down whom (formulations, section 6).

While a set S of pairs (unit, kind) runs, each pair progresses at a rate r(S). For prices with

    sum over the pairs in S of price x r(S) <= 1   for every possible set S

the time that all chunks take without company, weighted by prices, is at most the makespan, and each request
pays at least its cheapest cuts. The best prices are a linear program over the time that each set runs, whose
columns are sets and cuts. Whatever it finds is scaled to keep to the condition, so prices on the way give a
bound, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ...formulations.flow_shop.tables import FlowShop
from ..protocol import NEVER, Deadline
from ..simplex import Floats, Simplex
from .arrays import FORBIDDEN, PRICE_SCALE, Ints
from .company import Company
from .kinds import Kind

_MOST_ROUNDS, _SETS_A_ROUND = 400, 40
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

_MOST_STEPS = 64
"""Instants at which something more can run that are told apart, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentionBound:
    """A lower bound on the makespan, and what it says about good plans.

    `sets`, `times_us`: who should run together: the kind on each unit or -1, shape (Q, K); and for how long,
    shape (Q,). `cuts`, `shares`: by kind: cuts as places, shape (P, K + 1), and which share of its requests
    takes them, shape (P,).
    """

    bound_us: int
    kinds: tuple[Kind, ...]  # the requests that it tells apart
    prices: Ints
    """What a microsecond of a chunk without company costs the whole, in parts of `PRICE_SCALE`; integers by
    [kind][unit], shape (N, K)."""
    discounts: Ints
    """What a chunk pays less than the prices say, because a play rounds losses down; of the same kind."""
    rounding_us: int  # what all chunks on all units would pay less together
    waiting: int
    """What a plan takes besides, because not everything can run from its start to its end; in parts of
    `PRICE_SCALE`."""
    sets: Ints
    times_us: Floats
    cuts: tuple[Ints, ...]
    shares: tuple[Floats, ...]


def contention_bound(
    shop: FlowShop,
    kinds: Sequence[Kind],
    deadline: Deadline = NEVER,
    *,
    company: Company | None = None,
    known: ContentionBound | None = None,
) -> ContentionBound:
    """Return the bound with the best prices that are found in time.

    `company`: who can run at the same time, if that is less than the kinds say; `known`: the bound of the
    same requests with more freedom: its sets and cuts are tried first.
    """
    program = _Program(shop, kinds, company or Company(shop, kinds))
    if known is not None:
        program.recall(known)
    program.improve(deadline)
    return program.result()


class _Program:
    """The linear program: a row for the work of each pair, and one for the requests of each kind."""

    def __init__(self, shop: FlowShop, kinds: Sequence[Kind], company: Company) -> None:
        self._kinds = tuple(kinds)
        self._company = company
        self._units, self._size = shop.unit_count, len(kinds)
        self._pairs = self._units * self._size
        self._prices, self._bound = np.zeros((self._size, self._units), dtype=np.int64), -1
        self._paths: list[dict[tuple[int, ...], int]] = [{} for _ in kinds]
        """Columns of the program by kind and places."""
        self._unit_us = 1.0
        starts = self._ask(np.full(self._pairs, 1 / self._units))
        columns = [self._path(number, places) for number, places in enumerate(starts)]
        self._unit_us = max(1.0, -float(sum(column[: self._pairs].sum() for column in columns)))
        self._simplex = self._started(starts)

    def _started(self, starts: Sequence[Ints]) -> Simplex:
        """Return the program in which everything runs alone, at a cost where it cannot."""
        able, rows = self._company.able, self._pairs + self._size
        basis, surplus = np.eye(rows), -np.eye(rows, self._pairs)[:, able]
        basis[: self._pairs][:, : self._pairs][~able] *= -1
        for number, places in enumerate(starts):
            basis[:, self._pairs + number] = self._path(number, places)
            self._paths[number] = {tuple(places.tolist()): self._pairs + number}
        alone = np.where(self._company.alone, 1.0, _NOT_ALONE)
        costs = np.concatenate([np.where(able, alone, 0.0), np.zeros(self._size)])
        rng = np.random.default_rng(0)
        work = np.where(able, _NUDGE * rng.uniform(1.0, 2.0, self._pairs), 0.0)
        simplex = Simplex(basis, costs, np.concatenate([work, np.ones(self._size)]))
        simplex.add(surplus, np.zeros(surplus.shape[1]))
        return simplex

    def _path(self, number: int, places: Ints) -> Floats:
        """Return the column of "all requests of a kind are cut like this"."""
        column = np.zeros(self._pairs + self._size)
        times = self._kinds[number].ways.arrays.times_us(places)
        column[number : self._pairs : self._size] = -self._kinds[number].count * times / self._unit_us
        column[self._pairs + number] = 1.0
        return column

    def recall(self, known: ContentionBound) -> None:
        """Take in the sets and cuts of another bound that are still possible."""
        sets = known.sets[self._company.possible(known.sets)]
        columns = np.concatenate([self._company.rates_of(sets).T / 1000, np.zeros((self._size, len(sets)))])
        self._simplex.add(columns, np.ones(len(sets)))
        taken: list[Floats] = []
        for number, (kind, cuts) in enumerate(zip(self._kinds, known.cuts, strict=True)):
            for places in map(tuple, cuts.tolist()):
                if places not in self._paths[number] and kind.ways.allows(places):
                    self._paths[number][places] = len(self._simplex.costs) + len(taken)
                    taken.append(self._path(number, np.array(places)))
        if taken:
            self._simplex.add(np.array(taken).T, np.zeros(len(taken)))

    def improve(self, deadline: Deadline) -> None:
        """Take in sets and cuts while they help."""
        for _ in range(_MOST_ROUNDS):
            done = self._simplex.solve(deadline)
            prices = np.maximum(self._simplex.prices, 0.0)
            rates, worth = self._company.best(prices[: self._pairs], _SETS_A_ROUND)
            if not done or deadline.passed:
                self._ask(prices[: self._pairs] * _SAFE * 1000 / max(worth, 1.0))
                return
            if worth > 1000 * (1 + 1e-7):
                self._take_sets(rates, prices[: self._pairs])
                continue
            found = self._ask(prices[: self._pairs] * _SAFE * 1000 / max(worth, 1000.0))
            value = float(prices[self._pairs :].sum()) * self._unit_us
            near = self._bound >= PRICE_SCALE * value * (1 - _NEAR)
            if near or not self._take_paths(found, prices):
                return

    def _take_sets(self, rates: Floats, prices: Floats) -> None:
        """Take in the sets that are worth most, and more than their time."""
        worth = rates @ prices
        chosen = rates[worth > 1000 * (1 + 1e-7)].T / 1000
        columns = np.concatenate([chosen, np.zeros((self._size, chosen.shape[1]))])
        self._simplex.add(columns, np.ones(chosen.shape[1]))

    def _take_paths(self, found: Sequence[Ints], prices: Floats) -> bool:
        """Take in the cuts that are cheaper than those that are there; return whether there are any."""
        taken: list[Floats] = []
        for number, places in enumerate(found):
            key, column = tuple(places.tolist()), self._path(number, places)
            if key not in self._paths[number] and prices @ column > 1e-9:
                self._paths[number][key] = len(self._simplex.costs) + len(taken)
                taken.append(column)
        if taken:
            self._simplex.add(np.array(taken).T, np.zeros(len(taken)))
        return bool(taken)

    def _ask(self, prices: Floats) -> list[Ints]:
        """Return the cheapest cuts of each kind at prices that keep to the condition; remember the best."""
        exact = np.floor(prices * PRICE_SCALE).astype(np.int64).reshape(self._units, self._size).T
        total, found = 0, []
        for kind, own, less in zip(self._kinds, exact, self._discounts(exact), strict=True):
            sums, places = kind.ways.least_priced(own[None, :], less[None, :])
            total += kind.count * int(sums[0])
            found.append(places[0])
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

    def result(self) -> ContentionBound:
        """Return what is known."""
        prices, total = self._prices, self._bound
        discounts = self._discounts(prices)
        most = sum(kind.count * int(own.sum()) for kind, own in zip(self._kinds, discounts, strict=True))
        waiting = self._waiting(prices, -(-total // PRICE_SCALE))
        columns = self._simplex.columns[: self._pairs]
        values = self._simplex.values
        chosen = np.flatnonzero((values > _NUDGED) & (self._simplex.costs > 0))
        running = columns[:, chosen].T.reshape(-1, self._units, self._size)
        return ContentionBound(
            bound_us=max(0, -(-(total + waiting) // PRICE_SCALE)),
            kinds=self._kinds,
            prices=prices,
            discounts=discounts,
            rounding_us=-(-most // PRICE_SCALE),
            waiting=waiting,
            sets=np.where(running.any(axis=2), running.argmax(axis=2), -1),
            times_us=values[chosen] * self._unit_us,
            cuts=tuple(np.array(list(paths)) for paths in self._paths),
            shares=tuple(values[list(paths.values())] for paths in self._paths),
        )

    def _waiting(self, prices: Ints, bound_us: int) -> int:
        """Return what the prices lose while not everything can run, in parts of the scale.

        A pair runs from the first arrival of its kind on, after the least time on the units before it, and
        not in the least time that the units after it take, as long as the start and the end do not meet.
        """
        rates = self._company.rates
        heads, tails = np.array([kind.ways.outside_us for kind in self._kinds]).transpose(1, 2, 0)
        arrivals = [self._company.arrivals_us(kind) for kind in self._kinds]
        heads = np.where(heads < FORBIDDEN, heads + [min(own) for own in arrivals], 0)
        tails = np.where(tails < FORBIDDEN, tails, 0)
        if rates is None or not (heads.any() or tails.any()):
            return 0
        worth = rates @ prices.T.ravel()
        order = np.argsort(-worth)
        members = (rates[order] > 0).reshape(len(order), self._units, self._size)
        gained, until_us = _gain(members, worth[order], heads, arrivals, bound_us)
        return gained + _gain(members, worth[order], tails, None, bound_us - until_us)[0]


def _gain(
    members: NDArray[np.bool_], worth: Floats, ready_us: Ints, arrivals_us: list[Ints] | None, most_us: int
) -> tuple[int, int]:
    """Return what prices lose up to when everything can run, in parts of the scale, and when that is.

    `members`, `worth`: the sets by (unit, kind), shape (Q, K, N), and what they are worth in thousandths,
    best first. `ready_us`: when each pair can run first, shape (K, N). `arrivals_us`: when the requests of
    each kind come in; None: all are there.
    """
    every = np.concatenate([np.zeros(1, dtype=np.int64), ready_us.ravel(), *(arrivals_us or ())])
    times = np.unique(every.clip(0, max(most_us, 0)))[:_MOST_STEPS]
    together, gained = members.sum(axis=1), 0
    for start, stop in pairwise(times.tolist()):
        possible = ~(members & (ready_us > start)).any(axis=(1, 2))
        if arrivals_us is not None:
            here = [int((own <= start).sum()) for own in arrivals_us]
            possible &= (together <= np.array(here)).all(axis=1)
        gained += (stop - start) * max(0, 1000 * PRICE_SCALE - int(worth[possible.argmax()])) // 1000
    return gained, int(times[-1])
