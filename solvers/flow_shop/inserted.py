"""A schedule to start from: one request after the other is put in where it fits best, long ones first.

The rule of Nawaz, Enscore and Ham for flow shops ("A heuristic algorithm for the m-machine, n-job flow-shop
sequencing problem", Omega 11(1), 1983), with the cuts of each request chosen together with its place.
"""

from __future__ import annotations

import random
from bisect import bisect
from collections.abc import Sequence

from ..protocol import Deadline
from .bounds import serial_us
from .draft import Draft, DraftContext, Places, slowed
from .line import Row, Sides, put_back

_PRECISION = 4
"""The end of an unfinished plan is searched to one part in two to the power of this."""


def inserted(context: DraftContext, rates: Sequence[Row] | None, deadline: Deadline) -> Draft | None:
    """Return a draft, or None if there was no time for it.

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
