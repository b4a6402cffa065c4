"""`gapless costs judge`: cost models against executed plans, and what is learned from them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gapless.api.problems import load_problem
from gapless.formulations.judge import score
from gapless.profiler.prediction.published import load_executions

from ...profiler.prediction.executed import LAYERS, UNITS, document, written
from ..conftest import Cli

pytestmark = pytest.mark.slow

TWICE_ON_GPU = [[1.0, 1.0, 2.0]] * LAYERS


def test_cost_models_are_compared_with_what_was_executed(cli: Cli, tmp_path: Path) -> None:
    path = written(document(), tmp_path)
    shown = cli("costs", "judge", path)
    assert shown.code == 0
    for words in (
        "interpolated",
        "Pearson",
        "Spearman",
        "top 5",
        "leave one out",
        "that tuning measures",
        "90 % within",
        "Trust interpolated costs",
    ):
        assert words in shown.out
    found = cli("costs", "judge", path, "--json").document
    exact = [
        one["quality"]
        for one in found["left_out"]
        if one["fit"] == "none" and one["quality"]["table"] == "interpolated"
    ]
    assert exact
    assert all(one["mape_percent"] < 0.1 for one in exact)  # made up by that very model
    assert found["corrections"] is None


def test_what_is_learned_is_written_as_a_problem(cli: Cli, tmp_path: Path) -> None:
    path, out = written(document(TWICE_ON_GPU), tmp_path), tmp_path / "problem.json"
    found = cli("costs", "judge", path, "--costs", "interpolated", "--out", out, "--json").document
    factors = dict(zip(UNITS, found["corrections"]["unit_factor"], strict=True))
    assert factors["gpu"] > 1.5 * factors["big"]
    learned, executions = load_problem(out), load_executions(path)
    before, after = (
        sum(abs(score(problem, one.plan).period_us / one.period_us - 1) for one in executions.executed)
        for problem in (executions.problem("interpolated"), learned)
    )
    assert after < before / 2
    assert cli("plan", out).code == 0


def test_who_slows_whom_is_written_as_a_problem_with_a_table_for_each_set(cli: Cli, tmp_path: Path) -> None:
    path, out = written(document(TWICE_ON_GPU), tmp_path), tmp_path / "problem.json"
    found = cli("costs", "judge", path, "--costs", "learned", "--out", out, "--json").document
    assert found["corrections"]["plans"] == 24
    assert len(found["foretold"]) == 24
    assert {one["unit"] for one in found["corrections"]["companies"]} == set(UNITS)
    learned, executions = load_problem(out), load_executions(path)
    assert [str(part) for part in learned.parts] == [
        "1 unit",
        "big+little",
        "big+gpu",
        "little+gpu",
        "big+little+gpu",
    ]
    before, after = (
        sum(abs(score(problem, one.plan).period_us / one.period_us - 1) for one in executions.executed)
        for problem in (executions.problem("interpolated"), learned)
    )
    assert after < before / 2
    shown = cli("costs", "judge", path, "--costs", "learned")
    for words in ("Trust interpolated costs with corrections", "learned from 24 executed plans", "beside"):
        assert words in shown.out
    assert cli("plan", out, "--top", "3").code == 0
    assert "units in use" in cli("show", out).out


def test_bad_input(cli: Cli, tmp_path: Path) -> None:
    path = written(document(), tmp_path)
    lost = cli("costs", "judge", path, "--out", tmp_path / "problem.json")
    assert (lost.code, "say which ones with --costs" in lost.err) == (2, True)
    unknown = cli("costs", "judge", path, "--costs", "hot")
    assert (unknown.code, "no co-run cost model is called 'hot'" in unknown.err) == (2, True)
    other = tmp_path / "other.json"
    other.write_text(json.dumps({"format": "gapless.plan", "version": 1}))
    assert cli("costs", "judge", other).code == 2
    assert cli("costs", "judge", tmp_path / "missing.json").code == 2
