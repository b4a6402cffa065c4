"""How a plan becomes what runs: the deployment of its formulation."""

from __future__ import annotations

from ..formulations.chunking import deployment as chunking
from ..formulations.deployment import Deployment
from ..formulations.flow_shop import deployment as flow_shop
from ..formulations.flow_shop.workload import Workload
from ..formulations.plan import Plan


def deploy(plan: Plan, *, workload: Workload | None = None, task_slots: int | None = None) -> Deployment:
    """Return a plan as a deployment: one stream for its network, or one for each request of its workload.

    Parameters
    ----------
    plan
        A valid plan.
    workload
        What it was made for, as `Problem.workload` says.
    task_slots
        Of each stream; None: as `Stream` says, and one in a batch, which has one request of each.

    Raises
    ------
    InvalidPlanError
        The plan is not for this workload, or the runtime does not work in the way that the workload asks.
    """
    if workload is None:
        return chunking.deploy(plan, task_slots=task_slots)
    return flow_shop.deploy(plan, workload, task_slots=task_slots)


def arrange(plan: Plan, *, workload: Workload | None = None, task_slots: int | None = None) -> Deployment:
    """Return a plan as `deploy` does, also for a workload that the runtime cannot serve: to be looked at.

    Raises
    ------
    InvalidPlanError
        The plan is not for this workload.
    """
    if workload is None:
        return chunking.deploy(plan, task_slots=task_slots)
    return flow_shop.arrange(plan, workload, task_slots=task_slots)
