"""What a plan for a workload breaks, in exact integers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from ..scores import Violation
from .tables import FlowShop
from .values import WorkloadValues


def broken(shop: FlowShop, values: WorkloadValues) -> Iterator[Violation]:
    """Yield which facts of the device and of the workload a well-formed plan breaks."""
    yield from _structure(shop, values)
    order = values.schedule.order
    if not shop.order_is_free and list(order) != sorted(order):
        names = [shop.workload.requests[request].name for request in order]
        yield Violation(rule="order", message=f"the order is fixed, the plan has {names}")
    yield from _deadlines(values)


def _deadlines(values: WorkloadValues) -> Iterator[Violation]:
    pairs = zip(values.shop.workload.requests, values.request_latency_us, strict=True)
    for request, took in pairs:
        if request.deadline_us is not None and took > request.deadline_us:
            text = f"request {request.name!r} takes {took} us, its deadline is {request.deadline_us} us"
            yield Violation(rule="deadline", message=text)


def _structure(shop: FlowShop, values: WorkloadValues) -> Iterator[Violation]:
    first = shop.chains[0]
    used = set(values.busy_us)
    for unit in sorted(used):
        for other in sorted(first.exclusive[unit] & used):
            if other > unit:
                names = f"{shop.units[unit]!r} and {shop.units[other]!r}"
                yield Violation(rule="conflict", message=f"units {names} share cores")
    for request, cuts in enumerate(values.schedule.cuts):
        chain, name = shop.chain(request), shop.workload.requests[request].name
        for unit, (start, stop) in enumerate(pairwise(cuts)):
            where = f"request {name!r}, chunk [{start}, {stop}) on {shop.units[unit]!r}"
            if start < stop and stop not in chain.cuts:
                yield Violation(rule="cut", message=f"{where} ends where no cut is allowed")
            if start < stop and not chain.fits(start, stop, unit):
                needs, has = chain.memory_bytes(start, stop), chain.unit_memory[unit]
                yield Violation(rule="unit_memory", message=f"{where} needs {needs} bytes, has {has}")
    if first.device_memory is not None and values.peak_bytes > first.device_memory:
        message = f"the plan needs {values.peak_bytes} bytes, the device has {first.device_memory}"
        yield Violation(rule="device_memory", message=message)
