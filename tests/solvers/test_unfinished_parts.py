"""Solves by units with unfinished parts: what is said of the whole is true, and nothing is lost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gapless.api.problems import table_problem
from gapless.formulations.judge import rank_key, score
from gapless.formulations.plan import Plan
from gapless.formulations.problem import Problem
from gapless.solvers import by_units
from gapless.solvers.protocol import Claim, Guarantee, SolveOptions, SolveStatus, StopReason
from gapless.solvers.result import SolveResult
from gapless.solvers.session import solve
from tests.instances import co_run_problems

from .brute import ranked, values_of
from .fakes import FakeBackend, capabilities, optimal

THREE = table_problem([[3, 9, 4], [2, 2, 7], [8, 1, 5]], ["a", "b", "c"], network="net")
THREE = replace(THREE, co_run_costs=(THREE.costs, THREE.costs))
ONE_UNIT = ranked(THREE.using(1))
TWO_UNITS = ranked(THREE.using(2))
THREE_UNITS = ranked(THREE.using(3))
NOTHING = Claim(status=SolveStatus.NO_SOLUTION, stop=StopReason.TIME_LIMIT)


def proved(used: int, plans: list[Plan], **changes: object) -> Claim:
    values = values_of(THREE.using(used), plans[0])
    claim = optimal(*plans, values=values, bound=values[0], proven=len(plans))
    return replace(claim, **changes)  # type: ignore[arg-type]


def stopped(*plans: Plan, bound: int | None = None, stop: StopReason = StopReason.TIME_LIMIT) -> Claim:
    return Claim(
        status=SolveStatus.FEASIBLE,
        stop=stop,
        plans=plans,
        values=values_of(THREE, plans[0]),
        bound=bound,
    )


def parts_of(claims: Mapping[int, Claim], guarantee: Guarantee = Guarantee.EXACT) -> FakeBackend:
    """Return a backend that makes these claims about the problems of 1, 2, 3 units."""
    return FakeBackend(
        act=lambda problem, options: claims[problem.limits.min_units or 0],
        capabilities=capabilities(guarantee),
    )


def answer(claims: Mapping[int, Claim], top: int = 3, **options: object) -> SolveResult:
    asked = SolveOptions(top=top, **options)  # type: ignore[arg-type]
    return solve(THREE, parts_of(claims), asked, explain=False)


def test_a_part_without_a_bound_leaves_nothing_proven() -> None:
    found = answer({1: proved(1, ONE_UNIT[:3]), 2: proved(2, TWO_UNITS[:3]), 3: NOTHING})
    assert (found.status, found.stop) == (SolveStatus.FEASIBLE, StopReason.TIME_LIMIT)
    assert (found.bound, found.proven, found.exhausted) == (None, 0, False)
    assert found.plan == min(ONE_UNIT[0], TWO_UNITS[0], key=lambda p: rank_key(THREE, score(THREE, p)))


def test_the_bound_is_the_least_of_the_open_parts() -> None:
    claims = {
        1: proved(1, ONE_UNIT[:3]),
        2: stopped(TWO_UNITS[4], bound=1500),
        3: replace(NOTHING, bound=1200),
    }
    found = answer(claims)
    assert (found.status, found.bound, found.proven) == (SolveStatus.FEASIBLE, 1200, 0)


def test_a_part_whose_bound_lies_behind_does_not_hold_up_the_proof() -> None:
    best = values_of(THREE, THREE_UNITS[0])[0]
    claims = {
        1: replace(NOTHING, bound=best + 1),
        2: stopped(TWO_UNITS[9], bound=best + 1),
        3: proved(3, THREE_UNITS[:1]),
    }
    found = answer(claims, top=1)
    assert (found.status, found.bound, found.proven) == (SolveStatus.OPTIMAL, best, 1)
    assert found.stop is StopReason.COMPLETE  # what was asked is proved, whatever else was left open
    assert answer(claims).stop is StopReason.TIME_LIMIT
    # An equal bound is not enough: that part may have an equal plan with less gapness.
    assert answer({**claims, 1: replace(NOTHING, bound=best)}, top=1).status is SolveStatus.FEASIBLE


def test_a_part_that_ran_out_of_proven_plans_ends_the_proof() -> None:
    claims = {
        1: proved(1, ONE_UNIT, exhausted=True),
        2: proved(2, TWO_UNITS[:2], stop=StopReason.TIME_LIMIT),
        3: proved(3, THREE_UNITS, exhausted=True),
    }
    found = answer(claims, top=50)
    second = ranked(THREE).index(TWO_UNITS[1])
    assert found.proven == second + 1
    assert [c.plan for c in found.candidates[: found.proven]] == ranked(THREE)[: found.proven]
    assert not found.exhausted
    assert found.stop is StopReason.TIME_LIMIT


def test_all_plans_of_an_exhausted_part_are_known() -> None:
    claims = {
        1: proved(1, ONE_UNIT, proven=1, exhausted=True),
        2: proved(2, TWO_UNITS, exhausted=True),
        3: proved(3, THREE_UNITS, exhausted=True),
    }
    found = answer(claims, top=50)
    assert [c.plan for c in found.candidates] == ranked(THREE)
    assert found.proven == len(ranked(THREE))
    assert found.exhausted


def test_the_order_of_several_plans_depends_on_no_open_tie() -> None:
    """A single proven plan may tie with an unknown one, whose place in the merged list is not known."""
    slow = table_problem([[4, 4], [4, 4]], ["a", "b"], network="net").with_objective("period")
    fast = replace(slow.costs.networks[0], layer_us=((2000, 2000),) * 2)
    problem = replace(slow, costs=replace(slow.costs, networks=(fast,)), co_run_costs=(slow.costs,))
    truth = ranked(problem)
    assert [str(p) for p in truth] == ["0-0 a | 1-1 b", "0-0 b | 1-1 a", "0-1 a", "0-1 b"]
    assert {values_of(problem, p) for p in truth} == {(4000,)}
    claims = {
        1: optimal(truth[3], values=(4000,), bound=4000),
        2: optimal(*truth[:2], values=(4000,), bound=4000, proven=2),
    }
    found = solve(problem, parts_of(claims), SolveOptions(top=4), explain=False)
    assert len(found.candidates) == 3
    assert (found.status, found.proven) == (SolveStatus.OPTIMAL, 1)


def test_infeasible_needs_all_parts() -> None:
    never = Claim(status=SolveStatus.INFEASIBLE, stop=StopReason.COMPLETE, exhausted=True)
    assert answer({1: never, 2: never, 3: never}).status is SolveStatus.INFEASIBLE
    open_ = answer({1: never, 2: NOTHING, 3: never})
    assert (open_.status, open_.stop, open_.bound) == (SolveStatus.NO_SOLUTION, StopReason.TIME_LIMIT, None)
    one = answer({1: never, 2: proved(2, TWO_UNITS[:2]), 3: never}, top=2)
    assert (one.status, one.proven) == (SolveStatus.OPTIMAL, 2)


def test_heuristics_prove_nothing() -> None:
    claims = {1: proved(1, ONE_UNIT[:1]), 2: proved(2, TWO_UNITS[:1]), 3: proved(3, THREE_UNITS[:1])}
    found = solve(THREE, parts_of(claims, Guarantee.HEURISTIC), explain=False)
    assert (found.status, found.proven) == (SolveStatus.FEASIBLE, 0)


def test_the_user_stops_the_whole() -> None:
    claims = {1: proved(1, ONE_UNIT[:1]), 2: stopped(TWO_UNITS[3], bound=5, stop=StopReason.INTERRUPTED)}
    found = answer(claims)  # the third part is not even asked for
    assert (found.status, found.stop) == (SolveStatus.FEASIBLE, StopReason.INTERRUPTED)
    assert (found.bound, found.proven, found.exhausted) == (None, 0, False)
    assert {c.plan for c in found.candidates} == {ONE_UNIT[0], TWO_UNITS[3]}
    nothing = answer({1: replace(NOTHING, stop=StopReason.INTERRUPTED)})
    assert (nothing.status, nothing.stop) == (SolveStatus.NO_SOLUTION, StopReason.INTERRUPTED)


@st.composite
def honest_claims(draw: st.DrawFn, problem: Problem, top: int) -> Claim:
    """Draw anything that an exact backend may truthfully say about a problem with one table."""
    plans = ranked(problem)
    values = [values_of(problem, p) for p in plans]
    stop = draw(st.sampled_from([StopReason.TIME_LIMIT, StopReason.MEMORY_LIMIT, StopReason.COMPLETE]))
    kind = draw(st.sampled_from(["optimal", "optimal", "tie", "feasible", "nothing"]))
    bound = draw(st.none() | st.integers(0, values[0][0] if plans else 10**6))
    if not plans:
        never = Claim(status=SolveStatus.INFEASIBLE, stop=StopReason.COMPLETE, exhausted=draw(st.booleans()))
        return draw(st.sampled_from([never, Claim(status=SolveStatus.NO_SOLUTION, stop=stop, bound=bound)]))
    if kind == "nothing":
        return Claim(status=SolveStatus.NO_SOLUTION, stop=stop, bound=bound)
    if kind == "feasible":
        some = draw(st.lists(st.sampled_from(plans), min_size=1, max_size=top, unique=True))
        best = min(values_of(problem, p) for p in some)
        return Claim(status=SolveStatus.FEASIBLE, stop=stop, plans=tuple(some), values=best, bound=bound)
    if kind == "tie":
        equal = [p for p, value in zip(plans, values, strict=True) if value == values[0]]
        return replace(optimal(draw(st.sampled_from(equal)), values=values[0], bound=values[0][0]), stop=stop)
    proven = draw(st.integers(1, min(top, len(plans))))
    more = draw(st.lists(st.sampled_from(plans[proven:] or plans[:1]), max_size=top - proven, unique=True))
    listed = (*plans[:proven], *(p for p in more if p not in plans[:proven]))
    return Claim(
        status=SolveStatus.OPTIMAL,
        stop=stop,
        plans=listed,
        values=values[0],
        bound=values[0][0],
        proven=proven,
        exhausted=len(listed) == len(plans) and draw(st.booleans()),
    )


@pytest.mark.slow
@settings(max_examples=150, suppress_health_check=list(HealthCheck))
@given(problem=co_run_problems(most_layers=4, most_units=3), top=st.integers(1, 6), data=st.data())
def test_whatever_the_parts_say_the_whole_is_true(problem: Problem, top: int, data: st.DataObject) -> None:
    claims = {used: data.draw(honest_claims(problem.using(used), top)) for used in problem.unit_counts}
    calls = iter(claims.values())
    fake = FakeBackend(act=lambda part, options: next(calls))
    found, plans = solve(problem, fake, SolveOptions(top=top), explain=False), ranked(problem)
    best = values_of(problem, plans[0]) if plans else None
    known = {p for claim in claims.values() for p in claim.plans}
    assert [c.plan for c in found.candidates] == [p for p in plans if p in known][:top]
    if found.bound is not None and best is not None:
        assert found.bound <= best[0]
    if found.status is SolveStatus.OPTIMAL:
        assert found.values == best
    elif found.status is SolveStatus.INFEASIBLE:
        assert not plans
    else:
        assert found.status is (SolveStatus.FEASIBLE if known else SolveStatus.NO_SOLUTION)
    if found.proven > 1:
        assert [c.plan for c in found.candidates[: found.proven]] == plans[: found.proven]
    if found.exhausted:
        assert [c.plan for c in found.candidates] == plans
    if all(claim.proven >= top or claim.exhausted for claim in claims.values()) and plans:
        assert found.proven == min(top, len(plans))


# ---- time, and what is shown on the way


def test_a_time_limit_is_for_all_parts_together(monkeypatch: pytest.MonkeyPatch) -> None:
    left, passed = iter([9.0, 8.0]), iter([False, True])

    class Clock:
        def __init__(self, limit_s: float | None, clock: object = None) -> None:
            assert limit_s == pytest.approx(9.0, abs=1)  # less what it took to find the backend

        @property
        def passed(self) -> bool:
            return next(passed)

        @property
        def left_s(self) -> float:
            return next(left)

    monkeypatch.setattr(by_units, "Deadline", Clock)
    shares: list[float | None] = []

    def act(problem: Problem, options: SolveOptions) -> Claim:
        shares.append(options.time_limit_s)
        return NOTHING

    result = solve(THREE, FakeBackend(act=act), SolveOptions(time_limit_s=9.0), explain=False)
    assert shares == [3.0, 4.0]  # the first part left more than its share, the second one nothing
    assert (result.status, result.stop) == (SolveStatus.NO_SOLUTION, StopReason.TIME_LIMIT)


def test_without_a_time_limit_no_part_has_one() -> None:
    def act(problem: Problem, options: SolveOptions) -> Claim:
        assert options.time_limit_s is None
        return NOTHING

    assert solve(THREE, FakeBackend(act=act), explain=False).status is SolveStatus.NO_SOLUTION


def published(act: Callable[[Problem, SolveOptions], Claim], top: int = 2) -> list[Claim]:
    shown: list[Claim] = []
    options = SolveOptions(top=top, publish=shown.append)
    solve(THREE, FakeBackend(act=act), options, explain=False)
    return shown


def test_what_parts_publish_is_shown_as_what_is_known_of_the_whole() -> None:
    plans = {1: ONE_UNIT, 2: TWO_UNITS, 3: THREE_UNITS}

    def act(problem: Problem, options: SolveOptions) -> Claim:
        used = problem.limits.min_units or 0
        options.publish(stopped(*plans[used][2:0:-1], bound=7))
        return proved(used, plans[used][:2])

    shown = published(act)
    assert len(shown) == 6
    assert all((claim.bound, claim.proven, claim.exhausted) == (None, 0, False) for claim in shown)
    values = [claim.values for claim in shown]
    assert all(value is not None for value in values)
    assert values == sorted(values, reverse=True)  # type: ignore[type-var]
    assert shown[-1].values == values_of(THREE, ranked(THREE)[0])
    assert all(len(set(claim.plans)) == len(claim.plans) == 2 for claim in shown)


def test_parts_without_plans_take_nothing_away() -> None:
    def act(problem: Problem, options: SolveOptions) -> Claim:
        options.publish(NOTHING)
        return proved(1, ONE_UNIT[:2]) if problem.limits.min_units == 1 else NOTHING

    shown = published(act)
    assert shown[0].status is SolveStatus.NO_SOLUTION
    assert [claim.plans for claim in shown[1:]] == [tuple(ONE_UNIT[:2])] * 5
    assert {claim.status for claim in shown[1:]} == {SolveStatus.FEASIBLE}


def test_one_number_of_units_is_one_solve() -> None:
    counts: list[int | None] = []

    def act(problem: Problem, options: SolveOptions) -> Claim:
        counts.append(problem.limits.min_units)
        return proved(2, TWO_UNITS[:1])

    found = solve(THREE.with_limits(min_units=2, max_units=2), FakeBackend(act=act), explain=False)
    assert counts == [2]
    assert found.plan == TWO_UNITS[0]
