"""Schedules that a search starts from: several kinds of cuts in several orders, and one by insertion."""

from __future__ import annotations

import random
from bisect import bisect
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ...formulations.flow_shop.tables import Schedule
from ...formulations.problem import Problem
from ..contention import PRICE_SCALE
from ..protocol import Deadline, SolveOptions
from ..repairing import Breach, least_broken
from ..rounds import Proposing
from .arrays import Ints
from .baselines import BandBackend, SerialBackend
from .bounds import Prices, serial_us
from .columns import least_bottleneck
from .draft import Draft, DraftContext, Places, Row, Sides, put_back, slowed
from .hetero2pipe import Hetero2PipeBackend, HungarianBackend, PipeItBackend
from .ways import UNREACHABLE

_DEARER = 1.1
"""Cuts that cost more than so many times the cheapest ones, at the best prices, level no loads."""

QUICK: tuple[Proposing[Schedule], ...] = (
    SerialBackend(),
    PipeItBackend(),
    BandBackend(),
    Hetero2PipeBackend(),
    HungarianBackend(),
)
"""Heuristics that propose within milliseconds."""

_PRECISION = 4
"""The end of an unfinished plan is searched to one part in two to the power of this."""


def starting_drafts(
    context: DraftContext, prices: Prices, calm_order: Callable[[], tuple[int, ...] | None]
) -> Iterator[Draft]:
    """Yield drafts to start from.

    `calm_order`: returns the order with the least contention, if it can be found; asked last.
    """
    as_listed = tuple(range(context.shop.request_count))
    priced = _alike(
        context, [network.least_priced(prices.best[None, :])[1][0] for network in context.networks]
    )
    for cuts in (level_cuts(context, prices), priced):
        yield from (Draft(order, cuts) for order in _orders(context, cuts, calm_order))
    even = np.ones((1, context.shop.unit_count), dtype=np.int64)
    yield Draft(
        as_listed, _alike(context, [network.least_priced(even)[1][0] for network in context.networks])
    )
    sliced = [least_bottleneck(network.arrays) for network in context.networks]
    yield Draft(as_listed, _alike(context, [found[1] for found in sliced if found is not None]))


def serial_drafts(context: DraftContext) -> Iterator[Draft]:
    """Yield drafts in which everything runs on one unit, so that nothing runs beside anything else.

    Slow, but they keep most rules about who may run when: somewhere to start from where rules are tight.
    """
    for unit in range(context.shop.unit_count):
        cuts: list[Places] = []
        for request in range(context.shop.request_count):
            ways = context.ways(request)
            whole = (0,) * (unit + 1) + (ways.size,) * (context.shop.unit_count - unit)
            if ways.allows(whole):
                cuts.append(whole)
        if len(cuts) == context.shop.request_count:
            yield from (Draft(order, tuple(cuts)) for order in _orders(context, tuple(cuts)))


def quick_schedules(problem: Problem, deadline: Deadline) -> list[tuple[Breach, Schedule]]:
    """Return what quick heuristics propose, with what it breaks: valid ones first, then by their values.

    Of each heuristic there is as much as it would repair on its own. After the deadline none is asked: with
    many requests each of them takes long.
    """
    found: dict[Schedule, Breach] = {}
    for planner in QUICK:
        if deadline.passed:
            break
        own = list(planner.propose(problem, SolveOptions(), deadline))
        found |= {schedule: key for key, schedule in least_broken(problem, own, deadline)}

    def rank(schedule: Schedule) -> tuple[object, ...]:
        excess, values = found[schedule]
        return excess > 0, values, schedule.order, schedule.cuts

    return [(found[schedule], schedule) for schedule in sorted(found, key=rank)]


def _alike(context: DraftContext, by_network: Sequence[Ints]) -> tuple[Places, ...]:
    """Return the places of each request when those of one network are cut alike."""
    places: list[Places] = [tuple(found.tolist()) for found in by_network]
    return tuple(places[chain] for chain in context.shop.chain_of)


def _orders(
    context: DraftContext,
    cuts: tuple[Places, ...],
    calm_order: Callable[[], tuple[int, ...] | None] = lambda: None,
) -> Iterator[tuple[int, ...]]:
    """Yield orders that may suit some cuts."""
    count = context.shop.request_count
    yield tuple(range(count))
    if not context.shop.order_is_free:
        return
    rows = [context.row(request, places) for request, places in enumerate(cuts)]
    middle = context.shop.unit_count - 1
    keys: list[Callable[[int], int]] = [
        lambda request: -sum((2 * unit - middle) * work for unit, work in enumerate(rows[request])),
        lambda request: -sum(rows[request]),
        lambda request: context.arrivals_us[request],
    ]
    yield from (tuple(sorted(range(count), key=key)) for key in keys)
    yield mixed_order(rows)
    calm = calm_order()
    if calm is not None:
        yield calm


