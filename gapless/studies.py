"""Many plans: sweeps and contests over many instances."""

from __future__ import annotations

from .sweeps.contest import InstanceAnswer, InstanceComparison, compare_instances
from .sweeps.instances import InstanceSet
from .sweeps.run import SweepResult
from .sweeps.spec import LimitSet, Sweep, SweepModel, SweepPlatform
from .sweeps.table import SweepRow

__all__ = [
    "InstanceAnswer",
    "InstanceComparison",
    "InstanceSet",
    "LimitSet",
    "Sweep",
    "SweepModel",
    "SweepPlatform",
    "SweepResult",
    "SweepRow",
    "compare_instances",
]
