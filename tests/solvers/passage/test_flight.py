"""Latency in the stream and requests in flight: what the judge says, plays reach and solvers find."""

from __future__ import annotations

import random

import pytest

import gapless
from gapless.formulations.chunking.tables import chain_of
from gapless.formulations.flight import saturated
from gapless.formulations.judge import score
from gapless.formulations.operation import operation_of
from gapless.formulations.passage.quantities import TERMS
from gapless.formulations.plan import Plan
from gapless.formulations.problem import Problem
from gapless.formulations.stations import turns_of
from gapless.solvers.exhaustive import all_plans
from gapless.solvers.passage.samples import random_problem, taking_turns
from gapless.solvers.protocol import SolveOptions, SolveStatus, StopReason
from gapless.solvers.session import solve

BALANCED = gapless.table_problem(
    {"a": [6.0, None], "b": [None, 4.0], "c": [5.0, None], "d": [None, 7.0]}, ["npu", "cpu"]
)
"""Both units are busy for 11 ms per request, so on the npu c follows a at once, and on the cpu d follows b.
With b in between, of 4 ms, a request waits 7 ms from the end of a to the start of c. If it waits 6 of them in
front of c, which takes 5, d can begin at once."""


def plans_of(seed: int) -> tuple[Problem, list[Plan]]:
    """Return a small problem whose units may have several chunks, and some of its plans."""
    problem = random_problem(4 + seed % 4, 2 + seed % 3, seed=seed)
    if seed % 4 == 3:
        problem = taking_turns(problem)
    plans = list(all_plans(problem))
    return problem, random.Random(seed).sample(plans, min(6, len(plans)))


def best_of(problem: Problem) -> Plan:
    """Return the plan of least period."""
    plan = gapless.plan(problem).plan
    assert plan is not None
    return plan


def test_waits_are_those_of_the_cycle() -> None:
    problem = gapless.with_passage(BALANCED)
    judged = score(problem, best_of(problem))
    assert (judged.period_us, judged.latency_us) == (11_000, 22_000)
    assert (judged.stream_latency_us, judged.in_flight) == (29_000, 3)
    assert set(judged.later) == {"stream_latency_us", "in_flight"}
    asked = score(problem.with_limits(max_in_flight=9), best_of(problem))
    assert asked.terms["in_flight"] == 3


def test_nobody_waits_where_each_unit_has_one_chunk() -> None:
    once = gapless.table_problem({"a": [6.0, 9.0], "b": [9.0, 4.0]}, ["npu", "cpu"])
    for problem in (once, gapless.with_passage(once)):
        judged = score(problem, best_of(problem))
        assert (judged.stream_latency_us, judged.latency_us, judged.in_flight) == (10_000, 10_000, 2)


@pytest.mark.parametrize("seed", range(12))
def test_a_play_with_that_many_in_flight_keeps_the_period(seed: int) -> None:
    """Request i leaves by i periods and its latency, and the busiest unit cannot be faster."""
    problem, plans = plans_of(seed)
    for plan in plans:
        judged = score(problem, plan)
        times_us = [chain_of(problem).busy_us(*part) for part in chain_of(problem).parts(plan)]
        (stream,) = operation_of(problem).arrange(problem, plan).streams
        if stream.cycle is not None:
            assert stream.cycle.latency_us == judged.stream_latency_us
            assert stream.cycle.in_flight == judged.in_flight
        visits = saturated(times_us, judged.in_flight, 60, turns_of(problem, stream))
        ends = [visit.end_us for visit in visits if visit.station == len(times_us) - 1]
        assert len(ends) == 60
        late = [end - i * judged.period_us - judged.stream_latency_us for i, end in enumerate(ends)]
        assert max(late) <= 0
        assert ends[-1] >= 60 * judged.period_us
        assert judged.latency_us <= judged.stream_latency_us <= judged.in_flight * judged.period_us
        assert judged.stream_latency_us > (judged.in_flight - 1) * judged.period_us


