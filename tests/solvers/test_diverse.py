"""Plans that differ: the greedy list, with every backend, and honest where it is not proven."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gapless.api.problems import load_problem, table_problem
from gapless.formulations.chunking.formulation import plan_distance
from gapless.formulations.chunking.rules import differs, pin
from gapless.formulations.errors import BackendDisagreementError, InvalidInputError, InvalidPlanError
from gapless.formulations.judge import rank_key, score
from gapless.formulations.plan import Plan
from gapless.formulations.problem import FEATURES, Problem
from gapless.formulations.rules import OpaqueRule
from gapless.solvers import diverse
from gapless.solvers.native import NativeBackend
from gapless.solvers.protocol import (
    Backend,
    Claim,
    Guarantee,
    RuleHandling,
    SolveOptions,
    SolveStatus,
    StopReason,
)
from gapless.solvers.result import SolveResult
from gapless.solvers.session import solve
from tests.instances import co_run_problems, ruled_problems
from tests.pipeline_instances import drawn_problem
from tests.workload_instances import workload_problem

from .agreement import in_one_child
from .brute import every
from .fakes import FakeBackend, capabilities, feasible, optimal, plan

QUICK = settings(max_examples=50, suppress_health_check=list(HealthCheck))
SLOW = settings(max_examples=12, suppress_health_check=list(HealthCheck))
SPARSE = "pixel7a/alexnet-sparse"
WORKLOAD = workload_problem({"net": [[1, 2], [3, 4]]}, ["net", "net"])

objectives = st.sampled_from([None, "period,gapness", "paper", "slack:100", "latency"])


def units_of(one: Plan) -> list[str]:
    """Return the unit of each layer."""
    return [chunk.unit for chunk in one.chunks for _ in range(chunk.start, chunk.stop)]


def unlike(one: Plan, other: Plan) -> int:
    """Return the distance, layer by layer."""
    return sum(a != b for a, b in zip(units_of(one), units_of(other), strict=True))


def greedy(plans: Sequence[Plan], distance: int, most: int | None = None) -> list[Plan]:
    """Return the greedy list of all plans, best first; or its first plans."""
    chosen: list[Plan] = []
    for candidate in plans:
        if len(chosen) == most:
            break
        if all(unlike(candidate, other) >= distance for other in chosen):
            chosen.append(candidate)
    return chosen


@st.composite
def asked(draw: st.DrawFn, *, most_layers: int = 5, most_units: int = 4) -> Problem:
    made = draw(st.sampled_from([ruled_problems, ruled_problems, co_run_problems]))
    problem = draw(made(most_layers=most_layers, most_units=most_units))
    objective = draw(objectives)
    if draw(st.integers(0, 4)) == 0:
        odd = OpaqueRule(name="odd", predicate=lambda p: p.chunks[0].stop % 2 == 1)
        problem = problem.with_rules(odd)
    return problem if objective is None else problem.with_objective(objective)


def check_against_brute_force(problem: Problem, backend: str | Backend, *distances: int, top: int) -> None:
    plans = every(problem)
    for distance in distances:
        result = solve(problem, backend, SolveOptions(top=top, distance=distance), explain=False)
        check_list(problem, result, greedy(plans, distance, top + 1), distance, top)


def check_list(problem: Problem, result: SolveResult, plans: Sequence[Plan], distance: int, top: int) -> None:
    """Compare with the greedy list; of its plans those that are asked for and one more are known."""
    listed = sorted(result.candidates, key=lambda c: rank_key(problem, c.score))
    assert [c.plan for c in listed] == plans[:top]
    assert [c.score for c in listed] == [score(problem, p) for p in plans[:top]]
    shown = problem.objective.present_by
    assert shown is None or [c.score.value(shown) for c in result.candidates] == sorted(
        c.score.value(shown) for c in result.candidates
    )
    assert result.stop is StopReason.COMPLETE
    assert result.proven == len(listed)
    assert result.exhausted or len(plans) >= top
    assert not (result.exhausted and len(plans) > top)
    assert result.status is (SolveStatus.OPTIMAL if plans else SolveStatus.INFEASIBLE)
    assert result.bound == result.objective
    assert set(result.handling) == {rule.name for rule in problem.rules} or not plans
    assert result.distance == distance


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["native", "exhaustive"])
@QUICK
@given(problem=asked(), distance=st.integers(2, 6), top=st.sampled_from([2, 5, 200]))
def test_the_list_is_the_greedy_one(backend: str, problem: Problem, distance: int, top: int) -> None:
    check_against_brute_force(problem, backend, distance, top=top)


@pytest.mark.slow
@pytest.mark.parametrize("longest", [0, 4])
@QUICK
@given(problem=asked(), distance=st.integers(2, 4))
def test_rules_in_place_of_longer_lists_change_nothing(longest: int, problem: Problem, distance: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(diverse, "_LONGEST", longest)
        patch.setattr(diverse, "_SHARE", 1)
        check_against_brute_force(problem, "native", distance, top=4)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["cpsat", "z3", "pulp", "pulp-cbc"])
@SLOW
@given(problem=asked(most_layers=5, most_units=3), distance=st.integers(2, 4))
def test_third_party_backends_find_the_same(backend: str, problem: Problem, distance: int) -> None:
    in_one_child(backend, lambda loose: check_against_brute_force(problem, loose, distance, top=4))


@pytest.mark.slow
@SLOW
@given(
    rows=st.lists(st.lists(st.integers(1, 40), min_size=3, max_size=3), min_size=2, max_size=5),
    objective=st.sampled_from(["paper", "period", "gapness"]),
    distance=st.integers(2, 4),
)
def test_a_backend_that_takes_no_rules_lists_more(
    rows: list[list[int]], objective: str, distance: int
) -> None:
    problem = table_problem(rows, ["a", "b", "c"], objective=objective)
    in_one_child("z3-paper", lambda loose: check_against_brute_force(problem, loose, distance, top=4))


@pytest.mark.slow
@QUICK
@given(problem=asked(), top=st.sampled_from([1, 4, 200]))
def test_distance_1_is_any_other_plan(problem: Problem, top: int) -> None:
    """C5 of the paper, plan by plan, gives the plain list."""
    plain = solve(problem, options=SolveOptions(top=top), explain=False)
    ranked = sorted(plain.candidates, key=lambda c: rank_key(problem, c.score))
    assert [c.plan for c in ranked] == every(problem)[:top]
    blocked = problem.with_rules(*(differs(c.plan) for c in ranked[:-1]))
    last = solve(blocked, options=SolveOptions(top=1), explain=False)
    assert [c.plan for c in last.candidates] == [c.plan for c in ranked[-1:]]


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["period,gapness", "paper", "slack:50"])
@pytest.mark.parametrize("costs", ["heavy", "interpolated"])
def test_shipped_problems(costs: str, objective: str) -> None:
    problem = load_problem(SPARSE, costs=costs).with_objective(objective)
    check_against_brute_force(problem, "native", 2, 3, 6, top=20)


def test_what_no_plan_keeps_is_infeasible() -> None:
    problem = table_problem([[1, 2], [3, 4]], ["a", "b"]).with_limits(max_period_us=1)
    result = solve(problem, options=SolveOptions(top=3, distance=2))
    assert result.status is SolveStatus.INFEASIBLE
    assert result.conflict is not None
    assert [item.name for item in result.conflict.items] == ["max_period_us"]


def test_nothing_differs_on_more_layers_than_there_are() -> None:
    problem = table_problem([[1, 2], [3, 4]], ["a", "b"])
    result = solve(problem, options=SolveOptions(top=3, distance=3))
    assert (len(result.candidates), result.exhausted, result.proven) == (1, True, 1)


def test_pipelines_over_devices_have_no_distance() -> None:
    with pytest.raises(InvalidInputError, match="these plans have none"):
        solve(drawn_problem(1), options=SolveOptions(top=3, distance=2))
    with pytest.raises(InvalidInputError, match="distance is 0, must be at least 1"):
        solve(WORKLOAD, options=SolveOptions(distance=0))


# Backends that do not finish: honest about what is proven.

PROBLEM = table_problem([[6, 3], [7, 1], [2, 9], [2, 6]], ["a", "b"], network="net", objective="period")
LISTED = every(PROBLEM)
FAR = greedy(LISTED, 2)


Answer = Callable[[SolveOptions], Claim]


def answering(*answers: Answer, guarantee: Guarantee = Guarantee.EXACT) -> FakeBackend:
    """Return a backend that gives one answer after the other, and then stays with the last."""
    left = list(answers)

    def act(problem: Problem, options: SolveOptions) -> Claim:
        return (left.pop(0) if len(left) > 1 else left[0])(options)

    return FakeBackend(act=act, capabilities=capabilities(guarantee))


def proved(count: int, *, certain: int, stop: StopReason) -> Answer:
    values = score(PROBLEM, LISTED[0]).values(PROBLEM.objective.terms)
    claim = optimal(*LISTED[:count], values=values, bound=values[0], proven=certain)
    return lambda options: replace(claim, stop=stop)


def nothing(options: SolveOptions) -> Claim:
    return Claim(status=SolveStatus.NO_SOLUTION, stop=StopReason.TIME_LIMIT)


def test_only_what_lists_prove_is_proven() -> None:
    """The second plan of the greedy list is proven only if the list is, as far as that plan."""
    second = LISTED.index(FAR[1])
    assert second > 1
    for certain in (second, second + 1):
        backend = answering(proved(len(LISTED), certain=certain, stop=StopReason.TIME_LIMIT))
        result = solve(PROBLEM, backend, SolveOptions(top=2, distance=2))
        assert [c.plan for c in result.candidates] == FAR[:2]
        assert result.proven == 1 + (certain > second)
        assert result.stop is (StopReason.COMPLETE if certain > second else StopReason.TIME_LIMIT)


def test_an_optimum_that_may_tie_proves_nothing_about_the_next_plans() -> None:
    second = LISTED.index(FAR[1])
    backend = answering(proved(len(LISTED), certain=1, stop=StopReason.COMPLETE))
    result = solve(PROBLEM, backend, SolveOptions(top=2, distance=2))
    assert (result.status, result.proven) == (SolveStatus.OPTIMAL, 1)
    assert second > 0


def test_a_later_question_without_an_answer_ends_the_list() -> None:
    short = proved(1, certain=1, stop=StopReason.COMPLETE)
    result = solve(PROBLEM, answering(short, nothing), SolveOptions(top=3, distance=2))
    assert (result.status, result.proven, len(result.candidates)) == (SolveStatus.OPTIMAL, 1, 1)
    assert result.stop is StopReason.TIME_LIMIT
    assert not result.exhausted


def test_a_better_plan_refutes_an_optimum_and_a_bound() -> None:
    worse = score(PROBLEM, LISTED[-1]).values(PROBLEM.objective.terms)
    later = replace(feasible(LISTED[0]), stop=StopReason.COMPLETE)
    wrong = optimal(LISTED[-1], values=worse, bound=worse[0])
    with pytest.raises(BackendDisagreementError, match="claims an optimum"):
        solve(
            PROBLEM, answering(lambda options: wrong, lambda options: later), SolveOptions(top=9, distance=2)
        )
    hasty = replace(feasible(LISTED[-1], bound=worse[0]), stop=StopReason.COMPLETE)
    heuristic = answering(
        lambda options: hasty, lambda options: later, nothing, guarantee=Guarantee.HEURISTIC
    )
    result = solve(PROBLEM, heuristic, SolveOptions(top=9, distance=2))
    assert (result.plan, result.bound) == (LISTED[0], None)
    assert result.statistics["refuted_bound"] == worse[0]


def test_a_heuristic_is_asked_as_long_as_it_finds_more() -> None:
    """It may show plans in any order and too close to each other: only those that are far are kept."""
    answers = [lambda options, p=p: replace(feasible(p), stop=StopReason.COMPLETE) for p in LISTED[::-1]]
    backend = answering(*answers, nothing, guarantee=Guarantee.HEURISTIC)
    result = solve(PROBLEM, backend, SolveOptions(top=5, distance=2))
    assert result.status is SolveStatus.FEASIBLE
    assert result.proven == 0
    plans = [c.plan for c in result.candidates]
    assert len(plans) > 1
    assert all(unlike(a, b) >= 2 for a in plans for b in plans if a != b)


def test_a_time_limit_leaves_valid_plans_that_differ() -> None:
    problem = load_problem(SPARSE)
    result = solve(problem, options=SolveOptions(top=20, distance=4, time_limit_s=1e-6))
    plans = [c.plan for c in result.candidates]
    assert all(plan_distance(a, b) >= 4 for a in plans for b in plans if a != b)
    assert result.status is not SolveStatus.INFEASIBLE
    assert result.stop is StopReason.TIME_LIMIT


def test_what_is_published_on_the_way_differs_too() -> None:
    seen: list[Claim] = []
    ends = [LISTED[0], FAR[1]]

    def act(problem: Problem, options: SolveOptions) -> Claim:
        # In turn: the list of the fake's only plan, then the one that the rules leave.
        claim = replace(feasible(ends.pop(0) if ends else FAR[1]), values=(1,), stop=StopReason.COMPLETE)
        options.publish(claim)
        return claim

    heuristic = capabilities(Guarantee.HEURISTIC)
    backend = FakeBackend(act=act, capabilities=heuristic)
    solve(PROBLEM, backend, SolveOptions(top=2, distance=2, publish=seen.append))
    assert [list(claim.plans) for claim in seen] == [FAR[:1], FAR[:2]]
    assert {claim.status for claim in seen} == {SolveStatus.FEASIBLE}


def test_rules_that_keep_plans_apart_are_not_told() -> None:
    opaque = OpaqueRule(name="any", predicate=lambda p: True)
    problem = load_problem(SPARSE).with_rules(opaque, pin(0, unit="GPU"))
    result = solve(problem, options=SolveOptions(top=9, distance=3))
    assert set(result.handling) == {"any", problem.rules[1].name}
    assert result.handling["any"] is RuleHandling.CUT


def test_expensive_lists_are_not_longer_than_needed() -> None:
    """Opaque rules may be slow: no plan is shown to them that is not needed for the list."""
    shown: list[Plan] = []

    def note(p: Plan) -> bool:
        shown.append(p)
        return True

    opaque = OpaqueRule(name="seen", predicate=note)
    result = solve(load_problem(SPARSE).with_rules(opaque), options=SolveOptions(top=5, distance=2))
    assert result.proven == 5
    assert len(set(shown)) < 5 * 20


def test_backends_are_never_asked_for_a_distance() -> None:
    asked: list[tuple[int, frozenset[str]]] = []

    class Watched(NativeBackend):
        def solve(self, problem: Problem, options: SolveOptions) -> Claim:
            asked.append((options.distance, problem.features))
            return super().solve(problem, options)

    assert solve(load_problem(SPARSE), Watched(), SolveOptions(top=20, distance=6)).proven > 1
    assert {distance for distance, _ in asked} == {1}
    assert all(features <= FEATURES for _, features in asked)


# Distances themselves.


@pytest.mark.slow
@QUICK
@given(problem=ruled_problems())
def test_the_distance_counts_layers_on_different_units(problem: Problem) -> None:
    plans = every(problem)[:12]
    for one in plans:
        for other in plans:
            assert plan_distance(one, other) == plan_distance(other, one) == unlike(one, other)


def test_plans_without_a_distance() -> None:
    one = plan((0, 2, "a"), (2, 3, "b"))
    for other in (plan((0, 2, "a")), plan((0, 3, "a"), network="other"), replace(one, order=("r",))):
        with pytest.raises(InvalidPlanError, match="not plans of one network"):
            plan_distance(one, other)
