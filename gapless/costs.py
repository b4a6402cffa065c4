"""Costs of layers: profiles, predictions, what is learned from executed plans, and contention."""

from __future__ import annotations

from .api.estimates import LearnedCosts, describe_device, judge_prediction, learn_costs, predict_costs
from .api.slowdown.contention import estimate_contention, measure_contention
from .api.slowdown.interference import measure_interference, measure_plan_interference
from .api.slowdown.side_by_side import profile_together
from .formulations.co_run import register_co_run_model
from .profiler.profile import Profile, ProfileOptions

__all__ = [
    "LearnedCosts",
    "Profile",
    "ProfileOptions",
    "describe_device",
    "estimate_contention",
    "judge_prediction",
    "learn_costs",
    "measure_contention",
    "measure_interference",
    "measure_plan_interference",
    "predict_costs",
    "profile_together",
    "register_co_run_model",
]
