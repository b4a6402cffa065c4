"""Plug-ins: entry points and references are loaded, or refused with the right words."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Protocol

import pytest

from gapless.formulations.plugins import (
    PluginError,
    entry_point_names,
    is_file_reference,
    is_reference,
    load_entry_point,
    load_reference,
)
from tests.entry_points import install


class Shape(Protocol):
    """What the plug-ins of these tests have to follow."""

    @property
    def sides(self) -> int: ...

    def area(self) -> float: ...


SQUARE = """
import dataclasses

@dataclasses.dataclass(frozen=True)
class Square:
    sides: int = 4
    def area(self): return 1.0

def make():
    return Square()

UNIT = Square()
NUMBER = 4
print("loaded")
"""


def load(text: str) -> Shape:
    found: Shape = load_reference(text, what="shape", like=Shape)
    return found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, from which nothing can be imported."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry not in ("", ".")])
    (tmp_path / "square.py").write_text(SQUARE)
    return tmp_path


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", ["Square", "make", "UNIT"])
def test_a_file_holds_a_class_or_a_function_or_the_object(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert load(f"square.py:{name}").sides == 4
    assert capsys.readouterr().out == "", "standard output belongs to the document of the caller"


def test_a_file_is_executed_once_until_it_changes(folder: Path) -> None:
    first, again = load("square.py:Square"), load(f"{folder}/square.py:Square")
    assert first == again, "they are of one class"
    assert sys.modules[type(first).__module__].__file__ == str(folder / "square.py")
    (folder / "square.py").write_text(SQUARE.replace("= 4", "= 5"))
    assert load("square.py:Square").sides == 5


def test_a_module_is_imported(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(folder))
    (folder / "gapless_test_shapes").mkdir()
    (folder / "gapless_test_shapes" / "flat.py").write_text(SQUARE)
    assert load("gapless_test_shapes.flat:Square").sides == 4
    assert type(load("gapless_test_shapes.flat:UNIT")).__module__ == "gapless_test_shapes.flat"


def test_neighbours_of_a_file_are_hidden_from_others_and_nothing_else_is(folder: Path) -> None:
    found = []
    for number in (1, 2):
        place = folder / str(number)
        site = place / ".venv" / "site-packages"
        site.mkdir(parents=True)
        (site / f"gapless_test_installed{number}.py").write_text("")
        (place / "gapless_test_neighbour.py").write_text(f"SIDES = {number}\n")
        (place / "shape.py").write_text(
            f"import sys; sys.path.append({str(site)!r})\n"
            f"import gapless_test_neighbour, gapless_test_installed{number}\n"
            "sys.path.pop()\n" + SQUARE.replace("= 4", "= gapless_test_neighbour.SIDES")
        )
        found.append(load(f"{number}/shape.py:Square").sides)
    assert found == [1, 2]
    assert "gapless_test_neighbour" not in sys.modules
    assert "gapless_test_installed2" in sys.modules, "an environment below the folder is no neighbour"
    assert not [path for path in sys.path if path.startswith(str(folder))]
    for number in (1, 2):
        del sys.modules[f"gapless_test_installed{number}"]


BAD = """
class Half:
    sides = 3
class Needs:
    def __init__(self, sides): ...
class Raises:
    def __init__(self): self.sides = 1 / 0
