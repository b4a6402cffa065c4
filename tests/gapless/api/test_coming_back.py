"""A race of plans with one chunk per unit and of plans that come back to one, and what is kept of it."""

from __future__ import annotations

from pathlib import Path

import pytest

import gapless
from gapless.files.plans import load_deployment, named_plan, problem_of_plan
from gapless.formulations.files import dump_problem
from gapless.formulations.plan import comes_back
from gapless.formulations.schedules import orders_chunks
from tests.workload_instances import workload_problem

from ..conftest import Cli

NAME = "jetson-orin-nano-lp/alexnet-sparse"


@pytest.mark.slow
def test_a_plan_that_comes_back_wins_and_is_read_again(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "run"
    run = cli("tune", NAME, "--engine", "simulated", "--noise", "0%", "--top", "6", "--out", out)
    assert run.code == 0
    assert "The best plan with one chunk per unit, plan" in run.out
    named = named_plan(out)
    assert comes_back(named.plan.chunks)
    problem, _ = problem_of_plan(named)
    assert problem.plan_class == "plans with any number of chunks per unit"
    stream = load_deployment(out / "deployment.json", problem).streams[0]
    assert stream.cycle is not None
    assert stream.slots == stream.cycle.in_flight + 1
    for command in ("show", "simulate", "explain", "tools check"):
        assert cli(command, out / "plan.json").code == 0
    again = cli("run", out, "--engine", "simulated")
    assert f"{stream.cycle.period_us / 1000:.2f} ms" in again.out
    page = tmp_path / "page.html"
    assert cli("report", out, "--out", page, "--backends", "none").code == 0
    assert page.stat().st_size > 10_000


def test_plan_says_what_coming_back_would_bring_where_it_brings_something(cli: Cli) -> None:
    assert "--passage any: period 7.102 ms, 7 % less" in cli("plan", "pixel7a/alexnet-sparse").out
    assert "--passage any:" not in cli("plan", "pixel7a/alexnet-sparse", "--passage", "any").out
    assert "--passage any:" not in cli("plan", "pixel7a/alexnet-sparse", "--objective", "units").out


def test_a_line_more_never_costs_the_answer(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("gapless.cli.tasks.solving.default_backend", stopped)
    run = cli("plan", "pixel7a/alexnet-sparse", "--backend", "native")
    assert (run.code, "7.648 ms" in run.out, "--passage" in run.out) == (0, True, False)
    assert "--passage" not in cli("plan", "pixel7a/alexnet-sparse", "--objective", "bubbles").out


def test_requests_that_come_back_race_beside_one_order_and_win(cli: Cli, tmp_path: Path) -> None:
    tables: dict[str, list[list[int | None]]] = {
        "a": [[10_000, 30_000], [None, 20_000], [10_000, 30_000]],
        "b": [[25_000, 26_000], [5_000, 40_000]],
    }
    problem = workload_problem(tables, ["a", "b"], slowdown=[[0, 300], [500, 0]])
    board, out = tmp_path / "board.json", tmp_path / "run"
    board.write_text(dump_problem(problem))
    simulated = ("--engine", "simulated", "--noise", "0%")
    run = cli("tune", board, "--workload", "a,b", *simulated, "--top", "3", "--out", out)
    assert "The best plan whose requests have one chunk per unit" in run.out
    named = named_plan(out)
    assert orders_chunks(named.plan)
    wider = gapless.plan(gapless.with_passage(problem)).best
    assert wider is not None
    for command in ("show", "simulate"):
        assert f"{wider.score.makespan_us / 1000:.3f} ms" in cli(command, out / "plan.json").out
    assert f"{wider.score.makespan_us / 1000:.2f} ms" in cli("run", out, "--engine", "simulated").out
    assert cli("report", out, "--out", tmp_path / "page.html", "--backends", "none").code == 0
