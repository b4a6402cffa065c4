"""Native plans of single requests, exact ones, and what they agree on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gapless.formulations.jobs.tables import tables_of
from gapless.formulations.judge import check
from gapless.formulations.problem import Problem
from gapless.solvers import exhaustive
from gapless.solvers.families import starts_for
from gapless.solvers.jobs import annealing
from gapless.solvers.jobs.annealing import Play, list_schedules
from gapless.solvers.protocol import SolveOptions, SolveStatus
from gapless.solvers.session import solve
from gapless.solvers.sources import StartMode
from tests.jobs_instances import drawn_jobs, jobs_problem, longer, passing, slowed


@pytest.fixture
def _searching(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small spaces are searched, too; not as long as those of a user."""
    monkeypatch.setattr(exhaustive, "MOST_WALKED", 0)
    monkeypatch.setattr(annealing, "STEPS", 300)


@pytest.mark.slow
@pytest.mark.usefixtures("_searching")
@pytest.mark.parametrize("objective", ["makespan", "late,lateness", "latency", "work,makespan"])
def test_search_finds_the_optimum_of_small_problems(objective: str) -> None:
    for seed in range(4):
        problem = drawn_jobs(seed, objective)
        found = solve(problem, "native", SolveOptions(seed=1))
        assert found.values == solve(problem, "exhaustive").values, seed
        assert found.values is not None
        assert found.bound is None or found.bound <= found.values[0]


@pytest.mark.slow
@pytest.mark.usefixtures("_searching")
def test_search_is_deterministic_and_keeps_rules() -> None:
    problem = drawn_jobs(7, "makespan").with_rules(lambda view: ~view.uses("r0", "u0"))
    options = SolveOptions(seed=3, top=2)
    one, other = solve(problem, "native", options), solve(problem, "native", options)
    assert one.candidates == other.candidates
    assert all(check(problem, candidate.plan) == () for candidate in one.candidates)
    assert one.values == solve(problem, "exhaustive").values


@pytest.mark.usefixtures("_searching")
def test_units_that_share_cores_are_not_used_together() -> None:
    plain = drawn_jobs(5)
    cores = ((0,), (0, 1), (2,))
    units = tuple(replace(unit, cores=own) for unit, own in zip(plain.platform.units, cores, strict=True))
    problem = replace(plain, platform=replace(plain.platform, units=units))
    for variant in (problem, problem.with_limits(max_units=1), problem.with_limits(min_units=2)):
        found, best = solve(variant, "native"), solve(variant, "exhaustive", explain=False)
        assert (found.values is None) == (best.values is None)
        assert best.values is None or found.values == best.values


@pytest.mark.usefixtures("_searching")
@pytest.mark.parametrize("seed", [0, 1, 3])
def test_with_slowdown_native_claims_no_more_than_is_true(seed: int) -> None:
    problem = slowed(drawn_jobs(seed, requests=3, units=2), seed)
    assert "interference" in problem.features
    found, best = solve(problem, "native"), solve(problem, "exhaustive", explain=False)
    assert found.values is not None
    assert best.values is not None
    assert found.bound is not None
    assert found.bound <= best.values[0] <= found.values[0]
    assert found.status is not SolveStatus.OPTIMAL or found.values == best.values


@pytest.mark.slow
@pytest.mark.usefixtures("_searching")
@pytest.mark.parametrize("passage", ["any", "once", "ordered", "ordered:u1,u0"])
def test_passages_have_the_same_optimum_everywhere(passage: str) -> None:
    for seed in range(4):
        problem = passing(drawn_jobs(seed, requests=3, units=2), passage)
        best = solve(problem, "exhaustive", explain=False)
        for backend in ("cpsat", "z3" if seed % 2 else "pulp"):
            found = solve(problem, backend, explain=False)
            assert (found.status, found.values) == (best.status, best.values), (seed, backend)
        native = solve(problem, "native", explain=False)
        assert native.values == best.values or best.status is SolveStatus.INFEASIBLE


