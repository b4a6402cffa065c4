"""The command line in this process: as fast as a function call."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gapless.api.problems import load_problem, table_problem
from gapless.cli.main import main
from gapless.formulations.files import dump_plan, dump_problem
from gapless.formulations.plan import Chunk, Plan


@dataclass(frozen=True)
class Run:
    """What a command printed and returned."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """The only JSON document on standard output."""
        found: dict[str, Any] = json.loads(self.out)
        return found


Cli = Callable[..., Run]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.setenv("COLUMNS", "140")

    def call(*words: str | Path) -> Run:
        capsys.readouterr()
        first = str(words[0]).split() if words else []  # "tools check" is one command
        code = main([*first, *map(str, words[1:])])
        printed = capsys.readouterr()
        return Run(int(code), printed.out, printed.err)

    return call


@pytest.fixture
def problem_file(tmp_path: Path) -> Path:
    """A small problem: the optimum is gpu, cpu with busy times 2000 and 1000."""
    problem = table_problem({"conv": [9, 2], "fc": [1, 8]}, ["cpu", "gpu"], network="net")
    path = tmp_path / "problem.json"
    path.write_text(dump_problem(problem))
    return path


@pytest.fixture
def plan_file(tmp_path: Path) -> Callable[..., Path]:
    """Write a plan for the sparse network of the Pixel 7a from (start, stop, unit)."""

    def write(*parts: tuple[int, int, str], network: str = "alexnet-sparse") -> Path:
        chunks = tuple(Chunk(network=network, start=a, stop=b, unit=u) for a, b, u in parts)
        path = tmp_path / "plan.json"
        path.write_text(dump_plan(Plan(chunks=chunks), load_problem("pixel7a/alexnet-sparse")))
        return path

    return write
