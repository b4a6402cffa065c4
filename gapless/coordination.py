"""Requests as they come: policies, settings and scenarios, their simulation, bound and service."""

from __future__ import annotations

from .api.coordination import (
    BoundedPart,
    Coordination,
    CoordinationBound,
    bound_coordination,
    coordinate_deadlines,
    with_crowd,
    with_sessions,
    with_workers,
)
from .api.coordinators import coordinate_here, open_coordinator
from .executor.coordination.coordinator import Coordinator
from .executor.coordination.requests import RanChunk, Served
from .executor.coordination.tally import Statistics
from .formulations.coordination.policy import Decision, Policy, UnitState, Waiting
from .formulations.coordination.record import Record
from .formulations.coordination.scenario import (
    Application,
    Arrivals,
    FrameStep,
    Scenario,
    UnitChange,
    UnitEvent,
    Workflow,
)
from .formulations.coordination.setting import Setting
from .formulations.coordination.simulation import Conditions
from .formulations.coordination.times import Times
from .profiler.coordination.catalog import shipped_scenario, shipped_setting

__all__ = [
    "Application",
    "Arrivals",
    "BoundedPart",
    "Conditions",
    "Coordination",
    "CoordinationBound",
    "Coordinator",
    "Decision",
    "FrameStep",
    "Policy",
    "RanChunk",
    "Record",
    "Scenario",
    "Served",
    "Setting",
    "Statistics",
    "Times",
    "UnitChange",
    "UnitEvent",
    "UnitState",
    "Waiting",
    "Workflow",
    "bound_coordination",
    "coordinate_deadlines",
    "coordinate_here",
    "open_coordinator",
    "shipped_scenario",
    "shipped_setting",
    "with_crowd",
    "with_sessions",
    "with_workers",
]
