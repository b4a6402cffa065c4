"""The simulated device of workloads: what it says equals the judge, and what it cannot do it refuses."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gapless.executor.pipeline.trace_file import check_trace
from gapless.executor.runner import Budget
from gapless.executor.simulated import SimulatedRunner
from gapless.executor.tuning.candidates import predicted_us
from gapless.formulations.deployment import Mode
from gapless.formulations.errors import ExecutionError, InvalidInputError, InvalidPlanError
from gapless.formulations.flow_shop.formulation import deploy as deploy_rounds
from gapless.formulations.flow_shop.tables import Schedule, shop_of, workload_of
from gapless.formulations.judge import score
from gapless.formulations.plan import Plan
from gapless.formulations.problem import Problem
from gapless.formulations.simulate import simulate_workload
from gapless.formulations.workload import LoadPolicy
from tests.executor.pipeline.test_pipeline import in_plan_order
from tests.executor.pipeline.test_trace_export import document
from tests.workload_instances import workload_problem, workload_problems


def simple() -> Problem:
    """Return three requests of two networks on two units, which slow each other down by half."""
    return workload_problem(
        {"x": [[4000, 6000], [2000, 2000]], "y": [[3000, 1000], [3000, 3000]]},
        ["x", "y", "x"],
        slowdown=[[0, 500], [500, 0]],
        copies={"x": [[100, 0], [0, 200], [0, 0]]},
    )


def plan_of(problem: Problem) -> Plan:
    """Return x0 and y1 cut, x2 whole on the second unit, in this order."""
    return shop_of(problem).plan(Schedule((0, 1, 2), ((0, 1, 2), (0, 1, 2), (0, 0, 2))))


def test_makespan_latencies_and_bubbles_are_those_of_the_judge() -> None:
    problem = simple()
    plan = plan_of(problem)
    right = score(problem, plan)
    found = SimulatedRunner(problem).measure(deploy_rounds(plan, workload_of(problem)), Budget(requests=12))
    assert found.makespan_us is not None
    assert found.makespan_us.median == found.period_us == right.makespan_us == predicted_us(problem, plan)
    assert found.makespan_us.count == 12
    assert found.requests == 3 * 12
    assert [stream.latency_us.median for stream in found.streams] == list(right.request_latency_us)
    assert [use.bubble_us for use in found.units] == list(right.bubble_us)
    assert found.device == "simulated board"
    first = found.chunks[0]
    assert (first.stream, first.unit, first.copy_in_us.median) == ("x0", "npu", 100)
    assert first.busy_us.median == first.copy_in_us.median + first.run_us.median


@given(problem=workload_problems(), data=st.data())
@settings(max_examples=60)
def test_any_schedule_takes_what_the_judge_says(problem: Problem, data: st.DataObject) -> None:
    workload = workload_of(problem)
    assert workload is not None
    shop = shop_of(problem)
    count, units = shop.request_count, shop.unit_count
    order = tuple(data.draw(st.permutations(range(count))))
    cuts = tuple(
        (0, *sorted(data.draw(st.lists(st.integers(0, n), min_size=units - 1, max_size=units - 1))), n)
        for n in (shop.chain(request).layer_count for request in range(count))
    )
    plan = shop.plan(Schedule(order, cuts))
    runner = SimulatedRunner(problem)
    try:
        served = deploy_rounds(plan, workload)
        found = runner.measure(served, Budget(requests=1))
    except (InvalidPlanError, ExecutionError):
        return  # columns, running weights, or a unit that cannot do it
    assert found.period_us == predicted_us(problem, plan)
    trace = runner.trace(served, requests=3)
    assert len(trace.events) == 3 * len(plan.chunks)
    if served.is_batch:
        in_plan_order(trace)
        assert max(e.end_ns for e in trace.events) == 3000 * found.period_us


def test_a_stream_of_rounds_overlaps() -> None:
    problem = simple()
    problem = replace(problem, data=replace(workload_of(problem), mode=Mode.STREAM))
    plan = plan_of(problem)
    served = deploy_rounds(plan, workload_of(problem))
    runner = SimulatedRunner(problem)
    found = runner.measure(served, Budget(seconds=0.2))
    assert found.makespan_us is None
    assert found.period_us == score(problem, plan).period_us < score(problem, plan).makespan_us
    assert found.seconds == pytest.approx(0.2, abs=0.02)
    trace = runner.trace(served, requests=5)
    in_plan_order(trace)
    assert check_trace(document(trace)) == []


def test_simulated_traces_of_workloads_nest() -> None:
    problem = simple()
    found = document(simulate_workload(problem, plan_of(problem)))
    assert check_trace(found) == []
    slices = [event for event in found["traceEvents"] if event["ph"] == "X"]
    assert {event["args"]["stream"] for event in slices} == {"x0", "y1", "x2"}


def test_noise_repeats_for_a_seed() -> None:
    problem = simple()
    served = deploy_rounds(plan_of(problem), workload_of(problem))

    def periods(seed: int) -> list[float]:
        runner = SimulatedRunner(problem, noise_permille=50, seed=seed)
        return [runner.measure(served, Budget(requests=5)).period_us for _ in range(3)]

    assert periods(3) == periods(3)
    assert len({*periods(3), *periods(4)}) == 6
    with pytest.raises(InvalidInputError, match="between 0 and 500"):
        SimulatedRunner(problem, noise_permille=501)


def test_what_it_cannot_run_is_refused() -> None:
    problem = simple()
    plan = plan_of(problem)
    other = replace(workload_of(problem), task_slots=1)
    runner = SimulatedRunner(problem)
    for served, words in (
        (deploy_rounds(plan, other), "serves another workload"),
        (replace(deploy_rounds(plan, other), rounds=None), "serves another workload"),
    ):
        with pytest.raises(ExecutionError, match=words):
            runner.measure(served, Budget(requests=1))
    lazy = replace(problem, data=replace(workload_of(problem), load_policy=LoadPolicy.RUNNING))
    with pytest.raises(ExecutionError, match="load policy resident"):
        SimulatedRunner(lazy).measure(deploy_rounds(plan, workload_of(problem)), Budget(requests=1))
