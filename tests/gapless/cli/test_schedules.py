"""Workloads with a passage, from the command line: planned, played, explained, and written to files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gapless.formulations.files import dump_problem
from tests.workload_instances import workload_problem

from ..conftest import Cli

TABLES: dict[str, list[list[int | None]]] = {
    "a": [[10_000, 30_000], [None, 20_000], [10_000, 30_000]],
    "b": [[25_000, 26_000], [5_000, 40_000]],
}


EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"

CLASS = "schedules whose chunks start as soon as order and units allow"


@pytest.fixture
def board(tmp_path: Path) -> str:
    """Return a file of two networks, of which a needs the second unit in its midst."""
    problem = workload_problem(TABLES, ["a", "b"], slowdown=[[0, 300], [500, 0]])
    path = tmp_path / "board.json"
    path.write_text(dump_problem(problem))
    return str(path)


def flat(text: str) -> str:
    return " ".join(text.split())


def test_requests_come_back_and_answers_say_so(cli: Cli, board: str, tmp_path: Path) -> None:
    out, page = tmp_path / "plan.json", tmp_path / "page.html"
    any_passage = ("--workload", "a,b", "--passage", "any")
    words = flat(cli("plan", board, *any_passage, "--backend", "exhaustive", "--out", out).out)
    assert f"better among {CLASS} [exhaustive" in words
    assert "npu 0-0 | big 1-1 | npu 2-2" in words
    assert "by slowdown" in words
    for command in ("tools check", "show", "simulate", "explain"):
        assert cli(command, out).code == 0
    assert cli("report", out, "--out", page).code == 0
    assert CLASS in flat(page.read_text())


def test_a_heuristic_for_workloads_takes_part_and_its_class_is_named(
    cli: Cli, board: str, tmp_path: Path
) -> None:
    own, answers, page = EXAMPLES / "longest_first.py", tmp_path / "answers.json", tmp_path / "page.html"
    asked = ("--workload", "a,b", "--time-limit", "200ms")
    run = cli(
        *("compare", board, *asked, "--backends", "exhaustive", "--backend", f"{own}:LongestFirst"),
        *("--out", answers),
    )
    assert run.code == 0
    assert "left out" not in run.out
    assert "class a: plans in which every request passes the units once" in flat(run.out)
    rows = [line.split()[:2] for line in run.out.splitlines() if " FEASIBLE " in line or " OPTIMAL " in line]
    classes = dict(rows)
    assert classes == {"exhaustive": "all", "longest-first": "a"}
    searched = {one["backend"]: one["searches"] for one in json.loads(answers.read_text())["results"]}
    assert searched["exhaustive"] == ""
    assert "in one order" in searched["longest-first"]
    plan = tmp_path / "plan.json"
    assert cli("plan", board, *asked, "--out", plan).code == 0
    assert cli("report", plan, answers, "--out", page).code == 0
    assert searched["longest-first"] in flat(page.read_text())


def test_limits_on_times_and_memory_are_known_and_others_mean_one_order(
    cli: Cli, board: str, tmp_path: Path
) -> None:
    out = tmp_path / "plan.json"
    asked = ("plan", board, "--workload", "a,b", "--objective", "work")
    free = cli(*asked, "--json").document["candidates"][0]["score"]["makespan_us"]
    least = cli("plan", board, "--workload", "a,b", "--json").document["objective"]
    assert least < free
    limits = ("--max-makespan", f"{least}us", "--max-unit-memory", "20B")
    kept = cli(*asked, *limits, "--out", out, "--json").document
    assert CLASS in kept["plan_class"]
    assert kept["candidates"][0]["score"]["makespan_us"] <= least
    assert cli("tools", "check", out).code == 0
    assert json.loads(out.read_text())["asked"]["max_makespan_us"] == str(least)
    bubbles = ("plan", board, "--workload", "a,b", "--max-bubbles", "100ms")
    assert "passes the units once, in the order npu, big" in flat(cli(*bubbles).out)
    refused = cli(*bubbles, "--passage", "any")
    assert refused.code == 2
    assert "max_bubbles_us means nothing" in flat(refused.err)
    assert "--passage ordered" in flat(refused.err)


def test_with_one_order_a_line_says_what_coming_back_would_bring(cli: Cli, board: str) -> None:
    found = cli("plan", board, "--workload", "a,b", "--passage", "ordered")
    assert "passes the units once, in the order npu, big" in flat(found.out)
    assert "--passage any: makespan" in flat(found.out)
    assert "--passage any: makespan" not in cli("plan", board, "--workload", "a,b").out


def test_requests_may_come_back_unless_something_else_is_asked(cli: Cli, board: str, tmp_path: Path) -> None:
    out, words = tmp_path / "plan.json", ("plan", board, "--workload", "a,b", "--out", tmp_path / "plan.json")
    assert flat(CLASS) in flat(cli(*words).out)
    assert json.loads(out.read_text())["asked"]["passage"] == "any"
    for asked in (
        ("--stream",),
        ("--execution", "columns"),
        ("--order", "fixed"),
        ("--objective", "bubbles"),
        ("--max-bubbles", "900ms"),
    ):
        assert "serve them in" in flat(cli(*words, *asked).out), asked
        assert json.loads(out.read_text())["asked"]["passage"] == "ordered"
        assert cli("tools", "check", out).code == 0
    for old in ("any", "ordered"):
        assert cli(*words, "--passage", old).code == 0
        again = cli("tools", "check", board, out, "--workload", "a,b", "--json")
        assert again.document["valid"], "a plan knows what it was made for"
    document = json.loads(out.read_text())
    del document["asked"]["passage"]
    out.write_text(json.dumps(document))
    assert cli("tools", "check", out, "--json").document["valid"], "a file from before there were passages"


def test_each_passage_is_named_in_json(cli: Cli, board: str) -> None:
    values = []
    for passage in ("any", "once", "ordered:big,npu", "ordered"):
        options = ("--workload", "a,b", "--passage", passage, "--backend", "exhaustive")
        answer = cli("plan", board, *options, "--json").document
        values.append(answer["objective"])
        assert ("in the order" in answer["plan_class"]) == passage.startswith("ordered")
    assert values[0] < values[1] <= min(values[2:])


def test_what_has_no_meaning_ends_with_2(cli: Cli, board: str) -> None:
    any_passage = ("--workload", "a,b", "--passage", "any")
    streamed = cli("plan", board, *any_passage, "--stream", "--execution", "columns")
    assert streamed.code == 2
    assert "leave the stream out" in streamed.err
    assert "use asynchronous execution" in streamed.err
    assert cli("plan", board, "--workload", "a,b", "--passage", "ordered:npu").code == 2


def test_compare_has_the_class_of_the_passage(cli: Cli, board: str) -> None:
    once = ("--workload", "a,b", "--passage", "once")
    found = cli("compare", board, *once, "--backends", "native,exhaustive")
    assert found.code == 0
    assert "every request passes each unit at most once" in flat(found.out)
