"""What exact searches begin with, and where plans and bounds are said to come from."""

from __future__ import annotations

from dataclasses import replace

import pytest

import gapless
from gapless.formulations.errors import InvalidInputError
from gapless.formulations.problem import Problem
from gapless.solvers.chunking.samples import sample_problem
from gapless.solvers.families import runs_of, starts_for
from gapless.solvers.protocol import Claim, Deadline, SolveOptions, SolveStatus, StopReason
from gapless.solvers.registry import get_backend, get_backends
from gapless.solvers.sandbox import run_isolated
from gapless.solvers.session import reconcile, solve
from gapless.solvers.sources import Source, StartMode, label_of, start_mode
from tests.cooperation_instances import drawn_problem as drawn_groups
from tests.jobs_instances import drawn_jobs
from tests.pipeline_instances import drawn_problem as drawn_pipelines
from tests.workload_instances import workload_problem

from .fakes import FakeBackend, capabilities, claiming

WORKLOAD = workload_problem({"a": [[3, 5], [4, 2]], "b": [[2, 7], [9, 3]]}, ["a", "b"])
PHONE = gapless.load_workload("yolov4,mobilenetv2", platform="kirin990", passage="ordered")
AT_ONCE = SolveOptions(time_limit_s=0.01)
COLD = replace(AT_ONCE, start=StartMode.NONE)


def of_families() -> list[Problem]:
    return [sample_problem(), WORKLOAD, drawn_jobs(1), drawn_groups(1), drawn_pipelines(1)]


@pytest.mark.parametrize("problem", of_families(), ids=lambda problem: problem.formulation.name)
def test_with_a_limit_every_family_has_a_plan_at_once_and_none_when_cold(problem: Problem) -> None:
    first = next(starts_for(problem, AT_ONCE))
    assert first.code is not None
    assert gapless.check(problem, problem.formulation.plan(problem, first.code)) == ()
    assert list(starts_for(problem, COLD)) == []


@pytest.mark.parametrize("limit_s", [0.5, 10.0, 1000.0])
def test_starts_take_a_share_of_every_limit(limit_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float | None] = []

    class Recorded(Deadline):
        def __init__(self, limit_s: float | None) -> None:
            asked.append(limit_s)
            super().__init__(0.0)

    for home in ("flow_shop.search", "rounds", "cooperation.solving"):
        monkeypatch.setattr(f"gapless.solvers.{home}.Deadline", Recorded)
    for problem in (PHONE, drawn_jobs(1), drawn_groups(1)):
        asked.clear()
        list(starts_for(problem, SolveOptions(time_limit_s=limit_s)))
        assert asked
        assert all(one is not None and one <= 0.3 * limit_s for one in asked)


@pytest.mark.slow
def test_a_cold_backend_that_is_ended_has_no_plan() -> None:
    backend = get_backend("cpsat")
    claims: list[Claim] = []
    run_isolated(backend, WORKLOAD, SolveOptions(time_limit_s=5, publish=claims.append))
    warm = claims[0]
    cold, _, _ = run_isolated(backend, WORKLOAD, SolveOptions(time_limit_s=0.01, start=StartMode.NONE))
    assert (warm.plan_source, bool(warm.plans)) == (Source.START, True)
    assert cold.plans == ()
    # On a quick machine it may already have a bound, by itself.
    assert cold.bound is None or cold.bound_source is Source.OWN


def test_a_search_that_is_ended_before_it_begins_says_how_long_its_start_took() -> None:
    shown: list[Claim] = []
    get_backend("cpsat").solve(PHONE, SolveOptions(time_limit_s=0.5, publish=shown.append))
    given = [claim for claim in shown if claim.plan_source is Source.START]
    times_s = [claim.start_s for claim in given]
    assert times_s[0] is not None
    assert times_s[0] > 0.0
    assert times_s == sorted(times_s, key=lambda each: each or 0.0)


