"""A plan of a small network that comes back to two cores of this machine, for tests that run it."""

from __future__ import annotations

from pathlib import Path

import gapless
from gapless.executor.graph.onnx_model import OnnxModel
from gapless.executor.model import Model
from gapless.formulations.costs import CostTable, NetworkCosts
from gapless.formulations.hardware import Platform
from gapless.formulations.plan import comes_back
from gapless.formulations.problem import Problem
from tests.executor.graph.models import load, residual


def plan_file(folder: Path) -> tuple[OnnxModel, Path]:
    """Return the network, whose model is in the folder, and the file of a plan for its problem there."""
    model = load(residual(2), folder, name="net")
    problem = gapless.with_passage(
        uneven(model, gapless.this_device(engine="onnxruntime", units=("core0", "core1")))
    )
    plan = gapless.plan(problem).plan
    assert plan is not None
    assert comes_back(plan.chunks)
    gapless.save(problem, folder / "problem.json")
    gapless.save(plan, folder / "plan.json", problem=folder / "problem.json")
    return model, folder / "plan.json"


def uneven(model: Model, platform: Platform) -> Problem:
    """Return a problem in which two layers in a row are fast on one unit, the next two on the next one."""
    count = len(platform.units)
    rows = tuple(
        tuple(100 if layer // 2 % count == unit else 900 for unit in range(count))
        for layer in range(len(model.network.layers))
    )
    table = CostTable(
        units=platform.unit_names, networks=(NetworkCosts(network=model.network.name, layer_us=rows),)
    )
    return Problem(platform=platform, networks=(model.network,), costs=table)
