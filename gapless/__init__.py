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
    from .api.device import this_device as this_device
    from .api.execution import open_pipeline as open_pipeline
    from .api.execution import profile as profile
    from .api.execution import profiled_problem as profiled_problem
    from .api.execution import run as run
    from .api.models import open_model as open_model
    from .api.models import open_models as open_models
    from .api.planning import Comparison as Comparison
    from .api.planning import compare as compare
    from .api.planning import plan as plan
    from .api.problems import load_problem as load_problem
    from .api.problems import load_workload as load_workload
    from .api.problems import table_problem as table_problem
    from .api.problems import with_workload as with_workload
    from .api.slowdown.contention import measure_contention as measure_contention
    from .api.slowdown.interference import measure_interference as measure_interference
    from .api.slowdown.interference import measure_plan_interference as measure_plan_interference
    from .api.slowdown.side_by_side import profile_together as profile_together
    from .api.tuning import tune as tune
    from .api.tuning import tune_simulated as tune_simulated
    from .executor.callable_layers import CallableLayer as CallableLayer
    from .executor.callable_layers import CallableModel as CallableModel
    from .executor.model import TensorSpec as TensorSpec
    from .executor.runner import Budget as Budget
    from .executor.tuning.options import Rung as Rung
    from .executor.tuning.options import TuningOptions as TuningOptions
    from .files.run_files import load_deployment as load_deployment
    from .formulations.chunking.view import PlanView as PlanView
    from .formulations.co_run import register_co_run_model as register_co_run_model
    from .formulations.deployment import Deployment as Deployment
    from .formulations.errors import GaplessError as GaplessError
    from .formulations.files import load_plan as load_plan
    from .formulations.flow_shop.workload import Execution as Execution
    from .formulations.flow_shop.workload import Request as Request
    from .formulations.flow_shop.workload import RequestOrder as RequestOrder
    from .formulations.flow_shop.workload import Workload as Workload
    from .formulations.judge import check as check
    from .formulations.judge import score as score
    from .formulations.limits import Limits as Limits
    from .formulations.objective import Objective as Objective
    from .formulations.plan import Chunk as Chunk
    from .formulations.plan import Plan as Plan
    from .formulations.problem import Problem as Problem
    from .formulations.rules import OpaqueRule as OpaqueRule
    from .formulations.simulate import simulate as simulate
    from .formulations.simulate import simulate_workload as simulate_workload
    from .profiler.profile import ProfileOptions as ProfileOptions
    from .solvers.result import SolveResult as SolveResult
    from .view.explaining.explain import explain as explain
    from .view.page.subjects import subject as subject
    from .view.page.subjects import write_report as write_report

from .version import __version__ as __version__

_HOME = {
    "load_plan": ".formulations.files",
    "load_deployment": ".files.run_files",
    "tune_simulated": ".api.tuning",
    "write_report": ".view.page.subjects",
    "subject": ".view.page.subjects",
    "Rung": ".executor.tuning.options",
    "TuningOptions": ".executor.tuning.options",
    "ProfileOptions": ".profiler.profile",
    "RequestOrder": ".formulations.flow_shop.workload",
    "Execution": ".formulations.flow_shop.workload",
    "CallableLayer": ".executor.callable_layers",
    "CallableModel": ".executor.callable_layers",
    "TensorSpec": ".executor.model",
    "Deployment": ".formulations.deployment",
    "Budget": ".executor.runner",
    "measure_contention": ".api.slowdown.contention",
    "measure_interference": ".api.slowdown.interference",
    "register_co_run_model": ".formulations.co_run",
    "measure_plan_interference": ".api.slowdown.interference",
    "open_model": ".api.models",
    "open_models": ".api.models",
    "this_device": ".api.device",
    "profile": ".api.execution",
    "profile_together": ".api.slowdown.side_by_side",
    "profiled_problem": ".api.execution",
    "open_pipeline": ".api.execution",
    "run": ".api.execution",
    "explain": ".view.explaining.explain",
    "tune": ".api.tuning",
    "GaplessError": ".formulations.errors",
    "check": ".formulations.judge",
    "score": ".formulations.judge",
    "Limits": ".formulations.limits",
    "Objective": ".formulations.objective",
    "Chunk": ".formulations.plan",
    "Plan": ".formulations.plan",
    "Problem": ".formulations.problem",
    "OpaqueRule": ".formulations.rules",
    "PlanView": ".formulations.chunking.view",
    "simulate": ".formulations.simulate",
    "simulate_workload": ".formulations.simulate",
    "Request": ".formulations.flow_shop.workload",
    "Workload": ".formulations.flow_shop.workload",
    "load_problem": ".api.problems",
    "load_workload": ".api.problems",
    "table_problem": ".api.problems",
    "with_workload": ".api.problems",
    "SolveResult": ".solvers.result",
    "Comparison": ".api.planning",
    "compare": ".api.planning",
    "plan": ".api.planning",
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
