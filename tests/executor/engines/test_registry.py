"""Engines by name."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import pytest

from gapless.executor.callables import CallableContent
from gapless.executor.engine import Engine
from gapless.executor.engines import onnx_pieces
from gapless.executor.engines.helper import TINY
from gapless.executor.engines.registry import engine_names, engine_words, engines_on, get_engine
from gapless.formulations.errors import EngineUnavailableError, InvalidInputError
from gapless.formulations.hardware import EngineSettings, ProcessingUnit
from tests.entry_points import install


def test_the_built_in_engines_work_here() -> None:
    assert engine_names()[:4] == ("mnn", "onnxruntime", "openvino", "callable")
    for name in engine_names()[:4]:
        engine: Engine = get_engine(name)
        assert engine.name == name
        assert engine.availability().ok, engine.availability().reason
        assert engine.availability().version
    assert [name for name in engine_names() if get_engine(name).takes("onnx")] == [
        "mnn",
        "onnxruntime",
        "openvino",
    ]


def test_a_wrong_name_is_refused_with_the_near_one() -> None:
    with pytest.raises(InvalidInputError, match=r"no engine 'MN'; did you mean mnn\?"):
        get_engine("MN")
    with pytest.raises(InvalidInputError, match="no engine 'tensorrt'; choose one of mnn, onnxruntime"):
        get_engine("tensorrt")


def test_units_that_name_an_engine_have_it() -> None:
    def unit(name: str, engine: str = "") -> ProcessingUnit:
        return ProcessingUnit(name=name, engine=EngineSettings(name=engine))

    given = get_engine("mnn")
    units = [unit("a"), unit("b", "onnxruntime"), unit("c", "mnn"), unit("d", "onnxruntime")]
    found = engines_on(units, given)
    assert [engine.name for engine in found.values()] == ["mnn", "onnxruntime", "mnn", "onnxruntime"]
    assert found["a"] is found["c"] is given
    assert found["b"] is found["d"]
    words = engine_words(found.values())
    assert words.startswith(f"mnn {given.availability().version} + onnxruntime ")
    assert words.count("+") == 1
    with pytest.raises(InvalidInputError, match="no engine 'nowhere'"):
        engines_on([unit("e", "nowhere")], given)


def test_engines_come_as_entry_points_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    targets = {"mine": "gapless.executor.engines.ort_engine:OrtEngine", "lost": "gapless.nowhere:X"}
    install(monkeypatch, tmp_path, "gapless.engines", targets)
    assert engine_names()[-2:] == ("mine", "lost")
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


@pytest.mark.slow
def test_engines_load_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from gapless.executor.engines.registry import engine_names, engine_words, engines_on, get_engine\n"
        "assert all(get_engine(name).availability().ok for name in engine_names())\n"
        "heavy = {'MNN', '_mnncengine', '_tools', 'onnxruntime', 'openvino', 'onnx', 'numpy'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"


@pytest.mark.slow
def test_workers_load_no_problems() -> None:
    """Each visit of a race starts workers."""
    code = (
        "import sys, gapless.executor.pipeline.worker, gapless.executor.engines.onnx_pieces\n"
        "print([name for name in sys.modules if name.endswith(('.problem', '.plan', '.runner'))])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"


def test_versions_are_found_without_reading_all_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def all_packages() -> dict[str, list[str]]:
        read.append("all")
        return {"no": ["numpy"]}

    monkeypatch.setattr(metadata, "packages_distributions", all_packages)
    onnx_pieces.package_version.cache_clear()
    assert onnx_pieces.package_version("onnxruntime") == metadata.version("onnxruntime")
    assert read == []
    assert onnx_pieces.package_version("no") == metadata.version("numpy")  # as onnxruntime in onnxruntime-gpu
    assert onnx_pieces.package_version("nothing") == ""
    onnx_pieces.package_version.cache_clear()


def test_two_engines_share_pieces_by_kind(tmp_path: Path) -> None:
    both = get_engine("onnxruntime+callable")
    assert both.name == "onnxruntime+callable"
    assert get_engine(both.name).takes("onnx")
    assert both.takes("callable")
    assert not both.takes("other")
    assert both.availability().version == "+".join(
        get_engine(name).availability().version for name in ("onnxruntime", "callable")
    )
    assert both.backends()[0] == "cpu"
    pieces = [TINY, replace(TINY, content=CallableContent(document="{}"), digest="d", name="functions")]
    assert [artifact.engine for artifact in both.prepare([*pieces, TINY], folder=tmp_path)] == [
        "onnxruntime",
        "callable",
        "onnxruntime",
    ]
    foreign = replace(TINY, content=CallableContent(document="{}", kind="other"))
    with pytest.raises(
        InvalidInputError, match=r"holds 'other', which none of the engines onnxruntime\+call"
    ):
        both.prepare([foreign])
    with pytest.raises(InvalidInputError, match="no engine 'lost'"):
        get_engine("lost+callable")
    with pytest.raises(InvalidInputError, match=r"no engine 'mnn\+lost'"):
        get_engine("mnn+lost")
