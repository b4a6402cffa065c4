"""Trade-offs on the command line: what people and machines are told, and the exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gapless.api.problems import load_problem
from gapless.formulations.files import dump_problem
from gapless.solvers.chunking.samples import powered

from ..conftest import Cli

SPARSE = "pixel7a/alexnet-sparse"


@pytest.fixture
def powered_file(tmp_path: Path) -> Path:
    path = tmp_path / "powered.json"
    path.write_text(dump_problem(powered(load_problem(SPARSE))))
    return path


def test_a_front_is_shown_and_written(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "front.json"
    run = cli("plan", SPARSE, "--pareto", "period,units", "--out", out)
    assert run.code == 0
    assert "proved: these 4 plans are all trade-offs among plans with at most one chunk" in run.out
    assert f"wrote {out}" in run.err
    document = cli("plan", SPARSE, "--pareto", "period,units", "--json").document
    assert document["format"] == "gapless.pareto"
    assert [point["values"]["units"] for point in document["points"]] == [4, 3, 2, 1]
    assert [p["values"] for p in json.loads(out.read_text())["points"]] == [
        p["values"] for p in document["points"]
    ]
    assert cli("tools", "check", out, "--plan", "2").code == 0
    page = tmp_path / "front.html"
    assert cli("report", out, "--out", page).code == 0
    assert "Trade-offs of alexnet-sparse" in page.read_text()


def test_energy_needs_powers(cli: Cli, powered_file: Path) -> None:
    run = cli("plan", SPARSE, "--pareto", "period,energy")
    assert run.code == 2
    assert "energy needs the powers of all units" in run.err
    assert cli("plan", SPARSE, "--max-energy", "5nJ").code == 2
    assert cli("plan", powered_file, "--pareto", "period,energy").code == 0
    assert cli("plan", powered_file, "--objective", "energy").code == 0
    assert cli("plan", powered_file, "--max-energy", "5nJ").code == 3


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--pareto", "period"], "2 or 3 different terms"),
        (["--pareto", "period,enrgy"], "energy"),
        (["--pareto", "period,units", "--top", "3"], "leave out --objective, --top and --distance"),
        (["--pareto", "period,units", "--objective", "period"], "leave out --objective"),
    ],
)
def test_bad_input(cli: Cli, words: list[str], said: str) -> None:
    run = cli("plan", SPARSE, *words)
    assert run.code == 2
    assert said in run.err


def test_no_plan_at_all(cli: Cli) -> None:
    run = cli("plan", SPARSE, "--pareto", "period,units", "--max-period", "10us")
    assert run.code == 3
    assert "proved: none is valid among plans with at most one chunk" in run.out


def test_limits_of_the_latency_hold(cli: Cli) -> None:
    run = cli("plan", SPARSE, "--max-latency", "20ms", "--json")
    assert run.code == 0
    assert run.document["candidates"][0]["score"]["latency_us"] <= 20_000


def test_measured_fronts_are_in_the_folder_of_a_run(cli: Cli, powered_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    run = cli("tune", powered_file, "--pareto", "period,energy", "--engine", "simulated", "--out", out)
    assert run.code == 0
    assert "computed from measured times and the powers of the platform" in run.out
    written = json.loads((out / "pareto.json").read_text())
    assert all(point["measured"]["energy_nj"] > 0 for point in written["points"])
    assert cli("report", out / "pareto.json", "--out", tmp_path / "page.html").code == 0
    assert "measured" in (tmp_path / "page.html").read_text()
    refused = cli("tune", powered_file, "--pareto", "a,b", "--rounds", "2", "--engine", "simulated")
    assert refused.code == 2
