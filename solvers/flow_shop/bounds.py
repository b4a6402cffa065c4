"""Lower bounds on the objective terms of a workload, in exact integers, which hold for every valid plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from ...formulations.deployment import Mode
from ...formulations.flow_shop.quantities import most_energy_nj
from ...formulations.flow_shop.tables import FlowShop, shop_of
from ...formulations.problem import Problem
from ...formulations.terms import Term
from ...formulations.workload import Execution, LoadPolicy
from ..contention import PRICE_SCALE, Floats
from ..protocol import NEVER, Deadline
from .arrays import Ints
from .columns import contended_columns_us, displacement_of, least_bottleneck, violation_of
from .contention_bound import ContentionBound, Kind, contention_bound, kinds_of
from .ways import UNREACHABLE, Ways

_ROUNDS, _FIRST_STEP, _DECAY = 24, 2.0, 0.88
"""Updates of the prices; exponent of the first one, and by how much it shrinks."""

_MOST_WINDOWS = 8
"""Times until which requests are due that are looked at."""

_SAMPLES, _SPREADS = 12, (0.15, 0.03)
"""Prices drawn around the best ones for each of some standard deviations of their logarithms."""

_SHARE = 0.25
"""Share of the time that is left that one bound may take."""

_FINE = 100
"""Where rounding is more than one in so many parts of the makespan, bounds without slowdown can be better."""

_MOST_REQUESTS, _MOST_UNITS = 64, 6
"""Larger workloads have too many paths, or sets of units."""

_PATH_ROUNDS, _PATH_FIRST_STEP, _PATH_DECAY = 120, 4.0, 0.985
"""Updates of the weights; exponent of the first one, and by how much it shrinks."""

_AVOIDED = 64 * PRICE_SCALE
"""Price of a unit outside the set: any price keeps the bound, a high one makes it good."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """What the price bound leaves behind."""

    best: Ints  # the prices with the largest bound, shape (K,), which add up to `PRICE_SCALE`
    bound_us: int  # least possible largest load of a unit, rounded up
    pool: tuple[Ints, ...]
    """Cuts (places among the boundaries) that are cheapest for some prices, by network; shape (P, K + 1)
    each."""


def serial_us(networks: Sequence[Ways]) -> list[int]:
    """Return the least time of one request of each network that is alone."""
    ones = [np.ones((1, network.arrays.unit_count), dtype=np.int64) for network in networks]
    return [int(network.least_priced(one)[0][0]) for network, one in zip(networks, ones, strict=True)]


def serial_ends_us(shop: FlowShop, networks: Sequence[Ways]) -> list[int]:
    """Return when each request would end if it were alone, by request."""
    alone = serial_us(networks)
    pairs = zip(shop.workload.requests, shop.chain_of, strict=True)
    return [request.arrival_us + alone[chain] for request, chain in pairs]


def price_bound(networks: Sequence[Ways], counts: Sequence[int], deadline: Deadline = NEVER) -> Prices:
    """Return the price bound on the largest load.

    Any prices give a bound: the largest load is at least the mean of the loads weighted by prices,
    and each request pays at least its cheapest cuts. Multiplicative updates find good prices (units
    that are loaded more than others at the cheapest cuts get dearer), samples around them better ones.
    """
    auction = _Auction(networks, counts)
    weights = np.full(networks[0].arrays.unit_count, 1.0)
    mean, step = np.zeros(len(weights)), _FIRST_STEP
    for _ in range(_ROUNDS):
        loads = auction.ask(scaled(weights)[None, :])[0]
        mean = 0.5 * mean + 0.5 * loads
        weights = weights * np.exp(step * (mean / max(mean.max(), 1.0) - 1.0))
        weights = np.maximum(weights / weights.sum(), 1e-6)
        step *= _DECAY
        if deadline.passed:
            break
    rng = np.random.default_rng(0)
    spreads = np.repeat(_SPREADS, _SAMPLES)[:, None]
    noise = np.exp(rng.normal(0.0, spreads, (len(spreads), len(weights))))
    if not deadline.passed:
        auction.ask(np.array([scaled((auction.best + 1) * row) for row in noise]))
    pools = tuple(np.unique(np.concatenate(found), axis=0) for found in auction.pool)
    return Prices(best=auction.best, bound_us=-(-auction.best_sum // PRICE_SCALE), pool=pools)


class _Auction:
    """Asks what all requests pay at some prices, and remembers the best prices and all answers."""

    def __init__(self, networks: Sequence[Ways], counts: Sequence[int]) -> None:
        self._networks, self._counts = networks, counts
        self.pool: list[list[Ints]] = [[] for _ in networks]
        self.best, self.best_sum = np.zeros(0, dtype=np.int64), -1

    def ask(self, prices: Ints) -> NDArray[np.float64]:
        """Return the loads at several prices, shape (P, K) as they are."""
        totals, loads = [0] * len(prices), np.zeros(prices.shape)
        for network, count, found in zip(self._networks, self._counts, self.pool, strict=True):
            sums, places = network.least_priced(prices)
            totals = [total + count * own for total, own in zip(totals, sums.tolist(), strict=True)]
            loads += count * network.arrays.times_us(places)
            found.append(places)
        best = max(range(len(totals)), key=totals.__getitem__)
        if totals[best] > self.best_sum:
            self.best, self.best_sum = prices[best], totals[best]
        return loads


def guiding_prices(bound: ContentionBound, chains: int) -> Prices:
    """Return prices and cuts that the program behind a contention bound has found, by index of the chain."""
    work = np.array(
        [
            kind.count * shares @ kind.ways.arrays.times_us(cuts)
            for kind, cuts, shares in zip(bound.kinds, bound.cuts, bound.shares, strict=True)
        ]
    )
    worth = (work * bound.prices).sum(axis=0) / np.maximum(work.sum(axis=0), 1.0)
    pool: list[list[Ints]] = [[] for _ in range(chains)]
    for kind, cuts in zip(bound.kinds, bound.cuts, strict=True):
        pool[kind.chain].append(cuts)
    return Prices(
        best=scaled(worth + 1.0),
        bound_us=bound.bound_us,
        pool=tuple(np.unique(np.concatenate(found), axis=0) for found in pool),
    )


def scaled(weights: NDArray[np.float64]) -> Ints:
    """Return weights as integers that add up to `PRICE_SCALE`, none negative."""
    prices: Ints = np.floor(weights / weights.sum() * PRICE_SCALE).astype(np.int64)
    prices[int(np.argmax(weights))] += PRICE_SCALE - int(prices.sum())
    return prices


class TermBounds:
    """A lower bound on each term of the objective, given that the terms before are at theirs.

    `networks`: its networks, by index of the chain, confined to units that may be used together; `order`:
    returns the order with the least (contention, displacement), if it can be found.
    """

    def __init__(
        self,
        problem: Problem,
        networks: Sequence[Ways],
        order: Callable[[], Sequence[int] | None],
        deadline: Deadline = NEVER,
    ) -> None:
        self._problem, self._shop = problem, shop_of(problem)
        self._networks, self._calm_order, self._deadline = networks, order, deadline

    @cached_property
    def _order(self) -> Sequence[int] | None:
        if self._shop.contention_by_cuts:
            return None
        return self._calm_order()

    @cached_property
    def _kinds(self) -> tuple[Kind, ...]:
        return kinds_of(self._problem, self._networks)

    @cached_property
    def possible(self) -> bool:
        """Whether rules about single units and layers leave some cuts to each request, and deadlines time."""
        return all(kind.ways.runs for kind in self._kinds) and self._in_time

    @property
    def _in_time(self) -> bool:
        """Whether those requests that are due by a time, alone, may be done by then."""
        due = {
            index: request.arrival_us + request.deadline_us
            for index, request in enumerate(self._shop.workload.requests)
            if request.deadline_us is not None
        }
        ends = serial_ends_us(self._shop, self._networks) if due else []
        if any(ends[request] > latest for request, latest in due.items()):
            return False
        times = sorted(set(due.values()))
        for latest in times[:: -(-len(times) // _MOST_WINDOWS)] if times else ():
            urgent = [
                replace(kind, requests=own)
                for kind in self._kinds
                if (own := tuple(i for i in kind.requests if i in due and due[i] <= latest))
            ]
            found = contention_bound(self._shop, urgent, self._share)
            if found.bound_us > latest:
                return False
        return True

    @cached_property
    def prices(self) -> Prices:
        """The price bound: on the largest load, which no slowdown changes."""
        counts = Counter(self._shop.chain_of)
        return price_bound(self._networks, [counts[i] for i in range(len(self._networks))], self._deadline)

    @cached_property
    def contention(self) -> ContentionBound:
        """The bound on the makespan that knows slowdown."""
        return contention_bound(self._shop, self._kinds, self._share)

    @property
    def _share(self) -> Deadline:
        """A deadline after a share of the time that is left."""
        return self._deadline.share(_SHARE)

    @property
    def guiding(self) -> Prices:
        """The same as `prices` from the program behind the contention bound."""
        return guiding_prices(self.contention, len(self._networks))

    def of(self, term: str) -> int:
        """Return the bound of one term; 0 where nothing better is known."""
        known: dict[str, Callable[[], int]] = {
            Term.MAKESPAN: self._makespan_us,
            Term.PERIOD: lambda: self.prices.bound_us,
            Term.LATENCY: self._latency_us,
            Term.BOTTLENECK: self._bottleneck_us,
            Term.WORK: lambda: self._sum(serial_us(self._networks)),
            Term.PEAK_MEMORY: self._peak_bytes,
            Term.CONTENTION: self._contention,
            Term.DISPLACEMENT: self._displacement,
            Term.ENERGY: self._energy_nj,
            Term.UNITS: lambda: 1,
        }
        return known[term]() if term in known else 0

    def _sum(self, by_network: Sequence[int]) -> int:
        return sum(by_network[chain] for chain in self._shop.chain_of)

    def _makespan_us(self) -> int:
        found = max(self.contention.bound_us, *serial_ends_us(self._shop, self._networks))
        if self.contention.rounding_us * _FINE > found:
            found = max(found, self.prices.bound_us)
        return found if self._shop.order_is_free else max(found, self._in_order_us)

    @cached_property
    def _in_order_us(self) -> int:
        """The bound on the makespan that knows the order, which is given; 0 where there is none."""
        workload = self._shop.workload
        if workload.execution is Execution.COLUMNS:
            return contended_columns_us(self._shop, self._networks, self._share)
        return path_bound_us(self._kinds, self._share) if workload.mode is Mode.BATCH else 0

    def _latency_us(self) -> int:
        """Sum of the j-th ends: none before the units have done the j cheapest requests, or the j-th alone.

        The j requests that end first have cost at least the j least sums at any prices.
        """
        short = self.contention.rounding_us
        pairs = list(zip(self.contention.kinds, self.contention.prices, strict=True))
        contended = _together_us(pairs)
        level = _together_us([(kind, self.prices.best) for kind, _ in pairs])
        alone = sorted(serial_ends_us(self._shop, self._networks))
        ends = (max(one - short, *others) for one, *others in zip(contended, level, alone, strict=True))
        return sum(ends) - sum(request.arrival_us for request in self._shop.workload.requests)

    def _energy_nj(self) -> int:
        """Least sum of the work by the powers of the units, with the idle power until the least end.

        At the best prices the idle power is paid by the work, too: work costs (w - i) and its price.
        """
        powers = self._shop.powers
        if powers is None or PRICE_SCALE * most_energy_nj(self._shop) >= UNREACHABLE:
            return 0
        extra = np.array([powers.extra_mw], dtype=np.int64)
        streams = self._shop.workload.mode is Mode.STREAM
        apart = self._cheapest(extra) + powers.idle_mw * (
            self.prices.bound_us if streams else self._makespan_us()
        )
        joint = self._cheapest(PRICE_SCALE * extra + powers.idle_mw * self.prices.best)
        return max(apart, -(-joint // PRICE_SCALE))

    def _cheapest(self, prices: Ints) -> int:
        return self._sum([int(network.least_priced(prices)[0][0]) for network in self._networks])

    def _bottleneck_us(self) -> int:
        found = [least_bottleneck(network.arrays) for network in self._networks]
        return self._sum([entry[0] if entry else 0 for entry in found])

    def _peak_bytes(self) -> int:
        """All weights once where they stay, and the most demanding piece of a network."""
        resident = self._shop.workload.load_policy is LoadPolicy.RESIDENT
        pieces = []
        for chain in self._shop.chains:
            for start, stop in pairwise(chain.cuts):
                weights = chain.weights.between(start, stop)
                pieces.append(chain.memory_bytes(start, stop) - (weights if resident else 0))
        held = sum(chain.weights.whole for chain in self._shop.chains) if resident else 0
        return held + max(pieces)

    def _contention(self) -> int:
        if self._order is None:
            return 0
        return violation_of([self._shop.high[request] for request in self._order], self._shop.unit_count)

    def _displacement(self) -> int:
        terms = self._problem.objective.terms
        after = Term.CONTENTION in terms and terms.index(Term.CONTENTION) < terms.index(Term.DISPLACEMENT)
        return displacement_of(self._order) if after and self._order is not None else 0


def _together_us(prices: Sequence[tuple[Kind, Ints]]) -> list[int]:
    """Return what the j requests that pay least pay together, by j, given the prices of each kind."""
    paid = [(int(kind.ways.least_priced(own[None, :])[0][0]), kind.count) for kind, own in prices]
    each = (cost for cost, count in sorted(paid) for _ in range(count))
    return [-(-cost // PRICE_SCALE) for cost in accumulate(each)]


def path_bound_us(kinds: Sequence[Kind], deadline: Deadline = NEVER) -> int:
    """Return the bound with the best weights that are found in time; 0 where the workload is too large.

    Take requests i < j and a unit k. What i does before k, all chunks on k from i to j, and what j does after
    k come one after the other, so together they take at most the makespan. Where i skips k, what it does
    before is not on the path, and where j skips k, what it does after is not. So for weights of paths that
    add up to 1 the makespan is at least the sum over the requests of the least that each adds, over its cuts:
    for each set of units that it uses, that is a price for each of them (formulations, section 6).

    Multiplicative updates: paths that are long at the cheapest cuts weigh more.

    `kinds`: the requests, numbered in the order that is given; each can be run.
    """
    count, units = sum(kind.count for kind in kinds), kinds[0].ways.arrays.unit_count
    longest = max(int(np.abs(kind.ways.tail).max() + np.abs(kind.ways.head).max()) for kind in kinds)
    if not 1 < count <= _MOST_REQUESTS or units > _MOST_UNITS or longest * units * _AVOIDED >= UNREACHABLE:
        return 0
    paths = np.triu(np.ones((count, count)), 1)[:, :, None] * np.ones(units)
    weights, alone = paths / max(paths.sum(), 1.0), np.full(count, 1.0 / count)
    mean = np.zeros((3, count, units))
    best, step = 0, _PATH_FIRST_STEP
    for number in range(_PATH_ROUNDS):
        total = weights.sum() + alone.sum()
        weights, alone = weights / total, alone / total
        bound, adds = _ask(kinds, *(np.floor(w * PRICE_SCALE).astype(np.int64) for w in (weights, alone)))
        best = max(best, bound)
        mean = adds if number == 0 else 0.7 * mean + 0.3 * adds
        before, own, after = mean
        done = own.cumsum(axis=0)
        lengths = (before - done + own)[:, None, :] + (done + after)[None, :, :]
        serial = own.sum(axis=1)
        most = max(float((lengths * paths).max()), float(serial.max()), 1.0)
        weights = np.maximum(weights * np.exp(step * (lengths / most - 1.0)), 1e-12) * paths
        alone = np.maximum(alone * np.exp(step * (serial / most - 1.0)), 1e-12)
        step *= _PATH_DECAY
        if deadline.passed:
            break
    return -(-best // PRICE_SCALE)


def _ask(kinds: Sequence[Kind], weights: Ints, alone: Ints) -> tuple[int, Floats]:
    """Return what all requests add at least, in parts of the scale, and the cuts that do.

    `weights`: of the paths by (i, j, k), shape (m, m, K); `alone`: of all chunks of one request, shape (m,).
    Returns the time of each request before, on and after each unit, shape (3, m, K); before and after are 0
    for units that it skips.
    """
    begun = weights.cumsum(axis=0)[:, ::-1].cumsum(axis=1)[:, ::-1]
    on = np.diagonal(begun).T + alone[:, None]
    prices = _by_set(on, weights.sum(axis=1), weights.sum(axis=0))
    total, times = 0, np.zeros((len(alone), weights.shape[2]))
    for kind in kinds:
        own = list(kind.requests)
        rows = prices[own]
        sums, places = kind.ways.least_priced(rows.reshape(-1, rows.shape[2]))
        sums = sums.reshape(rows.shape[:2])
        chosen = sums.argmin(axis=1)
        total += sum(sums.min(axis=1).tolist())
        at = np.arange(len(own)) * rows.shape[1] + chosen
        times[own] = kind.ways.arrays.times_us(places[at])
    used, done = times > 0, times.cumsum(axis=1)
    before = np.where(used, done - times, 0.0)
    after = np.where(used, done[:, -1:] - done, 0.0)
    return total, np.array([before, times, after])


def _by_set(on: Ints, begin: Ints, end: Ints) -> Ints:
    """Return the prices of the units for each set of units that a request may use, shape (m, 2^K - 1, K).

    `on`, `begin`, `end`: weights of the paths that each request is on with each unit, begins there, and ends
    there; (m, K).
    """
    units = on.shape[1]
    sets = np.arange(1, 1 << units)[:, None] >> np.arange(units) & 1
    later, earlier = np.tri(units, k=-1, dtype=np.int64), np.tri(units, k=-1, dtype=np.int64).T
    prices = on[:, None, :] + (begin[:, None, :] * sets) @ later + (end[:, None, :] * sets) @ earlier
    return np.where(sets > 0, prices, _AVOIDED)