def test_impossible_requests_are_said_to_be() -> None:
    problem = drawn_jobs(2)
    units = tuple(replace(unit, memory_bytes=5) for unit in problem.platform.units)
    tight = replace(problem, platform=replace(problem.platform, units=units))
    for backend in ("exhaustive", "cpsat"):
        assert solve(tight, backend, explain=False).status is SolveStatus.INFEASIBLE
    assert solve(tight, "native", explain=False).values is None


def test_sequences_are_plans() -> None:
    problem = drawn_jobs(11, "latency,makespan", requests=5)
    tables = tables_of(problem)
    play = Play(problem, tables, frozenset(range(tables.unit_count)))
    for sequence in list_schedules(play):
        code = play.code(sequence)
        assert check(problem, tables.plan(code)) == ()
        numbers = problem.formulation.numbers(problem, code)
        assert play.value(sequence) == numbers.values(("latency", "makespan"))
        assert play.value(play.sequence(code)) == play.value(sequence)


def test_starts_are_valid_and_bounds_below() -> None:
    problem = drawn_jobs(4, requests=4)
    *_, start = starts_for(problem, SolveOptions(time_limit_s=0.5))
    assert check(problem, problem.formulation.plan(problem, start.code)) == ()
    assert start.at_least is not None
    assert start.at_least <= problem.formulation.numbers(problem, start.code).term("makespan")


def exact(seed: int) -> Problem:
    return drawn_jobs(seed, ("makespan,latency", "late,lateness", "latency")[seed % 3])


@pytest.mark.parametrize("backend", ["cpsat", "z3", "pulp"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_exact_backends_agree_with_the_oracle(backend: str, seed: int) -> None:
    problem, options = exact(seed), SolveOptions(top=3)
    found, best = solve(problem, backend, options), solve(problem, "exhaustive", options)
    assert found.status is SolveStatus.OPTIMAL
    terms = problem.objective.terms
    values = [[each.score.values(terms) for each in result.candidates] for result in (found, best)]
    assert values[0] == values[1]


@pytest.mark.slow
def test_rules_about_times_are_exact() -> None:
    """Nothing starts later than it can, only because a rule would like it."""
    requests = tuple(replace(each, release_us=0, after=()) for each in drawn_jobs(0).data.requests[:2])
    requests = tuple(replace(each, network="net") for each in requests)
    plain = jobs_problem({"net": [[3, 8]]}, requests)
    waiting = plain.with_rules(lambda view: view.start_us("r0") >= 1)
    assert solve(waiting, "cpsat").values == solve(waiting, "exhaustive").values == (6,)
    never = plain.with_rules(lambda view: view.start_us("r0") >= 9)
    assert solve(never, "cpsat", explain=False).status is SolveStatus.INFEASIBLE


@pytest.mark.slow
@pytest.mark.parametrize("passage", ["any", "once", "ordered"])
def test_with_slowdown_models_have_the_optimum_of_all_plans(passage: str) -> None:
    """Beginning with nothing: what native finds does not help them. The last draw is under the cap."""
    for seed, units in ((0, 2), (30, 2), (21, 3)):
        drawn = slowed(drawn_jobs(seed, requests=3, units=units), seed, strong=units > 2)
        drawn = longer(drawn, 100)
        problem = passing(drawn, passage)
        best = solve(problem, "exhaustive", explain=False)
        alone = solve(replace(problem, interference=None), "exhaustive", explain=False)
        assert best.values != alone.values
        for backend in ("cpsat", "pulp", "z3") if seed == 0 else ("cpsat",):
            found = solve(problem, backend, SolveOptions(start=StartMode.NONE), explain=False)
            assert (found.status, found.values) == (best.status, best.values), (seed, backend)
            # Each solution was as good as the model said, so its rows are all there.
            assert backend != "cpsat" or found.statistics["loose"] == 0