def leaves(): raise SystemExit(3)
def nothing(): return None
NUMBER = 4
"""


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("squares.py:Square", r"there is no file squares\.py; did you mean square\.py\?"),
        ("nowhere/at_all.py:Square", r"there is no file nowhere/at_all\.py$"),
        (".py:Square", r"there is no file \.py"),
        ("square.py:Sqare", r"square\.py has no 'Sqare'; did you mean Square\?"),
        ("square.py:Square.inner", r"square\.py has no 'Square\.inner'"),
        ("bad.py:Half", r"Half\(\) is not a shape: it has no 'area'$"),
        ("bad.py:nothing", r"nothing\(\) is not a shape: it has no 'sides', 'area'$"),
        ("bad.py:NUMBER", "NUMBER is not a shape: it has no 'sides', 'area'$"),
        ("bad.py:Needs", r"Needs\(\) raised TypeError: .*missing 1 required .*'sides'$"),
        ("bad.py:Raises", r"Raises\(\) raised ZeroDivisionError: .* \(.*bad\.py, line 7\)$"),
        ("bad.py:leaves", r"leaves\(\) raised SystemExit: 3"),
        ("garbled.py:X", r"garbled\.py, line 2: "),
        ("broken.py:X", r"broken\.py, line 2 raised NameError: .*; did you mean GOOD\?"),
        ("leaving.py:X", r"leaving\.py, line 1 raised SystemExit: 7"),
        ("binary.py:X", r"binary\.py"),
        ("folder.py:X", r"there is no file folder\.py"),
        ("square:Square", r"No module named 'square'; .* write square\.py:Square, or set PYTHONPATH=\.$"),
        ("nowhere.at_all:X", r"No module named 'nowhere'; for a file in this folder set PYTHONPATH=\.$"),
        ("os:Square", "os has no 'Square'"),
        (":", "cannot be loaded: write module:Class or file.py:Class"),
        ("square.py:", "write module:Class or file.py:Class"),
        (":Square", "write module:Class or file.py:Class"),
        ("a b:Square", "write module:Class or file.py:Class"),
        ("square.py:1x", "write module:Class or file.py:Class"),
        ("x" * 300 + ".py:X", r"^shape 'x{100}\.\.\.' cannot be loaded"),
        ("\0.py:X", "there is no file|cannot read|cannot be loaded"),
    ],
)
def test_what_cannot_be_loaded_is_refused(folder: Path, text: str, words: str) -> None:
    (folder / "bad.py").write_text(BAD)
    (folder / "garbled.py").write_text("x = 1\ndef f(:\n")
    (folder / "broken.py").write_text("GOOD = 1\nX = GOD\n")
    (folder / "leaving.py").write_text("import sys; sys.exit(7)\n")
    (folder / "binary.py").write_bytes(b"\x00\xff\xfe")
    (folder / "folder.py").mkdir()
    before = set(sys.modules)
    with pytest.raises(PluginError, match=words) as error:
        load(text)
    assert str(error.value).startswith("shape '")
    left = {name for name in set(sys.modules) - before if name.startswith("_gapless_")}
    assert all("bad.py" in str(sys.modules[name].__file__) or "square" in text for name in left)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_cannot_be_read(folder: Path) -> None:
    (folder / "square.py").chmod(0)
    with pytest.raises(PluginError, match=r"cannot read .*square\.py: Permission denied"):
        load("square.py:Square")


def test_a_file_that_is_too_large(folder: Path) -> None:
    with (folder / "huge.py").open("wb") as file:
        file.truncate(2**30)
    with pytest.raises(PluginError, match=r"huge\.py is larger than 16777216 bytes"):
        load("huge.py:X")


def test_names_are_told_from_references() -> None:
    assert not is_reference("pulp-cbc")
    assert is_reference("module:Class")
    assert not is_file_reference("module:Class")
    assert is_file_reference("file.py:Class")
    assert is_file_reference("folder/file:Class")


@pytest.mark.usefixtures("folder")
def test_what_is_found_may_have_to_be_of_a_class(folder: Path) -> None:
    (folder / "path.py").write_text(
        "from pathlib import Path\ndef make(): return Path('x')\nHERE = Path('.')\n"
    )
    for name in ("make", "HERE", "Path"):
        assert isinstance(load_reference(f"path.py:{name}", what="path", like=Path), Path)
    with pytest.raises(PluginError, match=r"Square\(\) is not a path: it is of Square, not of Path"):
        load_reference("square.py:Square", what="path", like=Path)


def test_entry_points(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    group = "gapless.test_shapes"
    targets = {"one": "gapless_test_one:Square", "lost": "gapless_test_lost:X", "gone": "gapless_test_one:X"}
    assert entry_point_names(group) == ()
    install(monkeypatch, tmp_path, group, targets, gapless_test_one=SQUARE)
    assert entry_point_names(group) == ("one", "lost", "gone")
    assert load_entry_point(group, "one", what="shape", like=Shape).sides == 4
    where = r"^shape 'lost' of the entry-point group gapless\.test_shapes cannot be loaded from "
    with pytest.raises(PluginError, match=where + r"gapless_test_lost:X: ModuleNotFoundError"):
        load_entry_point(group, "lost", what="shape", like=Shape)
    with pytest.raises(PluginError, match=r"gapless_test_one has no 'X'; choose one of Square"):
        load_entry_point(group, "gone", what="shape", like=Shape)
