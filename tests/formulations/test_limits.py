"""Limits on bubbles and memory: every backend that takes them keeps to them, and finds the same."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import islice
from typing import Any

import pytest

from gapless.api.problems import table_problem
from gapless.formulations.errors import InvalidInputError
from gapless.formulations.expr import Const
from gapless.formulations.hardware import Platform, ProcessingUnit
from gapless.formulations.json_files import parse_tree
from gapless.formulations.judge import check, examined, score
from gapless.formulations.limits import LIMITS, Limits, capped, limit_rows, limits_missed
from gapless.formulations.passages import Passage
from gapless.formulations.plan import Plan
from gapless.formulations.problem import Problem
from gapless.formulations.scores import Score, clashes
from gapless.formulations.workload import Request, Workload, with_windows
from gapless.solvers.chunking.samples import sample_problem
from gapless.solvers.exhaustive import all_plans
from gapless.solvers.families import family_of
from gapless.solvers.protocol import SolveOptions, SolveStatus
from gapless.solvers.session import solve
from gapless.sweeps.spec import Sweep
from tests.workload_instances import workload_problem

CHAIN = table_problem(
    [[6, 3, 8], [7, 2, 2], [2, 9, 4], [2, 6, 5]], ["a", "b", "c"], objective="period,gapness"
)
CHAIN = replace(
    CHAIN,
    networks=tuple(
        replace(n, layers=tuple(replace(layer, weight_bytes=10 + 7 * i) for i, layer in enumerate(n.layers)))
        for n in CHAIN.networks
    ),
)
SHOP = workload_problem(
    {"a": [[3, 5, 9], [4, 2, 6]], "b": [[7, 3, 4], [2, 9, 5]]},
    ["a", "b"],
    slowdown=[[0, 300, 0], [200, 0, 0], [0, 100, 0]],
)
PROBLEMS = {"one network": CHAIN, "workload": SHOP}
NAMES = ("max_bubbles_us", "max_memory_bytes", "max_unit_memory_bytes")


def value_of(found: Score, name: str) -> int:
    memory = [size for size in found.memory_bytes if size is not None]
    values: dict[str, int] = {"max_bubbles_us": found.bubbles_us, "max_memory_bytes": found.peak_bytes}
    values["max_unit_memory_bytes"] = max(memory)
    return values[name]


@cache
def judged(about: str) -> list[tuple[Plan, Score]]:
    """Return every plan of a problem with its score."""
    problem = PROBLEMS[about]
    return [(plan, score(problem, plan)) for plan in all_plans(problem)]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("about", PROBLEMS)
@pytest.mark.parametrize(
    "backend", ["exhaustive", "native", *(pytest.param(b, marks=pytest.mark.slow) for b in ("cpsat", "pulp"))]
)
def test_a_limit_between_the_least_and_the_best_is_kept(about: str, name: str, backend: str) -> None:
    problem = PROBLEMS[about]
    values = sorted({value_of(found, name) for _, found in judged(about)})
    for limit in (values[0], values[len(values) // 3]):
        limited = problem.with_limits(**{name: limit})
        allowed = [found for _, found in judged(about) if value_of(found, name) <= limit]
        best = min(found.values(problem.objective.terms) for found in allowed)
        result = solve(limited, backend, SolveOptions(top=2))
        assert result.status is SolveStatus.OPTIMAL
        assert result.values == best
        assert result.plan is not None
        assert value_of(score(problem, result.plan), name) <= limit
    worst, _ = max(judged(about), key=lambda pair: value_of(pair[1], name))
    if values[-1] > limit:
        assert name in {violation.rule for violation in check(limited, worst)}


@pytest.mark.parametrize("name", NAMES[1:])
def test_a_limit_that_nothing_keeps_is_the_reason(name: str) -> None:
    problem = CHAIN.with_limits(**{name: 1}, min_units=2)
    result = solve(problem)
    assert result.status is SolveStatus.INFEASIBLE
    assert result.conflict is not None
    assert name in {item.name for item in result.conflict.items}


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        ("max_latency_us", r"must be an integer \(microseconds, e\.g\. 30000 for 30 ms\), got '30ms'"),
        ("min_balance_permille", r"must be an integer \(permille, e\.g\. 800 for 80 %\), got '30ms'"),
        ("max_units", "must be an integer, got '30ms'"),
    ],
)
def test_what_is_no_integer_is_told_the_unit(limit: str, words: str) -> None:
    limits: dict[str, Any] = {limit: "30ms"}
    with pytest.raises(InvalidInputError, match=f"{limit} {words}"):
        Limits(**limits)
    with pytest.raises(InvalidInputError, match=rf"limits\[0\]\.{limit}: {words}"):
        parse_tree({"limits": [limits]}, Sweep, wrong="the sweep")


def test_capacities_are_the_lesser_ones() -> None:
    platform = Platform(
        name="p", units=(ProcessingUnit(name="a", memory_bytes=5), ProcessingUnit(name="b")), memory_bytes=9
    )
    found = capped(platform, Limits(max_memory_bytes=12, max_unit_memory_bytes=7))
    assert [unit.memory_bytes for unit in found.units] == [5, 7]
    assert found.memory_bytes == 9
    assert capped(platform, Limits()) is platform


def test_windows_are_arrivals_and_deadlines() -> None:
    workload = Workload(requests=tuple(Request(name=f"a#{i}", network="a") for i in (1, 2)))
    found = with_windows(workload, {"a": (20, None), "a#2": (5, 30)})
    assert [(r.arrival_us, r.deadline_us) for r in found.requests] == [(20, None), (5, 25)]
    for wrong in ({"c": (0, 1)}, {"a": (5, 5)}):
        with pytest.raises(InvalidInputError, match="window"):
            with_windows(workload, wrong)


FAMILIES = ("chunking", "passage", "pipelines", "cooperation", "partition", "flow_shop", "jobs", "task_graph")


def rows_of(limits: Limits, numbers: Any) -> list[bool]:
    """Return whether a plan keeps the rows of some filters."""
    found = limit_rows(limits, lambda name: Const(getattr(numbers, name)), Const(len(numbers.busy_us)))
    return [bool(row.evaluate(lambda variable: 0)) for _, row in found]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_plan_at_a_limit_passes_and_one_beyond_it_does_not(family: str) -> None:
    instances = family_of(family).instances
    assert instances is not None
    problem = instances().samples().plain
    seen = set()
    for plan in islice(all_plans(problem), 8):
        numbers, _ = examined(problem, problem.formulation.code(problem, plan))
        for name in problem.formulation.limits:
            info = LIMITS[name]
            value = getattr(numbers, info.quantity) if info.read is None else info.read(numbers)
            beyond = value + 1 if name.startswith("min_") else value - 1
            if not info.least <= beyond <= (1000 if name.endswith("_permille") else beyond):
                continue
            at, over = Limits(**{name: value}), Limits(**{name: beyond})
            assert limits_missed(at, numbers) == []
            assert limits_missed(over, numbers) == [(name, value, beyond)]
            assert all(rows_of(at, numbers))
            assert not any(rows_of(over, numbers))
            seen.add(name)
    assert {"min_units", "max_units"} & seen
    assert len(seen) >= 3


@pytest.mark.parametrize("data", [None, Passage()], ids=["once", "any"])
def test_native_finds_the_plan_that_just_fits(data: Passage | None) -> None:
    """Among plans of several chunks: those of one are known before any search."""
    problem = sample_problem("peak_memory").with_data(data).with_limits(min_units=2)
    _, least = best(problem, "exhaustive")
    tight = problem.with_limits(max_memory_bytes=least).with_objective("period")
    assert best(tight, "native") == best(tight, "exhaustive")
    assert best(tight, "native")[1] == least
    under = problem.with_limits(max_memory_bytes=least - 1)
    assert solve(under, "native").status is SolveStatus.INFEASIBLE


def best(problem: Problem, backend: str) -> tuple[Plan, int]:
    """Return the best plan that a backend finds, and the bytes that it needs."""
    found = solve(problem, backend).best
    assert found is not None
    return found.plan, found.score.peak_bytes


@pytest.mark.parametrize("family", ["chunking", "passage", "pipelines", "cooperation", "partition"])
def test_a_model_has_a_row_for_each_pair_of_units_that_share_cores(family: str) -> None:
    instances = family_of(family).instances
    assert instances is not None
    problem = instances().samples().plain
    one, other, *others = problem.platform.units
    for cores, pairs in ((), 0), ((0,), 1):
        units = (replace(one, cores=cores), replace(other, cores=cores), *others)
        shared = replace(problem, platform=replace(problem.platform, units=units))
        rows = shared.formulation.encode(shared, top=1).model.constraints
        assert sum(row.name == "conflict" for row in rows) == pairs


def test_each_pair_of_units_that_exclude_each_other_comes_once() -> None:
    assert [*clashes([frozenset({2, 3}), frozenset(), frozenset({0}), frozenset({0})])] == [(0, 2), (0, 3)]
