"""How a plan for one network becomes a deployment: one stream."""

from __future__ import annotations

from ..deployment import Deployment
from ..errors import InvalidPlanError
from ..plan import Plan
from ..streams import Stream


def deploy(plan: Plan, *, task_slots: int | None = None) -> Deployment:
    """Return a plan as a deployment: one stream for each network that it names.

    `task_slots`: of each stream; None: as `Stream` says.
    """
    if plan.order:
        raise InvalidPlanError(f"[{plan}] is a plan for a workload; say which one")
    names = dict.fromkeys(chunk.network for chunk in plan.chunks)
    return Deployment(
        streams=tuple(
            Stream(
                name=name,
                chunks=tuple(chunk for chunk in plan.chunks if chunk.network == name),
                task_slots=task_slots,
            )
            for name in names
        )
    )
