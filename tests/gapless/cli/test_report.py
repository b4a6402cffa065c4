"""`gapless report` from its files to its page."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

import gapless
from gapless.cli.base.exits import ExitCode
from gapless.formulations.errors import InvalidInputError

from ..conftest import Cli

SPARSE = "pixel7a/alexnet-sparse"


def words_of(page: Path) -> str:
    """Return what a page says, without its tags."""
    return " ".join(re.sub(r"<[^>]*>", " ", page.read_text()).split())


@pytest.mark.slow
def test_a_problem_becomes_the_page_of_its_best_plan(cli: Cli, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    words = ("--backends", "native,exhaustive", "--out", page)
    run = cli("report", SPARSE, *words)
    assert run.code == 0
    assert "open it in a browser" in run.out
    said = words_of(page)
    best = gapless.plan(gapless.load_problem(SPARSE))
    assert "7.648 ms" in said
    assert best.plan is not None
    assert best.plan.plan_id in said
    assert "exhaustive" in said
    assert "The least period is proved" in said or "proved best" in said
    written = cli("report", SPARSE, *words, "--json").document
    assert written["path"] == str(page)
    assert written["size_bytes"] == page.stat().st_size
    assert written["subjects"] == [[SPARSE, str(best.plan)]]


def test_a_run_a_plan_and_a_workload_on_one_page(cli: Cli, tmp_path: Path) -> None:
    run, plan, page = tmp_path / "run", tmp_path / "plan.json", tmp_path / "page.html"
    tune = ("tune", SPARSE, "--engine", "simulated", "--costs", "isolated", "--top", "4", "--out", run)
    assert cli(*tune).code == 0
    workload = ("--workload", "squeezenetx2,vit", "--platform", "kirin990", "--backend", "band")
    assert cli("plan", *workload, "--out", plan).code == 0
    asked = ("report", run, plan, "--backends", "none", "--no-explain", "--title", "All <b>of</b> it")
    assert cli(*asked, "--out", page).code == 0
    said = words_of(page)
    assert "All &lt;b&gt;of&lt;/b&gt; it" in page.read_text()
    assert f"{run}: the fastest plan that is no baseline" in said
    assert "times as long as the winner" in said
    assert re.findall(r'id="(s\d-race)"', page.read_text()) == ["s1-race"]  # two subjects, one race
    assert "squeezenet#2" in said
    assert "Predicted against simulated" in said


@pytest.mark.slow
def test_a_stream_may_be_called_otherwise_than_its_network(cli: Cli, tmp_path: Path) -> None:
    run, page = tmp_path / "run", tmp_path / "page.html"
    assert cli("tune", SPARSE, "--engine", "simulated", "--top", "2", "--out", run).code == 0
    deployment = json.loads((run / "deployment.json").read_text())
    deployment["streams"][0]["name"] = "camera"
    (run / "deployment.json").write_text(json.dumps(deployment))
    shown = cli("report", run, "--backends", "none", "--no-explain", "--out", page)
    assert shown.code == 0, shown.err
    assert "camera" in page.read_text()


def test_a_trace_of_another_stream_is_refused() -> None:
    problem = gapless.load_problem(SPARSE)
    best = gapless.plan(problem).plan
    assert best is not None
    deployment = gapless.reports.subject(problem, best, explained=None).deployment
    camera = replace(deployment, streams=(replace(deployment.streams[0], name="camera"),))
    played = replace(gapless.simulate(problem, best, requests=3), deployment=deployment)
    with pytest.raises(InvalidInputError, match=r"the trace is of 'alexnet-sparse', and .* called 'camera'"):
        gapless.reports.subject(problem, camera, measured=played, explained=None)


@pytest.mark.slow
def test_a_comparison_says_which_problem_it_is_about(cli: Cli, tmp_path: Path) -> None:
    compared, page = tmp_path / "compared.json", tmp_path / "page.html"
    asked = ("--workload", "squeezenet,mobilenetv2", "--platform", "kirin990", "--time-limit", "300ms")
    assert cli("compare", *asked, "--backends", "native,serial", "--out", compared).code == 0
    assert cli("report", compared, "--backends", "none", "--out", page).code == 0
    assert " on kirin990" in page.read_text()
    assert "serial" in page.read_text()
    document = json.loads(compared.read_text())
    compared.write_text(json.dumps({**document, "asked": {}}))
    run = cli("report", compared, "--out", page)
    assert run.code == 2
    assert "does not say which problem it is for" in run.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("missing.json",), "No such file"),
        ((SPARSE, "--backends", "nativ"), "did you mean native"),
        ((SPARSE, "--out", "no/where.html"), "does not exist"),
        ((SPARSE, "--objective", "speed"), "speed"),
        ((), "RUN_OR_PLAN"),
    ],
)
def test_bad_input_gets_one_message(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    run = cli("report", *words)
    assert (run.code, message in run.err.replace("\n", " ")) == (ExitCode.USAGE, True), run.err
    assert not Path("report.html").exists()


def test_a_problem_without_a_plan_says_so(cli: Cli, tmp_path: Path) -> None:
    problem = tmp_path / "tight.json"
    assert cli("show", SPARSE, "--max-period", "10us", "--out", problem).code == 0
    page = tmp_path / "page.html"
    run = cli("report", problem, "--backends", "native", "--out", page)
    assert run.code == ExitCode.INFEASIBLE
    assert "the period is at most 10 us" in run.out
    assert "is not written" in run.err
    assert not page.exists()


def test_reports_from_python(tmp_path: Path) -> None:
    problem = gapless.load_problem(SPARSE)
    compared = gapless.compare(problem, backends=["native", "exhaustive"])
    assert compared.best is not None
    assert compared.best.plan is not None
    shown = gapless.reports.subject(problem, compared.best.plan, title="mine", requests=3, answers=compared)
    page = gapless.write_report(tmp_path / "page.html", shown, title="Ours")
    said = words_of(page)
    assert "Ours" in said
    assert "mine" in said
    with pytest.raises(gapless.GaplessError, match="network 'x'"):
        gapless.reports.subject(
            problem, gapless.Plan(chunks=(gapless.Chunk(network="x", start=0, stop=9, unit="Big"),))
        )


@pytest.mark.slow
def test_a_plan_is_chosen_from_whatever_lists_plans(cli: Cli, tmp_path: Path) -> None:
    """From a list, a comparison, trade-offs, and the folder of a run, whose measurement is the winner's."""
    listed, compared, front = (tmp_path / f"{name}.json" for name in ("plans", "compared", "front"))
    folder, page = tmp_path / "run", tmp_path / "page.html"
    cli("plan", SPARSE, "--top", "2", "--out", listed)
    cli("compare", SPARSE, "--top", "2", "--backends", "native", "--out", compared)
    cli("plan", SPARSE, "--pareto", "period,units", "--out", front)
    cli("tune", SPARSE, "--engine", "simulated", "--top", "2", "--budget", "5s", "--out", folder)
    cli("run", folder, "--engine", "simulated", "--requests", "5", "--out", folder / "measurement.json")
    problem = gapless.load_problem(SPARSE)
    second = gapless.plan(problem, top=2).candidates[1].plan
    rows = json.loads((folder / "tuning.json").read_text())["rows"]
    (ran,) = (row["candidate"] for row in rows if row["candidate"].get("rank") == 2)
    chunks = ran["deployment"]["streams"][0]["chunks"]
    tuned = " | ".join(f"{c['start']}-{c['stop'] - 1} {c['unit']}" for c in chunks)
    expected = {listed: second, compared: second, folder: tuned, front: "0-0 Big | 1-3 GPU | 4-8 Medium"}
    few = ("--backends", "none", "--no-explain", "--out", page)
    for given, plan in expected.items():
        run = cli("report", given, "--plan", "2", *few, "--json")
        assert run.code == 0, run.err
        ((title, shown),) = run.document["subjects"]
        assert shown == str(plan), given
    assert title == str(front)
    told = cli("report", folder, "--plan", "2", *few)
    assert f"{folder}: plan 2" in told.out
    assert "measurement.json is about another plan than number 2" in " ".join(told.err.split())
    for given in (listed, compared, folder):
        refused = cli("report", given, "--plan", "9", *few)
        assert refused.code == 2
        assert "--plan is 9" in refused.err
    refused = cli("report", SPARSE, "--plan", "2", *few)
    assert refused.code == 2
    assert "lists no plans" in refused.err
