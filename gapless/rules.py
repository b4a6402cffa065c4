"""Ready-made rules, and what rules of your own are made of: `from gapless.rules import pin, forbid`."""

from __future__ import annotations

from .formulations.chunking.rules import (
    apart,
    at_least,
    at_most,
    avoid,
    busy_cap,
    cuts_only_after,
    differs,
    forbid,
    latency_cap,
    memory_cap,
    needs,
    pin,
    together,
)
from .formulations.chunking.view import PlanView
from .formulations.cooperation.rules import largest_group, never_together, redundancy_cap, serves, some_group
from .formulations.cooperation.view import GroupView
from .formulations.expr import Const, abs_of, all_of, any_of, count, max_of, min_of
from .formulations.flow_shop.rules import before, deadline, keep_off, keep_on, memory_cap_while, never_beside
from .formulations.flow_shop.view import WorkloadView
from .formulations.jobs.tasks import ScheduleView
from .formulations.jobs.view import JobView
from .formulations.partition.view import PartView
from .formulations.pipelines.rules import (
    begins,
    ends,
    energy_cap,
    least_pipelines,
    most_pipelines,
    never_sends,
    same_pipeline,
    separate,
    traffic_cap,
)
from .formulations.pipelines.view import PipelineView
from .formulations.rules import OpaqueRule, Rule

__all__ = [
    "Const",
    "GroupView",
    "JobView",
    "OpaqueRule",
    "PartView",
    "PipelineView",
    "PlanView",
    "Rule",
    "ScheduleView",
    "WorkloadView",
    "abs_of",
    "all_of",
    "any_of",
    "apart",
    "at_least",
    "at_most",
    "avoid",
    "before",
    "begins",
    "busy_cap",
    "count",
    "cuts_only_after",
    "deadline",
    "differs",
    "ends",
    "energy_cap",
    "forbid",
    "keep_off",
    "keep_on",
    "largest_group",
    "latency_cap",
    "least_pipelines",
    "max_of",
    "memory_cap",
    "memory_cap_while",
    "min_of",
    "most_pipelines",
    "needs",
    "never_beside",
    "never_sends",
    "never_together",
    "pin",
    "redundancy_cap",
    "same_pipeline",
    "separate",
    "serves",
    "some_group",
    "together",
    "traffic_cap",
]
