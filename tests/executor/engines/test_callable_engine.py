"""Python functions as an engine: protocol, receipts, and functions that misbehave."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from gapless.executor.callables import load_callable
from gapless.executor.engine import Artifact, Engine, Session, parse_artifact
from gapless.executor.engines.callable_engine import CallableEngine
from gapless.formulations.errors import ExecutionError, PlacementError
from gapless.formulations.hardware import EngineSettings, ProcessingUnit, UnitKind
from tests.executor.pipelines import TWO, one_layer, write

ENGINE: Engine = CallableEngine()
CPU = ProcessingUnit(name="big", kind=UnitKind.CPU)
GPU = ProcessingUnit(name="adreno", kind=UnitKind.GPU, engine=EngineSettings(backend="opencl"))
ONES = np.ones((2, 3), dtype=np.float32)

VARIANTS = """
P = CallableModel(name="v", inputs=(X,), layers=(
    CallableLayer(name="any", variants={"*": lambda x: x + 1}),
    CallableLayer(name="both", variants={"cpu": lambda x: x * 2, "gpu": lambda x: x * 3}),
    CallableLayer(name="only", variants={"gpu": lambda x: x * 5}),
))
"""


def prepared(locator: str, folder: Path, start: int = 0, stop: int | None = None) -> Artifact:
    model = load_callable(locator)
    stop = len(model.network.layers) if stop is None else stop
    (artifact,) = ENGINE.prepare(model.pieces(start, stop), folder=folder)
    return artifact


def run(session: Session) -> dict[str, float]:
    """Return the largest value of each output for ones."""
    session.copy_in([ONES] * len(session.artifact.inputs))
    session.run()
    outputs = [spec.empty() for spec in session.artifact.outputs]
    session.copy_out(outputs)
    return {spec.name: array.max() for spec, array in zip(session.artifact.outputs, outputs, strict=True)}


def test_an_engine_that_is_always_there() -> None:
    assert ENGINE.availability().ok
    assert (ENGINE.name, ENGINE.backends()) == ("callable", ("cpu",))
    assert ENGINE.takes("callable")
    assert not ENGINE.takes("onnx")


def test_a_piece_runs_after_a_journey_as_json(tmp_path: Path) -> None:
    artifact = prepared(write(tmp_path), tmp_path)
    travelled = parse_artifact(json.loads(json.dumps(asdict(artifact))))
    assert travelled == artifact
    session = ENGINE.open(travelled, CPU)
    assert run(session) == {"sum": 3, "rows": 6}
    assert run(session) == {"sum": 3, "rows": 6}
    session.close()
    session.close()


def test_inputs_are_copied(tmp_path: Path) -> None:
    session = ENGINE.open(prepared(write(tmp_path), tmp_path), CPU)
    given = ONES.copy()
    session.copy_in([given])
    given[:] = 100
    session.run()
    found = [spec.empty() for spec in session.artifact.outputs]
    session.copy_out(found)
    session.copy_in([given])
    session.run()
    assert found[0].max() == 3


def test_the_function_for_the_kind_of_unit_is_called(tmp_path: Path) -> None:
    locator = write(tmp_path, VARIANTS)
    first, whole = prepared(locator, tmp_path, 0, 2), prepared(locator, tmp_path)
    on_cpu, on_gpu = ENGINE.open(first, CPU), ENGINE.open(whole, GPU)
    assert (run(on_cpu), run(on_gpu)) == ({"both": 4}, {"only": 30})
    assert (on_cpu.receipt.granted_backend, on_gpu.receipt.granted_backend) == ("*+cpu", "*+gpu")
    for receipt in (on_cpu.receipt, on_gpu.receipt):
        assert receipt.mismatches == ()
        assert receipt.granted_threads is None
        assert receipt.engine.startswith("Python 3.")
    with pytest.raises(
        PlacementError, match=r"'v\[0:3\)'.*'only' has no function for unit 'big' of kind 'cpu'"
    ):
        ENGINE.open(whole, CPU)


def test_receipts_tell_the_cores(tmp_path: Path) -> None:
    artifact = prepared(write(tmp_path), tmp_path)
    here = tuple(sorted(os.sched_getaffinity(0)))
    assert ENGINE.open(artifact, replace(CPU, cores=here)).receipt.granted_cores == here
    with pytest.raises(PlacementError, match="cores: asked for"):
        ENGINE.open(artifact, replace(CPU, cores=(here[0], 4000)))


def test_every_layer_is_timed(tmp_path: Path) -> None:
    session = ENGINE.open(prepared(write(tmp_path), tmp_path), CPU)
    times = session.operator_times([ONES], repetitions=3)
    assert times is not None
    assert [(time.output, time.kind) for time in times] == [("doubled", "doubled"), ("sum", "split")]
    assert all(time.time_us > 0 for time in times)


def test_documents_are_kept_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GAPLESS_CACHE", str(tmp_path / "cache"))
    pieces = load_callable(write(tmp_path)).pieces(0, 1)
    (first,), (second,) = ENGINE.prepare(pieces), ENGINE.prepare(pieces)
    assert first == second
    assert Path(first.path).is_relative_to(tmp_path / "cache")
    assert run(ENGINE.open(first, CPU)) == {"doubled": 2}


def test_a_changed_file_is_refused(tmp_path: Path) -> None:
    artifact = prepared(write(tmp_path), tmp_path)
    path = Path(write(tmp_path, TWO.replace("2 * x", "3 * x")).removesuffix(":P"))
    with pytest.raises(ExecutionError, match=r"'two\[0:2\)': .*pipeline\.py has changed"):
        ENGINE.open(artifact, CPU)
    path.unlink()
    with pytest.raises(ExecutionError, match="there is no file"):
        ENGINE.open(artifact, CPU)
    Path(artifact.path).write_text("{")
    with pytest.raises(ExecutionError, match="prepare it again"):
        ENGINE.open(artifact, CPU)


def test_a_changed_neighbour_is_noticed_by_its_layers(tmp_path: Path) -> None:
    neighbour = tmp_path / "names_of_layers.py"
    neighbour.write_text("NAME = 'one'\n")
    body = (
        "from names_of_layers import NAME\n"
        "P = CallableModel(name='p', inputs=(X,), layers=(\n"
        "    CallableLayer(name=NAME, variants={'*': lambda x: x}),))\n"
    )
    artifact = prepared(write(tmp_path, body), tmp_path)
    neighbour.write_text("NAME = 'other'\n")
    with pytest.raises(ExecutionError, match="has changed"):
        ENGINE.open(artifact, CPU)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (
            "def f(x):\n    if x.min() == 1: raise ValueError('too bright')\n    return x",
            "raised ValueError: too",
        ),
        ("def f(x): return x if x.min() < 1 else x[0]", r"is float32 \(3,\), must be float32 \(2, 3\)"),
        ("def f(x): return x if x.min() < 1 else x.astype('int32')", "is int32"),
        ("def f(x): return x if x.min() < 1 else (x, x)", "returned 2 arrays"),
        ("def f(x): return x if x.min() < 1 else None", "returned NoneType"),
    ],
)
def test_functions_that_misbehave_later_are_named(tmp_path: Path, function: str, words: str) -> None:
    session = ENGINE.open(prepared(write(tmp_path, one_layer(function)), tmp_path), CPU)
    session.copy_in([ONES])
    with pytest.raises(ExecutionError, match=rf"piece 'p\[0:1\)': .*layer 'only'.*{words}"):
        session.run()
    session.copy_in([0 * ONES])
    session.run()  # it has recovered
