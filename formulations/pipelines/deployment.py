"""How a plan of pipelines becomes a deployment: one stream for each pipeline."""

from __future__ import annotations

from ..deployment import Deployment, Stream, default_task_slots
from ..plan import Plan
from .judge import well_formed
from .plans import Pipe, pipe_names, plan_of
from .tables import Cluster
from .timing import stations_of


def deploy(cluster: Cluster, plan: Plan, *, task_slots: int | None = None) -> Deployment:
    """Return a plan as a deployment: one stream for each pipeline, in the canonical order of plans.

    Parameters
    ----------
    cluster
        The tables by which the plan is charged.
    plan
        A plan.
    task_slots
        Of each stream; None: two for each chunk, or where messages from and to the host need more, so many
        that no device waits for a task slot.

    Raises
    ------
    MalformedPlanError
        The plan is not well formed.
    """
    pipes = well_formed(cluster, plan)
    whole = plan_of(cluster, pipes)
    return Deployment(
        streams=tuple(
            Stream(
                name=name or cluster.chain.network,
                chunks=whole.of(name),
                task_slots=_slots(cluster, pipe) if task_slots is None else task_slots,
            )
            for name, pipe in zip(pipe_names(len(pipes)), pipes, strict=True)
        )
    )


def _slots(cluster: Cluster, pipe: Pipe) -> int | None:
    stations = len(stations_of(cluster, pipe))
    return None if stations <= default_task_slots(len(pipe)) else 2 * stations
