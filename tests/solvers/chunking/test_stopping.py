"""What is claimed when the search is cut short."""

from __future__ import annotations

import pytest

from gapless.formulations.errors import InvalidProblemError
from gapless.formulations.judge import score
from gapless.formulations.plan import Plan
from gapless.formulations.rules import OpaqueRule
from gapless.formulations.validation import MAX_COUNT
from gapless.solvers.chunking import solving, widening
from gapless.solvers.native import NativeBackend
from gapless.solvers.protocol import Claim, RuleHandling, SolveOptions, SolveStatus, StopReason

from ..brute import ranked
from .random_problems import random_problem
from .test_large import chain_problem, rows_of


def test_no_time_at_all() -> None:
    problem = chain_problem(rows_of("mixed", 200, 8)).with_limits(min_units=2)
    claim = NativeBackend().solve(problem, SolveOptions(time_limit_s=0))
    assert claim.stop is StopReason.TIME_LIMIT
    assert claim.status is SolveStatus.NO_SOLUTION
    assert claim.bound is None


@pytest.mark.slow
@pytest.mark.parametrize("pauses", range(0, 40, 3))
def test_every_interruption_is_honest(pauses: int, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = chain_problem(rows_of("mixed", 8, 4))
    valid = ranked(problem)
    monkeypatch.setattr(widening, "_SMALL_GRAPH", 0)
    monkeypatch.setattr(widening, "_ENUMERABLE", 0)
    left = [pauses]

    class Passing:
        def __init__(self, limit_s: float | None, clock: object = None) -> None: ...

        @property
        def passed(self) -> bool:
            left[0] -= 1
            return left[0] < 0

    monkeypatch.setattr(solving, "Deadline", Passing)
    claim = NativeBackend().solve(problem, SolveOptions(top=20))
    assert set(claim.plans) <= set(valid)
    assert list(claim.plans[: claim.proven]) == valid[: claim.proven]
    if claim.bound is not None:
        assert claim.bound <= score(problem, valid[0]).value(problem.objective.terms[0])


def test_memory_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solving, "_OPEN_BYTES", 1000)
    problem = chain_problem(rows_of("mixed", 60, 8)).with_objective("gapness")
    claim = NativeBackend().solve(problem, SolveOptions(top=5))
    assert claim.stop is StopReason.MEMORY_LIMIT
    assert claim.status in {SolveStatus.FEASIBLE, SolveStatus.OPTIMAL}


def _turn_down(_: Plan) -> bool:
    return False


def test_opaque_rule_that_turns_everything_down() -> None:
    problem = random_problem(5, layers=5, units=3)
    never = problem.with_rules(OpaqueRule(name="never", predicate=_turn_down))
    claim = NativeBackend().solve(never, SolveOptions())
    assert claim.status is SolveStatus.INFEASIBLE
    assert claim.handling["never"] is RuleHandling.CUT


def test_rejection_limit() -> None:
    problem = chain_problem(rows_of("mixed", 30, 5))
    never = problem.with_rules(OpaqueRule(name="never", predicate=_turn_down))
    claim = NativeBackend().solve(never, SolveOptions(max_rejections=7))
    assert claim.stop is StopReason.REJECTION_LIMIT
    assert claim.status is SolveStatus.NO_SOLUTION
    best = NativeBackend().solve(problem, SolveOptions()).bound
    assert best is not None
    assert claim.bound is not None
    assert claim.bound >= best


def test_opaque_rule_sees_plans_in_order() -> None:
    problem = chain_problem(rows_of("mixed", 12, 4))
    seen: list[Plan] = []

    def third(plan: Plan) -> bool:
        seen.append(plan)
        return len(seen) > 2

    claim = NativeBackend().solve(
        problem.with_rules(OpaqueRule(name="third", predicate=third)), SolveOptions(top=2)
    )
    assert tuple(seen[2:4]) == claim.plans
    assert tuple(seen[:4]) == NativeBackend().solve(problem, SolveOptions(top=4)).plans


def test_progress_is_published(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solving, "_PUBLISH_S", 0.0)
    problem = chain_problem(rows_of("mixed", 60, 6)).with_objective("gapness")
    claims: list[Claim] = []
    last = NativeBackend().solve(problem, SolveOptions(top=5, publish=claims.append))
    assert claims
    bounds = [claim.bound for claim in claims if claim.bound is not None]
    assert bounds == sorted(bounds)
    assert last.bound is not None
    assert all(bound <= last.bound for bound in bounds)


def test_the_largest_numbers_that_a_problem_may_hold_are_exact() -> None:
    rows = [[MAX_COUNT // 6 - 7 * layer - unit for unit in range(3)] for layer in range(5)]
    problem = chain_problem(rows).with_objective("idle,period")
    claim = NativeBackend().solve(problem, SolveOptions(top=9))
    assert list(claim.plans) == ranked(problem)[:9]


def test_larger_numbers_are_refused_with_the_problem() -> None:
    with pytest.raises(InvalidProblemError, match="the time of all layers"):
        chain_problem([[MAX_COUNT // 4] * 3] * 5)
