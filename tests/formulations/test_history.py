"""Histories: simulated and executed ones of the same plan are alike."""

from __future__ import annotations

from gapless.api.problems import table_problem
from gapless.executor.simulated import SimulatedRunner
from gapless.formulations.chunking.operation import deploy
from gapless.formulations.deployment import replicas
from gapless.formulations.flow_shop.formulation import deploy as deploy_rounds
from gapless.formulations.flow_shop.tables import workload_of
from gapless.formulations.history import Interval, executed
from gapless.formulations.simulate import simulate, simulate_workload
from gapless.solvers.exhaustive import all_plans
from tests.workload_instances import workload_problem


def test_a_stream_is_the_same_predicted_and_measured() -> None:
    problem = table_problem([[3, 5, 9], [4, 2, 9], [6, 6, 9]], ["a", "b", "idle"], network="net")
    for plan in all_plans(problem):
        deployment = deploy(plan, task_slots=2)
        predicted = simulate(problem, plan, requests=4, interval_us=0, task_slots=2)
        measured = SimulatedRunner(problem).trace(deployment, requests=4)
        assert (predicted.measured, measured.measured) == (False, True)
        assert predicted.plan == measured.plan == plan
        assert predicted.units == ("a", "b", "idle")
        assert predicted.used_units == measured.units == tuple(chunk.unit for chunk in plan.chunks)
        for one, other in zip(predicted.streams, measured.streams, strict=True):
            assert (one.name, one.chunks) == (other.name, other.chunks)
        assert [bare(event) for event in predicted.events] == [bare(event) for event in measured.events]
        assert list(predicted.outputs_ns()) == list(measured.outputs_ns())
        assert not predicted.in_rounds
        assert set(predicted.rounds()) == set(range(4))
        assert predicted.output_us == measured.output_us
        for unit in predicted.units:
            assert predicted.bubble_us(unit) == measured.bubble_us(unit)


def bare(event: Interval) -> tuple[int, int, int, int, int, str]:
    return event.start_ns, event.end_ns, event.stream, event.request, event.chunk, event.unit


def test_requests_of_a_workload_are_streams() -> None:
    tables: dict[str, list[list[int | None]]] = {"x": [[4, 9], [4, 9]], "y": [[6, 5], [6, 5]]}
    problem = workload_problem(tables, ["x", "y"], slowdown=[[0, 500], [500, 0]])
    plan = next(p for p in all_plans(problem) if len({chunk.unit for chunk in p.chunks}) == 2)
    predicted = simulate_workload(problem, plan)
    assert predicted.names == workload_of(problem).names
    assert predicted.in_rounds
    assert set(predicted.rounds()) == {0}
    assert list(predicted.outputs_ns()) == [1000 * predicted.makespan_us]
    assert sum(event.slowdown_us for event in predicted.events) > 0
    measured = SimulatedRunner(problem).trace(deploy_rounds(plan, workload_of(problem)), requests=3)
    assert measured.names == plan.order
    assert {number: len(events) for number, events in measured.rounds().items()} == dict.fromkeys(
        range(3), len(predicted.events)
    )
    assert len(list(measured.outputs_ns())) == 3, "one for each round"
    assert len(measured.output_us) == 6, "one for each request"
    assert sum(event.slowdown_us for event in measured.events) == 0, "nobody knows what a device lost"


def test_copies_are_parts_of_an_interval() -> None:
    one = Interval(start_ns=1000, end_ns=9000, stream=0, request=0, chunk=0, unit="u", engine_ns=(2000, 8500))
    assert one.parts_us == (1.0, 6.5, 0.5)
    later = one.moved(500)
    assert (later.start_us, later.end_us, later.parts_us) == (1.5, 9.5, one.parts_us)
    assert Interval(start_ns=0, end_ns=1, stream=0, request=0, chunk=0, unit="u").parts_us == ()


def test_whole_microseconds_are_whole_numbers() -> None:
    one = Interval(start_ns=7000, end_ns=9500, stream=0, request=0, chunk=0, unit="u", slowdown_ns=2000)
    assert [repr(time) for time in (one.start_us, one.end_us, one.slowdown_us)] == ["7", "9.5", "2"]


def test_latencies_without_arrivals_begin_with_the_first_chunk() -> None:
    deployment = replicas("net", 2, ("a", "b"))
    events = [
        Interval(start_ns=at, end_ns=at + 5000, stream=stream, request=request, chunk=0, unit="ab"[stream])
        for stream, request, at in ((1, 1, 8000), (0, 0, 0), (1, 0, 2000), (0, 1, 6000))
    ]
    found = executed(deployment, events)
    assert [event.start_ns for event in found.events] == [0, 2000, 6000, 8000]
    assert found.output_us == (5, 7, 11, 13)
    assert found.latency_us == (5, 5, 5, 5)
    assert (found.period_us, found.makespan_us) == (2, 13)
    assert [found.bubble_us(unit) for unit in ("a", "b", "c")] == [1, 1, None]
    assert found.plan is None