def level_cuts(context: DraftContext, prices: Prices) -> tuple[Places, ...]:
    """Return cuts whose largest load is small: each request to the least largest load so far.

    The cuts are those that were cheapest for some prices; requests of one network may be cut differently.
    Networks with fewer of them come first, then longer ones.
    """
    chain_of = context.shop.chain_of
    times = [
        network.arrays.times_us(pool) for network, pool in zip(context.networks, prices.pool, strict=True)
    ]
    paid = [rows @ prices.best for rows in times]
    loads = np.zeros(context.shop.unit_count, dtype=np.int64)
    chosen: dict[int, Places] = {}

    def rank(request: int) -> tuple[int, int]:
        own = paid[chain_of[request]]
        return len(own), -int(own.min())

    for request in sorted(range(len(chain_of)), key=rank):
        chain = chain_of[request]
        dear = paid[chain] > _DEARER * paid[chain].min()
        largest = np.where(dear, UNREACHABLE, (loads + times[chain]).max(axis=1) + paid[chain] // PRICE_SCALE)
        index = int(largest.argmin())
        loads += times[chain][index]
        chosen[request] = tuple(prices.pool[chain][index].tolist())
    return tuple(chosen[request] for request in range(len(chain_of)))


def mixed_order(rows: Sequence[Row]) -> tuple[int, ...]:
    """Return the order in which the loads of all units grow as evenly as possible (goal chasing).

    Requests with the same row are interchangeable; of those, earlier ones come first.
    """
    waiting: dict[Row, list[int]] = {}
    for request in reversed(range(len(rows))):
        waiting.setdefault(rows[request], []).append(request)
    kinds = list(waiting)
    times = np.array(kinds, dtype=float)
    each = np.array(rows, dtype=float).mean(axis=0)
    behind = np.zeros(len(each))
    order: list[int] = []
    left = np.array([len(waiting[kind]) for kind in kinds])
    while len(order) < len(rows):
        behind += each
        misses = ((behind - times) ** 2).sum(axis=1)
        kind = int(np.where(left > 0, misses, np.inf).argmin())
        behind -= times[kind]
        left[kind] -= 1
        order.append(waiting[kinds[kind]].pop())
    return tuple(order)


def inserted(context: DraftContext, rates: Sequence[Row] | None, deadline: Deadline) -> Draft | None:
    """Return a draft into which one request after the other was put where it fits best; None: no time.

    The rule of Nawaz, Enscore and Ham for flow shops ("A heuristic algorithm for the m-machine, n-job
    flow-shop sequencing problem", Omega 11(1), 1983), long requests first, with the cuts of each request
    chosen together with its place.

    `rates`: by how much slowdown stretches each request on each unit, permille by request; None: not.
    """
    shop, rng = context.shop, random.Random(0)
    alone = serial_us(context.networks)
    idle = (0,) * shop.unit_count
    sides, end_us = Sides(ready_us=idle, after_us=idle), 0
    order: list[int] = []
    places: dict[int, Places] = {}
    rows: list[Row] = []
    for request in sorted(range(shop.request_count), key=lambda request: -alone[shop.chain_of[request]]):
        if deadline.passed:
            return None
        ways, rate = context.ways(request), None if rates is None else rates[request]
        spot, most_us = None, end_us + 2 * alone[shop.chain_of[request]] + context.arrivals_us[request]
        while spot is None:
            spot = put_back(
                ways if rate is None else ways.slowed(rate),
                context.arrivals_us[request],
                (rows, [context.arrivals_us[other] for other in order]),
                sides,
                limit_us=most_us,
                rng=rng,
                indices=None if shop.order_is_free else (bisect(order, request),),
                precision=_PRECISION,
            )
            most_us = 2 * most_us + 1
        end_us = spot.limit_us
        order.insert(spot.index, request)
        places[request] = spot.places
        row = context.row(request, spot.places)
        rows.insert(spot.index, row if rate is None else slowed(row, rate))
    return Draft(tuple(order), tuple(places[request] for request in range(shop.request_count)))
