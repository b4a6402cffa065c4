"""What a search keeps of its plans, and what it may claim."""

from __future__ import annotations

import pytest

from gapless.formulations.rules import OpaqueRule
from gapless.solvers import exhaustive
from gapless.solvers.exhaustive import walked
from gapless.solvers.partition.samples import random_graph
from gapless.solvers.protocol import NEVER, Deadline, SolveOptions, SolveStatus, StopReason
from gapless.solvers.rounds import Pool

PROBLEM = random_graph(4, 2, seed=1)
CODES = list(PROBLEM.formulation.codes(PROBLEM))
BEST = exhaustive.ExhaustiveBackend().solve(PROBLEM, SolveOptions())


def test_the_best_plans_are_kept_in_order() -> None:
    pool = Pool[tuple[int, ...]](PROBLEM, most=3)
    better = [pool.offer(code) for code in CODES]
    assert better[0]
    assert not any(pool.offer(code) for code in CODES)
    values = [PROBLEM.formulation.numbers(PROBLEM, code).term("period") for code in pool.codes]
    assert len(values) == 3
    assert values == sorted(values)
    assert BEST.values == (values[0],)
    assert not pool.finished(values[0])  # further plans are wanted
    claim = pool.claim(bound=values[0], stop=StopReason.TIME_LIMIT, handling={}, statistics={})
    assert (claim.status, claim.stop, claim.proven) == (SolveStatus.OPTIMAL, StopReason.TIME_LIMIT, 1)


def test_a_claim_is_proved_where_a_bound_is_met() -> None:
    pool = Pool[tuple[int, ...]](PROBLEM)
    options = SolveOptions()

    def claimed(bound: int) -> tuple[SolveStatus, StopReason, int]:
        claim = pool.claim(bound=bound, stop=StopReason.TIME_LIMIT, handling={}, statistics={})
        return claim.status, claim.stop, claim.proven

    assert BEST.bound is not None
    assert claimed(BEST.bound) == (SolveStatus.NO_SOLUTION, StopReason.TIME_LIMIT, 0)
    for code in CODES:
        pool.offer(code)
    assert claimed(BEST.bound) == (SolveStatus.OPTIMAL, StopReason.COMPLETE, 1)
    assert claimed(BEST.bound - 1) == (SolveStatus.FEASIBLE, StopReason.TIME_LIMIT, 0)
    assert pool.stopped(options, Deadline(0)) is StopReason.TIME_LIMIT
    assert pool.stopped(options, NEVER) is StopReason.SPACE_LIMIT


def test_plans_that_break_something_are_set_aside() -> None:
    refused = PROBLEM.with_rules(OpaqueRule(name="never", predicate=lambda plan: False))
    pool = Pool[tuple[int, ...]](refused)
    assert not any(pool.offer(code) for code in CODES)
    assert not pool.codes
    assert list(pool.broken) == CODES[:20]
    assert pool.rejected == len(CODES)
    assert pool.stopped(SolveOptions(max_rejections=1), NEVER) is StopReason.REJECTION_LIMIT


def test_small_spaces_are_walked_if_there_is_time(monkeypatch: pytest.MonkeyPatch) -> None:
    found = walked(PROBLEM, SolveOptions())
    assert found is not None
    assert found.values == BEST.values
    assert walked(PROBLEM, SolveOptions(time_limit_s=0.5)) is None
    monkeypatch.setattr(exhaustive, "MOST_WALKED", 1)
    assert walked(PROBLEM, SolveOptions()) is None
