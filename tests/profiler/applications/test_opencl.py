"""The applications on an OpenCL device: layer by layer what the functions for CPUs give."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gapless.executor.callables import CallablePipeline, load_callable
from gapless.executor.engines.opencl_engine import OpenClEngine
from gapless.executor.opencl_functions import OPENCL
from gapless.profiler.applications.catalog import applications
from gapless.profiler.applications.octree import scan
from tests.executor.engines.opencl_units import opencl_unit

pytestmark = pytest.mark.slow  # drivers compile

CLOUDS = {
    "a room": scan(3000, 1),
    "noise": np.random.default_rng(2).random((1000, 3)).astype(np.float32),
    "one place": np.full((50, 3), 0.3, dtype=np.float32),
    "one point": np.full((1, 3), 0.7, dtype=np.float32),
    "two places": np.repeat(np.array([[0.1] * 3, [0.9] * 3], dtype=np.float32), 20, axis=0),
    "outside, and not a number": np.array([[-1, 2, 0.5], [np.nan, 0.5, np.inf]] * 3, dtype=np.float32),
    "neighbours": np.linspace(0, 1, 3 * 777, dtype=np.float32).reshape(-1, 3),
}


def load(folder: Path, module: str, expression: str) -> CallablePipeline:
    """Return an application of another size."""
    path = folder / "small.py"
    path.write_text(f"from gapless.profiler.applications.{module} import *\nP = {expression}\n")
    return load_callable(f"{path}:P")


def compare(model: CallablePipeline, inputs: dict[str, NDArray[Any]], *, worst: float) -> None:
    """Run each layer on the device alone, and then all of them in one session."""
    engine, unit, count = OpenClEngine(), opencl_unit(), len(model.network.layers)
    made = [tensor.name for tensor in model.network.tensors if tensor.source >= 0]
    right = {**inputs, **model.reference(inputs, also=made)}
    for start, stop in [*((layer, layer + 1) for layer in range(count)), (0, count)]:
        (artifact,) = engine.prepare(model.pieces(start, stop))
        session = engine.open(artifact, unit)
        outputs = [spec.empty() for spec in artifact.outputs]
        for _ in range(2):  # nothing is left over from the run before
            session.copy_in([right[spec.name] for spec in artifact.inputs])
            session.run()
            session.copy_out(outputs)
        session.close()
        for spec, found in zip(artifact.outputs, outputs, strict=True):
            if worst:
                np.testing.assert_allclose(found, right[spec.name], rtol=worst, atol=worst)
            else:
                np.testing.assert_array_equal(found, right[spec.name], err_msg=f"{start} {spec.name}")


@pytest.mark.parametrize("cloud", CLOUDS)
def test_an_octree_is_the_same_to_the_last_bit(tmp_path: Path, cloud: str) -> None:
    points = CLOUDS[cloud]
    compare(load(tmp_path, "octree", f"octree({len(points)})"), {"points": points}, worst=0)


@pytest.mark.parametrize("network", ["dense_alexnet(3)", "sparse_alexnet(3)", "sparse_alexnet(1, density=1)"])
def test_networks_are_the_same_up_to_rounding(tmp_path: Path, network: str) -> None:
    model = load(tmp_path, "alexnet", network)
    inputs = {"images": np.random.default_rng(5).standard_normal(model.inputs[0].shape).astype(np.float32)}
    compare(model, inputs, worst=1e-4)


def test_every_layer_of_every_application_has_an_opencl_function() -> None:
    for application in applications():
        for layer in application.declared().functions():
            assert OPENCL in layer.variants, f"{application.name}: {layer.name}"
