"""Engines by name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gapless.executor.engine import Engine
from gapless.executor.engines.registry import engine_names, get_engine
from gapless.formulations.errors import EngineUnavailableError, InvalidInputError
from tests.entry_points import install


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


def test_engines_come_as_entry_points_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    targets = {"mine": "gapless.executor.engines.ort_engine:OrtEngine", "lost": "gapless.nowhere:X"}
    install(monkeypatch, tmp_path, "gapless.engines", targets)
    assert engine_names()[3:] == ("mine", "lost")
    assert get_engine("mine").name == "onnxruntime"
    with pytest.raises(EngineUnavailableError, match=r"'lost' .*gapless\.nowhere:X: ModuleNotFoundError"):
        get_engine("lost")
    with pytest.raises(EngineUnavailableError, match=r"No module named 'mine_too'; .* set PYTHONPATH=\.$"):
        get_engine("mine_too:Engine")


FILE = """
from gapless.executor.engines.ort_engine import OrtEngine

class Named(OrtEngine):
    name = f"{__file__}:Named"

class Unnamed(OrtEngine):
    name = "nowhere_at_all:Unnamed"

class Half:
    name = "half"
"""


def test_engines_come_from_files_if_workers_find_them(tmp_path: Path) -> None:
    path = tmp_path / "engines.py"
    path.write_text(FILE)
    engine = get_engine(f"{path}:Named")
    assert engine.name == f"{path}:Named"
    assert type(get_engine(engine.name)) is type(engine)
    with pytest.raises(
        EngineUnavailableError, match=r"'nowhere_at_all:Unnamed'; .*write name = f\"{__file__}:"
    ):
        get_engine(f"{path}:Unnamed")
    with pytest.raises(EngineUnavailableError, match=r"Half\(\) is not an engine: it has no 'availability'"):
        get_engine(f"{path}:Half")
    with pytest.raises(InvalidInputError, match=r"name the class in the file: engines\.py:CLASS"):
        get_engine("engines.py")


def test_engines_load_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from gapless.executor.engines.registry import engine_names, get_engine\n"
        "assert all(get_engine(name).availability().ok for name in engine_names())\n"
        "print(sorted({'MNN', '_mnncengine', '_tools', 'onnxruntime', 'onnx', 'numpy'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"
