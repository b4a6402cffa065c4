"""Engines by name."""

from __future__ import annotations

import subprocess
import sys

import pytest

from gapless.executor.engine import Engine
from gapless.executor.engines import registry
from gapless.executor.engines.registry import engine_names, get_engine
from gapless.formulations.errors import EngineUnavailableError, InvalidInputError


def test_the_built_in_engines_work_here() -> None:
    assert engine_names()[:3] == ("mnn", "onnxruntime", "callable")
    for name in engine_names()[:3]:
        engine: Engine = get_engine(name)
        assert engine.name == name
        assert engine.availability().ok, engine.availability().reason
        assert engine.availability().version
    assert [name for name in engine_names() if get_engine(name).takes("onnx")] == ["mnn", "onnxruntime"]


def test_a_wrong_name_is_refused_with_the_near_one() -> None:
    with pytest.raises(InvalidInputError, match=r"no engine 'MN'; did you mean mnn\?"):
        get_engine("MN")
    with pytest.raises(InvalidInputError, match="no engine 'tensorrt'; choose one of mnn, onnxruntime"):
        get_engine("tensorrt")


def test_engines_come_as_entry_points_too(monkeypatch: pytest.MonkeyPatch) -> None:
    targets = {
        "mine": ("gapless.executor.engines.ort_engine", "OrtEngine"),
        "lost": ("gapless.nowhere", "X"),
    }
    monkeypatch.setattr(registry, "_entry_points", lambda: targets)
    assert engine_names()[3:] == ("mine", "lost")
    assert get_engine("mine").name == "onnxruntime"
    with pytest.raises(EngineUnavailableError, match=r"'lost' .*gapless\.nowhere:X: ModuleNotFoundError"):
        get_engine("lost")
    with pytest.raises(EngineUnavailableError, match=r"No module named 'mine_too'; .* set PYTHONPATH=\.$"):
        get_engine("mine_too:Engine")


def test_engines_load_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from gapless.executor.engines.registry import engine_names, get_engine\n"
        "assert all(get_engine(name).availability().ok for name in engine_names())\n"
        "print(sorted({'MNN', '_mnncengine', '_tools', 'onnxruntime', 'onnx', 'numpy'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"
