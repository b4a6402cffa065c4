"""Functions as OpenCL kernels: equal numbers, honest receipts, and refusals."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gapless.executor.callable_layers import CallableLayer, CallableModel
from gapless.executor.callables import CallablePipeline, load_callable
from gapless.executor.engine import Session
from gapless.executor.engines import opencl_engine
from gapless.executor.engines.opencl_engine import CPU_BACKEND, GPU_BACKEND, OpenClEngine, open_device
from gapless.executor.engines.registry import get_engine
from gapless.executor.opencl_functions import OpenClFunction
from gapless.formulations.errors import (
    EngineUnavailableError,
    ExecutionError,
    InvalidModelError,
    PlacementError,
)
from gapless.formulations.hardware import ProcessingUnit
from tests.executor.engines.opencl_units import opencl_backend, opencl_unit
from tests.executor.pipelines import write

ENGINE = OpenClEngine()

PIPELINE = '''
from gapless.executor.opencl_functions import OpenClFunction

SOURCE = """
kernel void scale(global const float *x, float factor, global float *y) {
    y[get_global_id(0)] = factor * x[get_global_id(0)];
}
kernel void add(global const float *x, global const float *weights, int columns, global float *y) {
    int i = get_global_id(0), row = get_global_id(1);
    y[row * columns + i] = x[row * columns + i] + weights[i];
}
"""
WEIGHTS = np.array([1, 2, 3], dtype=np.float32)

def scale(call):
    twice = call.scratch("twice", call.inputs[0].shape, call.inputs[0].dtype)
    call.launch("scale", twice.size, call.inputs[0], 2.0, twice)
    call.launch("scale", twice.size, twice, 0.25, call.outputs[0])

def add(call):
    call.launch("add", (3, 2), call.inputs[0], call.constants["weights"], 3, call.outputs[0])

P = CallableModel(
    name="p",
    inputs=(X,),
    layers=(
        CallableLayer(
            name="half",
            variants={"*": lambda x: x / 2, "opencl": OpenClFunction(source=SOURCE, enqueue=scale)},
        ),
        CallableLayer(
            name="sum",
            variants={
                "*": lambda x: x + WEIGHTS,
                "opencl": OpenClFunction(source=SOURCE, enqueue=add, constants={"weights": WEIGHTS}),
            },
        ),
        CallableLayer(name="root", variants={"*": np.sqrt}),
    ),
)
'''


def opened(model: CallablePipeline, start: int, stop: int, backend: str = "") -> Session:
    """Open some layers of a pipeline on a device."""
    (artifact,) = ENGINE.prepare(model.pieces(start, stop))
    return ENGINE.open(artifact, opencl_unit(backend))


@pytest.fixture
def model(tmp_path: Path) -> CallablePipeline:
    return load_callable(write(tmp_path, PIPELINE))


@pytest.fixture
def session(model: CallablePipeline) -> Iterator[Session]:
    found = opened(model, 0, 2)
    yield found
    found.close()
    found.close()


def run(session: Session, x: NDArray[Any]) -> NDArray[Any]:
    """Run a session with one input and one output."""
    (output,) = [spec.empty() for spec in session.artifact.outputs]
    session.copy_in([x])
    session.run()
    session.copy_out([output])
    return output


def test_numbers_are_those_of_the_functions_and_depend_on_the_inputs_alone(session: Session) -> None:
    for start in (0, 7, 0):
        x = np.arange(start, start + 6, dtype=np.float32).reshape(2, 3)
        np.testing.assert_allclose(run(session, x), x / 2 + np.array([1, 2, 3]), rtol=1e-6)


def test_a_receipt_names_the_device(session: Session) -> None:
    receipt = session.receipt
    device = open_device(opencl_backend())
    assert receipt.granted_backend == receipt.asked_backend == opencl_backend()
    assert receipt.engine.startswith("pyopencl ")
    assert receipt.engine.endswith(f" on {device.name}")
    cl = pytest.importorskip("pyopencl")
    is_cpu = bool(device.context.devices[0].type & cl.device_type.CPU)
    assert (receipt.granted_backend == CPU_BACKEND) is is_cpu


def test_what_is_not_there_is_refused_and_not_replaced(model: CallablePipeline) -> None:
    opencl_backend()
    for missing in {GPU_BACKEND, CPU_BACKEND} - set(ENGINE.backends()):
        words = rf"no OpenCL device for the backend '{missing}'; found: .*\("
        with pytest.raises(PlacementError, match=words):
            opened(model, 0, 2, missing)
    with pytest.raises(PlacementError, match=r"layer 'root' has no function for unit 'device' .*opencl"):
        opened(model, 0, 3)


@pytest.mark.parametrize("compiles", [True, False])
def test_a_device_that_compiles_nothing_is_not_listed(
    compiles: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PoCL lists processors that are newer than itself, and cannot compile for them."""

    class Error(Exception):
        pass

    def build(**_: object) -> None:
        warnings.warn("how kernels were vectorised", stacklevel=1)
        if not compiles:
            raise Error("unknown target CPU")

    program = SimpleNamespace(build=build)
    fake = SimpleNamespace(Error=Error, Context=list, Program=lambda context, source: program)
    monkeypatch.setitem(sys.modules, "pyopencl", fake)
    monkeypatch.setattr(opencl_engine, "_devices", lambda: iter([(CPU_BACKEND, "a processor")]))
    questions: list[object] = [{"kind": "list"}]
    answers: list[object] = []
    link: Any = SimpleNamespace(receive=lambda: questions.pop() if questions else None, send=answers.append)
    opencl_engine.serve(link, {})
    assert answers == [{"kind": "found", "backends": [CPU_BACKEND] if compiles else []}]


