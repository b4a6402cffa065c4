"""A lower bound on the makespan that knows who slows down whom (formulations, section 6).

The prices are those of `solvers.contention`, for requests that are cut once for each unit; besides, a plan
waits at its start and its end, when not everything can run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ...formulations.expr import And, BoolExpr, BoolVar, Interval, Variable
from ...formulations.flow_shop.tables import FlowShop, shop_of
from ...formulations.flow_shop.values import chunk_bytes
from ...formulations.problem import Problem
from ...formulations.terms import Quantity
from ...formulations.workload import LoadPolicy
from ..contention import PRICE_SCALE, Company, Floats, Program, Runnable
from ..protocol import NEVER, Deadline
from .arrays import FORBIDDEN, Ints, without
from .ways import Ways

_MOST_TRUTHS = 64
"""Rules that speak about more units and layers than this are not looked into."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """Requests that are alike."""

    ways: Ways  # how each may be cut
    chain: int  # index of the network
    requests: tuple[int, ...]  # their indices

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.requests)


def kinds_of(problem: Problem, networks: Sequence[Ways]) -> tuple[Kind, ...]:
    """Return the requests of a problem by kind.

    `networks`: the ways to cut each network, by index of the chain.
    """
    shop = shop_of(problem)
    kept = _kept(problem, networks)
    groups: dict[tuple[int, bytes], list[int]] = defaultdict(list)
    for request, chain in enumerate(shop.chain_of):
        groups[chain, kept[request].tobytes() if request in kept else b""].append(request)
    kinds = []
    for (chain, _), requests in groups.items():
        ways = networks[chain]
        if requests[0] in kept:
            ways = Ways(replace(ways.arrays, last=kept[requests[0]]))
        kinds.append(Kind(ways=ways, chain=chain, requests=tuple(requests)))
    return tuple(kinds)


def _kept(problem: Problem, networks: Sequence[Ways]) -> dict[int, Ints]:
    """Return how far chunks reach (`ChainArrays.last`), by request that rules keep from somewhere."""
    shop, found = shop_of(problem), dict[int, Ints]()
    for rule in problem.expression_rules:
        for part in _parts(rule.expr):
            for variable, value in _settled(part):
                request = variable.args[0]
                ways = networks[shop.chain_of[request]]
                last = found.get(request, ways.arrays.last)
                for unit, start, stop in _closed(shop, ways, variable, value=value):
                    last = without(last, slice(unit, unit + 1), start, stop)
                found[request] = last
    return found


def _parts(expr: BoolExpr) -> Iterator[BoolExpr]:
    """Yield conditions that all have to hold."""
    if isinstance(expr, And):
        for part in expr.args:
            yield from _parts(part)
    else:
        yield expr


def _settled(expr: BoolExpr) -> Iterator[tuple[Variable, bool]]:
    """Yield what a condition says about single units and layers, whatever else a plan does."""
    truths: dict[tuple[str, tuple[int, ...]], Variable] = {}

    def usual(variable: Variable) -> Interval:
        if isinstance(variable, BoolVar):
            if variable.name in (Quantity.USES, Quantity.ON):
                truths[variable.key] = variable
            return 0, 1
        return variable.low, variable.high

    expr.bounds(usual)
    if len(truths) > _MOST_TRUTHS:
        return
    for key, truth in list(truths.items()):
        for value in (False, True):
            one = (int(not value),) * 2
            if not expr.bounds(lambda v, key=key, one=one: one if v.key == key else usual(v))[1]:  # type: ignore[misc]
                yield truth, value


def _closed(shop: FlowShop, ways: Ways, variable: Variable, *, value: bool) -> Iterator[tuple[int, int, int]]:
    """Yield (unit, first, last + 1) of pieces that may not run there."""
    if variable.name == Quantity.USES:
        if not value:
            yield variable.args[1], 0, ways.size
        return
    _, layer, unit = variable.args
    piece = int(np.searchsorted(ways.arrays.cuts, layer, side="right")) - 1
    for other in range(shop.unit_count):
        if (other == unit) is not value:
            yield other, piece, piece + 1


def company_of(shop: FlowShop, kinds: Sequence[Kind]) -> Company:
    """Return the sets of requests of some kinds that can run at the same time."""
    chains = [kind.chain for kind in kinds]
    room = shop.chains[0].device_memory
    if room is not None and shop.workload.load_policy is LoadPolicy.RESIDENT:
        room -= sum(chain.weights.whole for chain in shop.chains)
    return Company(
        Runnable(
            counts=tuple(kind.count for kind in kinds),
            able=able_of(kinds, shop.unit_count),
            losses=np.array(shop.losses.least_permille, dtype=np.int64)[chains][:, :, chains],
            most_losses=np.array(shop.losses.most_permille, dtype=np.int64)[chains][:, :, chains],
            exclusive=shop.chains[0].exclusive,
            slots=shop.workload.task_slots,
            least_bytes=None if room is None else _least_bytes(shop, kinds),
            room=room,
        )
    )


def able_of(kinds: Sequence[Kind], units: int) -> NDArray[np.bool_]:
    """Return whether each unit can run some piece of each kind, shape (N, K)."""
    return np.array([[unit in kind.ways.units for unit in range(units)] for kind in kinds])


def arrivals_us(shop: FlowShop, kind: Kind) -> Ints:
    """Return when the requests of a kind come in."""
    requests = shop.workload.requests
    return np.array([requests[index].arrival_us for index in kind.requests], dtype=np.int64)


def _least_bytes(shop: FlowShop, kinds: Sequence[Kind]) -> Ints:
    """Return the least bytes of a chunk, shape (N, K)."""
    least = np.zeros((len(kinds), shop.unit_count), dtype=np.int64)
    for number, kind in enumerate(kinds):
        cuts, last = kind.ways.arrays.cuts.tolist(), kind.ways.arrays.last
        sizes = np.array([chunk_bytes(shop, kind.requests[0], *ends) for ends in pairwise(cuts)])
        for unit in kind.ways.units:
            least[number, unit] = sizes[last[unit][:-1] > np.arange(len(sizes))].min()
    return least


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
    company = company or company_of(shop, kinds)
    program = Program(company, [_Cut(kind) for kind in kinds], shop.unit_count)
    if known is not None:
        program.recall(known.sets, [map(tuple, cuts.tolist()) for cuts in known.cuts])
    program.improve(deadline)
    found = program.result()
    counts = [kind.count for kind in kinds]
    most = sum(count * int(own.sum()) for count, own in zip(counts, found.discounts, strict=True))
    waiting = _waiting(shop, kinds, company, found.prices, -(-found.total // PRICE_SCALE))
    return ContentionBound(
        bound_us=max(0, -(-(found.total + waiting) // PRICE_SCALE)),
        kinds=tuple(kinds),
        prices=found.prices,
        discounts=found.discounts,
        rounding_us=-(-most // PRICE_SCALE),
        waiting=waiting,
        sets=found.sets,
        times_us=found.times_us,
        cuts=tuple(map(np.array, found.ways)),
        shares=found.shares,
    )


@dataclass(frozen=True, slots=True)
class _Cut:
    """Requests of a kind, which pass the units in their order: a way is its places."""

    kind: Kind

    @property
    def count(self) -> int:
        return self.kind.count

    def cheapest(self, prices: Ints, discounts: Ints) -> tuple[int, tuple[int, ...]]:
        sums, places = self.kind.ways.least_priced(prices[None, :], discounts[None, :])
        return int(sums[0]), tuple(places[0].tolist())

    def times_us(self, way: tuple[int, ...]) -> Ints:
        return self.kind.ways.arrays.times_us(np.array(way))

    def allows(self, way: tuple[int, ...]) -> bool:
        return self.kind.ways.allows(way)


def _waiting(shop: FlowShop, kinds: Sequence[Kind], company: Company, prices: Ints, bound_us: int) -> int:
    """Return what the prices lose while not everything can run, in parts of the scale.

    A pair runs from the first arrival of its kind on, after the least time on the units before it, and
    not in the least time that the units after it take, as long as the start and the end do not meet.
    """
    rates = company.rates
    heads, tails = np.array([kind.ways.outside_us for kind in kinds]).transpose(1, 2, 0)
    arrivals = [arrivals_us(shop, kind) for kind in kinds]
    heads = np.where(heads < FORBIDDEN, heads + [min(own) for own in arrivals], 0)
    tails = np.where(tails < FORBIDDEN, tails, 0)
    if rates is None or not (heads.any() or tails.any()):
        return 0
    worth = rates @ prices.T.ravel()
    order = np.argsort(-worth)
    members = (rates[order] > 0).reshape(len(order), shop.unit_count, len(kinds))
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
