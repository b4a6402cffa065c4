"""The notebooks run from top to bottom, draw what they talk about, and are stored without outputs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest

ROOT = Path(__file__).parent.parent
PATHS = sorted((ROOT / "notebooks").glob("*.ipynb"))
SEE = "**What to see:**"
SECONDS_PER_CELL = 120
LONGEST_LINE = 110
KERNEL = """\
from ipykernel.kernelapp import launch_new_instance
from tests.shortened import load_for_children, shorten
shorten()
load_for_children()
launch_new_instance()
"""
"""`ipykernel_launcher` whose measurements are short."""

each_notebook = pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)

Notebook = Any


def read(path: Path) -> Notebook:
    found: Notebook = nbformat.read(path, as_version=nbformat.NO_CONVERT)  # type: ignore[no-untyped-call]
    return found


def measures(path: Path) -> bool:
    """Return whether a notebook measures this machine."""
    code = "\n".join(cell.source for cell in read(path).cells if cell.cell_type == "code")
    return bool(re.search(r"gapless\.(profile|tune)\(", code))


def test_there_are_nine() -> None:
    assert [path.stem for path in PATHS] == [
        "01_first_plan",
        "02_exact_and_heuristic",
        "03_write_a_constraint",
        "04_profile_and_tune",
        "05_contention",
        "06_over_devices",
        "07_groups",
        "08_requests_as_they_come",
        "09_networks_with_branches",
    ]


@each_notebook
def test_it_is_valid_and_has_the_least_metadata(path: Path) -> None:
    notebook = read(path)
    nbformat.validate(notebook)
    assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)
    ids = [cell.id for cell in notebook.cells]
    assert len(set(ids)) == len(ids)
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    assert notebook.metadata.kernelspec == {
        "display_name": "Python 3",
        "language": "python",
        "name": "python3",
    }
    assert all(cell.metadata == {} for cell in notebook.cells)


@each_notebook
def test_it_is_stored_without_outputs(path: Path) -> None:
    for cell in read(path).cells:
        if cell.cell_type == "code":
            assert (cell.outputs, cell.execution_count) == ([], None), cell.id


@each_notebook
def test_it_knows_nothing_of_the_machine_where_it_was_written(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"(?<![\w.:/])/(home|root|tmp|work|Users|usr|mnt|var)\b|[A-Z]:\\\\", text)


@each_notebook
def test_it_says_what_it_is_and_how_to_go_on(path: Path) -> None:
    notebook = read(path)
    assert notebook.cells[0].cell_type == notebook.cells[-1].cell_type == "markdown"
    assert notebook.cells[0].source.startswith("# ")
    for target in re.findall(r"\]\(([^)#]+)\)", "".join(cell.source for cell in notebook.cells)):
        assert target.startswith("https://") or (path.parent / target).exists(), target


@each_notebook
def test_its_text_promises_no_results(path: Path) -> None:
    text = "\n".join(cell.source for cell in read(path).cells if cell.cell_type == "markdown")
    assert re.findall(r"\d+[.,]\d+ ?(?:us|ms|%)", text) == []


@each_notebook
def test_its_code_is_in_the_house_style(path: Path) -> None:
    ruff = [sys.executable, "-m", "ruff"]
    for words in (
        ["format", "--check", "--line-length", str(LONGEST_LINE)],
        ["check", "--select", "E,F,I,UP,B,W", "--line-length", str(LONGEST_LINE)],
    ):
        run = subprocess.run(
            [*ruff, *words, "--no-cache", str(path)], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=[pytest.mark.measures] if measures(path) else []) for path in PATHS],
    ids=lambda path: path.stem,
)
def test_it_runs_and_explains_each_picture(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook = execute(read(path), tmp_path, monkeypatch)
    pictures = 0
    for index, cell in enumerate(notebook.cells):
        if cell.cell_type == "code" and has_picture(cell):
            pictures += 1
            neighbours = notebook.cells[index - 1 : index] + notebook.cells[index + 1 : index + 2]
            assert any(SEE in n.source for n in neighbours if n.cell_type == "markdown"), cell.id
    assert pictures
    said = sum(cell.source.count(SEE) for cell in notebook.cells if cell.cell_type == "markdown")
    assert said == pictures, "a sentence without a picture"


def has_picture(cell: Notebook) -> bool:
    return any("image/png" in output.get("data", {}) for output in cell.outputs)


def execute(notebook: Notebook, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Notebook:
    """Run a notebook with this Python, in an empty folder; nothing is written to the user's home."""
    from nbclient import NotebookClient

    here, kernel = folder / "here", folder / "jupyter" / "kernels" / "python3"
    here.mkdir()
    kernel.mkdir(parents=True)
    argv = [sys.executable, "-c", KERNEL, "-f", "{connection_file}"]
    spec = {"argv": argv, "display_name": "Python 3", "language": "python"}
    (kernel / "kernel.json").write_text(json.dumps(spec))
    settings = {
        "JUPYTER_PLATFORM_DIRS": "1",
        "JUPYTER_PATH": folder / "jupyter",
        "JUPYTER_DATA_DIR": folder / "data",
        "JUPYTER_CONFIG_DIR": folder / "config",
        "JUPYTER_RUNTIME_DIR": folder / "runtime",
        "IPYTHONDIR": folder / "ipython",
        "MPLCONFIGDIR": folder / "matplotlib",
        "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]),
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.delenv("MPLBACKEND", raising=False)
    client = NotebookClient(
        notebook,
        timeout=SECONDS_PER_CELL,
        kernel_name="python3",
        resources={"metadata": {"path": str(here)}},
    )
    client.execute()
    return notebook
