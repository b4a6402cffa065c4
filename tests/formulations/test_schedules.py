"""Workloads as schedules: what becomes of their requests, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

import gapless
from gapless.formulations.deployment import Mode
from gapless.formulations.errors import InvalidInputError
from gapless.formulations.expr import max_of
from gapless.formulations.judge import check, score
from gapless.formulations.plan import Plan
from gapless.formulations.problem import Problem
from gapless.formulations.rules import RuleFunction
from gapless.formulations.schedules import Cuts, JobRequest, Jobs, as_schedules, as_workload, from_workload
from gapless.formulations.workload import Execution, LoadPolicy, Request, RequestOrder, Workload
from gapless.solvers.exhaustive import all_plans
from gapless.solvers.session import solve
from tests.workload_instances import workload_problem

TABLES: dict[str, list[list[int | None]]] = {"a": [[10, 30], [None, 20], [10, 30]], "b": [[25, 26], [5, 40]]}
REQUESTS = (
    Request(name="a0", network="a", deadline_us=70),
    Request(name="b1", network="b", arrival_us=7),
)


def served(**changes: object) -> Problem:
    """Return a workload of two requests, one of which needs the second unit in its midst."""
    problem = workload_problem(TABLES, ["a", "b"], slowdown=[[0, 300], [500, 0]])
    return replace(problem, data=Workload(requests=REQUESTS, **changes))  # type: ignore[arg-type]


def test_requests_stay_what_they_are() -> None:
    problem = as_schedules(served(), "once")
    assert problem.data == Jobs(
        requests=(
            JobRequest(name="a0", network="a", deadline_us=70),
            JobRequest(name="b1", network="b", release_us=7),
        ),
        cuts=Cuts.ALL,
        passage="once",
    )
    assert problem.interference == served().interference
    assert [rule.name for rule in problem.rules] == ["deadline of a0"]
    assert "interference" in problem.features


def test_plans_of_the_workload_are_schedules_that_take_as_long() -> None:
    """Each unit serves the requests in one order: a chunk for each time a request stands in it."""
    workload, ordered = served(), as_schedules(served(), "ordered")
    for plan in all_plans(workload):
        order = tuple(name for name in plan.order for _ in plan.of(name))
        judged = score(ordered, Plan(chunks=plan.chunks, order=order))
        expected = score(workload, plan)
        assert judged.makespan_us == expected.makespan_us
        assert judged.request_latency_us == expected.request_latency_us
        late = {violation.rule for violation in expected.violations}
        assert bool(late) == (not judged.valid)


def test_the_deadline_has_to_be_kept() -> None:
    problem = as_schedules(served(), "any")
    found = solve(problem, "exhaustive", explain=False)
    assert found.best is not None
    assert found.best.score.request_latency_us[0] <= 70
    late = next(plan for plan in all_plans(problem) if score(problem, plan).request_latency_us[0] > 70)
    assert [violation.rule for violation in check(problem, late)] == ["deadline of a0"]


def test_coming_back_is_faster() -> None:
    """a0 runs its ends on the first unit only where it may come back to it."""
    best = {
        passage: solve(as_schedules(served(), passage), "exhaustive", explain=False).values
        for passage in ("any", "once", "ordered")
    }
    ordered = solve(served(), "exhaustive", explain=False).values
    assert best["any"] < best["once"] <= best["ordered"] <= ordered  # type: ignore[operator]


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"mode": Mode.STREAM, "requests": (Request(name="a", network="a"),)}, "leave the stream out"),
        (
            {"execution": Execution.COLUMNS, "requests": (Request(name="a", network="a"),)},
            "use asynchronous execution",
        ),
        ({"task_slots": 1}, "task slots mean nothing"),
        ({"order": RequestOrder.FIXED}, "leave the fixed order out"),
    ],
)
def test_what_has_no_meaning_is_refused(changes: dict[str, object], text: str) -> None:
    data = replace(Workload(requests=REQUESTS), **changes)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match=text):
        as_schedules(replace(served(), data=data))


def test_strange_passages_and_rules_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="passage is 'twice'"):
        as_schedules(served(), "twice")
    ruled = served().with_rules(lambda view: view.uses("a0", "npu"))
    with pytest.raises(InvalidInputError, match="give them again with the passage"):
        as_schedules(ruled)


def test_weights_of_running_chunks_have_to_fit_whatever_runs() -> None:
    problem = served(load_policy=LoadPolicy.RUNNING)
    fits = replace(problem, platform=replace(problem.platform, memory_bytes=50))
    assert as_schedules(fits).platform.memory_bytes is None
    tight = replace(problem, platform=replace(problem.platform, memory_bytes=49))
    with pytest.raises(InvalidInputError, match="50 bytes at once; there are 49"):
        as_schedules(tight)
    resident = replace(tight, data=served().data)
    assert as_schedules(resident).platform.memory_bytes == 49


def test_one_way_to_ask_for_a_passage() -> None:
    assert gapless.with_passage(served(), "any") == as_schedules(served(), "any")
    again = gapless.with_passage(as_schedules(served(), "any"), "once")
    assert again == as_schedules(served(), "once")
    option, wider = served().formulation.wider(served()) or ("", None)
    assert (option, wider) == ("--passage any", as_schedules(served()))
    streamed = replace(served(), data=Workload(requests=(Request(name="a", network="a"),), mode=Mode.STREAM))
    assert streamed.formulation.wider(streamed) is None


@pytest.mark.parametrize(
    "rule",
    [
        lambda view: view.finish_us("b1") + 20 <= view.finish_us("a0"),
        lambda view: view.load_us("big") <= 100,
        lambda view: ~(view.uses("b1", "big") & view.uses("b1", "npu")) | view.on("a0", 0, "npu"),
        lambda view: view.chunks("a0") + view.chunks("b1") <= 3,
        lambda view: view.is_late("a0"),
        lambda view: max_of([view.latency_us("a0"), view.makespan_us() - 40]) <= 75,
    ],
)
def test_rules_mean_the_same_for_the_workload_of_schedules(rule: RuleFunction) -> None:
    problem = as_schedules(served(), "ordered")
    problem = replace(problem, rules=()).with_rules(rule)
    workload = as_workload(problem)
    assert len(workload.rules) == 1
    verdicts = set()
    for plan in all_plans(workload):
        valid = not check(workload, plan)
        assert valid == (not check(problem, from_workload(plan)))
        verdicts.add(valid)
    assert verdicts == {True, False}


def test_rules_that_mean_nothing_for_a_workload_are_left_out() -> None:
    problem = as_schedules(served()).with_rules(lambda view: view._variables.number("work_us") <= 10_000)
    assert [rule.name for rule in as_workload(problem).rules] == ["deadline of a0"]
