"""Pipelines in modules of packages: found by their dotted names, refused once they have changed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gapless.api.models import open_model
from gapless.executor.callable_file import CallableFile, CallableModule, source_of
from gapless.executor.callables import load_callable
from gapless.executor.engines.callable_engine import CallableEngine
from gapless.formulations.errors import ExecutionError, InvalidModelError
from gapless.formulations.hardware import ProcessingUnit, UnitKind
from tests.executor.pipelines import HEAD, TWO

PACKAGE = "gapless_test_package"
CPU = ProcessingUnit(name="cpu", kind=UnitKind.CPU)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package with the pipeline `gapless_test_package.pipes:P`."""
    folder = tmp_path / PACKAGE
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "pipes.py").write_text(HEAD + "from .parts import LIMIT\n" + TWO)
    (folder / "parts.py").write_text("LIMIT = 5\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield folder
    for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
        del sys.modules[name]


@pytest.mark.usefixtures("package")
def test_a_pipeline_is_found_by_its_module() -> None:
    locator = f"{PACKAGE}.pipes:P"
    model = open_model(locator)
    assert model.network.name == "two"
    assert model.network.models[0].locator == model.network.source == locator
    assert open_model(f"mine={locator}").network.name == "mine"


def test_neighbours_belong_to_it(package: Path, tmp_path: Path) -> None:
    model = load_callable(f"{PACKAGE}.pipes:P")
    engine = CallableEngine()
    (artifact,) = engine.prepare(model.pieces(0, 2), folder=tmp_path)
    engine.open(artifact, CPU).close()
    (package / "parts.py").write_text("LIMIT = 6\n")
    assert load_callable(f"{PACKAGE}.pipes:P").network.models != model.network.models
    with pytest.raises(ExecutionError, match=rf"{PACKAGE}\.pipes has changed since it was loaded"):
        engine.open(artifact, CPU)


def test_what_it_prints_goes_to_standard_error(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (package / "pipes.py").open("a") as file:
        file.write("print('hello')\n")
    load_callable(f"{PACKAGE}.pipes:P")
    assert capsys.readouterr() == ("", "hello\n")


@pytest.mark.parametrize(
    ("locator", "words"),
    [
        (f"{PACKAGE}.nothing:P", f"there is no Python module {PACKAGE}.nothing"),
        ("nowhere_at_all.pipes:P", "cannot find the module nowhere_at_all.pipes: No module named"),
        (f"{PACKAGE}.pipes:Q", "'Q' is not in it; it has P"),
        (f"{PACKAGE}.broken:P", rf"{PACKAGE}\.broken, line 2 raised ZeroDivisionError"),
        (f"{PACKAGE}.garbled:P", rf"{PACKAGE}\.garbled, line 1: "),
        ("sys.monitoring:P", "there is no Python module|cannot find the module"),
    ],
)
def test_bad_modules_are_refused(package: Path, locator: str, words: str) -> None:
    (package / "broken.py").write_text("x = 1\n1 / 0\n")
    (package / "garbled.py").write_text("1 +\n")
    with pytest.raises(InvalidModelError, match=words):
        open_model(locator)


def test_files_win_where_a_name_could_be_both(tmp_path: Path) -> None:
    (tmp_path / "vision.py").write_text(HEAD + TWO)
    assert isinstance(source_of(f"{tmp_path}/vision.py"), CallableFile)
    assert isinstance(source_of("gapless.api.models"), CallableModule)
    with pytest.raises(InvalidModelError, match="there is no file"):
        source_of("vision.py")
