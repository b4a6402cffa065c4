"""Traces in one form: simulated and measured ones of the same run are alike."""

from __future__ import annotations

from gapless.api.problems import table_problem
from gapless.executor.deployment import deploy
from gapless.executor.history import Work, history
from gapless.executor.simulated import SimulatedRunner
from gapless.executor.simulated_workload import SimulatedWorkloadRunner
from gapless.formulations.flow_shop.tables import workload_of
from gapless.formulations.simulate import simulate, simulate_workload
from gapless.solvers.exhaustive import all_plans
from tests.workload_instances import workload_problem


def test_a_stream_is_the_same_predicted_and_measured() -> None:
    problem = table_problem([[3, 5, 9], [4, 2, 9], [6, 6, 9]], ["a", "b", "idle"], network="net")
    for plan in all_plans(problem):
        deployment = deploy(plan, task_slots=2)
        predicted = history(simulate(problem, plan, requests=4, interval_us=0, task_slots=2))
        measured = history(SimulatedRunner(problem).trace(deployment, requests=4))
        assert predicted.units == measured.units == tuple(chunk.unit for chunk in plan.chunks)
        for one, other in zip(predicted.streams, measured.streams, strict=True):
            assert (one.name, one.chunks) == (other.name, other.chunks)
        assert [bare(work) for work in predicted.works] == [bare(work) for work in measured.works]
        assert list(predicted.outputs_ns()) == list(measured.outputs_ns())
        assert not predicted.in_rounds
        assert set(predicted.rounds()) == set(range(4))


def bare(work: Work) -> tuple[int, int, int, int, int, str]:
    return work.start_ns, work.end_ns, work.stream, work.request, work.chunk, work.unit


def test_requests_of_a_workload_are_streams() -> None:
    tables: dict[str, list[list[int | None]]] = {"x": [[4, 9], [4, 9]], "y": [[6, 5], [6, 5]]}
    problem = workload_problem(tables, ["x", "y"], slowdown=[[0, 500], [500, 0]])
    plan = next(p for p in all_plans(problem) if len({chunk.unit for chunk in p.chunks}) == 2)
    trace = simulate_workload(problem, plan)
    predicted = history(trace)
    assert [stream.name for stream in predicted.streams] == list(trace.names)
    assert predicted.in_rounds
    assert set(predicted.rounds()) == {0}
    assert list(predicted.outputs_ns()) == [1000 * trace.makespan_us]
    lost_us = sum(event.slowdown_us for event in trace.events)
    assert sum(work.slowdown_ns for work in predicted.works) == 1000 * lost_us > 0
    deployment = deploy(plan, workload=workload_of(problem))
    measured = history(SimulatedWorkloadRunner(problem).trace(deployment, requests=3))
    assert [stream.name for stream in measured.streams] == list(plan.order)
    assert {number: len(works) for number, works in measured.rounds().items()} == dict.fromkeys(
        range(3), len(predicted.works)
    )
    assert len(list(measured.outputs_ns())) == 3, "one for each round"


def test_copies_are_parts_of_a_measured_work() -> None:
    work = Work(start_ns=1000, end_ns=9000, stream=0, request=0, chunk=0, unit="u", engine_ns=(2000, 8500))
    assert work.parts_us == (1.0, 6.5, 0.5)
    later = work.moved(500)
    assert (later.start_us, later.end_us, later.parts_us) == (1.5, 9.5, work.parts_us)
    assert Work(start_ns=0, end_ns=1, stream=0, request=0, chunk=0, unit="u").parts_us == ()