def test_modes_are_named() -> None:
    assert [start_mode(text) for text in ("native", "none", "both")] == list(StartMode)
    with pytest.raises(InvalidInputError, match="'warm'; choose from native, none, both"):
        start_mode("warm")
    with pytest.raises(InvalidInputError, match="is for comparisons: choose native or none"):
        gapless.plan(sample_problem(), start="both")
    assert [label_of("z3", mode) for mode in (None, StartMode.NATIVE, StartMode.NONE)] == [
        "z3",
        "z3",
        "z3 (cold)",
    ]


def test_both_runs_twice_who_takes_a_start() -> None:
    runs = runs_of(sample_problem(), get_backends(["native", "cpsat"]), StartMode.BOTH)
    assert [(worker.name, mode) for worker, mode in runs] == [
        ("native", None),
        ("cpsat", StartMode.NATIVE),
        ("cpsat", StartMode.NONE),
    ]
    begun = iter((StartMode.NATIVE, StartMode.NONE))

    def act(problem: Problem, options: SolveOptions) -> Claim:
        assert options.start is next(begun)
        return Claim(status=SolveStatus.NO_SOLUTION, stop=StopReason.TIME_LIMIT)

    fake = FakeBackend(act=act, capabilities=replace(capabilities(), starts=True))
    labels: list[str] = []
    found = gapless.compare(sample_problem(), backends=[fake], start="both", on_backend=labels.append)
    assert labels == [result.label for result in found.results] == ["fake", "fake (cold)"]


def test_a_result_keeps_its_sources() -> None:
    problem = sample_problem()
    claim = Claim(
        status=SolveStatus.FEASIBLE,
        stop=StopReason.TIME_LIMIT,
        plans=(gapless.plan(problem).candidates[0].plan,),
        bound=1,
        plan_source=Source.START,
    )
    found = reconcile(problem, claiming(claim), claim, 1, 0.0)
    assert (found.plan_source, found.bound_source) == (Source.START, Source.OWN)
    assert replace(found, bound=None).bound_source is None
    nothing = Claim(status=SolveStatus.NO_SOLUTION, stop=StopReason.TIME_LIMIT)
    empty = reconcile(problem, claiming(nothing), nothing, 1, 0.0)
    assert (empty.plan_source, empty.bound_source) == (None, None)


def test_of_parts_the_sources_of_the_best_count() -> None:
    problem = sample_problem()
    problem = replace(problem, co_run_costs=(problem.costs,) * (len(problem.platform.units) - 1))

    def act(part: Problem, options: SolveOptions) -> Claim:
        alone = part.limits.max_units == 1
        found = solve(part, "native").candidates[:1]
        return Claim(
            status=SolveStatus.FEASIBLE if found else SolveStatus.NO_SOLUTION,
            stop=StopReason.TIME_LIMIT,
            plans=tuple(candidate.plan for candidate in found),
            bound=1 if alone else 2,
            plan_source=Source.OWN if alone else Source.START,
            bound_source=Source.START if alone else Source.OWN,
        )

    found = solve(problem, FakeBackend(act=act), explain=False)
    assert len(found.candidates[0].plan.chunks) > 1
    assert (found.bound, found.plan_source, found.bound_source) == (1, Source.START, Source.START)


@pytest.mark.slow
def test_the_start_of_an_unfinished_search_is_told_from_its_own() -> None:
    """A solver that only hands back what it was given has found nothing."""
    given = gapless.plan(WORKLOAD, backend="cpsat", time_limit_s=0.01)
    assert (given.start, given.plan_source) == (StartMode.NATIVE, Source.START)
    own = gapless.plan(sample_problem(), backend="cpsat", time_limit_s=60, start="none")
    assert (own.start, own.plan_source, own.bound_source) == (StartMode.NONE, Source.OWN, Source.OWN)
    assert gapless.plan(sample_problem()).start is None
