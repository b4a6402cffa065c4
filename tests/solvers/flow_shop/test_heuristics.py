"""The paper's planners and its baselines as backends: what they promise on every problem, and by hand."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings

from benchmarks.workload_instances import random_workload
from gapless.formulations.flow_shop.tables import FlowShop, workload_of
from gapless.formulations.hardware import UnitKind
from gapless.formulations.jobs.tables import JobPlan
from gapless.formulations.play import Part, Run
from gapless.formulations.problem import Problem
from gapless.formulations.rules import OpaqueRule
from gapless.formulations.workload import Execution, Request, RequestOrder, Workload
from gapless.solvers.flow_shop import baselines
from gapless.solvers.protocol import Claim, Deadline, Guarantee, SolveOptions, SolveStatus, StopReason
from gapless.solvers.registry import get_backend
from gapless.solvers.result import SolveResult
from gapless.solvers.session import solve
from tests.workload_instances import workload_problem, workload_problems

STEPPED = (
    "hetero2pipe",
    "hetero2pipe-noc",
    "hetero2pipe-not",
    "hetero2pipe-noct",
    "hetero2pipe-nos",
    "hungarian",
    "pipe-it",
)
NAMES = (*STEPPED, "annealing", "serial", "band")

LIGHT: list[list[int | None]] = [[4, 6, 9]] * 4
HEAVY: list[list[int | None]] = [[None, 30, 40], [12, 30, 40], [12, 25, 50]]


@pytest.fixture(autouse=True)
def _short_walks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baselines, "STEPS", 40)


def with_kinds(problem: Problem, *kinds: UnitKind) -> Problem:
    """Return the problem with units of these kinds."""
    units = zip(problem.platform.units, kinds, strict=True)
    platform = replace(problem.platform, units=tuple(replace(unit, kind=kind) for unit, kind in units))
    return replace(problem, platform=platform)


def chunks_of(result: SolveResult) -> list[tuple[str, int, int, str]]:
    """Return (request, start, stop, unit) of the plan."""
    assert result.plan is not None
    return [(chunk.request, chunk.start, chunk.stop, chunk.unit) for chunk in result.plan.chunks]


@pytest.mark.parametrize("name", NAMES)
def test_backends_for_workloads_say_what_they_are(name: str) -> None:
    backend = get_backend(name)
    assert backend.name == name
    assert backend.availability().ok
    assert set(backend.capabilities.formulations) == {"flow_shop", "jobs"}
    assert backend.capabilities.formulations["flow_shop"].guarantee is Guarantee.HEURISTIC
    assert backend.capabilities.others is None


@pytest.mark.slow
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(problem=workload_problems())
def test_plans_are_valid_and_no_better_than_the_optimum(problem: Problem) -> None:
    best = solve(problem, "exhaustive", explain=False)
    for name in NAMES:
        found = solve(problem, name)
        assert "refused_by_judge" not in found.statistics
        if found.status is SolveStatus.NO_SOLUTION:
            assert found.statistics["reason"]
        else:
            assert found.status is SolveStatus.FEASIBLE
            assert found.values is not None
            assert best.values is not None
            assert found.values >= best.values


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("execution", Execution)
def test_fixed_orders_stay_and_equal_runs_are_equal(name: str, execution: Execution) -> None:
    wanted = Workload(
        requests=(Request(name="any", network="light"),), order=RequestOrder.FIXED, execution=execution
    )
    problem = workload_problem(
        {"light": LIGHT, "heavy": HEAVY},
        ["heavy", "heavy", "light", "light"],
        high=("heavy",),
        workload=wanted,
    )
    first, second = solve(problem, name), solve(problem, name)
    assert first.plan is not None
    assert first.plan == second.plan
    assert first.plan.order == workload_of(problem).names if workload_of(problem) else ()


@pytest.mark.parametrize("name", NAMES)
def test_plans_that_break_a_rule_are_dropped(name: str) -> None:
    problem = workload_problem({"light": LIGHT}, ["light"] * 3)
    never = problem.with_rules(OpaqueRule(name="never", predicate=lambda plan: False, text="nothing is good"))
    result = solve(never, name)
    assert result.status is SolveStatus.NO_SOLUTION
    assert result.statistics["reason"] == "never: nothing is good"


@pytest.mark.parametrize("name", STEPPED)
def test_units_that_share_cores_are_not_used_together(name: str) -> None:
    problem = workload_problem({"light": LIGHT}, ["light"] * 3)
    units = problem.platform.units
    shared = tuple(
        replace(unit, cores=cores) for unit, cores in zip(units, [(0,), (0, 1), (2,)], strict=True)
    )
    problem = replace(problem, platform=replace(problem.platform, units=shared))
    used = {unit for _, _, _, unit in chunks_of(solve(problem, name))}
    assert used <= {"npu", "gpu"} or used <= {"big", "gpu"}


@pytest.mark.slow
def test_hungarian_keeps_high_requests_apart() -> None:
    tables: dict[str, list[list[int | None]]] = {"heavy": [[9, 9]], "light": [[2, 2]]}
    requests = ["heavy", "heavy", "light", "light", "light"]
    problem = workload_problem(tables, requests, high=("heavy",), objective="contention,displacement")
    assert solve(problem, "hungarian").objective == 0
    assert solve(problem, "hetero2pipe-noct").objective == 1
    assert solve(problem, "exhaustive").values == (0, 2)


def test_the_last_requests_run_whole_where_that_ends_earlier() -> None:
    problem = workload_problem({"net": [[10, 12], [10, 12]]}, ["net"])
    assert solve(problem, "hetero2pipe-not").objective == 10 + 12  # the least bottleneck
    assert chunks_of(solve(problem, "hetero2pipe")) == [("net0", 0, 2, "npu")]
    assert solve(problem, "hetero2pipe-noc").objective == 20


def test_serial_runs_everything_on_the_fastest_processor() -> None:
    problem = workload_problem({"light": LIGHT, "heavy": HEAVY}, ["light", "heavy", "light"])
    problem = with_kinds(problem, UnitKind.NPU, UnitKind.CPU, UnitKind.CPU)
    result = solve(problem, "serial")
    wanted = [("light0", 0, 4, "big"), ("heavy1", 0, 3, "big"), ("light2", 0, 4, "big")]
    assert sorted(chunks_of(result)) == sorted(wanted)
    assert result.objective == 24 + 85 + 24


def test_serial_takes_the_next_processor_when_one_cannot_run_a_layer() -> None:
    problem = workload_problem({"heavy": HEAVY}, ["heavy"] * 2)
    assert solve(problem, "serial").objective == 2 * 85  # the first unit is faster, but cannot run layer 0
    result = solve(workload_problem({"odd": [[None, 1], [1, None]]}, ["odd"]), "serial")
    assert result.status is SolveStatus.NO_SOLUTION
    assert result.statistics["reason"] == "no CPU unit runs every layer"


@pytest.mark.parametrize("name", ["serial", "pipe-it"])
def test_planners_for_processors_say_when_there_is_none(name: str) -> None:
    problem = with_kinds(
        workload_problem({"light": LIGHT}, ["light"]), UnitKind.NPU, UnitKind.GPU, UnitKind.DSP
    )
    result = solve(problem, name)
    assert result.status is SolveStatus.NO_SOLUTION
    assert result.statistics["reason"] == "the platform has no CPU unit"


def test_pipe_it_balances_over_the_processors_only() -> None:
    problem = workload_problem({"light": LIGHT}, ["light"] * 4)
    problem = with_kinds(problem, UnitKind.CPU, UnitKind.GPU, UnitKind.CPU)
    result = solve(problem, "pipe-it")
    balanced = [("npu", 0, 3), ("gpu", 3, 4)]
    assert chunks_of(result) == [(f"light{i}", a, b, unit) for i in range(4) for unit, a, b in balanced]
    assert result.objective == 4 * 12 + 9


def test_pipe_it_takes_the_fastest_combination_of_processors() -> None:
    """Filling the pipeline costs two requests more than they gain by it: one unit alone is faster."""
    problem = workload_problem({"light": LIGHT}, ["light"] * 2)
    problem = with_kinds(problem, UnitKind.CPU, UnitKind.GPU, UnitKind.CPU)
    result = solve(problem, "pipe-it")
    assert chunks_of(result) == [(f"light{i}", 0, 4, "npu") for i in range(2)]
    assert result.objective is not None
    assert result.objective < 12 + 12 + 9


def test_band_falls_back_where_a_layer_is_not_supported() -> None:
    net: list[list[int | None]] = [[2, 9, 20], [None, 9, 20], [2, 9, 20]]
    result = solve(workload_problem({"net": net}, ["net"]), "band")
    assert chunks_of(result) == [("net0", 0, 1, "npu"), ("net0", 1, 3, "big")]
    assert result.objective == 20


def test_band_sends_each_request_where_it_ends_first() -> None:
    result = solve(workload_problem({"net": [[4, 6, 9]]}, ["net"] * 4), "band")
    assert [unit for _, _, _, unit in chunks_of(result)] == ["npu", "big", "npu", "gpu"]
    assert result.objective == 9


def test_band_takes_no_unit_from_which_the_rest_cannot_be_run() -> None:
    net: list[list[int | None]] = [[9, 1], [9, None]]
    assert chunks_of(solve(workload_problem({"net": net}, ["net"]), "band")) == [("net0", 0, 2, "npu")]
    result = solve(workload_problem({"odd": [[None, 1], [1, None]]}, ["odd"]), "band")
    assert result.status is SolveStatus.NO_SOLUTION
    assert "no order" in str(result.statistics["reason"])


@pytest.mark.slow
def test_annealing_finds_small_optima_and_follows_its_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baselines, "STEPS", 1500)
    slowdown = [[0, 100, 50], [200, 0, 300], [50, 300, 0]]
    problem = workload_problem(
        {"light": LIGHT, "heavy": HEAVY}, ["heavy", "light", "heavy"], slowdown=slowdown, high=("heavy",)
    )
    found = solve(problem, "annealing", SolveOptions(seed=3))
    assert found.objective == solve(problem, "exhaustive").objective
    assert found.plan == solve(problem, "annealing", SolveOptions(seed=3)).plan
    assert found.statistics["steps"] == 1500


def test_annealing_stops_at_its_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baselines, "STEPS", 10**9)
    result = solve(
        workload_problem({"light": LIGHT}, ["light"] * 3), "annealing", SolveOptions(time_limit_s=0.05)
    )
    assert result.stop is StopReason.TIME_LIMIT
    assert result.status is SolveStatus.FEASIBLE


def shared_cores(requests: int) -> Problem:
    """Return a workload on 8 units of which each shares its core with another one: 16 sets of units."""
    problem = random_workload(requests, 8, slowdown=True)
    units = enumerate(problem.platform.units)
    shared = tuple(replace(unit, cores=(index % 4,)) for index, unit in units)
    return replace(problem, platform=replace(problem.platform, units=shared))


@pytest.mark.parametrize("name", [name for name in NAMES if name not in {"serial", "pipe-it"}])
def test_once_there_is_a_plan_nothing_is_begun_after_the_deadline(name: str) -> None:
    result = solve(shared_cores(5), name, SolveOptions(time_limit_s=1e-6))
    assert (result.status, result.stop) == (SolveStatus.FEASIBLE, StopReason.TIME_LIMIT)
    assert result.statistics["proposed"] == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["native", *NAMES])
def test_a_short_limit_is_kept_on_large_workloads(name: str) -> None:
    problem, started = shared_cores(60), time.monotonic()
    assert solve(problem, name, SolveOptions(time_limit_s=0.1)).plan is not None
    assert time.monotonic() - started < 10  # far from what it takes without looking at the clock


def test_what_is_found_on_the_way_is_shown() -> None:
    shown: list[Claim] = []
    result = solve(shared_cores(3), "band", SolveOptions(publish=shown.append))
    values = [claim.values for claim in shown if claim.values is not None]
    assert values == sorted(values, reverse=True)
    assert values[-1] == result.values


@pytest.mark.parametrize("name", ["hetero2pipe", "annealing", "serial", "band"])
def test_after_the_deadline_only_the_judge_plays_a_schedule(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    played: list[JobPlan] = []
    play = FlowShop.played

    def counted(shop: FlowShop, order: tuple[int, ...], parts: tuple[tuple[Part, ...], ...]) -> list[Run]:
        played.append(JobPlan(order, parts))
        return play(shop, order, parts)

    monkeypatch.setattr(FlowShop, "played", counted)
    problem = random_workload(20, 4, slowdown=True)
    assert solve(problem, name, SolveOptions(time_limit_s=1e-6)).plan is not None
    assert len(played) == 2  # when it is kept, and when the answer is checked


def test_a_walk_that_ends_before_its_deadline_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Deadline, "within", lambda deadline, seconds: True)
    problem = workload_problem({"light": LIGHT}, ["light"] * 3)
    result = solve(problem, "annealing", SolveOptions(time_limit_s=60))
    assert result.stop is StopReason.TIME_LIMIT
    assert result.statistics["unfinished_steps"] == baselines.STEPS
