"""How plans of single requests are shown: releases, deadlines, who is late, charts and pages."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest
from rich.console import Console

import gapless
from gapless.answers.blocks import Block
from gapless.formulations.costs import Interference, NetworkContention, SliceContention
from gapless.formulations.judge import score
from gapless.formulations.plan import Chunk, Plan
from gapless.formulations.schedules import JobRequest
from gapless.formulations.simulate import simulate
from gapless.formulations.workload import Request, Workload
from gapless.view.formulations.jobs import PRESENTER
from gapless.view.page.page import report_page
from gapless.view.page.subjects import subject
from gapless.view.presenter import presenter_of
from gapless.view.terminal.blocks import blocks_view
from tests.jobs_instances import jobs_problem, passing, slowed

PROBLEM = jobs_problem(
    {"net": [[40_000, 12_000], [5_000, None]], "small": [[6_000, 2_000]]},
    (
        JobRequest(name="n", network="net"),
        JobRequest(name="s", network="small", release_us=1_000, deadline_us=12_000),
        JobRequest(name="t", network="small", after=("n",)),
    ),
)
PLAN = Plan(
    chunks=(
        Chunk(network="net", start=0, stop=1, unit="u1", request="n"),
        Chunk(network="net", start=1, stop=2, unit="u0", request="n"),
        Chunk(network="small", start=0, stop=1, unit="u1", request="s"),
        Chunk(network="small", start=0, stop=1, unit="u1", request="t"),
    ),
    order=("n", "s", "n", "t"),
)


def text_of(parts: Iterable[Block]) -> str:
    console = Console(width=140)
    with console.capture() as taken:
        console.print(blocks_view(parts))
    return " ".join(taken.get().split())


def test_plans_in_words() -> None:
    assert presenter_of(PROBLEM) is PRESENTER
    text = text_of(PRESENTER.plan_parts(PROBLEM, PLAN, score(PROBLEM, PLAN)))
    assert "n u1 0-0 | u0 1-1 0.000 ms 0.000 ms 17.000 ms - -" in text
    assert "s u1 whole 1.000 ms 12.000 ms 14.000 ms 13.000 ms 1.000 ms" in text
    assert "u0 5.000 ms 26.3 %" in text
    assert "t ends last, at 19.000 ms on u1; u1 works most, 84.2 % of that time." in text
    assert "1 of 1 request with a deadline end late." in text


def test_problems_in_words() -> None:
    assert dict(PRESENTER.facts(PROBLEM)) == {
        "requests": "3 requests, 1 wait for others, 1 come later than at 0, 1 have a deadline"
    }
    text = text_of(PRESENTER.problem_parts(PROBLEM))
    assert "net 1 0-0 40.000 ms 12.000 ms 1-1 5.000 ms no" in text
    assert PRESENTER.shown_terms(PROBLEM) == ("makespan", "late", "lateness", "latency")


def test_requests_of_a_workload_have_the_same_table() -> None:
    late = Request(name="s", network="small", arrival_us=1_000, deadline_us=9_000)
    problem = replace(PROBLEM, data=Workload(requests=(Request(name="t", network="small"), late)))
    chunk = Chunk(network="small", start=0, stop=1, unit="u0", request="t")
    trace = simulate(problem, Plan(chunks=(chunk, replace(chunk, request="s")), order=("t", "s")))
    text = text_of(presenter_of(problem).trace_parts(problem, trace))
    assert "request layers by unit release start end due late by A t u0 whole" in text
    assert "t u0 whole 0.000 ms 0.000 ms 6.000 ms - -" in text
    assert "s u0 whole 1.000 ms 6.000 ms 12.000 ms 10.000 ms 2.000 ms" in text


def test_equal_requests_look_alike() -> None:
    twins = tuple(JobRequest(name=name, network="small") for name in "ab")
    problem = jobs_problem({"small": [[6_000, 2_000]]}, twins)
    chunk = Chunk(network="small", start=0, stop=1, unit="u1", request="a")
    plan = Plan(chunks=(chunk, replace(chunk, request="b")), order=("a", "b"))
    assert PRESENTER.shape(problem, plan) == PRESENTER.shape(problem, replace(plan, order=("b", "a")))


def test_units_and_traces() -> None:
    times = PRESENTER.unit_times(PROBLEM, PLAN)
    assert [(time.busy, time.idle) for time in times] == [(5.0, 14.0), (16.0, 3.0)]
    rows = dict(PRESENTER.trace_rows(PROBLEM, simulate(PROBLEM, PLAN)))
    assert rows == {"makespan": "19.000 ms", "longest latency from arrival": "19.000 ms"}


@pytest.mark.slow
def test_a_page_shows_who_runs_when() -> None:
    page = report_page([subject(PROBLEM, PLAN)], title="page")
    assert "3 requests (net and small)" in page
    assert "end after" in page
    assert "19.000 ms" in page
    assert gapless.score(PROBLEM, PLAN).valid


def test_schedules_in_words() -> None:
    slow = slowed(passing(PROBLEM, "once"), 3)
    assert dict(PRESENTER.facts(slow)) | {"requests": ""} == {
        "requests": "",
        "passage": "passage once",
        "cuts": "cut at any legal cut",
    }
    order = ("n", "s", "n", "t")
    text = text_of(PRESENTER.plan_parts(slow, replace(PLAN, order=order), score(slow, PLAN)))
    assert "late by slowdown" in text
    # Layers that the same units can run stand in one line, however many chunks they may be.
    assert text_of(PRESENTER.problem_parts(slow)).count("small") == 1


@pytest.mark.parametrize(
    ("high_from", "words"),
    [
        (None, "30.0 % to 150.0 % 100.0 %"),
        (1501, "150.0 % 100.0 %"),
        (1500, "in part high"),
        (0, "in part high"),
    ],
)
def test_slices_of_high_intensity_are_named(high_from: int | None, words: str) -> None:
    slices = tuple(
        SliceContention(start=at, stop=at + 1, intensity_permille=own) for at, own in enumerate((1500, 300))
    )
    known = Interference(
        units=PROBLEM.platform.unit_names,
        slowdown_permille=((0, 500), (500, 0)),
        networks=(NetworkContention(network="net", slices=slices),),
        high_from_permille=high_from,
    )
    slow = replace(passing(PROBLEM, "once"), interference=known)
    assert words in text_of(PRESENTER.problem_parts(slow))


def test_chunks_of_one_request_in_a_row_are_named_once() -> None:
    assert PRESENTER.plan_text(replace(PLAN, order=("n", "n", "s", "t"))) == "n s t"
