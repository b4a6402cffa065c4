"""gapless: plan and run pipelines of neural networks over the unequal processors of one device.

>>> import gapless
>>> result = gapless.plan(gapless.load_problem("pixel7a/alexnet-sparse"), backend="native", top=3)
>>> print(result.plan)
0-0 Big | 1-3 GPU | 4-4 Little | 5-8 Medium

The names below are loaded when they are first used, so that `import gapless` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .contention import measure_contention as measure_contention
    from .device import this_device as this_device
    from .execution import open_pipeline as open_pipeline
    from .execution import profile as profile
    from .execution import profiled_problem as profiled_problem
    from .execution import run as run
    from .executor.callable_layers import CallableLayer as CallableLayer
    from .executor.callable_layers import CallableModel as CallableModel
    from .executor.deployment import Deployment as Deployment
    from .executor.model import TensorSpec as TensorSpec
    from .executor.runner import Budget as Budget
    from .executor.tuning.options import Rung as Rung
    from .executor.tuning.options import TuningOptions as TuningOptions
    from .explaining.explain import explain as explain
    from .formulations.co_run import register_co_run_model as register_co_run_model
    from .formulations.errors import GaplessError as GaplessError
    from .formulations.files import load_plan as load_plan
    from .formulations.judge import check as check
    from .formulations.judge import score as score
    from .formulations.objective import Limits as Limits
    from .formulations.objective import Objective as Objective
    from .formulations.objective import Term as Term
    from .formulations.plan import Chunk as Chunk
    from .formulations.plan import Plan as Plan
    from .formulations.problem import Problem as Problem
    from .formulations.rules import OpaqueRule as OpaqueRule
    from .formulations.rules import PlanView as PlanView
    from .formulations.simulate import simulate as simulate
    from .formulations.simulate import simulate_workload as simulate_workload
    from .formulations.workload import Execution as Execution
    from .formulations.workload import Request as Request
    from .formulations.workload import RequestOrder as RequestOrder
    from .formulations.workload import Workload as Workload
    from .interference import measure_interference as measure_interference
    from .interference import measure_plan_interference as measure_plan_interference
    from .models import open_model as open_model
    from .models import open_models as open_models
    from .problems import load_problem as load_problem
    from .problems import load_workload as load_workload
    from .problems import table_problem as table_problem
    from .problems import with_workload as with_workload
    from .profiler.profile import ProfileOptions as ProfileOptions
    from .reporting.subjects import subject as subject
    from .reporting.subjects import write_report as write_report
    from .run_files import load_deployment as load_deployment
    from .side_by_side import profile_together as profile_together
    from .solvers.result import SolveResult as SolveResult
    from .tuning import tune as tune
    from .tuning import tune_simulated as tune_simulated
    from .workflow import Comparison as Comparison
    from .workflow import compare as compare
    from .workflow import plan as plan

__version__ = "0.1.0"

_HOME = {
    "load_plan": ".formulations.files",
    "load_deployment": ".run_files",
    "tune_simulated": ".tuning",
    "write_report": ".reporting.subjects",
    "subject": ".reporting.subjects",
    "Rung": ".executor.tuning.options",
    "TuningOptions": ".executor.tuning.options",
    "ProfileOptions": ".profiler.profile",
    "RequestOrder": ".formulations.workload",
    "Execution": ".formulations.workload",
    "CallableLayer": ".executor.callable_layers",
    "CallableModel": ".executor.callable_layers",
    "TensorSpec": ".executor.model",
    "Deployment": ".executor.deployment",
    "Budget": ".executor.runner",
    "measure_contention": ".contention",
    "measure_interference": ".interference",
    "register_co_run_model": ".formulations.co_run",
    "measure_plan_interference": ".interference",
    "open_model": ".models",
    "open_models": ".models",
    "this_device": ".device",
    "profile": ".execution",
    "profile_together": ".side_by_side",
    "profiled_problem": ".execution",
    "open_pipeline": ".execution",
    "run": ".execution",
    "explain": ".explaining.explain",
    "tune": ".tuning",
    "GaplessError": ".formulations.errors",
    "check": ".formulations.judge",
    "score": ".formulations.judge",
    "Limits": ".formulations.objective",
    "Objective": ".formulations.objective",
    "Term": ".formulations.objective",
    "Chunk": ".formulations.plan",
    "Plan": ".formulations.plan",
    "Problem": ".formulations.problem",
    "OpaqueRule": ".formulations.rules",
    "PlanView": ".formulations.rules",
    "simulate": ".formulations.simulate",
    "simulate_workload": ".formulations.simulate",
    "Request": ".formulations.workload",
    "Workload": ".formulations.workload",
    "load_problem": ".problems",
    "load_workload": ".problems",
    "table_problem": ".problems",
    "with_workload": ".problems",
    "SolveResult": ".solvers.result",
    "Comparison": ".workflow",
    "compare": ".workflow",
    "plan": ".workflow",
}

__all__ = [
    "Budget",
    "CallableLayer",
    "CallableModel",
    "Chunk",
    "Comparison",
    "Deployment",
    "Execution",
    "GaplessError",
    "Limits",
    "Objective",
    "OpaqueRule",
    "Plan",
    "PlanView",
    "Problem",
    "ProfileOptions",
    "Request",
    "RequestOrder",
    "Rung",
    "SolveResult",
    "TensorSpec",
    "Term",
    "TuningOptions",
    "Workload",
    "check",
    "compare",
    "explain",
    "load_deployment",
    "load_plan",
    "load_problem",
    "load_workload",
    "measure_contention",
    "measure_interference",
    "measure_plan_interference",
    "open_model",
    "open_models",
    "open_pipeline",
    "plan",
    "profile",
    "profile_together",
    "profiled_problem",
    "register_co_run_model",
    "run",
    "score",
    "simulate",
    "simulate_workload",
    "subject",
    "table_problem",
    "this_device",
    "tune",
    "tune_simulated",
    "with_workload",
    "write_report",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOME[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
