"""Tuning where the latency counts first: one request at a time, by what a unit takes without company."""

from __future__ import annotations

from pathlib import Path

import pytest

import gapless
from gapless.answers.blocks import Table
from gapless.api.problems import load_problem
from gapless.api.tuning import default_costs
from gapless.cli.base.exits import ExitCode
from gapless.executor.tuning.candidates import asked_pace, baselines, plan_candidates, predicted_us
from gapless.files.plans import load_deployment
from gapless.formulations.chunking.operation import deploy
from gapless.formulations.errors import InvalidInputError
from gapless.formulations.judge import score
from gapless.formulations.terms import Objective
from gapless.view.page.headline import headline, utilised
from gapless.view.page.subject import Subject
from tests.workload_instances import workload_problem

from ..conftest import Cli

NAME = "pixel7a/alexnet-sparse"
WORDS = ("tune", NAME, "--engine", "simulated", "--objective", "latency", "--noise", "0%", "--top", "5")


@pytest.mark.parametrize(
    ("objective", "pace"),
    [("latency", "latency"), ("latency,period", "latency"), ("period,latency", "period"),
     ("slack:50:latency", "period"), ("paper", "period")],
)  # fmt: skip
def test_what_candidates_are_compared_by(objective: str, pace: str) -> None:
    assert asked_pace(load_problem(NAME).with_objective(objective)) is pace
    assert default_costs(Objective.parse(objective)) == ("isolated" if pace == "latency" else "heavy")


def test_a_workload_is_compared_by_its_makespan() -> None:
    problem = workload_problem({"x": [[4, 9]]}, ["x", "x"], objective="latency")
    assert asked_pace(problem) == "makespan"


def test_candidates_run_one_request_at_a_time() -> None:
    problem = load_problem(NAME, costs="isolated").with_objective("latency")
    plans = [candidate.plan for candidate in gapless.plan(problem, top=5).candidates]
    found = plan_candidates(plans, tables={"isolated": problem})
    alone = baselines(problem)
    for candidate in (*found, *alone):
        assert [stream.slots for stream in candidate.deployment.streams] == [1], "no replicas either"
        assert candidate.deployment.pace == "latency"
    assert [candidate.predicted("isolated") for candidate in found] == [
        score(problem, plan).latency_us for plan in plans
    ]
    assert deploy(plans[0]).pace == "period"


def test_the_plan_with_the_least_latency_wins(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "run"
    run = cli(*WORDS, "--out", out)
    assert run.code == ExitCode.OK
    problem = load_problem(NAME, costs="isolated").with_objective("latency")
    best = gapless.plan(gapless.with_passage(problem)).plan
    assert best is not None
    problem = gapless.with_passage(problem)
    found = load_deployment(out / "deployment.json", problem)
    assert found.plan == best
    assert f"wins a tie: unqueued latency {predicted_us(problem, best) / 1000:.2f} ms" in run.out
    assert "replicas" not in run.out
    assert "latency p50" not in run.out, "it is the latency already"
    assert "unqueued latency ms" in (out / "table.csv").read_text().splitlines()[0]
    assert not (out / "executions.json").exists(), "models of costs are learned from pipelines"


@pytest.mark.slow
def test_a_report_of_it_is_about_the_latency(cli: Cli, tmp_path: Path) -> None:
    out, page = tmp_path / "run", tmp_path / "report.html"
    assert cli(*WORDS, "--out", out).code == ExitCode.OK
    assert cli("report", out, "--out", page, "--backends", "none").code == ExitCode.OK
    text = page.read_text()
    assert "has an unqueued latency of" in text
    assert "one request at a time, as the latency counts first" in text
    assert "Share of the unqueued latency that each unit is busy" in text


def labels_of(subject: Subject) -> set[str]:
    (figures,) = (block for block in headline(subject) if isinstance(block, Table))
    return {column.title for column in figures.columns}


def test_the_figures_leave_out_what_is_about_pipelines() -> None:
    problem = load_problem(NAME, costs="isolated").with_objective("latency")
    plan = gapless.plan(problem, top=2).candidates[0].plan
    alone = gapless.reports.subject(problem, deploy(plan, task_slots=1), explained=None)
    assert alone.predicted is not None
    starts = [event.start_us for event in alone.predicted.events if event.chunk == 0]
    ends = [event.end_us for event in alone.predicted.events if event.chunk == len(plan.chunks) - 1]
    assert all(start >= end for start, end in zip(starts[1:], ends, strict=False)), "one after the other"
    labels = labels_of(alone)
    assert {"Unqueued latency, predicted", "Units"} <= labels
    assert labels.isdisjoint({"Bubbles", "Utilisation", "Unqueued latency"})
    assert utilised(alone) == "-"
    piped = labels_of(gapless.reports.subject(problem, plan, explained=None))
    assert {"Period, predicted", "Bubbles", "Utilisation", "Unqueued latency"} <= piped


def test_no_rounds_of_learning(cli: Cli) -> None:
    run = cli(*WORDS, "--rounds", "2")
    assert run.code == ExitCode.USAGE
    assert "one request is run at a time" in run.err
    problem = load_problem(NAME).with_objective("latency")
    with pytest.raises(InvalidInputError, match="tune for the period"):
        gapless.tuning.tune_simulated(problem, problem, rounds=2)
    with pytest.raises(InvalidInputError, match="tune for the period"):
        gapless.tune(problem, rounds=2)
