"""Requests on one platform: workloads, schedules, batches, what recurrent networks leave behind."""

from __future__ import annotations

from .api.batches import plan_batches
from .api.problems import with_free_passage, with_states
from .formulations.schedules import JobRequest, Jobs, SectionBorders
from .formulations.simulate import simulate_workload
from .formulations.workload import Execution, Request, RequestOrder, Workload

__all__ = [
    "Execution",
    "JobRequest",
    "Jobs",
    "Request",
    "RequestOrder",
    "SectionBorders",
    "Workload",
    "plan_batches",
    "simulate_workload",
    "with_free_passage",
    "with_states",
]
