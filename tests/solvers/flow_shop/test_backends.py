"""Workloads through every exact backend: against the oracle, and against one another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from benchmarks.workload_instances import crowded_workload
from benchmarks.workload_instances import random_workload as calibrated
from gapless.formulations.availability import Availability
from gapless.formulations.flow_shop.tables import workload_of
from gapless.formulations.judge import score
from gapless.formulations.problem import Problem
from gapless.formulations.workload import Execution, RequestOrder
from gapless.solvers.exhaustive import ExhaustiveBackend, count_plans
from gapless.solvers.flow_shop import solving
from gapless.solvers.protocol import Claim, SolveOptions, SolveStatus, StopReason
from gapless.solvers.registry import get_backend
from gapless.solvers.result import SolveResult
from gapless.solvers.session import reconcile
from tests.workload_instances import workload_problem

from ..brute import claims
from ..workload_cases import Size, random_workload, rule_kinds

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("short_walks")]

SMALL = Size(requests=3, layers=3, units=2)
TABLES: dict[str, list[list[int | None]]] = {
    "a": [[30, 50], [44, 22], [61, 60]],
    "b": [[20, 70], [90, 33]],
}


def results(name: str, jobs: Sequence[tuple[Problem, SolveOptions]]) -> list[SolveResult]:
    """Solve in one child process, and judge here."""
    backend = get_backend(name)
    if not backend.availability().ok:
        pytest.skip(f"{name} is not installed")
    found = claims(backend, list(jobs))
    pairs = zip(jobs, found, strict=True)
    return [reconcile(problem, backend, claim, options.top, 0.0) for (problem, options), claim in pairs]


_known: dict[tuple[str, int], SolveResult] = {}


def oracle(problem: Problem, top: int) -> SolveResult:
    """Return what a walk over all plans finds; it is kept for the next backend."""
    asked = (problem.fingerprint, top)
    if asked not in _known:
        backend, options = ExhaustiveBackend(), SolveOptions(top=top)
        _known[asked] = reconcile(problem, backend, backend.solve(problem, options), top, 0.0)
    return _known[asked]


def terms(result: SolveResult) -> list[tuple[int, ...]]:
    return [candidate.score.values(result.asked.terms) for candidate in result.candidates]


def check_against_the_oracle(name: str, problems: Sequence[Problem], top: int) -> None:
    found = results(name, [(problem, SolveOptions(top=top)) for problem in problems])
    for problem, result in zip(problems, found, strict=True):
        best = oracle(problem, top)
        assert (result.status, result.bound, terms(result)) == (best.status, best.bound, terms(best)), problem
        assert result.proven <= best.proven


@pytest.mark.parametrize(
    ("name", "seeds", "top"),
    [
        ("cpsat", range(12), 1),
        ("cpsat", range(90, 98), 3),
        ("z3", range(45, 50), 1),
        ("z3", range(30, 32), 3),
        ("pulp", range(57, 62), 1),
        ("pulp", range(40, 42), 2),
        ("pulp-cbc", range(75, 77), 1),
    ],
)
def test_random_workloads_agree_with_the_oracle(name: str, seeds: range, top: int) -> None:
    problems = [random_workload(seed, SMALL) for seed in seeds]
    check_against_the_oracle(name, [p for p in problems if count_plans(p) <= 6000], top)


@pytest.mark.parametrize(("name", "count"), [("cpsat", 6), ("pulp", 3)])
def test_workloads_under_the_cap_agree_with_the_oracle(name: str, count: int) -> None:
    drawn = map(crowded_workload, range(60))
    small = [problem for problem in drawn if count_plans(problem) <= 60]
    check_against_the_oracle(name, small[:count], 1)


@pytest.mark.parametrize("execution", Execution)
@pytest.mark.parametrize(
    ("name", "networks", "first"),
    [("cpsat", "aba", 0), ("cpsat", "ab", 1), ("z3", "ab", 0), ("pulp", "ab", 1)],
)
def test_every_kind_of_rule_agrees_with_the_oracle(
    name: str, networks: str, first: int, execution: Execution
) -> None:
    """CP-SAT is asked for every kind; the others, which are given the same models, for half of them each."""
    base, rules = contended(networks, execution), [*rule_kinds(120).values()][first::2]
    check_against_the_oracle(name, [base.with_rules(rule) for rule in rules], top=1)


def contended(networks: str, execution: Execution) -> Problem:
    """Return requests r0, r1, ... of these networks on two units that slow each other down."""
    problem = workload_problem(TABLES, list(networks), slowdown=[[0, 200], [350, 0]], high=("a",))
    requests = tuple(
        replace(request, name=f"r{index}") for index, request in enumerate(workload_of(problem).requests)
    )
    return replace(problem, data=replace(workload_of(problem), requests=requests, execution=execution))


@pytest.mark.parametrize("name", ["cpsat", "pulp"])
def test_a_plan_to_start_from_changes_no_answer(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solving, "_EASY", 0)
    check_against_the_oracle(name, [random_workload(seed, SMALL) for seed in range(120, 124)], top=1)


LARGER = [
    calibrated(3, 3, 1, order=RequestOrder.FIXED),
    calibrated(3, 3, 2, order=RequestOrder.FIXED, execution=Execution.COLUMNS),
    calibrated(2, 3, 3),
    calibrated(12, 4, 4, slowdown=True).with_objective("contention,displacement"),
    calibrated(4, 3, 5).with_objective("bottleneck,work"),
]


def test_the_backends_agree_on_larger_workloads() -> None:
    jobs = [(problem, SolveOptions()) for problem in LARGER]
    ours, theirs = results("cpsat", jobs), results("pulp", jobs)
    for one, other in zip(ours, theirs, strict=True):
        assert one.status is other.status is SolveStatus.OPTIMAL
        assert one.values == other.values
    names = [result.statistics["encoding"] for result in ours]
    assert names == ["alignment", "columns", "joint", "ordering", "slicing"]


@pytest.mark.parametrize("name", ["cpsat", "z3", "pulp", "pulp-cbc"])
def test_a_time_limit_leaves_valid_plans_and_bounds(name: str) -> None:
    hard = calibrated(8, 4, 0, balanced=True, slowdown=True)
    jobs = [(hard, SolveOptions(time_limit_s=limit)) for limit in (1e-6, 0.5)]
    late, short = results(name, jobs)
    assert (late.stop, late.status) in {
        (StopReason.TIME_LIMIT, SolveStatus.NO_SOLUTION),
        (StopReason.TIME_LIMIT, SolveStatus.FEASIBLE),
    }
    assert short.stop is StopReason.TIME_LIMIT
    assert short.status in (SolveStatus.FEASIBLE, SolveStatus.NO_SOLUTION)
    for result in (late, short):
        for candidate in result.candidates:
            assert score(hard, candidate.plan).valid
        if result.objective is not None:
            assert result.bound is not None
            assert result.bound <= result.objective


def test_equal_questions_have_equal_answers() -> None:
    problem = calibrated(3, 2, 3, slowdown=True)
    job = (problem, SolveOptions(seed=3))
    first, second = results("cpsat", [job, job])
    assert first.candidates == second.candidates


def test_what_the_search_finds_is_published() -> None:
    backend = get_backend("cpsat")
    if not backend.availability().ok:
        pytest.skip("cpsat is not installed")
    seen: list[Claim] = []

    class Watched:
        name = "cpsat"
        capabilities = backend.capabilities

        def availability(self) -> Availability:
            return backend.availability()

        def solve(self, problem: Problem, options: SolveOptions) -> Claim:
            claim = backend.solve(problem, SolveOptions(publish=seen.append))
            return Claim(status=claim.status, stop=claim.stop, statistics={"published": len(seen)})

    (claim,) = claims(Watched(), [(contended("aba", Execution.ASYNCHRONOUS), SolveOptions())])
    assert int(claim.statistics["published"]) > 0
