"""Files that the version before the formulations were plug-ins has written: they still say the same."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from gapless.formulations import files
from gapless.formulations.flow_shop.tables import shop_of, workload_of
from gapless.formulations.judge import check, score
from gapless.formulations.workload import LoadPolicy
from gapless.solvers.session import solve

FOLDER = Path(__file__).parent / "earlier"


@pytest.mark.parametrize(
    ("name", "formulation", "values"),
    [("chunking", "chunking", (27, 37)), ("workload", "flow_shop", (156, 216))],
)
def test_the_best_plan_of_then_is_the_best_plan(name: str, formulation: str, values: tuple[int, ...]) -> None:
    problem = files.load_problem(FOLDER / f"{name}.problem.json")
    plan = files.load_plan(FOLDER / f"{name}.plan.json")
    assert problem.formulation.name == formulation
    assert check(problem, plan) == ()
    assert score(problem, plan).values(problem.objective.terms) == values
    result = solve(problem, "exhaustive")
    assert (result.plan, result.values) == (plan, values)


@pytest.mark.parametrize("name", ["chunking", "workload"])
def test_problems_are_written_as_they_were(name: str) -> None:
    path = FOLDER / f"{name}.problem.json"
    again = files.dump_problem(files.load_problem(path))
    assert json.loads(again) == json.loads(path.read_text())


def test_a_workload_has_all_that_it_had() -> None:
    problem = files.load_problem(FOLDER / "workload.problem.json")
    workload = workload_of(problem)
    assert workload.names == ("a0", "b0")
    assert [(r.arrival_us, r.deadline_us) for r in workload.requests] == [(0, 900), (5, None)]
    assert (workload.load_policy, workload.task_slots) == (LoadPolicy.RUNNING, 2)
    assert shop_of(problem).high == (False, True)
    assert shop_of(problem).losses.contended
    assert [rule.name for rule in problem.rules] == ["before(b0, a0)", "<lambda>"]


def test_co_run_costs_rules_and_limits_are_there() -> None:
    problem = files.load_problem(FOLDER / "chunking.problem.json")
    assert problem.co_run_costs is not None
    assert problem.co_run_costs[0].of("a").layer_us == ((33, 70), (44, 29), (58, 49))
    assert problem.limits.in_use() == {"max_period_us": 500, "max_units": 2}
    assert [rule.name for rule in problem.rules] == ["pin(l0, npu)", "busy_cap(big, 200)"]
    assert str(problem.objective) == "slack:100:gapness,peak_memory"


def test_fingerprints_of_then_are_not_compared() -> None:
    origin = files.load_planned(FOLDER / "workload.plan.json")[1]
    assert origin.fingerprint is None
    assert origin.asked == {"problem": "workload.problem.json"}
    problem = files.load_problem(FOLDER / "workload.problem.json")
    assert files.with_written_rules(replace(problem, rules=()), origin.rules) == problem
