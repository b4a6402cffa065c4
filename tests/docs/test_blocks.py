"""What the pages tell users to type does what the pages say."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import jsonschema
import pytest

from gapless.files.formats import file_format
from gapless.files.schema import json_schema
from gapless.formulations.files import parse, parse_problem
from gapless.formulations.processes import readable

from ..documents import DOCS, HOW_LONG, PAGES, REASONS, ROOT, RUN, SHOWN, blocks_of, links_of

LONGEST_S = 300
RUNNING = [page for page in PAGES if any(block.language in RUN for block in blocks_of(page))]
MEASURING = {page for page in RUNNING if any(block.measures for block in blocks_of(page))}


Runner = Callable[[Path, Path], int]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    """Return what runs a page, whose output goes to a file, and returns the exit code."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.documents", "--serve", tmp_path_factory.mktemp("measured")],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "110"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        told, heard = process.stdin, process.stdout

        def run(page: Path, output: Path) -> int:
            told.write(json.dumps([str(page), str(output)]) + "\n")
            told.flush()
            assert readable([heard.fileno()], LONGEST_S), "it does not end"
            return int(heard.readline())

        try:
            yield run
        finally:
            os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.measures] if page in MEASURING else []) for page in RUNNING],
    ids=map(name_of, RUNNING),
)
def test_every_block_of_a_page_runs(runner: Runner, page: Path, tmp_path: Path) -> None:
    output = tmp_path / "output.txt"
    code = runner(page, output)
    assert code == 0, output.read_text()[-4000:]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_no_block_gets_around_being_run(page: Path) -> None:
    for block in blocks_of(page):
        where = f"{name_of(page)}:{block.line}"
        assert block.language in (*RUN, *SHOWN) or block.language.startswith("{"), where
        assert not block.reason or block.reason in REASONS, where
        if block.options:
            begun = " ".join(block.options.split()[:2])
            assert any(command.startswith(begun) for command in block.commands), f"{where} has no {begun}"
            added = {word for word in block.options.split() if word.startswith("--")}
            assert added <= HOW_LONG, f"{where} is tested with {added - HOW_LONG}, which is not shown"
        if block.language == "console":
            assert block.commands, f"{where} has no command"
        if block.language in SHOWN:
            assert not block.commands, f"{where} has commands that nothing runs"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_files_that_are_shown_are_files_that_can_be_read(page: Path) -> None:
    for block in blocks_of(page):
        if block.language == "json" and (tree := json.loads(block.text)).get("format"):
            entry = file_format(tree["format"])
            where, data = f"{name_of(page)}:{block.line}", block.text.encode()
            if entry.name == "problem":  # its rules are read in a second step
                parse_problem(data, name=where)
            else:
                parse(data, entry.schema, name=where)
            jsonschema.validate(tree, json_schema(entry.name))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_to_files_of_the_project(page: Path) -> None:
    """Anchors and pages are checked when the documentation is built; this is how a forge shows them."""
    for target in links_of(page):
        path = target.partition("#")[0]
        assert not path or path.startswith("https://") or (page.parent / path).exists(), target


@pytest.mark.parametrize(
    "page", [page for page in PAGES if "from gapless.plots import" in page.read_text()], ids=name_of
)
def test_pages_that_draw_with_matplotlib_say_how_to_install_it(page: Path) -> None:
    """`pip install '.[all]'` of the README does not bring it."""
    before = page.read_text().partition("from gapless.plots import")[0]
    assert "'gapless[plots]'" in before


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_runs_of_a_page_do_not_meet_in_one_folder(page: Path) -> None:
    """What is not run here, because it takes minutes, is run by readers, after what stands before it."""
    folders: set[str] = set()
    for command in (
        one for block in blocks_of(page) if block.language == "console" for one in block.commands
    ):
        words = shlex.split(command, comments=True)
        if (
            words[:2] != ["gapless", "tune"]
            or {"--resume", "--overwrite"} & {*words}
            or "exit code" in command
        ):
            continue
        folder = words[words.index("--out") + 1] if "--out" in words else "gapless-out"
        assert folder not in folders, command
        folders.add(folder)


def test_there_are_pages() -> None:
    assert {DOCS / "index.md", DOCS / "glossary.md", DOCS / "reference" / "commands.md"} <= set(PAGES)
    assert len(RUNNING) > 10
    assert DOCS.parent / "README.md" in MEASURING < set(RUNNING)
