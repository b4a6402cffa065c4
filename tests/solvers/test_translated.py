"""Backends for workloads are asked about schedules, whose plans theirs are, too."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import pytest

import gapless
from gapless.formulations.availability import Availability
from gapless.formulations.errors import UnsupportedFeatureError
from gapless.formulations.judge import score
from gapless.formulations.problem import Problem
from gapless.formulations.schedules import JobRequest, Jobs, as_schedules, as_workload
from gapless.formulations.workload import Workload
from gapless.solvers.protocol import EXACT, Capabilities, Claim, SolveOptions, SolveStatus, StopReason
from gapless.solvers.registry import translated
from gapless.solvers.session import solve
from tests.workload_instances import workload_problem

TABLES: dict[str, list[list[int | None]]] = {
    "a": [[10, 30], [None, 20], [10, 30]],
    "b": [[25, 26], [5, 40]],
}
"""Two networks; the best schedule comes back to the first unit, which lacks a layer: 50 against 60."""


class Ordered:
    """A backend for workloads, and for nothing else, which proves what it finds."""

    name: ClassVar[str] = "mine"
    capabilities: ClassVar[Capabilities] = Capabilities(summary="mine", formulations={"flow_shop": EXACT})

    def availability(self) -> Availability:
        return Availability(ok=True)

    def solve(self, problem: Problem, options: SolveOptions) -> Claim:
        assert isinstance(problem.data, Workload)
        found = solve(problem, "native", options)
        claim = Claim(
            status=SolveStatus.OPTIMAL,
            stop=StopReason.COMPLETE,
            plans=tuple(candidate.plan for candidate in found.candidates),
            values=found.values,
            bound=found.bound,
            proven=found.proven,
        )
        options.publish(claim)
        return claim


class Unruly(Ordered):
    """One that knows no rules."""

    capabilities: ClassVar[Capabilities] = Capabilities(
        summary="unruly", formulations={"flow_shop": replace(EXACT, rules=None)}
    )


def schedules(passage: str = "any") -> Problem:
    return as_schedules(workload_problem(TABLES, ["a", "b"]), passage)


def test_a_backend_for_workloads_takes_part_and_its_proofs_are_not_taken_for_those_of_schedules() -> None:
    problem, workload = schedules(), workload_problem(TABLES, ["a", "b"])
    asked: list[Claim] = []
    found = gapless.compare(problem, backends=["native", Ordered()], on_progress=asked.append)
    best, own = found.results
    assert not found.disagreements
    assert (best.objective, best.status) == (50, "optimal")
    assert (own.objective, own.status, own.bound, own.proven) == (60, "feasible", None, 0)
    assert own.plan is not None
    assert score(problem, own.plan).valid
    assert "all units serve the requests in one order" in own.searches
    assert best.searches == ""
    shown = [claim for claim in asked if claim.values == (60,)]
    assert shown
    assert all(score(problem, plan).valid for claim in shown for plan in claim.plans)
    assert own.course[-1].value == 60
    proved = solve(workload, Ordered(), explain=False)
    assert (proved.status, proved.objective, proved.searches) == ("optimal", 60, "")


def test_plans_are_judged_as_schedules() -> None:
    """The same order, slowed down: the judge of schedules plays it."""
    workload = workload_problem(TABLES, ["a", "b"], slowdown=[[0, 300], [500, 0]])
    problem = as_schedules(workload)
    found = solve(problem, Ordered(), explain=False)
    assert found.plan is not None
    assert found.values == (score(problem, found.plan).makespan_us,)
    assert found.fingerprint == problem.fingerprint


def test_plans_that_break_what_is_asked_of_schedules_are_none() -> None:
    backwards = solve(schedules("ordered:big,npu"), Ordered(), explain=False)
    assert backwards.status == "no_solution"
    assert "passage ordered:big,npu forbids" in str(backwards.statistics["reason"])
    problem = schedules()
    whole = problem.with_rules(lambda view: view.on("a0", 0, "big"))
    found = solve(whole, Unruly(), explain=False)
    assert (found.status, found.objective) == ("no_solution", None)
    assert found.statistics["reason"]


def test_a_backend_that_knows_rules_is_told_those_of_schedules() -> None:
    whole = schedules().with_rules(lambda view: view.on("a0", 0, "big"))
    found = solve(whole, Ordered(), explain=False)
    assert found.plan is not None
    assert found.objective == solve(as_workload(whole), "exhaustive").objective


def test_a_limit_on_weighted_latencies_is_not_taken_for_one_on_their_plain_sum() -> None:
    """First b1, which takes 9 us and alone counts: those of a workload would be 9, 19 and 29."""
    weights = {"b": 1, "a": 0}
    requests = tuple(
        JobRequest(name=f"{network}{at}", network=network, weight=weights[network])
        for at, network in enumerate("baa")
    )
    problem = as_schedules(workload_problem({"a": [[10]], "b": [[9]]}, ["a", "b"]))
    limited = replace(problem, data=Jobs(requests=requests)).with_limits(max_latency_us=10)
    assert solve(limited, "exhaustive", explain=False).plan is not None
    found = solve(limited, "band", explain=False)
    assert found.best is not None
    assert found.best.score.latency_us == 9
    assert solve(limited.with_limits(max_latency_us=8), "band", explain=False).best is None


def test_what_a_backend_cannot_do_for_workloads_is_said() -> None:
    class Narrow(Ordered):
        capabilities: ClassVar[Capabilities] = Capabilities(
            summary="narrow", formulations={"flow_shop": replace(EXACT, features=frozenset())}
        )

    with pytest.raises(UnsupportedFeatureError, match="does not handle free_order, unsupported_layers"):
        solve(schedules(), Narrow(), explain=False)


def test_what_is_proved_of_schedules_is_not_said_of_its_own_problems() -> None:
    """A bound of another term: the makespan is less than the sum of latencies."""
    asked: list[SolveOptions] = []

    class Asked(Ordered):
        def solve(self, problem: Problem, options: SolveOptions) -> Claim:
            asked.append(options)
            return super().solve(problem, options)

    options = SolveOptions(at_least=85, seed=3)
    solve(schedules().with_objective("latency"), translated(Asked()), options, explain=False)
    solve(
        workload_problem(TABLES, ["a", "b"]),
        translated(Asked()),
        replace(options, at_least=50),
        explain=False,
    )
    assert [(each.at_least, each.seed) for each in asked] == [(None, 3), (50, 3)]


def test_it_is_warmed_up_for_its_own_problems() -> None:
    class Warm(Ordered):
        asked: ClassVar[list[str]] = []

        def warm_up(self, formulation: str) -> None:
            self.asked.append(formulation)

    solve(schedules(), Warm(), explain=False)
    solve(workload_problem(TABLES, ["a", "b"]), Warm(), explain=False)
    assert Warm.asked == ["flow_shop", "flow_shop"]
