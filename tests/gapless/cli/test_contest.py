"""`gapless compare` with a heuristic of one's own, on one problem and on many."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gapless.sweeps import run as running

from ..conftest import Cli

EXAMPLE = Path(__file__).parents[3] / "docs" / "examples" / "longest_first.py"
MINE = f"{EXAMPLE}:LongestFirst"


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "small.json"
    family = {"formulation": "flow_shop", "requests": 2, "units": 2, "seeds": 2}
    path.write_text(
        json.dumps({"format": "gapless.instances", "version": 1, "title": "Small", "generate": family})
    )
    return path


@pytest.mark.slow
def test_many_problems_are_compared_in_one_command(cli: Cli, spec: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    names = ("--backends", "serial,band", "--backend", MINE, "--time-limit", "5s")
    run = cli("compare", "--instances", spec, *names, "--out", out)
    assert run.code == 0
    for words in ("Small: 2 problems, 3 backends, 5 s each", "longest-first", "shift 0.1 s", "x1 "):
        assert words in run.out
    assert f"wrote {out}/sweep.csv, {out}/comparison.html" in run.err
    assert "Performance profiles" in (out / "comparison.html").read_text()
    again = cli("compare", "--instances", spec, *names, "--out", out, "--resume", "--json").document
    assert (again["format"], again["tasks"], again["resumed"]) == ("gapless.instance_comparison", 6, 6)
    assert [one["backend"] for one in again["standings"]] == ["serial", "band", "longest-first"]
    assert len(again["profiles"]) == 3
    assert all(one["course"] for one in again["answers"])
    refused = cli("compare", "--instances", spec, *names, "--out", out)
    assert refused.code == 2
    assert "--resume" in refused.err


def test_ctrl_c_keeps_what_there_is(
    cli: Cli, spec: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = running.Work._keep

    def stop(self: Any, outcome: Any) -> None:
        kept(self, outcome)
        raise KeyboardInterrupt

    monkeypatch.setattr(running.Work, "_keep", stop)
    run = cli("compare", "--instances", spec, "--backends", "serial,band", "--out", tmp_path / "out")
    assert run.code == 130
    assert "interrupted: 3 answers are not there; the same command with --resume goes on" in run.err
    assert "1 of 4 answers" in run.out


def test_what_a_backend_cannot_solve_is_a_failure(cli: Cli, tmp_path: Path) -> None:
    run = cli(
        "compare", "--instances", "pixel7a/octree", "--backends", "native,serial", "--out", tmp_path / "out"
    )
    assert run.code == 5
    assert "pixel7a/octree  serial  " in run.out


def test_one_more_backend_stands_beside_the_usual_ones(cli: Cli) -> None:
    asked = ("--workload", "vit,squeezenet", "--platform", "kirin990", "--passage", "ordered")
    run = cli(
        "compare", *asked, "--backends", "serial,band", "--backend", MINE, "--time-limit", "5s", "--json"
    )
    results = run.document["results"]
    assert [one["backend"] for one in results] == ["serial", "band", "longest-first"]
    assert all(one["course"][-1]["value"] == one["objective"] for one in results)
    assert run.document["time_limit_s"] == 5
    assert all(one["first_plan_s"] is not None for one in results)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("pixel7a/octree", "--resume"), "about many problems"),
        (("pixel7a/octree", "--jobs", "2"), "about many problems"),
        (("pixel7a/octree", "--instances", "pixel7a/*"), "PROBLEM is about one problem"),
        (("--instances", "pixel7a/*", "--top", "3"), "--top is about one problem"),
        (("--instances", "pixel7a/*", "--max-units", "3"), "--max-units is about one problem"),
        (("--instances", "pixel7a/*", "--kinds", "all"), "--kinds is about one problem"),
        (("--instances", "nowhere/*"), "matches no shipped problem"),
        (("--instances", "pixel7a/*", "--backends", "nativ"), "did you mean"),
    ],
)
def test_what_does_not_go_together_is_told(cli: Cli, given: tuple[str, ...], message: str) -> None:
    run = cli("compare", *given)
    assert run.code in (2, 5)
    assert message in run.err


def test_a_set_of_problems_is_shown(cli: Cli, spec: Path) -> None:
    run = cli("show", spec)
    assert run.code == 0
    assert "formulation flow_shop, requests 2, units 2, seeds 2" in run.out
