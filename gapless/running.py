"""Plans at work: pipelines, models made of functions, samples, measurements, histories."""

from __future__ import annotations

from .api.models import open_models
from .api.support import model_support
from .boards.board import Board
from .executor.callable_layers import CallableLayer, CallableModel, ModelStep
from .executor.measurement import Measurement
from .executor.model import TensorSpec
from .executor.opencl_functions import OpenClFunction
from .executor.pipeline.pipeline import Pipeline
from .executor.samples import Samples, read_samples
from .files.plans import load_deployment
from .files.run_files import save_run
from .formulations.deployment import Deployment
from .formulations.errors import BoardError
from .formulations.history import History
from .serving.server import Server

__all__ = [
    "Board",
    "BoardError",
    "CallableLayer",
    "CallableModel",
    "Deployment",
    "History",
    "Measurement",
    "ModelStep",
    "OpenClFunction",
    "Pipeline",
    "Samples",
    "Server",
    "TensorSpec",
    "load_deployment",
    "model_support",
    "open_models",
    "read_samples",
    "save_run",
]
