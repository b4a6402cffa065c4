"""How a plan for a workload becomes a deployment: one stream for each request."""

from __future__ import annotations

from dataclasses import replace

from ..deployment import Deployment, Mode, Rounds
from ..errors import InvalidPlanError
from ..plan import Plan
from ..streams import Stream
from ..workload import Execution, LoadPolicy, Workload

_NOT_RUN = {
    Execution.COLUMNS: "columns are a way to score plans; it runs chunks as soon as they can: plan with the "
    "execution asynchronous",
    LoadPolicy.RUNNING: "it keeps all weights in memory: plan with the load policy resident",
}
"""What a workload can ask that units do not do, and why."""


def deploy(plan: Plan, workload: Workload, *, task_slots: int | None = None) -> Deployment:
    """Return a plan for a workload as a deployment.

    `task_slots`: of each stream; None: one in a batch, which has one request of each, else as `Stream` says.
    """
    asks = [text for value, text in _NOT_RUN.items() if value in (workload.execution, workload.load_policy)]
    if asks:
        raise InvalidPlanError("the runtime cannot serve this workload:", asks)
    return arrange(plan, workload, task_slots=task_slots)


def arrange(plan: Plan, workload: Workload, *, task_slots: int | None = None) -> Deployment:
    """Return a plan as `deploy` does, also for a workload that the runtime cannot serve: to be looked at."""
    arrivals = {request.name: request.arrival_us for request in workload.requests}
    if sorted(plan.order) != sorted(arrivals):
        raise InvalidPlanError(f"[{plan}] is no plan for the requests {', '.join(workload.names)}")
    if workload.mode is Mode.BATCH and task_slots is None:
        task_slots = 1
    return Deployment(
        streams=tuple(
            Stream(
                name=name,
                # What a request is called makes no difference to the sessions that its chunks need.
                chunks=tuple(replace(chunk, request="") for chunk in plan.of(name)),
                task_slots=task_slots,
            )
            for name in plan.order
        ),
        rounds=Rounds(
            mode=workload.mode,
            arrivals_us=tuple(arrivals[name] for name in plan.order),
            task_slots=workload.task_slots,
        ),
    )
