"""Energy: equal to sums that are computed here, in whole numbers; refused where powers are missing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from gapless.formulations.costs import Interference
from gapless.formulations.deployment import Mode
from gapless.formulations.energy import lacking, powers_of
from gapless.formulations.errors import InvalidProblemError
from gapless.formulations.flow_shop.tables import shop_of, workload_of
from gapless.formulations.flow_shop.values import WorkloadValues
from gapless.formulations.hardware import MAX_POWER_MW, Platform, ProcessingUnit
from gapless.formulations.judge import score
from gapless.formulations.problem import Problem
from gapless.formulations.simulate import simulate_workload
from gapless.formulations.workload import Request, Workload
from gapless.rules import energy_cap
from gapless.solvers.exhaustive import all_plans
from tests.solvers.brute import random_problem
from tests.solvers.workload_cases import Size, random_workload
from tests.workload_instances import workload_problem

TABLES: dict[str, list[list[int | None]]] = {
    "a": [[3, 5], [4, 2], [6, 6]],
    "b": [[5, 4], [2, 7]],
}


def energy_nj(problem: Problem, busy_us: dict[str, int], whole_us: int) -> int:
    """Return busy power x busy time + idle power x the rest, unit by unit."""
    total = 0
    for unit in problem.platform.units:
        busy = busy_us.get(unit.name, 0)
        total += (unit.power_mw or 0) * busy + (unit.idle_mw or 0) * (whole_us - busy)
    return total


@pytest.mark.parametrize("features", ["", "nt", "c"])
def test_energy_of_one_network(features: str) -> None:
    problem = random_problem(3, layers=5, features=features)
    for number, plan in enumerate(all_plans(problem)):
        if number % 7 == 0:
            judged = score(problem, plan)
            busy = dict(zip(problem.platform.unit_names, judged.busy_us, strict=True))
            known = {unit: time for unit, time in busy.items() if time is not None}
            assert judged.energy_nj == energy_nj(problem, known, judged.period_us)
            assert judged.units == len(known)


@pytest.mark.parametrize("seed", range(12))
def test_energy_of_a_batch_counts_the_time_that_chunks_ran(seed: int) -> None:
    problem = random_workload(seed, Size(requests=2))
    problem = replace(problem, data=replace(workload_of(problem), mode=Mode.BATCH, task_slots=None))
    for number, plan in enumerate(all_plans(problem)):
        if number % 29 == 0:
            trace = simulate_workload(problem, plan)
            busy: dict[str, int] = {}
            for event in trace.events:
                start_us, end_us = event.span_us
                busy[event.unit] = busy.get(event.unit, 0) + end_us - start_us
            judged = score(problem, plan)
            assert judged.energy_nj == energy_nj(problem, busy, judged.makespan_us)
            assert judged.units == len(busy)


@pytest.mark.parametrize("slowed", [False, True])
def test_energy_of_a_stream_is_that_of_a_round(slowed: bool) -> None:
    requests = tuple(Request(name=f"{name}0", network=name) for name in "ab")
    problem = workload_problem(TABLES, ["a", "b"])
    units = problem.platform.unit_names
    slowdown = tuple(tuple(0 if u == v else 400 for v in range(len(units))) for u in range(len(units)))
    problem = replace(
        problem,
        data=Workload(requests=requests, mode=Mode.STREAM),
        interference=Interference(units=units, slowdown_permille=slowdown) if slowed else None,
    )
    shop = shop_of(problem)
    assert shop.losses.contended is slowed
    for plan in list(all_plans(problem))[::3]:
        values = WorkloadValues(shop, shop.schedule(plan))
        busy = {shop.units[unit]: time for unit, time in values.busy_us.items()}
        least = energy_nj(problem, busy, values.period_us)
        if not slowed:
            assert values.energy_nj == least
            continue
        runs = [run for run in values.stream if 8 <= run.round < 16]
        extra = (problem.platform.units[run.unit] for run in runs)
        played = sum(
            ((unit.power_mw or 0) - (unit.idle_mw or 0)) * (run.end_us - run.start_us)
            for unit, run in zip(extra, runs, strict=True)
        )
        idle = sum(unit.idle_mw or 0 for unit in problem.platform.units) * values.period_us
        assert values.energy_nj == -(-played // 8) + idle >= least


def without_power(problem: Problem, unit: int, *missing: str) -> Platform:
    units = list(problem.platform.units)
    units[unit] = replace(units[unit], **dict.fromkeys(missing))  # type: ignore[arg-type]
    return replace(problem.platform, units=tuple(units))


def test_a_missing_power_is_named() -> None:
    problem = random_problem(1)
    platform = without_power(problem, 2, "idle_mw")
    assert powers_of(platform) is None
    assert "idle_mw of 'c' (milliwatts" in lacking(platform)
    bare = replace(problem, platform=platform)
    assert "energy_nj" not in score(bare, next(all_plans(bare))).terms
    asked: list[Callable[[], Problem]] = [
        lambda: bare.with_objective("energy"),
        lambda: bare.with_limits(max_energy_nj=10**9),
        lambda: bare.with_rules(energy_cap(most_nj=10**9)),
    ]
    for ask in asked:
        with pytest.raises(InvalidProblemError, match="does not say idle_mw of 'c'"):
            ask()
    workload = random_workload(1)
    with pytest.raises(InvalidProblemError, match="does not say power_mw of"):
        replace(workload, platform=without_power(workload, 0, "power_mw", "idle_mw")).with_objective("energy")


@pytest.mark.parametrize(
    ("powers", "words"),
    [
        ({"idle_mw": 5}, "needs a power_mw of at least that"),
        ({"power_mw": 4, "idle_mw": 5}, "needs a power_mw of at least that"),
        ({"power_mw": -1}, "at least 0"),
        ({"power_mw": MAX_POWER_MW + 1}, "largest allowed"),
    ],
)
def test_powers_that_cannot_be(powers: dict[str, int], words: str) -> None:
    with pytest.raises(InvalidProblemError, match=words):
        ProcessingUnit(name="gpu", **powers)  # type: ignore[arg-type]


def test_limits_of_energy_and_latency_are_kept_by_the_judge() -> None:
    problem = random_problem(3, layers=4)
    best = min(score(problem, plan).energy_nj for plan in all_plans(problem))
    limited = problem.with_limits(max_energy_nj=best)
    valid = [plan for plan in all_plans(limited) if score(limited, plan).valid]
    assert valid
    assert all(score(problem, plan).energy_nj == best for plan in valid)