def limited(seed: int) -> Problem:
    """Return a small problem, `once` or `any`, with limits on what a request is on its way."""
    draw = random.Random(seed)
    problem = random_problem(3 + seed % 2, 2 + seed // 2 % 2, seed=seed)
    if seed % 3 == 0:
        problem = gapless.with_passage(problem, "once")
    judged = [score(problem, plan) for plan in all_plans(problem)]
    longest = sorted(found.stream_latency_us for found in judged)
    limits = {"max_in_flight": draw.randint(1, 3)}
    if draw.random() < 0.5:
        limits = {"max_stream_latency_us": longest[len(longest) // draw.randint(2, 9)]}
    objectives = ("period", "period,gapness", "latency", "hops,period", "energy" if seed % 2 else "bubbles")
    return problem.with_limits(**limits).with_objective(draw.choice(objectives[:4]))


def same(problem: Problem, backend: str, top: int) -> None:
    """Compare a list with the oracle's."""
    known = solve(problem, "exhaustive", SolveOptions(top=top), explain=False)
    found = solve(problem, backend, SolveOptions(top=top), explain=False)
    assert (found.status, found.values, found.bound) == (known.status, known.values, known.bound)
    assert [c.plan for c in found.candidates] == [c.plan for c in known.candidates]
    assert found.proven == known.proven


OBJECTIVES = ("stream_latency", "in_flight,period", "period,stream_latency", "hops,in_flight")


@pytest.mark.parametrize("first", range(0, 30, 6))
def test_native_keeps_limits(first: int) -> None:
    for seed in range(first, first + 6):
        same(limited(seed), "native", 1 + seed % 5)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_native_minimises_waits(objective: str) -> None:
    for seed in range(1, 11):
        problem = limited(seed) if seed % 2 else random_problem(3 + seed % 3, 2 + seed % 2, seed=seed)
        same(problem.with_objective(objective), "native", 1 + seed % 4)


def shared(seed: int) -> Problem:
    """Return a small problem two of whose units take turns, with a limit on requests in flight."""
    problem = taking_turns(random_problem(3 + seed % 3, 3, seed=seed)).with_objective(OBJECTIVES[seed % 4])
    return problem.with_limits(max_in_flight=2) if seed % 3 == 0 else problem


@pytest.mark.parametrize("first", range(0, 12, 6))
def test_requests_in_flight_where_units_take_turns(first: int) -> None:
    for seed in range(first, first + 6):
        same(shared(seed), "native", 1 + seed % 4)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["cpsat", "pulp", "z3"])
def test_requests_in_flight_where_units_take_turns_in_models(backend: str) -> None:
    for seed in range(6):
        same(shared(seed), backend, 2)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["cpsat", "pulp", "z3"])
def test_solvers_keep_limits_and_minimise_waits(backend: str) -> None:
    for seed in range(6):
        problem = limited(seed)
        same(problem, backend, 3)
        same(problem.with_objective(OBJECTIVES[seed % 4]), backend, 2)
    waiting = gapless.with_passage(BALANCED).with_limits(max_stream_latency_us=28_000)
    found = solve(waiting, backend, SolveOptions(max_rejections=0), explain=False)
    assert (found.status, found.stop) == (SolveStatus.NO_SOLUTION, StopReason.REJECTION_LIMIT)


def test_plans_that_wait_too_long_count_as_turned_down() -> None:
    """The model knows the least latency only, so a limit between it and the cycle's is for the judge."""
    problem = gapless.with_passage(BALANCED).with_limits(max_stream_latency_us=28_000)
    for backend in ("native", "exhaustive"):
        assert solve(problem, backend, explain=False).status is SolveStatus.INFEASIBLE
    options = SolveOptions(max_rejections=0)
    found = solve(problem, "native", options, explain=False)
    assert (found.status, found.stop) == (SolveStatus.NO_SOLUTION, StopReason.REJECTION_LIMIT)
    assert problem.opaque_demands == {"max_stream_latency_us"}
    assert not gapless.with_passage(problem, "once").opaque_demands


def test_scores_compute_what_takes_long_when_asked() -> None:
    assert {name for name, info in TERMS.items() if info.costly} == {"stream_latency", "in_flight"}
