"""Fronts: equal to what a walk over all plans finds, whatever terms and backend; honest when short."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from gapless.formulations.errors import InvalidInputError, UnsupportedFeatureError
from gapless.formulations.judge import score
from gapless.formulations.problem import Problem
from gapless.solvers.exhaustive import all_plans
from gapless.solvers.pareto import ParetoFront, ParetoSearch
from gapless.solvers.protocol import (
    Capabilities,
    Claim,
    SolveOptions,
    SolveStatus,
    StopReason,
)
from gapless.solvers.registry import get_backend
from tests.solvers.brute import random_problem
from tests.solvers.workload_cases import Size, random_workload

ONE = ("period", "latency", "peak_memory", "energy", "units", "gapness", "bubbles", "idle")
SEVERAL = ("makespan", "energy", "units", "bottleneck", "work", "peak_memory", "idle", "contention")

SMALL = Size(requests=2, units=3, layers=3)


def front_by_walking(problem: Problem, terms: Sequence[str]) -> list[tuple[int, ...]]:
    """Return the values of all plans that no other is better than."""
    judged = (score(problem, plan) for plan in all_plans(problem))
    found = {one.values(terms) for one in judged if one.valid}
    return sorted(
        one
        for one in found
        if not any(other != one and all(a <= b for a, b in zip(other, one, strict=True)) for other in found)
    )


def searched(problem: Problem, terms: Sequence[str], backend: str = "native") -> ParetoFront:
    return ParetoSearch(problem, terms, backend).run()


def values_of(front: ParetoFront) -> list[tuple[int, ...]]:
    return [point.values for point in front.points]


def drawn_terms(known: Sequence[str], seed: int) -> tuple[str, ...]:
    rng = random.Random(seed)
    return tuple(rng.sample(known, rng.choice((2, 3))))


@pytest.mark.parametrize("seed", range(30))
def test_fronts_of_one_network_are_those_of_a_walk(seed: int) -> None:
    features = ("", "n", "t", "c", "f", "e", "ntcudf")[seed % 7]
    problem, terms = random_problem(seed, layers=5, features=features), drawn_terms(ONE, seed)
    front = searched(problem, terms)
    assert values_of(front) == front_by_walking(problem, terms)
    assert front.complete
    assert all(point.proven and point.gap == 0 for point in front.points)
    for point in front.points:
        judged = score(problem, point.candidate.plan)
        assert judged.valid
        assert judged.values(terms) == point.values


@pytest.mark.parametrize("seed", range(20))
def test_fronts_of_workloads_are_those_of_a_walk(seed: int) -> None:
    problem, terms = random_workload(seed, SMALL), drawn_terms(SEVERAL, seed)
    front = searched(problem, terms)
    assert values_of(front) == front_by_walking(problem, terms)
    assert front.complete


def test_an_exact_backend_finds_fronts_of_workloads() -> None:
    problem, terms = random_workload(2, SMALL), ("makespan", "energy")
    front = searched(problem, terms, "cpsat")
    assert values_of(front) == front_by_walking(problem, terms)
    assert front.complete


@pytest.mark.parametrize(
    ("backend", "terms"),
    [
        ("cpsat", "period,energy"),
        ("pulp", "period,energy"),
        ("z3", "period,energy"),
        ("pulp", "energy,units,latency"),
        pytest.param("cpsat", "energy,units,latency", marks=pytest.mark.slow),
    ],
)
def test_exact_backends_find_the_same_front(backend: str, terms: str) -> None:
    if not get_backend(backend).availability().ok:
        pytest.skip(f"{backend} is not installed")
    problem, asked = random_problem(4, layers=3, units=2, features="t"), terms.split(",")
    front = searched(problem, asked, backend)
    assert values_of(front) == front_by_walking(problem, asked)
    assert front.complete
    assert front.backend == backend


def test_limits_and_rules_of_the_problem_hold() -> None:
    problem = random_problem(2, layers=6).with_limits(max_period_us=150, max_units=2)
    limited = problem.with_rules(lambda view: view.energy_nj() <= 170_000)
    front = searched(limited, ("latency", "energy", "units"))
    assert values_of(front) == front_by_walking(limited, ("latency", "energy", "units")) != []
    assert searched(problem.with_limits(max_period_us=1), ("period", "energy")).complete
    assert not searched(problem.with_limits(max_period_us=1), ("period", "energy")).points


def test_costs_by_the_number_of_units() -> None:
    problem = random_problem(3, layers=5)
    slower = tuple(
        replace(
            problem.costs,
            networks=tuple(
                replace(
                    network,
                    layer_us=tuple(tuple(used * (us or 0) for us in row) for row in network.layer_us),
                )
                for network in problem.costs.networks
            ),
        )
        for used in (2, 3)
    )
    problem = replace(problem, co_run_costs=slower)
    front = searched(problem, ("period", "energy"))
    assert values_of(front) == front_by_walking(problem, ("period", "energy"))
    assert front.complete


def test_boxes_that_are_known_are_not_solved_again() -> None:
    problem = random_problem(5, layers=6)
    front = searched(problem, ("period", "latency"))
    assert front.solves == len(front.points) + 1
    wide = searched(problem, ("period", "latency", "energy"))
    assert wide.solves <= 3 * len(wide.points) + 3


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        (("period",), "2 or 3 different terms"),
        (("period", "period"), "2 or 3 different terms"),
        (("period", "latency", "energy", "units"), "2 or 3 different terms"),
        (("period", "enrgy"), "did you mean energy"),
        (("period", "makespan"), "makespan"),
    ],
)
def test_terms_that_no_front_is_of(terms: tuple[str, ...], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        searched(random_problem(1), terms)


def test_energy_needs_powers() -> None:
    problem = random_problem(1)
    units = problem.platform.units
    bare = replace(
        problem.platform, units=(*units[:1], replace(units[1], power_mw=None, idle_mw=None), *units[2:])
    )
    with pytest.raises(InvalidInputError, match="does not say power_mw of 'b' and idle_mw of 'b'"):
        searched(replace(problem, platform=bare), ("period", "energy"))


def test_a_backend_that_cannot_refuses() -> None:
    with pytest.raises(UnsupportedFeatureError):
        searched(random_problem(1), ("period", "energy"), "hetero2pipe")


def test_what_is_known_when_the_time_is_up_is_kept() -> None:
    problem = random_problem(5, layers=6)
    search = ParetoSearch(problem, ("period", "latency"), "native", SolveOptions(time_limit_s=1e-9))
    front = search.run()
    assert not front.complete
    assert front.stop is StopReason.TIME_LIMIT
    full = set(front_by_walking(problem, ("period", "latency")))
    assert all(point.values in full for point in front.points if point.proven)


def test_plans_without_proof_have_a_gap() -> None:
    problem = random_problem(5, layers=6)
    first = searched(problem, ("period", "latency")).points[0]

    class Short:
        """Finds the first plan, and a bound below it."""

        name = "short"
        capabilities: Capabilities = get_backend("native").capabilities

        def availability(self) -> object:
            return get_backend("native").availability()

        def solve(self, problem: Problem, options: SolveOptions) -> Claim:
            if score(problem, first.candidate.plan).violations:
                return Claim(status=SolveStatus.NO_SOLUTION, stop=StopReason.TIME_LIMIT)
            return Claim(
                status=SolveStatus.FEASIBLE,
                stop=StopReason.TIME_LIMIT,
                plans=(first.candidate.plan,),
                bound=score(problem, first.candidate.plan).values(problem.objective.terms)[0] // 2,
            )

    front = ParetoSearch(problem, ("period", "latency"), Short()).run()  # type: ignore[arg-type]
    assert not front.complete
    (point,) = front.points
    assert not point.proven
    assert point.gap == pytest.approx(0.5, abs=0.01)
