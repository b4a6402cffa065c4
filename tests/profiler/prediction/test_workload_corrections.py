"""Corrections learned from executed plans of a workload, on simulated devices whose truth is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

import gapless
from gapless.formulations.judge import score
from gapless.formulations.operation import operation_of
from gapless.formulations.plan import Plan
from gapless.formulations.problem import Problem
from gapless.formulations.workload import LoadPolicy, Workload
from gapless.profiler.platforms.workloads import shipped_workload
from gapless.profiler.prediction.corrections import Corrections, fit_workload
from gapless.profiler.prediction.executions import ExecutedPlan

NPU, BIG = 2.0, 0.8
"""How much longer than planned two units really take."""


@pytest.fixture(scope="module")
def served() -> Problem:
    found = shipped_workload("kirin990", "vgg16,mobilenetv2x2,bert")
    assert isinstance(found.data, Workload)
    return replace(found, data=replace(found.data, load_policy=LoadPolicy.RESIDENT))


@pytest.fixture(scope="module")
def plans(served: Problem) -> tuple[Plan, ...]:
    found = gapless.plan(served, top=6, time_limit_s=0.3)
    return tuple(candidate.plan for candidate in found.candidates)


def otherwise(problem: Problem, bert: float = 1.0) -> Problem:
    """Return the problem with two other units, and one network that takes longer everywhere."""
    names = problem.platform.unit_names
    units = tuple({"npu": NPU, "cpu_big": BIG}.get(name, 1.0) for name in names)
    rows = [
        (bert if costs.network == "bert" else 1.0,) * len(names)
        for costs in problem.costs.networks
        for _ in costs.layer_us
    ]
    return Corrections(unit_factor=units, layer_factor=tuple(rows)).applied(problem)


def executed(truth: Problem, plans: Sequence[Plan]) -> list[ExecutedPlan]:
    """Return plans as a device whose costs are the truth executes them."""
    operation, found = operation_of(truth), []
    for plan in plans:
        deployment = operation.deploy(truth, plan)
        (steady,) = operation.steady(truth, deployment)
        took: dict[tuple[str, int], float] = {}
        for event in steady.events:
            stream = deployment.streams[event.stream]
            took[stream.name, stream.chunks[event.chunk].start] = (event.end_ns - event.start_ns) / 1000
        found.append(
            ExecutedPlan(
                plan=plan,
                period_us=score(truth, plan).value("makespan"),
                chunk_us=tuple(took[chunk.request, chunk.start] for chunk in plan.chunks),
            )
        )
    return found


def test_what_was_foretold_corrects_nothing(served: Problem, plans: tuple[Plan, ...]) -> None:
    found = fit_workload(served, executed(served, plans))
    assert found.unit_factor == pytest.approx((1.0,) * len(served.platform.units), abs=1e-3)
    assert found.applied(served).costs == served.costs


def test_factors_of_units_and_networks_are_found(served: Problem, plans: tuple[Plan, ...]) -> None:
    truth = otherwise(served, bert=1.6)
    found = fit_workload(served, executed(truth, plans))
    factor = dict(zip(served.platform.unit_names, found.unit_factor, strict=True))
    assert factor["npu"] == max(factor.values())
    before = [
        abs(score(served, plan).value("makespan") / score(truth, plan).value("makespan") - 1)
        for plan in plans
    ]
    corrected = found.applied(served)
    after = [
        abs(score(corrected, plan).value("makespan") / score(truth, plan).value("makespan") - 1)
        for plan in plans
    ]
    assert max(after) < 0.5 * min(before)


def test_layers_of_one_network_have_one_factor_a_unit(served: Problem, plans: tuple[Plan, ...]) -> None:
    found = fit_workload(served, executed(otherwise(served, bert=1.6), plans))
    rows = iter(found.layer_factor)
    for costs in served.costs.networks:
        assert len({next(rows) for _ in costs.layer_us}) == 1
    assert next(rows, None) is None
