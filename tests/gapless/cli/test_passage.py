"""Plans whose units have several chunks, on the command line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import gapless
from gapless.formulations.files import load_problem
from tests.formulations.passage.test_resources import problem as on_one_core

from ..conftest import Cli

TIMES_MS: dict[str, list[float | None]] = {
    "a": [1, 9],
    "b": [None, 2],
    "c": [1.5, 9],
    "d": [None, 1],
    "e": [2, 8],
}
BEST = "0-0 npu | 1-1 cpu | 2-2 npu | 3-3 cpu | 4-4 npu"
"""Loads: npu 1 + 1.5 + 2 = 4.5 ms, cpu 2 + 1 = 3 ms; a request takes 7.5 ms."""


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """An NPU that cannot run two layers of five."""
    path = tmp_path / "npu.json"
    gapless.save(gapless.table_problem(TIMES_MS, ["npu", "cpu"]), path)
    return path


@pytest.fixture
def plan_file(cli: Cli, table: Path, tmp_path: Path) -> Path:
    """The best plan, as `gapless plan` writes it."""
    path = tmp_path / "plan.json"
    assert cli("plan", table, "--passage", "any", "--out", path).code == 0
    return path


def test_a_plan_comes_back_to_a_unit_if_asked(cli: Cli, table: Path) -> None:
    assert "20.000 ms" in cli("plan", table).out
    found = cli("plan", table, "--passage", "any")
    assert found.code == 0
    assert BEST in found.out
    assert "among plans with any number of chunks per unit" in found.out
    (first,) = (line for line in found.out.splitlines() if BEST in line)
    assert "4.500" in first.split()
    rows = [line.split() for line in found.out.splitlines()]
    assert ["npu", "3", "4.500", "ms", "100.0", "%"] in rows
    assert ["cpu", "2", "3.000", "ms", "66.7", "%"] in rows
    assert "The period needs 2 requests on their way at once, each for 7.500 ms" in found.out
    waits_for_one = cli("plan", table, "--passage", "any", "--objective", "latency").out
    assert "The period needs" not in waits_for_one


def test_the_document_has_loads_hops_and_class(cli: Cli, table: Path) -> None:
    document = cli("plan", table, "--passage", "any", "--json").document
    score = document["candidates"][0]["score"]
    assert score["busy_us"] == {"npu": 4500, "cpu": 3000}
    assert (score["period_us"], score["latency_us"], score["hops"]) == (4500, 7500, 4)


def test_fewer_hops_make_another_plan(cli: Cli, table: Path) -> None:
    limited = cli("plan", table, "--passage", "any", "--max-hops", "2", "--json").document
    score = limited["candidates"][0]["score"]
    assert (score["hops"], score["period_us"]) == (2, 12_000)
    alone = cli("plan", table, "--passage", "any", "--max-hops", "0", "--json").document
    assert alone["candidates"][0]["score"]["period_us"] == 29_000


def test_a_plan_file_remembers_the_passage(cli: Cli, plan_file: Path) -> None:
    assert json.loads(plan_file.read_text())["asked"]["passage"] == "any"
    checked = cli("tools", "check", plan_file)
    assert checked.code == 0
    assert checked.out.startswith("VALID")
    shown = cli("show", plan_file)
    assert shown.code == 0
    assert shown.out.count(" npu ") >= 3
    rows = [line.split() for line in shown.out.splitlines()]
    assert ["hops", "4"] in rows
    assert ["period", "4.500", "ms"] in rows


def test_simulation_reaches_the_largest_load(cli: Cli, plan_file: Path) -> None:
    document = cli("simulate", plan_file, "--requests", "20", "--json").document
    assert document["period_us"] == 4500
    found = cli("simulate", plan_file)
    assert "time between the last two outputs" in found.out


def test_fewer_slots_than_the_cycle_needs_make_the_period_longer(cli: Cli, plan_file: Path) -> None:
    words = ("run", plan_file, "--engine", "simulated", "--seconds", "100ms", "--json")
    enough, alone = cli(*words).document, cli(*words, "--task-slots", "1").document
    assert [run["streams"][0]["period_us"] for run in (enough, alone)] == [4500, 7500]


def test_a_trace_has_one_row_per_unit(cli: Cli, plan_file: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    assert cli("tools", "trace", plan_file, "--simulated", "--requests", "6", "--out", trace).code == 0
    shown = cli("show", trace)
    assert [line.split()[0] for line in shown.out.splitlines() if line.startswith((" npu", " cpu"))] == [
        "npu",
        "cpu",
    ]
    events = [one for one in json.loads(trace.read_text())["traceEvents"] if one["ph"] == "X"]
    assert len(events) >= 5 * 6


def test_an_explanation_speaks_of_loads(cli: Cli, plan_file: Path) -> None:
    found = cli("explain", plan_file)
    assert found.code == 0
    assert "npu sets the pace with 4.500 ms; cpu is busy for 66.7 % of that." in found.out
    assert found.out.count("after ") == 4  # one line per cut
    assert "2 layers: b and d" in found.out


def test_an_explanation_has_periods_by_requests_in_flight(cli: Cli, plan_file: Path) -> None:
    found = cli("explain", plan_file)
    assert "The period needs 2 requests in flight, each for 7.500 ms." in found.out
    rows = [line.split() for line in found.out.splitlines()]
    assert ["1", "7.500", "ms", "+66.7", "%"] in rows
    assert ["2", "(planned)", "4.500", "ms", "-"] in rows
    flight = cli("explain", plan_file, "--json").document["flight"]
    assert [(pace["in_flight"], pace["period_us"]) for pace in flight["paces"]] == [
        (1, 7500),
        (2, 4500),
        (4, 4500),
        (8, 4500),
    ]


def test_an_explanation_says_where_a_longer_period_pays(cli: Cli, tmp_path: Path) -> None:
    table, path = tmp_path / "back.json", tmp_path / "back-plan.json"
    times: dict[str, list[float | None]] = {"a": [6, None], "b": [None, 0.3], "c": [5, None]}
    gapless.save(gapless.table_problem(times, ["npu", "cpu"]), table)
    assert cli("plan", table, "--passage", "any", "--out", path).code == 0
    found = " ".join(cli("explain", path).out.split())
    assert "At 5 % more period a request takes 49 % less time, and 1 instead of 2 are in flight" in found


def test_requests_in_flight_are_limited(cli: Cli, table: Path) -> None:
    found = cli("plan", table, "--passage", "any", "--max-in-flight", "1", "--json").document
    assert [one["score"]["period_us"] for one in found["candidates"]] == [29_000]
    score = cli("plan", table, "--passage", "any", "--max-stream-latency", "7500us", "--json").document[
        "candidates"
    ][0]["score"]
    assert (score["stream_latency_us"], score["in_flight"]) == (7500, 2)
    once = cli("plan", table, "--max-in-flight", "1", "--json").document["candidates"][0]["score"]
    assert (once["stream_latency_us"], once["in_flight"]) == (once["latency_us"], 1)


def test_a_limit_on_requests_in_flight_says_what_fewer_task_slots_give(
    cli: Cli, table: Path, plan_file: Path
) -> None:
    """A plan that needs two requests at its period may be far faster with one than those that need one."""
    limited = " ".join(cli("plan", table, "--passage", "any", "--max-in-flight", "1").out.split())
    ran = cli("run", plan_file, "--engine", "simulated", "--seconds", "100ms", "--task-slots", "1", "--json")
    (stream,) = ran.document["streams"]
    assert f"a period of {stream['period_us'] / 1000:.3f} ms with --task-slots 1" in limited
    assert "74 % less" in limited
    assert (
        "--task-slots"
        not in cli("plan", table, "--passage", "any", "--max-in-flight", "2").out.split("best")[0]
    )


def test_lists_have_what_takes_long_of_their_first_plan(cli: Cli, table: Path, plan_file: Path) -> None:
    found = cli("plan", table, "--passage", "any", "--top", "3", "--json").document["candidates"]
    assert [one["score"]["in_flight"] for one in found] == [2, None, None]
    rows = [line.split() for line in cli("tools", "check", plan_file).out.splitlines()]
    assert ["latency", "in", "the", "stream", "7.500", "ms"] in rows
    assert ["in", "flight", "2"] in rows


def test_a_report_shows_all_chunks_of_a_unit(cli: Cli, plan_file: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert cli("report", plan_file, "--out", page, "--backends", "none").code == 0
    text = page.read_text()
    assert "in 5 chunks on npu and cpu" in text
    assert "gives a result every" in text
    words = " ".join(re.sub(r"<[^>]*>", " ", text).split())
    assert "predicted npu 60" in words, "3 chunks of each of 20 requests"
    assert "predicted cpu 40" in words
    assert "npu busiest 100.0 % predicted (4.500 ms)" in words
    assert "The period needs 2 requests in flight, each for 7.500 ms." in words
    assert "2 (planned) 4.500 ms -" in words


def test_fallback_and_one_unit_stand_beside_the_best_plan(cli: Cli, table: Path) -> None:
    words = ("compare", table, "--passage", "any", "--backends", "fallback,one-unit,native")
    found = cli(*words)
    assert found.code == 0
    assert "the optimum among plans with any number of chunks per unit" in found.out
    periods = {one["backend"]: one["objective"] for one in cli(*words, "--json").document["results"]}
    assert periods == {"fallback": 29_000, "one-unit": 29_000, "native": 4_500}


def test_a_passage_that_is_not_known_is_bad_input(cli: Cli, table: Path) -> None:
    found = cli("plan", table, "--passage", "twice")
    assert found.code == 2
    assert "choose one of once, any" in found.err


def test_a_passage_is_that_of_requests(cli: Cli, table: Path) -> None:
    found = cli("plan", table, "--pipelines", "many", "--passage", "any")
    assert found.code == 2
    assert "a passage is that of one network or of several requests" in " ".join(found.err.split())


def test_a_stream_of_tasks_refuses_plans_that_come_back(cli: Cli, table: Path, tmp_path: Path) -> None:
    path = tmp_path / "any.json"
    gapless.save(gapless.with_passage(load_problem(table)), path)
    found = cli("requests", "stream", f"{path}:100")
    assert found.code == 2
    words = " ".join(found.err.split())
    assert f"the plan [{BEST}] cannot be a task of a stream, because its items come back" in words
    assert "plan with --passage once" in words
    assert cli("requests", "stream", f"{table}:100").code == 0
    alone = gapless.table_problem({"a": [1, 9], "b": [9, 1]}, ["npu", "cpu"])
    gapless.save(gapless.with_passage(alone), path)
    assert cli("requests", "stream", f"{path}:100").code == 0  # its plan does not come back


def test_problem_files_keep_the_passage(cli: Cli, table: Path, tmp_path: Path) -> None:
    path = tmp_path / "any.json"
    problem = gapless.with_passage(load_problem(table))
    gapless.save(problem, path)
    assert json.loads(path.read_text())["passage"] == {}  # defaults are not written
    assert load_problem(path) == problem
    assert BEST in cli("plan", path).out
    assert "20.000 ms" in cli("plan", path, "--passage", "once").out


def test_people_read_who_takes_turns(tmp_path: Path, cli: Cli) -> None:
    gapless.save(on_one_core(), tmp_path / "problem.json")
    planned = cli("plan", tmp_path / "problem.json", "--out", tmp_path / "plan.json")
    assert "core0 with core0@other, in turns: 4.500 ms, 100.0 % of the period" in planned.out
    found = cli("explain", tmp_path / "plan.json")
    assert "core0 with core0@other sets the pace with 4.500 ms; gpu is busy for 88.9 % of that." in found.out
    assert "exclude each other" not in found.out
