"""The public names of gapless, each with the module that it is loaded from when it is first used.

The only list of them: type checkers read it, and so does `gapless/__init__.py`, a line a name.
"""

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
from .formulations.workload import Execution as Execution
from .formulations.workload import Request as Request
from .formulations.workload import RequestOrder as RequestOrder
from .formulations.workload import Workload as Workload
from .profiler.profile import ProfileOptions as ProfileOptions
from .solvers.result import SolveResult as SolveResult
from .version import __version__ as __version__
from .view.explaining.explain import explain as explain
from .view.page.subjects import subject as subject
from .view.page.subjects import write_report as write_report
