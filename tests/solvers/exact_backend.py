"""What every exact third-party backend is tested for: whole lists of plans against brute force."""

from __future__ import annotations

import time
from typing import ClassVar

import pytest

from gapless.formulations.judge import score
from gapless.formulations.problem import Problem
from gapless.formulations.rules import OpaqueRule
from gapless.solvers.protocol import Backend, Claim, SolveOptions, SolveStatus, StopReason

from .brute import CASES, Case, claims, problem_of, random_problem, ranked

TOP = 4


def check_list(problem: Problem, claim: Claim, top: int) -> None:
    """Require a complete and proven list of the best plans."""
    every = ranked(problem)
    best = every[:top]
    assert list(claim.plans) == best
    assert claim.status is (SolveStatus.OPTIMAL if best else SolveStatus.INFEASIBLE)
    assert claim.stop is StopReason.COMPLETE
    assert claim.proven == len(best)
    assert claim.statistics["refuted"] == 0
    if len(every) < top:
        assert claim.exhausted
    if best:
        assert claim.values == score(problem, best[0]).values(problem.objective.terms)
        assert claim.bound == claim.values[0]


class ExactBackend:
    """Subclassed by the test file of each backend."""

    backend: ClassVar[Backend]
    seed: ClassVar[int]
    cases: ClassVar[list[Case]] = CASES
    large: ClassVar[tuple[int, int]] = (40, 5)  # layers and units that take longer than half a second

    @pytest.fixture(autouse=True)
    def _installed(self) -> None:
        available = self.backend.availability()
        if not available.ok:
            pytest.skip(available.reason)

    @pytest.mark.slow
    def test_every_list_equals_brute_force(self) -> None:
        problems = [case.problem(self.seed) for case in self.cases]
        found = claims(self.backend, [(problem, SolveOptions(top=TOP)) for problem in problems])
        for case, problem, claim in zip(self.cases, problems, found, strict=True):
            try:
                check_list(problem, claim, TOP)
            except AssertionError as error:
                raise AssertionError(f"{case.name}: {error}") from error

    def test_large_numbers(self) -> None:
        small = random_problem(self.seed, layers=4, features="nt")
        rows = [[t and t * 10_000_019 for t in row] for row in small.costs.networks[0].layer_us]
        problem = problem_of(rows)
        (claim,) = claims(self.backend, [(problem, SolveOptions(top=4))])
        check_list(problem, claim, 4)

    def test_one_layer_and_one_unit(self) -> None:
        problems = [problem_of([[5]]), problem_of([[5, 3, 3]]), problem_of([[2], [3]]), problem_of([[None]])]
        for problem, claim in zip(
            problems, claims(self.backend, [(p, SolveOptions(top=9)) for p in problems]), strict=True
        ):
            check_list(problem, claim, 9)

    @pytest.mark.slow
    def test_a_time_limit(self) -> None:
        layers, units = self.large
        problem = random_problem(1, layers=layers, units=units).with_objective("gapness,period")
        limits = (1e-6, 0.5)
        started = time.monotonic()
        found = claims(self.backend, [(problem, SolveOptions(top=50, time_limit_s=s)) for s in limits])
        assert time.monotonic() - started < 60  # far from what a solver that ignores its limit takes
        for claim in found:
            assert claim.stop is StopReason.TIME_LIMIT
            assert claim.status is not SolveStatus.INFEASIBLE
            assert not claim.exhausted
            for plan in claim.plans:
                assert score(problem, plan).valid
            if claim.bound is not None and claim.values is not None:
                assert claim.bound <= claim.values[0]
        assert (found[0].status, found[0].proven) == (SolveStatus.FEASIBLE, 0)  # what it started from

    def test_equal_seeds_give_equal_claims(self) -> None:
        job = (random_problem(3), SolveOptions(top=3, seed=5))
        first, second = claims(self.backend, [job, job])
        assert first == second

    def test_rejections_are_limited(self) -> None:
        problem = random_problem(2).with_rules(OpaqueRule(name="never", predicate=lambda plan: False))
        if self.backend.capabilities.missing(problem):
            pytest.skip("no opaque rules")
        (claim,) = claims(self.backend, [(problem, SolveOptions(max_rejections=2))])
        assert (claim.status, claim.stop) == (SolveStatus.NO_SOLUTION, StopReason.REJECTION_LIMIT)
        assert claim.statistics["rejected"] == 3
