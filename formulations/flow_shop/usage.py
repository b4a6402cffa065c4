"""Memory over time while the requests of a workload run."""

from __future__ import annotations

from ..history import History
from ..play import Run
from ..problem import Problem
from ..usage import Usage
from .memory import memory_usage
from .tables import shop_of


def workload_usage(problem: Problem, trace: History) -> Usage:
    """Return the bytes in use over time; see `trace_usage`."""
    assert trace.plan is not None
    shop = shop_of(problem)
    schedule = shop.schedule(trace.plan)
    position = {shop.workload.names[request]: place for place, request in enumerate(schedule.order)}
    runs = []
    for event in trace.events:
        start_us, end_us = event.span_us
        runs.append(
            Run(
                position=position[trace.streams[event.stream].name],
                unit=shop.units.index(event.unit),
                start_us=start_us,
                end_us=end_us,
                work_us=end_us - start_us - event.slowdown_ns // 1000,
            )
        )
    return memory_usage(shop, schedule, runs)
