"""Schedules to start from: by insertion, and before anything else is asked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gapless.formulations.flow_shop.tables import Schedule
from gapless.formulations.judge import examined
from gapless.formulations.problem import Problem
from gapless.formulations.workload import RequestOrder
from gapless.profiler.platforms.workloads import shipped_workload
from gapless.solvers.flow_shop import search
from gapless.solvers.flow_shop.baselines import BandBackend
from gapless.solvers.flow_shop.samples import random_workload
from gapless.solvers.flow_shop.search import JointSearch
from gapless.solvers.flow_shop.starts import inserted, repaired_schedules, serial_drafts
from gapless.solvers.protocol import NEVER, Clock, Deadline, SolveOptions


@pytest.mark.parametrize("order", RequestOrder)
@pytest.mark.parametrize("rate", [None, (1000, 1200, 1100, 1300)])
def test_a_draft_has_every_request_once_and_is_a_plan(
    order: RequestOrder, rate: tuple[int, ...] | None
) -> None:
    problem = random_workload(8, 4, 1, slowdown=True, order=order)
    context = JointSearch(problem).contexts[0][0]
    draft = inserted(context, None if rate is None else [rate] * 8, NEVER)
    assert draft is not None
    assert sorted(draft.order) == list(range(8))
    assert order is RequestOrder.FREE or draft.order == tuple(range(8))
    assert not examined(problem, context.schedule(draft))[1]


def test_it_gives_up_when_the_time_is_over() -> None:
    context = JointSearch(random_workload(8, 4, 1)).contexts[0][0]
    assert inserted(context, None, Deadline(0.0)) is None


def test_a_search_has_plans_before_it_asks_for_prices(monkeypatch: pytest.MonkeyPatch) -> None:
    search = JointSearch(random_workload(8, 4, 1, slowdown=True))

    def asked(*_: object) -> None:
        raise LookupError

    monkeypatch.setattr(JointSearch, "_prices", asked)
    monkeypatch.setattr(JointSearch, "bounds", (0,))
    with pytest.raises(LookupError):
        search.run()
    assert search.kept.best is not None


def test_heuristics_whose_plans_break_a_rule_are_repaired() -> None:
    """Band knows no rules: here it has bert at work before yolov4 is done."""
    problem = shipped_workload("kirin990", "yolov4,bert,mobilenetv2").with_rules(
        lambda view: view.start_us("bert") >= view.finish_us("yolov4")
    )
    proposed = BandBackend().propose(problem, SolveOptions(), NEVER)
    assert all(examined(problem, schedule)[1] for schedule in proposed)
    made = repaired_schedules(problem, NEVER)
    assert made
    assert not any(examined(problem, schedule)[1] for schedule in made)


def test_under_rules_a_search_with_time_begins_with_repaired_schedules(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = random_workload(3, 3, 1).with_rules(lambda view: view.makespan_us() >= 0)
    context, bounds = JointSearch(problem).contexts[0]
    draft = next(serial_drafts(context))
    monkeypatch.setattr(search, "repaired_schedules", lambda *_: [context.schedule(draft)])
    limited = JointSearch(problem, deadline=Deadline(60.0))
    assert next(limited._starts(context, bounds, NEVER)) == draft
    assert next(JointSearch(problem)._starts(context, bounds, NEVER)) != draft


def test_repairs_are_made_once_for_all_sets_of_units_in_the_time_of_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = random_workload(3, 3, 1).with_rules(lambda view: view.makespan_us() >= 0)
    first, *others = problem.platform.units
    platform = replace(problem.platform, units=(first, *(replace(unit, cores=(0,)) for unit in others)))
    clock, allowed_s = Clock(lambda: 0.0), []

    def repaired(_: Problem, deadline: Deadline) -> list[Schedule]:
        allowed_s.append(deadline.left_s)
        return []

    monkeypatch.setattr(search, "repaired_schedules", repaired)
    limited = JointSearch(replace(problem, platform=platform), deadline=Deadline(60.0, clock))
    assert len(limited.contexts) == len(others) == 2
    for context, bounds in limited.contexts:
        next(limited._starts(context, bounds, Deadline(10.0, clock)))
    assert allowed_s == [3.0]
