"""Workloads on the command line: named, planned, simulated, checked; and what is wrong is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gapless.cli.base.exits import ExitCode
from gapless.cli.main import main
from gapless.files.comparison_file import load_comparison
from gapless.formulations.files import dump_problem, load_plan, save
from tests.workload_instances import workload_problem

from ..conftest import Cli

TEXT = "a,bx2"


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    """Return a problem file with two networks and no workload."""
    problem = workload_problem(
        {"a": [[10_000, 20_000], [30_000, 20_000]], "b": [[5_000, 9_000], [None, 9_000]]},
        ["a", "b"],
        slowdown=[[0, 100], [200, 0]],
        high=("a",),
    )
    path = tmp_path / "tables.json"
    document = json.loads(dump_problem(problem))
    del document["workload"], document["objective"]
    path.write_text(json.dumps(document))
    return path


def asked(tables: Path, *words: str) -> list[str]:
    return [words[0], str(tables), "--workload", TEXT, *words[1:]]


@pytest.mark.slow
def test_a_plan_remembers_its_problem(tables: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tables.with_name("plan.json")
    assert main(asked(tables, "plan", "--backend", "exhaustive", "--out", str(out))) == ExitCode.OK
    shown = capsys.readouterr().out
    assert "3 requests" in shown
    assert "makespan" in shown
    assert {"a", "b#1", "b#2"} == set(load_plan(out).order)
    assert main(["simulate", str(out)]) == ExitCode.OK
    assert "time lost to slowdown" in capsys.readouterr().out
    assert main(["tools", "check", str(out), "--json"]) == ExitCode.OK
    document = json.loads(capsys.readouterr().out)
    assert document["valid"]
    assert set(document["score"]["request_latency_us"]) == {"a", "b#1", "b#2"}
    assert main(["simulate", str(out), "--json"]) == ExitCode.OK
    trace = json.loads(capsys.readouterr().out)
    assert trace["makespan_us"] == document["score"]["makespan_us"]
    assert sorted(trace["requests"]) == ["a", "b#1", "b#2"]


def test_a_plan_can_be_looked_at_for_another_problem(
    tables: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tables.with_name("plan.json")
    words = ["--backend", "exhaustive", "--passage", "ordered", "--out", str(out)]
    assert main(asked(tables, "plan", *words)) == ExitCode.OK
    capsys.readouterr()
    columns = ["--workload", TEXT, "--execution", "columns", "--json"]
    assert main(["tools", "check", str(tables), str(out), *columns]) == ExitCode.OK
    synchronous = json.loads(capsys.readouterr().out)["score"]["makespan_us"]
    assert main(["tools", "check", str(out), "--json"]) == ExitCode.OK
    assert synchronous >= json.loads(capsys.readouterr().out)["score"]["makespan_us"]


def test_the_order_can_be_kept(tables: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--backend", "exhaustive", "--order", "fixed", "--json"]
    assert main(asked(tables, "plan", *words)) == ExitCode.OK
    document = json.loads(capsys.readouterr().out)
    assert document["candidates"][0]["plan"]["order"] == ["a", "b#1", "b#2"]


def test_rules_about_requests_come_from_files(tables: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules = tables.with_name("rules.py")
    save(
        "from gapless.rules import before\n"
        "late = before('b#2', 'a')\n"
        "def apart(view):\n"
        "    return ~view.beside('a', 'b#1')\n",
        rules,
    )
    words = ["--backend", "exhaustive", "--rules", str(rules), "--json"]
    assert main(asked(tables, "plan", *words, "--passage", "ordered")) == ExitCode.OK
    order = json.loads(capsys.readouterr().out)["candidates"][0]["plan"]["order"]
    assert order.index("b#2") < order.index("a")
    assert main(asked(tables, "plan", *words)) == ExitCode.USAGE
    assert "has no attribute 'beside'" in capsys.readouterr().err, "schedules have orders by unit"


def test_schedules_take_rules_about_who_comes_first(cli: Cli, tables: Path) -> None:
    rules = tables.with_name("rules.py")
    save("from gapless.rules import before\nlate = before('a', 'b#2')\n", rules)
    words = ("--backend", "exhaustive", "--json")
    free = cli(*asked(tables, "plan", *words)).document["candidates"][0]
    kept = cli(*asked(tables, "plan", *words, "--rules", str(rules))).document["candidates"][0]
    assert free["plan"]["order"].index("a") > free["plan"]["order"].index("b#2")
    assert kept["plan"]["order"].index("a") < kept["plan"]["order"].index("b#2")
    assert kept["score"]["makespan_us"] >= free["score"]["makespan_us"]


def test_show_lists_networks_and_slowdowns(tables: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(asked(tables, "show")) == ExitCode.OK
    shown = capsys.readouterr().out
    for word in ("3 requests; cut at any legal cut", "1 layers no", "200.0 % high", "slowdown of a unit"):
        assert word in shown


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["plan", "TABLES"], "no workload: say which requests come"),
        (["plan", "TABLES", "--workload", "a,c"], "'c'"),
        (["plan", "TABLES", "--workload", ""], "entry 1: it is empty"),
        (["plan", "TABLES", "--workload", "a", "--platform", "kirin990"], "either a problem"),
        (["plan", "--workload", "a"], "either a problem"),
        (["plan", "--workload", "a", "--platform", "kirin99"], "kirin990"),
        (["plan", "--workload", "yolo", "--platform", "kirin990"], "yolov4"),
        (["plan", "pixel7a/alexnet-sparse", "--order", "fixed"], "--order is about a workload"),
        (["plan", "pixel7a/alexnet-sparse", "--stream"], "--stream is about a workload"),
        (["plan", "pixel7a/alexnet-sparse", "--task-slots", "2"], "--task-slots is about a workload"),
        (
            ["plan", "pixel7a/alexnet-sparse", "--objective", "makespan"],
            "means nothing for problems without",
        ),
        (
            ["plan", "pixel7a/alexnet-sparse", "--backend", "band"],
            "handle problems without a workload",
        ),
        (["simulate", "TABLES", "x", "y"], "give a problem and a plan"),
        (
            ["plan", "TABLES", "--workload", TEXT, "--objective", "paper"],
            "means nothing for problems with",
        ),
    ],
)
def test_what_is_wrong_is_told(
    words: list[str], message: str, tables: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tables) if word == "TABLES" else word for word in words]) == ExitCode.USAGE
    shown = " ".join(capsys.readouterr().err.split())
    assert message in shown
    assert "Traceback" not in shown


def test_a_workload_has_its_own_requests(tables: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tables.with_name("plan.json")
    assert main(asked(tables, "plan", "--backend", "exhaustive", "--out", str(out))) == ExitCode.OK
    assert main(["simulate", str(out), "--requests", "3"]) == ExitCode.USAGE
    assert "a workload has its own" in " ".join(capsys.readouterr().err.split())


def test_comparing_takes_the_backends_for_workloads(tables: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--backends", "exhaustive,hetero2pipe,serial,band", "--json"]
    assert main(asked(tables, "compare", *words)) == ExitCode.OK
    document = json.loads(capsys.readouterr().out)
    assert not document["disagreements"]
    spans = {result["backend"]: result["objective"] for result in document["results"]}
    assert spans["exhaustive"] == min(span for span in spans.values() if span is not None)


@pytest.mark.slow
def test_exact_backends_run_with_a_start_and_cold(
    tables: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")  # names of columns wrap where rows are long
    out = tables.with_name("comparison.json")
    words = ("--backends", "native,cpsat", "--start", "both", "--time-limit", "200ms", "--out", str(out))
    assert main(asked(tables, "compare", *words)) == ExitCode.OK
    shown = " ".join(capsys.readouterr().out.split())  # what stands below the table wraps, too
    for word in ("cpsat (cold)", "plan by", "bound by", "itself", "(cold): without"):
        assert word in shown
    document = json.loads(out.read_text())
    told = [(one["backend"], one["start"], one["plan_source"]) for one in document["results"]]
    assert [one[:2] for one in told] == [("native", None), ("cpsat", "native"), ("cpsat", "none")]
    assert told[0][2] == "own"
    assert told[2][2] in (None, "own")
    read = load_comparison(out)
    assert [(r.backend, r.start, r.plan_source) for r in read.results] == told


def test_a_start_that_is_none_is_refused(tables: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command, start, message in (
        ("plan", "warm", "choose from native, none, both"),
        ("plan", "both", "which is for comparisons"),
        ("compare", "cold", "choose from native, none, both"),
    ):
        assert main(asked(tables, command, "--start", start)) == ExitCode.USAGE
        assert message in capsys.readouterr().err


@pytest.mark.usefixtures("counted_time")
def test_windows_and_limits_stand_in_plans_and_are_remembered(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "plan.json"
    asked = ("--workload", "squeezenet,mobilenetv2x2", "--platform", "kirin990", "--time-limit", "300ms")
    narrow = (
        "--window",
        "squeezenet=2ms..400ms",
        "--window",
        "mobilenetv2=..90.5ms",
        "--max-bubbles",
        "900ms",
    )
    run = cli("plan", *asked, *narrow, "--out", out, "--json")
    assert run.code == 0
    assert run.document["problem"]["jobs"] is None, "a limit of bubbles is about one order"
    data = run.document["problem"]["workload"]["requests"]
    times = {one["name"]: (one["arrival_us"], one["deadline_us"]) for one in data}
    assert times == {
        "squeezenet": (2000, 398_000), "mobilenetv2#1": (0, 90_500), "mobilenetv2#2": (0, 90_500)
    }  # fmt: skip
    assert cli("tools", "check", out).code == 0
    late = cli("tools", "check", out, "--window", "mobilenetv2=..0.2ms")
    assert late.code != 0
    assert "deadline" in late.out


@pytest.mark.usefixtures("counted_time")
def test_sizes_of_batches_are_chosen_and_the_plan_remembers_them(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "plan.json"
    run = cli(
        "plan", "--workload", "squeezenetx4", "--platform", "kirin990", "--batches", "1,4",
        "--time-limit", "400ms", "--out", out,
    )  # fmt: skip
    assert run.code == 0
    assert "per inference" in run.out
    assert "squeezenetx4" in run.out
    assert "squeezenet*4" in run.out
    assert cli("tools", "check", out).code == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("pixel7a/octree", "--batches", "1,2"), "give --workload"),
        (
            ("--workload", "bert", "--platform", "kirin990", "--batches", "x"),
            "--batches is 'x', must be a whole number",
        ),
        (("--workload", "bert", "--platform", "kirin990", "--window", "bert"), "--window is 'bert'"),
        (("--workload", "bert", "--platform", "kirin990", "--window", "vit=1ms.."), "no request 'vit'"),
        (("pixel7a/octree", "--window", "a=1ms..2ms"), "is about a workload"),
    ],
)
def test_bad_windows_and_batches_are_refused(cli: Cli, arguments: tuple[str, ...], words: str) -> None:
    run = cli("plan", *arguments)
    assert run.code == 2
    assert words in run.err
