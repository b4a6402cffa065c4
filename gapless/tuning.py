"""Tuning: what it can be told, and what it returns."""

from __future__ import annotations

from .api.tuned import Tuned
from .api.tuning import tune_simulated
from .executor.tuning.racing import Rung, TuningOptions
from .executor.tuning.result import TuningResult

__all__ = [
    "Rung",
    "Tuned",
    "TuningOptions",
    "TuningResult",
    "tune_simulated",
]
