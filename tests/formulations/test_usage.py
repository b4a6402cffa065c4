"""Memory over time: against the judge, and against a count of every single instant."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless.api.problems import table_problem
from gapless.formulations.flow_shop.tables import shop_of
from gapless.formulations.flow_shop.values import WorkloadValues
from gapless.formulations.history import History, Usage
from gapless.formulations.judge import score
from gapless.formulations.network import Layer, Network, Tensor
from gapless.formulations.plan import Chunk, Plan
from gapless.formulations.problem import Problem
from gapless.formulations.simulate import simulate, simulate_workload, trace_usage
from gapless.solvers.exhaustive import all_plans
from tests.instances import co_run_problems, solvable
from tests.workload_instances import workload_problems


def chosen(data: st.DataObject, problem: Problem) -> Plan:
    """Draw a well-formed plan of a problem."""
    return data.draw(st.sampled_from(list(all_plans(problem))))


def counted(problem: Problem, trace: History, at_us: int) -> int:
    """Return the bytes in use at an instant, counted request by request, chunk by chunk."""
    assert trace.plan is not None
    network, chunks = problem.network, trace.plan.chunks
    total = sum(layer.weight_bytes for layer in network.layers)
    for request in range(len(trace.arrivals_us)):
        own = sorted((e for e in trace.events if e.request == request), key=lambda e: e.chunk)
        for place, event in enumerate(own):
            if event.start_us <= at_us < event.end_us:
                chunk = chunks[event.chunk]
                total += max(network.working_bytes[chunk.start : chunk.stop])
            elif place and own[place - 1].end_us <= at_us < event.start_us:
                total += network.boundary_bytes[chunks[event.chunk].start]
    return total


def used_at(usage: Usage, at_us: int) -> int:
    return [used for time, used in usage.steps if time <= at_us][-1]


@pytest.mark.slow
@given(data=st.data())
def test_a_stream_in_steady_state_needs_no_more_than_the_judge_says(data: st.DataObject) -> None:
    problem = data.draw(co_run_problems(most_layers=5, most_units=3).map(solvable))
    plan = chosen(data, problem)
    usage = trace_usage(problem, simulate(problem, plan, requests=4))
    assert usage.peak_bytes <= score(problem, plan).peak_bytes
    assert max(usage.while_bytes) == usage.peak_bytes


@pytest.mark.slow
@given(data=st.data(), interval_us=st.integers(0, 30), slots=st.integers(1, 4))
def test_every_instant_is_counted(data: st.DataObject, interval_us: int, slots: int) -> None:
    problem = data.draw(co_run_problems(most_layers=4, most_units=3).map(solvable))
    plan = chosen(data, problem)
    trace = simulate(problem, plan, requests=4, interval_us=interval_us, task_slots=slots)
    usage = trace_usage(problem, trace)
    moments = sorted({at // 1000 for event in trace.events for at in (event.start_ns, event.end_ns)})
    assert [used_at(usage, time) for time in moments] == [counted(problem, trace, time) for time in moments]
    for request in range(4):
        own = [event for event in trace.events if event.request == request]
        during = [t for t in moments if any(event.start_us <= t < event.end_us for event in own)]
        assert usage.while_bytes[request] == max(counted(problem, trace, time) for time in during)


def test_tensors_pile_up_in_front_of_a_slow_chunk() -> None:
    problem = table_problem([[0.01, None], [None, 0.1]], ["fast", "slow"], network="net")
    network = Network(
        name="net",
        layers=(Layer(name="a", weight_bytes=1000), Layer(name="b", weight_bytes=2000)),
        tensors=(Tensor(name="t", bytes=64, source=0, targets=(1,)),),
    )
    problem = Problem(platform=problem.platform, networks=(network,), costs=problem.costs)
    chunks = (
        Chunk(network="net", start=0, stop=1, unit="fast"),
        Chunk(network="net", start=1, stop=2, unit="slow"),
    )
    plan = Plan(chunks=chunks)
    steady = trace_usage(problem, simulate(problem, plan, requests=5))
    assert steady.peak_bytes == 3000 + 2 * 64 == score(problem, plan).peak_bytes
    crowded = trace_usage(problem, simulate(problem, plan, requests=5, interval_us=0))
    assert crowded.peak_bytes == 3000 + 5 * 64, "one at work, four waiting"
    assert crowded.steps[-1] == (10 + 5 * 100, 3000), "weights stay"


@pytest.mark.slow
@given(data=st.data())
def test_a_workload_needs_what_the_judge_says(data: st.DataObject) -> None:
    problem = data.draw(workload_problems().map(solvable))
    plan = chosen(data, problem)
    usage = trace_usage(problem, simulate_workload(problem, plan))
    values = WorkloadValues(shop_of(problem), shop_of(problem).schedule(plan))
    assert usage == values.usage
    assert usage.peak_bytes == score(problem, plan).peak_bytes
