"""What a backend had when, judged, and what that is worth."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import ClassVar

import pytest

import gapless
from gapless.api.planning import compare_backends
from gapless.formulations.availability import Availability
from gapless.formulations.plan import Chunk, Plan
from gapless.formulations.problem import Problem
from gapless.solvers.course import Pace, Recorder, pace_of, primal_gap, primal_integral_s
from gapless.solvers.protocol import (
    PROPOSING,
    Capabilities,
    Claim,
    SolveOptions,
    SolveStatus,
    StopReason,
)
from gapless.solvers.result import Milestone
from gapless.solvers.rounds import Showing
from gapless.solvers.session import solve
from gapless.solvers.sources import Source


def board() -> Problem:
    return gapless.table_problem([[9, 2], [1, 8]], ["cpu", "gpu"], network="net", objective="period")


def plan_of(*chunks: tuple[int, int, str]) -> Plan:
    return Plan(chunks=tuple(Chunk(start=a, stop=b, unit=unit, network="net") for a, b, unit in chunks))


ALONE = plan_of((0, 2, "cpu"))  # 10 us
BEST = plan_of((0, 1, "gpu"), (1, 2, "cpu"))  # 2 us
BROKEN = plan_of((0, 1, "gpu"), (1, 2, "gpu"))


def shown(plan: Plan | None, values: tuple[int, ...] | None = None, bound: int | None = None) -> Claim:
    return Claim(
        status=SolveStatus.FEASIBLE if plan else SolveStatus.NO_SOLUTION,
        stop=StopReason.TIME_LIMIT,
        plans=(plan,) if plan else (),
        values=values,
        bound=bound,
    )


class Talker:
    """Publishes some claims, and answers with the last one."""

    name: ClassVar[str] = "talker"
    capabilities: ClassVar[Capabilities] = Capabilities(
        summary="says what it is told", formulations={"chunking": PROPOSING}
    )

    def __init__(self, *claims: Claim) -> None:
        self._claims = claims

    def availability(self) -> Availability:
        return Availability(ok=True)

    def solve(self, problem: Problem, options: SolveOptions) -> Claim:
        for claim in self._claims:
            options.publish(claim)
        return self._claims[-1]


def course_of(*claims: Claim, objective: str = "period") -> list[tuple[int | None, int | None]]:
    problem = board().with_objective(objective)
    compared = compare_backends(problem, SolveOptions(), backends=[Talker(*claims)])
    (result,) = compared.results
    times = [one.at_s for one in result.course]
    assert times == sorted(times)
    return [(one.value, one.bound) for one in result.course]


def test_milestones_are_judged_and_get_better_only() -> None:
    found = course_of(
        shown(None, bound=1),
        shown(BROKEN, (1000,)),  # the judge refuses it
        shown(ALONE),  # without values of its own
        shown(ALONE, (10_000,)),
        shown(ALONE, (900,), bound=2000),  # a lie: the judge counts 10 ms, the bound is true
        shown(BEST, (2000,), bound=2000),
    )
    assert found == [(None, 1), (10_000, 1), (10_000, 2000), (2000, 2000)]


def test_values_that_are_claimed_too_low_hide_nothing_of_the_answer() -> None:
    assert course_of(shown(ALONE, (1,)), shown(BEST, (2000,))) == [(10_000, None), (2000, None)]


def test_bounds_that_the_answer_refutes_are_left_out() -> None:
    assert course_of(shown(ALONE, (10_000,), bound=10_001), shown(BEST, (2000,))) == [
        (10_000, None),
        (2000, None),
    ]


def test_the_slack_mode_has_only_its_answer() -> None:
    assert course_of(shown(ALONE, (0,)), shown(BEST, (0,)), objective="slack:50")[:-1] == []


def test_sources_of_milestones_are_those_of_the_claims() -> None:
    problem = board()
    recorder = Recorder(problem)
    recorder.publish(
        Claim(
            status=SolveStatus.FEASIBLE,
            stop=StopReason.TIME_LIMIT,
            plans=(ALONE,),
            bound=1,
            plan_source=Source.START,
            bound_source=Source.START,
        )
    )
    first, last = recorder.course(solve(problem))
    assert (first.plan_source, first.bound_source) == (Source.START, Source.START)
    assert (last.value, last.bound, last.plan_source) == (2000, 2000, Source.OWN)


def test_primal_integral_of_a_course() -> None:
    course = [
        Milestone(at_s=1.0, value=200),
        Milestone(at_s=2.0, value=200, bound=50),
        Milestone(at_s=4.0, value=100, bound=50),
    ]
    # No plan for 1 s (gap 1), half of the value too much for 3 s (gap 0.5), then the best.
    assert primal_integral_s(course, 100, 10.0) == pytest.approx(1.0 + 1.5)
    assert primal_integral_s(course, 100, 2.0) == pytest.approx(1.0 + 0.5)
    assert primal_integral_s(course, 100, 0.5) == pytest.approx(0.5)
    pace = pace_of(course, 199, 10.0)
    assert (pace.first_plan_s, pace.near_best_s) == (1.0, 1.0)
    assert pace_of(course, 100, 10.0).near_best_s == 4.0
    assert pace_of(course, 50, 10.0).near_best_s is None
    assert pace_of([], 50, 10.0) == Pace(primal_integral_s=10.0)
    assert pace_of(course, None, 10.0) == Pace()
    assert [primal_gap(None, 5), primal_gap(0, 0), primal_gap(5, 0)] == [1.0, 0.0, 1.0]


def test_a_search_shows_as_much_as_takes_little_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    seen: list[Claim] = []

    def slow(claim: Claim) -> None:
        nonlocal now
        now += 0.03
        seen.append(claim)

    showing = Showing(SolveOptions(publish=slow))
    for _ in range(5):
        showing.offer(lambda: shown(ALONE))
    assert len(seen) == 1
    now += 10.0
    for _ in range(50):
        showing.offer(lambda: shown(ALONE))
    assert 8 <= len(seen) <= 14


def test_nothing_is_made_for_nobody() -> None:
    def made() -> Claim:
        raise AssertionError

    Showing(SolveOptions()).offer(made)


@pytest.mark.parametrize(
    ("bound", "bound_source", "first_s"),
    [
        (None, None, 5.0),  # given at 0.3 s, an own plan at 5 s
        (100, Source.OWN, 2.0),  # proved by the backend itself at 2 s
        (100, Source.START, 5.0),  # the start proved it: that is not the backend's work either
        (90, Source.OWN, 5.0),
    ],
)
def test_a_plan_that_was_given_is_nobodys_first_plan(
    bound: int | None, bound_source: Source | None, first_s: float
) -> None:
    given = Milestone(at_s=0.3, value=100, plan_source=Source.START)
    later = replace(given, at_s=2.0, bound=bound, bound_source=bound_source)
    own = Milestone(at_s=5.0, value=99, plan_source=Source.OWN)
    pace = pace_of([given, later, own], 99, 10.0)
    assert pace.first_plan_s == first_s
    assert pace.primal_integral_s == pytest.approx(first_s + (5.0 - first_s) * 0.01)
    assert pace_of([given], 100, 10.0).primal_integral_s == 10.0
    assert pace_of([given], 100, 10.0).first_plan_s is None
