"""The notebooks run from top to bottom, draw what they talk about, and show it to readers who run nothing."""

from __future__ import annotations

import re
import struct
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from .notebooks import PATHS, ROOT, Notebook, executed, pictures_of, read

SEE = "**What to see:**"
LONGEST_LINE = 110
WIDEST, MOST_BYTES = 1100, 40_000
"""Of a picture, in pixels and bytes: as wide as a page shows it, and light enough to keep each version."""

SHORTENED = """\
from ipykernel.kernelapp import launch_new_instance
from tests.shortened import load_for_children, shorten, wait_for_no_disk
shorten()
wait_for_no_disk()
load_for_children()
launch_new_instance()
"""
"""`ipykernel_launcher` whose measurements are short."""

each_notebook = pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)


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
def test_it_keeps_its_outputs(path: Path) -> None:
    """What it says is to be seen stands there, from one run from top to bottom, without warnings."""
    notebook = read(path)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell.outputs]
    assert not [one for one in outputs if one.output_type == "error" or one.get("name") == "stderr"]
    check_pictures(notebook)


@each_notebook
def test_its_pictures_are_small(path: Path) -> None:
    for cell in read(path).cells:
        for picture in pictures_of(cell):
            assert len(picture) <= MOST_BYTES, cell.id
            assert struct.unpack(">I", picture[16:20])[0] <= WIDEST, cell.id


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
def test_it_runs_and_explains_each_picture(path: Path, tmp_path: Path) -> None:
    check_pictures(executed(hurried(read(path)), tmp_path, kernel=SHORTENED))


def hurried(notebook: Notebook) -> Notebook:
    """Let searches of a notebook last a second (each has a plan to start from), and visits of a race less."""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.source = re.sub(r"time_limit_s=\d+", "time_limit_s=1", cell.source)
            cell.source = re.sub(r"Rung\(.*?\)", "Rung(seconds=0.05, rounds=1)", cell.source)
    return notebook


def check_pictures(notebook: Notebook) -> None:
    """Require a sentence beside each picture, and a picture beside each sentence."""
    pictures = 0
    for index, cell in enumerate(notebook.cells):
        if any(pictures_of(cell)):
            pictures += 1
            neighbours = notebook.cells[index - 1 : index] + notebook.cells[index + 1 : index + 2]
            assert any(SEE in n.source for n in neighbours if n.cell_type == "markdown"), cell.id
    assert pictures
    said = sum(cell.source.count(SEE) for cell in notebook.cells if cell.cell_type == "markdown")
    assert said == pictures, "a sentence without a picture"
