"""What a workload demands, one by one, and the problem without each: deadlines and the order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..demands import Demand
from ..problem import Problem
from ..workload import RequestOrder
from .tables import workload_of


def workload_demands(problem: Problem) -> list[Demand]:
    """Return what the workload of a problem demands."""
    workload = workload_of(problem)
    found = [
        Demand(
            name=f"deadline of {request.name}",
            text=f"request {request.name!r} takes at most {request.deadline_us} us",
            without=_without_deadline(request.name),
        )
        for request in workload.requests
        if request.deadline_us is not None
    ]
    if workload.order is RequestOrder.FIXED:
        text = f"the requests are served in the order {', '.join(workload.names)}"
        found.append(Demand(name="order", text=text, without=_without_order))
    return found


def _without_deadline(name: str) -> Callable[[Problem], Problem]:
    def drop(problem: Problem) -> Problem:
        workload = workload_of(problem)
        requests = tuple(
            replace(request, deadline_us=None) if request.name == name else request
            for request in workload.requests
        )
        return replace(problem, data=replace(workload, requests=requests))

    return drop


def _without_order(problem: Problem) -> Problem:
    return replace(problem, data=replace(workload_of(problem), order=RequestOrder.FREE))
