"""Limits on times and memory of requests: the judge, the native search and exact backends keep the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

import pytest

from gapless.formulations.errors import InvalidProblemError
from gapless.formulations.jobs.quantities import JobValues
from gapless.formulations.jobs.tables import tables_of
from gapless.formulations.judge import check
from gapless.formulations.limits import Limits
from gapless.formulations.problem import Problem
from gapless.formulations.schedules import as_schedules, as_workload
from gapless.formulations.workload import LoadPolicy
from gapless.solvers.protocol import SolveOptions
from gapless.solvers.session import solve
from gapless.solvers.sources import StartMode
from tests.jobs_instances import drawn_jobs, passing, slowed
from tests.workload_instances import workload_problem

BACKENDS = ("native", "exhaustive", "cpsat", "z3", "pulp")
LAYER_BYTES = 10
"""What a layer of a drawn problem weighs."""
_MOST_PLANS = 1500
COLD = SolveOptions(start=StartMode.NONE)
"""Exact backends find the plans themselves."""


def measured(problem: Problem) -> Iterator[tuple[JobValues, dict[str, int]]]:
    """Yield every plan with what limits are about, counted here."""
    tables = tables_of(problem)
    for code in problem.formulation.codes(problem):
        values = JobValues(tables, code)
        ends = dict[int, int]()
        for run in values.runs:
            ends[run.request] = max(ends.get(run.request, 0), run.end_us)
        requests = tables.jobs.requests
        took = [ends[index] - request.release_us for index, request in enumerate(requests)]
        chunks = {
            (requests[run.request].network, *tables.layers(run.request, run.part), run.part[2])
            for run in values.runs
        }
        sizes = [LAYER_BYTES * (stop - start) for _, start, stop, _ in chunks]
        yield (
            values,
            {
                "max_makespan_us": max(ends.values()),
                "max_request_latency_us": max(took),
                "max_latency_us": sum(r.weight * time for r, time in zip(requests, took, strict=True)),
                "max_memory_bytes": sum(sizes),
                "max_unit_memory_bytes": max(sizes),
            },
        )


def asked(seed: int, objective: str = "work") -> Problem:
    """Return a problem, with slowdown or a passage now and then."""
    problem = drawn_jobs(seed, objective, units=2)
    if seed % 3 == 1:
        problem = slowed(problem, seed)
    return passing(problem, "once") if seed % 3 == 2 else problem


def biting(limit: str) -> Iterator[tuple[Problem, int]]:
    """Yield problems with a value of a limit that the best plan without it breaks, and some plan keeps."""
    objective = "makespan" if limit.endswith("_bytes") else "work"
    for seed in range(60):
        problem = asked(seed, objective)
        if problem.formulation.count(problem) > _MOST_PLANS:
            continue
        plans = list(measured(problem))
        best = min(values.values(problem.objective.terms) for values, _ in plans)
        least = min(numbers[limit] for values, numbers in plans if values.values((objective,)) == best)
        lower = sorted({numbers[limit] for _, numbers in plans if numbers[limit] < least})
        if lower:
            yield problem, lower[len(lower) // 2]


@pytest.mark.parametrize(
    "limit",
    [
        "max_makespan_us",
        "max_request_latency_us",
        "max_latency_us",
        "max_memory_bytes",
        "max_unit_memory_bytes",
    ],
)
def test_all_backends_keep_a_limit(limit: str) -> None:
    found = list(islice(biting(limit), 5))
    assert len(found) > 2
    for problem, most in found:
        plans = list(measured(problem))
        terms, limited = problem.objective.terms, problem.with_limits(**{limit: most})
        for values, numbers in plans:
            broken = check(limited, problem.formulation.plan(problem, values.code))
            assert (limit in {violation.rule for violation in broken}) == (numbers[limit] > most)
        best = min(values.values(terms) for values, numbers in plans if numbers[limit] <= most)
        for backend in BACKENDS:
            result = solve(limited, backend, COLD, explain=False)
            assert (backend, result.values) == (backend, best)
            # The model says it: no plan of its was refused.
            assert not any(result.statistics.get(name) for name in ("rejected", "refuted"))
        least = min(numbers[limit] for _, numbers in plans)
        assert solve(limited.with_limits(**{limit: least - 1}), "cpsat", COLD).status == "infeasible"


def test_the_reason_why_there_is_no_plan_names_the_limit() -> None:
    found = solve(asked(0).with_limits(max_request_latency_us=0), "native")
    assert found.conflict is not None
    assert [item.name for item in found.conflict.items] == ["max_request_latency_us"]
    assert found.unfiltered is not None


def test_other_limits_are_refused_and_it_is_said_what_to_do() -> None:
    with pytest.raises(InvalidProblemError, match=r"max_bubbles_us means nothing for .*--passage ordered"):
        asked(0).with_limits(max_bubbles_us=5)


def test_one_order_is_not_advised_for_a_limit_that_it_does_not_know_either() -> None:
    with pytest.raises(InvalidProblemError, match="max_hops means nothing for") as refused:
        asked(0).with_limits(max_hops=2)
    assert "--passage ordered" not in str(refused.value)
    with pytest.raises(InvalidProblemError, match=r"\(--passage ordered\) knows max_bubbles_us$"):
        asked(0).with_limits(max_hops=2, max_bubbles_us=5)
    with pytest.raises(InvalidProblemError, match="max_hops means nothing"):
        workload_problem({"a": [[10, 30]]}, ["a"]).with_limits(max_hops=2)


@pytest.mark.parametrize("limit", ["max_makespan_us", "max_request_latency_us"])
def test_workloads_know_the_limits_on_times_of_requests(limit: str) -> None:
    tables: dict[str, list[list[int | None]]] = {"a": [[10, 15], [10, 15]], "b": [[20, 24]]}
    problem = workload_problem(tables, ["a", "b"], objective="work")
    free = solve(problem, "exhaustive", explain=False)
    best = solve(problem.with_objective("makespan"), "exhaustive", explain=False)
    assert best.objective is not None
    assert free.best is not None
    assert free.best.score.makespan_us > best.objective
    for backend in BACKENDS:
        found = solve(problem.with_limits(**{limit: best.objective}), backend, COLD, explain=False)
        assert found.best is not None
        assert found.best.score.makespan_us == best.objective
        assert not any(found.statistics.get(name) for name in ("rejected", "refuted"))
        none = solve(problem.with_limits(**{limit: best.objective - 1}), backend, COLD, explain=False)
        assert none.best is None


def test_limits_stay_when_requests_get_another_passage() -> None:
    workload = workload_problem({"a": [[10, 30], [40, 20]]}, ["a", "a"]).with_limits(
        max_makespan_us=70, max_latency_us=200, max_unit_memory_bytes=20
    )
    assert as_schedules(workload).limits == workload.limits
    assert as_workload(as_schedules(workload)).limits == workload.limits


def test_where_only_running_chunks_are_loaded_what_fits_in_any_case_is_not_limited() -> None:
    workload = workload_problem({"a": [[10, 30], [40, 20]]}, ["a", "a"], memory_bytes=1000)
    running = replace(workload, data=replace(workload.data, load_policy=LoadPolicy.RUNNING))
    assert as_schedules(running.with_limits(max_memory_bytes=500)).limits == Limits()
