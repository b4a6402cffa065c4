"""Schedules to start from: by insertion, and before anything else is asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from gapless.formulations.expr import BoolExpr
from gapless.formulations.flow_shop.tables import Schedule
from gapless.formulations.flow_shop.view import WorkloadView
from gapless.formulations.judge import examined
from gapless.formulations.problem import Problem
from gapless.formulations.workload import RequestOrder
from gapless.profiler.platforms.workloads import shipped_workload
from gapless.solvers.flow_shop import search, starts
from gapless.solvers.flow_shop.samples import random_workload
from gapless.solvers.flow_shop.search import JointSearch
from gapless.solvers.flow_shop.starts import QUICK, inserted, quick_schedules, serial_drafts
from gapless.solvers.protocol import NEVER, Clock, Deadline, SolveOptions
from gapless.solvers.repairing import Breach, breach, downhill
from gapless.solvers.session import solve


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


Rule = Callable[[WorkloadView], BoolExpr]


def in_turn(view: WorkloadView) -> BoolExpr:
    """Return what Band and Hetero2Pipe break: they have bert at work before yolov4 is done."""
    return view.start_us("bert") >= view.finish_us("yolov4")


def spared(view: WorkloadView) -> BoolExpr:
    return view.load_us("cpu_big") <= 100_000


def under(rule: Rule) -> Problem:
    return shipped_workload("kirin990", "yolov4,bert,mobilenetv2").with_rules(rule)


def test_each_quick_heuristic_proposes_valid_plans_first_then_by_their_values() -> None:
    problem = under(in_turn)
    found = quick_schedules(problem, NEVER)
    assert found == [(breach(problem, each), each) for _, each in found]
    proposed = {each for planner in QUICK for each in planner.propose(problem, SolveOptions(), NEVER)}
    assert {schedule for _, schedule in found} == proposed
    ranks = [(excess > 0, values) for (excess, values), _ in found]
    assert ranks == sorted(ranks)
    assert {broken for broken, _ in ranks} == {False, True}


@pytest.mark.parametrize("rule", [in_turn, spared])
def test_a_search_under_rules_has_no_worse_a_plan_than_a_quick_heuristic(
    rule: Rule, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That is so before it searches: they are repaired as they are on their own."""
    problem = under(rule)
    monkeypatch.setattr(JointSearch, "_search", lambda _: None)
    found = JointSearch(problem, deadline=Deadline(60.0, Clock(lambda: 0.0)))
    found.run()
    assert found.kept.best is not None
    assert {planner.name for planner in QUICK} == {"serial", "pipe-it", "band", "hetero2pipe", "hungarian"}
    others = [solve(problem, planner.name, explain=False).objective for planner in QUICK]
    assert found.kept.best[1] <= min(other for other in others if other is not None)


def test_there_is_a_plan_before_repairs_and_only_what_may_be_better_is_repaired(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = under(in_turn)
    found = JointSearch(problem, deadline=Deadline(60.0, Clock(lambda: 0.0)))
    tried: list[tuple[int, ...]] = []

    def repaired(_: Problem, schedule: Schedule, key: Breach, __: Deadline) -> Schedule | None:
        assert found.kept.best is not None
        tried.append(key[1])
        assert key[1] < found.kept.best[1:]
        return downhill(problem, schedule, key, NEVER)

    monkeypatch.setattr(search, "downhill", repaired)
    found._repair()
    assert tried == sorted(tried)
    assert 0 < len(tried) < sum(key[0] > 0 for key, _ in quick_schedules(problem, NEVER))


def test_a_search_with_time_begins_with_what_is_repaired(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = random_workload(3, 3, 1).with_rules(lambda view: view.makespan_us() >= 0)
    context, bounds = JointSearch(problem).contexts[0]
    draft = next(serial_drafts(context))
    made = [((0, (1,)), context.schedule(draft))]
    monkeypatch.setattr(search, "quick_schedules", lambda *_: made)
    for deadline, begins in ((Deadline(60.0), True), (NEVER, False)):
        found = JointSearch(problem, deadline=deadline)
        found._repair()
        assert (next(found._starts(context, bounds, NEVER)) == draft) is begins


def test_with_many_requests_the_share_is_kept_before_repairs_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each schedule that is measured takes a second here, and each heuristic ten."""
    problem, now_s = under(lambda view: view.makespan_us() <= 1), [0.0]
    took, asked = JointSearch._take, []

    def take(self: JointSearch, schedule: Schedule) -> bool:
        now_s[0] += 1.0
        return took(self, schedule)

    class Slow:
        def propose(self, *_: object) -> list[Schedule]:
            now_s[0] += 10.0
            asked.append(now_s[0])
            return []

    monkeypatch.setattr(JointSearch, "_take", take)
    monkeypatch.setattr(starts, "QUICK", (Slow(), Slow(), Slow()))
    clock = Clock(lambda: now_s[0])
    JointSearch(problem, deadline=Deadline(5.0, clock))._repair()
    assert (now_s, asked) == ([2.0], [])
    assert quick_schedules(problem, Deadline(15.0, clock)) == []
    assert asked == [12.0, 22.0]


@pytest.mark.parametrize("proof", search.Proof)
def test_repairs_have_a_share_of_all_the_time(proof: search.Proof, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not of the part of one set of units, or of what a proof leaves."""
    problem = random_workload(3, 3, 1).with_rules(lambda view: view.makespan_us() >= 0)
    first, *others = problem.platform.units
    platform = replace(problem.platform, units=(first, *(replace(unit, cores=(0,)) for unit in others)))
    allowed_s = []

    def proposed(_: Problem, deadline: Deadline) -> list[tuple[Breach, Schedule]]:
        allowed_s.append(deadline.left_s)
        return []

    monkeypatch.setattr(search, "quick_schedules", proposed)
    monkeypatch.setattr(JointSearch, "_search", lambda _: None)
    monkeypatch.setattr(JointSearch, "prove", lambda _: True)
    deadline = Deadline(60.0, Clock(lambda: 0.0))
    JointSearch(replace(problem, platform=platform), deadline=deadline, proof=proof).run()
    assert allowed_s == [24.0]