def test_another_device_can_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = opencl_backend()
    open_device.cache_clear()
    monkeypatch.setenv(opencl_engine.DEVICE_VARIABLE, "no such device")
    with pytest.raises(PlacementError, match=r"found: none\. .*GAPLESS_OPENCL_DEVICE must not exclude it"):
        open_device(backend)


def test_kernels_are_compiled_once_for_all_sessions(model: CallablePipeline) -> None:
    sessions = [opened(model, 0, 1), opened(model, 1, 2), opened(model, 0, 1)]
    device = open_device(opencl_backend())
    programs = dict(device.programs)
    again = opened(model, 0, 2)
    assert {key: id(value) for key, value in device.programs.items()} == {
        key: id(value) for key, value in programs.items()
    }
    x = np.ones((2, 3), dtype=np.float32)
    np.testing.assert_allclose(run(sessions[1], run(sessions[0], x)), run(again, x))
    for each in (*sessions, again):
        each.close()


def test_each_layer_is_timed(session: Session) -> None:
    times = session.operator_times([np.ones((2, 3), dtype=np.float32)], repetitions=3)
    assert times is not None
    assert [(time.output, time.kind) for time in times] == [("half", "half"), ("sum", "sum")]
    assert all(time.time_us > 0 for time in times)


def test_other_units_run_the_other_functions(model: CallablePipeline) -> None:
    (artifact,) = ENGINE.prepare(model.pieces(0, 3))
    assert artifact.engine == "opencl"
    session = get_engine(artifact.engine).open(artifact, ProcessingUnit(name="cpu"))
    x = np.full((2, 3), 4, dtype=np.float32)
    np.testing.assert_allclose(run(session, x), np.sqrt(2 + np.array([[1, 2, 3]] * 2)), rtol=1e-6)
    assert session.receipt.engine.startswith("Python")
    session.close()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("y[get_global_id(0)] = factor", "y[get_global_id(0)] = factr", "do not compile on .*factr"),
        ('("scale", twice.size, twice', '("skale", twice.size, twice', "layer 'half'.*no kernel 'skale'"),
        ("call.inputs[0], 2.0, twice)", "call.inputs[0], twice)", "layer 'half' raised"),
    ],
)
def test_what_fails_is_named(tmp_path: Path, old: str, new: str, words: str) -> None:
    assert old in PIPELINE
    model = load_callable(write(tmp_path, PIPELINE.replace(old, new)))
    with pytest.raises(ExecutionError, match=rf"(?s)piece 'p\[0:2\)' on .*{words}"):
        run(opened(model, 0, 2), np.ones((2, 3), dtype=np.float32))


def test_without_pyopencl_the_engine_says_what_to_install(
    model: CallablePipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gapless.executor.engines.opencl_engine.util.find_spec", lambda _: None)
    assert "pip install 'gapless[opencl]'" in ENGINE.availability().reason
    assert ENGINE.backends() == ()
    (artifact,) = ENGINE.prepare(model.pieces(0, 2))
    with pytest.raises(EngineUnavailableError, match="not installed"):
        ENGINE.open(artifact, ProcessingUnit(name="cpu"))


def test_an_opencl_function_stands_beside_another_one_under_its_own_key() -> None:
    function = OpenClFunction(source="", enqueue=lambda call: None)
    cases: tuple[tuple[dict[str, Any], str], ...] = (
        ({"opencl": function}, "has an OpenCL function alone"),
        ({"cpu": abs, "gpu": function}, "an OpenClFunction stands under 'opencl', alone"),
        ({"cpu": abs, "opencl": abs}, "an OpenClFunction stands under 'opencl', alone"),
    )
    for variants, words in cases:
        with pytest.raises(InvalidModelError, match=words):
            CallableModel(name="p", inputs=(), layers=(CallableLayer(name="x", variants=variants),))
    with pytest.raises(TypeError, match="--engine opencl"):
        function(np.zeros(3))


def test_nothing_is_imported_before_a_device_is_needed() -> None:
    code = "import sys; from gapless.profiler.applications import octree; print('pyopencl' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "False"
