"""What tuning goes by: earlier sessions of the device, and what they change."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import gapless
from gapless.api.closed_loop import (
    MOST_SESSIONS,
    Intervals,
    Knowledge,
    earlier_sessions,
    keep_session,
    knowledge_from,
)
from gapless.api.problems import load_problem
from gapless.api.tuning import tune_simulated
from gapless.executor.tuning.candidates import (
    APART,
    FIRST_APART,
    apart_first,
    baselines,
    plan_candidates,
)
from gapless.executor.tuning.store import Store
from gapless.formulations.chunking.formulation import plan_distance
from gapless.profiler.platforms.catalog import shipped_tables
from gapless.profiler.prediction.session import Session
from tests.profiler.prediction.executed import document, executions

NAME = "pixel7a/alexnet-sparse"


@pytest.fixture
def before(tmp_path: Path) -> Session:
    return Session.of(executions(document(), tmp_path))


def test_sessions_are_kept_by_device_and_the_newest_are_found(tmp_path: Path, before: Session) -> None:
    found = executions(document(), tmp_path)
    with Store(tmp_path / "store.db") as store:
        for run in range(MOST_SESSIONS + 3):
            keep_session(found, store, "here", run)
        keep_session(found, store, "there", 1)
        assert len(earlier_sessions(before, store, "here", about="x", resume=False)) == MOST_SESSIONS
        assert len(earlier_sessions(before, store, "there", about="x", resume=False)) == 1
        assert earlier_sessions(before, store, "nowhere", about="x", resume=False) == ()
        units = tuple(replace(unit, threads=3) for unit in before.platform.units)
        other = replace(before, platform=replace(before.platform, units=units))
        assert earlier_sessions(other, store, "here", about="x", resume=False) == ()


def test_a_resumed_run_goes_by_the_same_sessions(tmp_path: Path, before: Session) -> None:
    found = executions(document(), tmp_path)
    with Store(tmp_path / "store.db") as store:
        keep_session(found, store, "here", 1)
        first = earlier_sessions(before, store, "here", about="x", resume=False)
        keep_session(found, store, "here", 2)
        again = earlier_sessions(before, store, "here", about="x", resume=True)
        assert len(again) == len(first) == 1
        assert len(earlier_sessions(before, store, "here", about="x", resume=False)) == 2


def test_first_plans_are_made_from_what_tells_them_apart(before: Session) -> None:
    assert before.platform.most_at_once > 2
    other = replace(before, network=replace(before.network, name="other"))
    assert not Knowledge(session=before).ranks_plans
    assert Knowledge(session=before, earlier=(other,)).ranks_plans
    two = replace(before, platform=replace(before.platform, units=before.platform.units[:2]))
    assert not Knowledge(session=two, earlier=(other,)).ranks_plans
    assert Knowledge(session=two, earlier=(other, before)).ranks_plans


def test_what_cannot_be_learned_from_is_not_kept(tmp_path: Path) -> None:
    found = executions(document(), tmp_path)
    with Store(tmp_path / "store.db") as store:
        keep_session(None, store, "here", 1)
        keep_session(replace(found, tables=found.tables[:1]), store, "here", 1)
        assert store.kept("executions", "here ") == {}


def test_who_can_be_learned_from() -> None:
    problem, tables = load_problem(NAME), shipped_tables(NAME)
    assert knowledge_from(problem, tables) is not None
    assert knowledge_from(problem, tables[:1]) is None
    pipelines = gapless.with_pipelines(problem, 2)
    assert knowledge_from(pipelines, tables) is None


def test_intervals_are_for_single_plans_of_one_network() -> None:
    problem, tables = load_problem(NAME), shipped_tables(NAME)
    known = knowledge_from(problem, tables)
    assert known is not None
    plans = [candidate.plan for candidate in gapless.plan(problem, top=2).candidates]
    candidates = plan_candidates(plans, tables={"heavy": problem})
    told = Intervals(known.after(()))([*candidates, *baselines(problem)])
    for one in told:
        single = one.deployment.plan is not None and len(one.deployment.streams) == 1
        assert bool(one.interval_us) == single
    assert all(not one.interval_us for one in Intervals(None)(told))


def test_first_plans_are_far_apart() -> None:
    problem = load_problem(NAME)
    plans = [candidate.plan for candidate in gapless.plan(problem, top=40).candidates]
    found = apart_first(problem, plans)
    assert sorted(map(str, found)) == sorted(map(str, plans))
    assert found[0] == plans[0]
    first = found[:FIRST_APART]
    assert all(plan_distance(a, b) >= APART for i, a in enumerate(first) for b in first[:i])
    assert [plan for plan in plans if plan in found[FIRST_APART:]] == found[FIRST_APART:]


@pytest.mark.slow
def test_rounds_learn_who_slows_whom_where_both_tables_are_there() -> None:
    planned, truth = load_problem(NAME), load_problem(NAME, costs="interpolated")
    tuned = tune_simulated(planned, truth, measured=shipped_tables(NAME), rounds=4, top=6)
    assert tuned.loop is not None
    first, *later = tuned.loop.rounds
    assert first.lessons is None
    assert later
    assert all(one.lessons is not None and one.corrections is None for one in later)
    assert [len(one.unit_factors) for one in later] == [4] * len(later)
    assert any(row.candidate.interval_us for row in later[-1].result.rows)
    optimum = gapless.plan(truth).objective
    assert optimum is not None
    assert tuned.result.winner is not None
    assert (tuned.result.winner.comparable_us or 0) <= 1.02 * optimum
    runs = [one for one in tuned.results[0].rows if one.period_us]
    assert all(len(row.visit_us) == row.period_us.count for row in runs if row.period_us)


def test_knowledge_without_sessions_is_interpolated() -> None:
    problem = load_problem(NAME)
    known = knowledge_from(problem, shipped_tables(NAME))
    assert isinstance(known, Knowledge)
    plain = load_problem(NAME, costs="interpolated")
    best = gapless.plan(known.after(()).problem())
    assert best.objective == gapless.plan(plain).objective
    assert best.plan == gapless.plan(plain).plan
