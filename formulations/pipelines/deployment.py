"""How a plan of pipelines becomes a deployment: one stream for each pipeline."""

from __future__ import annotations

from ..deployment import Deployment
from ..plan import Plan
from ..streams import Stream
from .judge import well_formed
from .plans import pipe_names, plan_of
from .tables import Cluster


def deploy(cluster: Cluster, plan: Plan, *, task_slots: int | None = None) -> Deployment:
    """Return a plan as a deployment: one stream for each pipeline, in the canonical order of plans.

    `task_slots`: of each stream; None: as `Stream` says.
    Raises MalformedPlanError: the plan is not well formed.
    """
    pipes = well_formed(cluster, plan)
    whole = plan_of(cluster, pipes)
    return Deployment(
        streams=tuple(
            Stream(
                name=name or cluster.chain.network,
                chunks=whole.of(name),
                task_slots=task_slots,
            )
            for name in pipe_names(len(pipes))
        )
    )
