"""Plans that differ, from the command line and from Python."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest

import gapless
from gapless.api.tuning import tune_simulated
from gapless.cli.base.exits import ExitCode
from gapless.formulations.chunking.formulation import plan_distance
from gapless.formulations.plan import Chunk, Plan

from ..conftest import Cli

SPARSE = "pixel7a/alexnet-sparse"


def test_plans_of_the_command_line_differ(cli: Cli) -> None:
    plain = cli("plan", SPARSE, "--top", "6", "--json").document
    document = cli("plan", SPARSE, "--top", "6", "--distance", "4", "--json").document
    assert (plain["distance"], document["distance"], document["proven"]) == (1, 4, 6)
    assert document["candidates"][0] == plain["candidates"][0]
    plans = [
        Plan(chunks=tuple(Chunk(**chunk) for chunk in candidate["plan"]["chunks"]))
        for candidate in document["candidates"]
    ]
    assert min(plan_distance(a, b) for a, b in combinations(plans, 2)) >= 4


@pytest.mark.slow
def test_people_see_by_how_much(cli: Cli) -> None:
    run = cli("plan", SPARSE, "--top", "3", "--distance", "4")
    assert "with at least 4 layers elsewhere than in all before" in " ".join(run.out.split())
    assert "differs by" in run.out
    assert "differs by" not in cli("plan", SPARSE, "--top", "3").out
    every = cli("plan", SPARSE, "--top", "50", "--distance", "9").out
    assert (
        "proved: these 3 plans are the best ones with at least 9 layers elsewhere than in all before, "
        "in this order, among plans with at most one chunk per unit; no further one is so different"
    ) in " ".join(every.split())


def test_backends_agree_on_plans_that_differ(cli: Cli) -> None:
    run = cli("compare", SPARSE, "--backends", "native,exhaustive", "--top", "9", "--distance", "3", "--json")
    first, second = run.document["results"]
    assert first["candidates"] == second["candidates"]
    assert first["distance"] == second["distance"] == 3
    assert run.document["disagreements"] == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan", SPARSE, "--distance", "0"),
        ("plan", SPARSE, "--pipelines", "many", "--distance", "2"),
        ("tune", "squeezenet", "--groups", "2", "--distance", "2"),
    ],
)
def test_distances_that_cannot_be(cli: Cli, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    out = ("--out", tmp_path / "out") if arguments[0] == "tune" else ()
    run = cli(*arguments, *out)
    assert run.code == ExitCode.USAGE
    assert "distance" in run.err


def test_tuning_measures_plans_that_differ() -> None:
    problem = gapless.load_problem(SPARSE, costs="isolated")
    tuned = tune_simulated(problem, gapless.load_problem(SPARSE), top=5, distance=5)
    (answer,) = tuned.comparison.results
    assert [answer.distance, answer.proven] == [5, 5]
    measured = {row.candidate.deployment.plan for row in tuned.result.rows}
    assert {candidate.plan for candidate in answer.candidates} <= measured
