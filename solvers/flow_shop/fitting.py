"""Making a schedule fit the memory of the device: Eq. (6) of Hetero2Pipe.

The paper states the limit and no algorithm for it; it trusts that large networks, which press most, are kept
apart. Here the schedule is changed a little at a time, towards the least excess and then the least makespan:
one request is run whole on one unit, which shortens how long its tensors wait, or two requests that stand
beside each other change places. It ends when the schedule fits, or nothing helps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...formulations.flow_shop.tables import FlowShop, Schedule
from ...formulations.flow_shop.values import WorkloadValues
from ..protocol import Deadline
from .arrays import ChainArrays
from .units import runs_whole, whole_cuts

Merit = tuple[int, int]
"""Bytes above what the device has, then the makespan in microseconds: less is better."""


def merit(shop: FlowShop, schedule: Schedule) -> Merit:
    """Return how good a schedule is."""
    values = WorkloadValues(shop, schedule)
    capacity = shop.chains[0].device_memory
    over = 0 if capacity is None else max(0, values.peak_bytes - capacity)
    return over, values.makespan_us


def fitted(
    shop: FlowShop, networks: Sequence[ChainArrays], schedule: Schedule, deadline: Deadline
) -> Schedule:
    """Return a schedule that fits the device, as far as small changes lead there."""
    if shop.chains[0].device_memory is None or deadline.passed:
        return schedule
    least = merit(shop, schedule)
    while least[0] and not deadline.passed:
        best = schedule
        for candidate in _neighbours(shop, networks, schedule):
            if deadline.passed:
                break
            found = merit(shop, candidate)
            if found < least:
                best, least = candidate, found
        if best is schedule:
            break
        schedule = best
    return schedule


def _neighbours(shop: FlowShop, networks: Sequence[ChainArrays], schedule: Schedule) -> Iterator[Schedule]:
    """Yield the schedules with one request whole on one unit, or two neighbours in the other order."""
    for request in schedule.order:
        for unit in runs_whole(networks[shop.chain_of[request]]).tolist():
            cuts = list(schedule.cuts)
            cuts[request] = whole_cuts(shop, request, unit)
            if cuts[request] != schedule.cuts[request]:
                yield Schedule(schedule.order, tuple(cuts))
    for place in range(len(schedule.order) - 1) if shop.order_is_free else ():
        order = list(schedule.order)
        order[place : place + 2] = order[place : place + 2][::-1]
        yield Schedule(tuple(order), schedule.cuts)
