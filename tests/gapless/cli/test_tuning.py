"""What `gapless tune` says of its answer: small budgets, trust, sustained load; the page says the same."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import gapless
from gapless.answers.tuning import next_step
from gapless.cli.base.exits import ExitCode
from gapless.executor.measurement import Measurement
from gapless.executor.simulated import SimulatedRunner
from gapless.executor.tuning import result
from gapless.executor.tuning.result import Failure, TuningStop
from gapless.formulations.deployment import Deployment
from gapless.formulations.errors import OutputMismatchError, UnitLostError

from ..conftest import Cli, Run

SPARSE = "pixel7a/alexnet-sparse"
WORDS = ("tune", SPARSE, "--engine", "simulated", "--noise", "0%", "--top", "3")


def flat(run: Run) -> str:
    """Return what was printed, as if lines were never broken."""
    return " ".join(run.out.split())


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every visit take a second more than it does."""
    attempt = result.attempt

    def late(*given: object, **named: object) -> result.Trial:
        trial = attempt(*given, **named)  # type: ignore[arg-type]
        return replace(trial, spent_s=trial.spent_s + 1)

    monkeypatch.setattr("gapless.executor.tuning.race.attempt", late)


@pytest.mark.usefixtures("slow")
def test_a_budget_too_small_for_the_strongest_rival_gives_no_verdict(cli: Cli, tmp_path: Path) -> None:
    run = cli(*WORDS, "--budget", "1s", "--details", "--out", tmp_path / "run")
    assert run.code == ExitCode.OK
    assert "plan 1 is the fastest so far" in run.out
    assert "No verdict: the strongest baseline, replicas on" in flat(run)
    count = re.search(r"1 of (\d+) candidates measured", flat(run))
    assert count is not None
    every = count[1]
    assert "Go on with a larger --budget and --resume" in run.out
    assert "3 plans are the fewest of which anything can be said" in run.out
    (listed,) = cli("list", "runs", tmp_path, "--json").document["runs"]
    assert (listed["verdict"], listed["measured"], listed["candidates"]) == ("no verdict", 1, int(every))
    cli("report", tmp_path / "run", "--out", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert f"It is the fastest of the 1 of {every} that were measured." in page
    assert "won a race" not in page
    more = cli(*WORDS, "--budget", "60s", "--resume", "--out", tmp_path / "run")
    assert "Trust is high" in more.out
    assert f"{every} of {every} candidates measured" in flat(more)


@pytest.mark.parametrize(
    ("visits", "failed", "stop", "more"),
    [
        ((2, 1, 0), False, TuningStop.BUDGET, 15),  # 12 s for 3 visits, and 3 are missing
        ((2, 1, 0), True, TuningStop.BUDGET, 5),  # the last one failed: one visit is missing
        ((2, 2, 2), False, TuningStop.BUDGET, None),
        ((2, 1, 0), False, TuningStop.INTERRUPTED, None),
    ],
)
def test_what_a_budget_lacks_for_two_visits_of_each_is_told(
    visits: tuple[int, ...], *, failed: bool, stop: TuningStop, more: int | None
) -> None:
    problem = gapless.load_problem(SPARSE)
    result = gapless.tuning.tune_simulated(problem, problem, top=2).result
    rows = [replace(row, visit_us=(1.0,) * count) for row, count in zip(result.rows, visits, strict=False)]
    rows[-1] = replace(rows[-1], failure=Failure(error="ExecutionError", message="no") if failed else None)
    cut = replace(result, rows=tuple(rows), stop=stop, spent_s=12.0, simulated=False)
    told = next_step(cut)
    assert told.endswith(f"; about {more} s more measure each candidate 2 times.") if more else not told


@pytest.mark.usefixtures("slow")
def test_nothing_measured_is_a_failure_with_a_next_step(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise UnitLostError("the unit is lost")

    monkeypatch.setattr(SimulatedRunner, "measure", fails)
    run = cli(*WORDS, "--budget", "1s", "--out", tmp_path)
    assert run.code == ExitCode.FAILURE
    assert "No verdict: nothing was measured" in run.out
    assert "Go on with a larger --budget and --resume" in run.out


def test_wrong_numbers_of_all_plans_have_their_exit_code(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise OutputMismatchError("'net' gives wrong numbers")

    monkeypatch.setattr(SimulatedRunner, "measure", fails)
    for budget in ("1s", "60s"):  # some plans tried, and all of them
        run = cli(*WORDS, "--budget", budget, "--out", tmp_path / budget)
        assert run.code == ExitCode.VERIFICATION


@pytest.mark.slow
def test_the_verdict_is_in_the_json_and_the_page_says_the_same(cli: Cli, tmp_path: Path) -> None:
    run = cli(*WORDS, "--sustain", "12s", "--out", tmp_path / "run", "--json")
    assert run.code == ExitCode.OK
    verdict = run.document["verdict"]
    assert verdict["trust"] == "high"
    assert {one["ground"] for one in verdict["evidence"]} > {"noise", "drift", "other programs"}
    assert run.document["sustained"]["asked_s"] == pytest.approx(12)
    page = tmp_path / "page.html"
    shown = flat(cli("show", tmp_path / "run" / "tuning.json"))
    assert cli("report", tmp_path / "run", "--backends", "none", "--no-explain", "--out", page).code == 0
    text = " ".join(page.read_text().split())
    for words in ("Trust is high: ", "The order of the first 4 s held.", "Clock and temperature: not told"):
        assert words in shown
        assert words in text


@pytest.mark.slow
def test_a_line_for_each_candidate_and_the_rest_on_request(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measure = SimulatedRunner.measure

    def some_fail(runner: SimulatedRunner, deployment: Deployment, *given: Any, **named: Any) -> Measurement:
        if "GPU" not in deployment.units:
            raise UnitLostError("it is too hot")
        return measure(runner, deployment, *given, **named)

    monkeypatch.setattr(SimulatedRunner, "measure", some_fail)
    run = cli(*WORDS, "--out", tmp_path / "run")
    (heads,) = (line.split() for line in run.out.splitlines() if "candidate" in line and "chunks" in line)
    assert heads == ["#", "candidate", "chunks", "predicted", "simulated", "outcome"]
    assert "serial on Big failed: it is too hot" in flat(run)
    assert "What trust is based on" not in run.out
    assert "Predicted against" not in run.out
    details = cli("show", tmp_path / "run" / "tuning.json").out
    assert "What trust is based on" in details
    again = cli(*WORDS, "--details", "--overwrite", "--out", tmp_path / "run").out
    assert "What trust is based on" in again


def test_sustain_takes_a_while(cli: Cli, tmp_path: Path) -> None:
    run = cli(*WORDS, "--sustain", "0", "--out", tmp_path)
    assert run.code == ExitCode.USAGE
    assert "--sustain" in run.err
