"""Plans of pipelines at work: the simulation, the deployment and the judge say the same."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice, pairwise

import pytest

from gapless.executor.runner import Budget
from gapless.executor.simulated import SimulatedRunner
from gapless.executor.tuning.candidates import baselines
from gapless.formulations.cluster import InnerDevice, Link, Pipelines
from gapless.formulations.costs import NetworkCosts
from gapless.formulations.errors import InvalidInputError, InvalidPlanError
from gapless.formulations.hardware import Platform, ProcessingUnit
from gapless.formulations.history import is_message
from gapless.formulations.judge import check, score
from gapless.formulations.operation import operation_of
from gapless.formulations.pipelines.plans import plan_of
from gapless.formulations.pipelines.quantities import PipelineValues
from gapless.formulations.pipelines.tables import cluster_of
from gapless.formulations.plan import Plan
from gapless.formulations.problem import Problem
from gapless.formulations.shares import shares_of
from gapless.formulations.simulate import simulate, trace_usage
from tests.pipeline_instances import drawn_problem

SEEDS = range(60)


def drawn_plan(problem: Problem, seed: int) -> Plan | None:
    """Return one of the valid plans of a problem."""
    rng, formulation = random.Random(seed), problem.formulation
    plans = [formulation.plan(problem, code) for code in islice(formulation.codes(problem), 3000)]
    rng.shuffle(plans)
    return next((plan for plan in plans if not check(problem, plan)), None)


def drawn() -> Iterator[tuple[Problem, Plan]]:
    """Yield problems with slow links, with and without overlap, with a valid plan for each."""
    for seed in SEEDS:
        problem = drawn_problem(seed)
        slow = tuple(
            replace(link, bytes_per_second=link.bytes_per_second // 4) for link in problem.data.links
        )
        problem = replace(problem, data=replace(problem.data, links=slow))
        for overlap in (True, False):
            variant = replace(problem, data=replace(problem.data, overlap=overlap))
            plan = drawn_plan(variant, seed)
            if plan is not None:
                yield variant, plan


CASES = list(drawn())


def values(problem: Problem, plan: Plan) -> PipelineValues:
    return PipelineValues(cluster_of(problem), problem.formulation.code(problem, plan))


def test_the_cases_have_what_is_tested() -> None:
    found = [values(problem, plan) for problem, plan in CASES]
    assert len(found) > 80
    assert sum(one.pipelines > 1 for one in found) > 10
    assert sum(any(s.message_us >= s.compute_us for line in one.stages for s in line) for one in found) > 10
    assert sum(bool(problem.data.host) for problem, _ in CASES) > 10


def test_each_pipeline_is_played_at_the_period_of_the_judge() -> None:
    for problem, plan in CASES:
        judged = values(problem, plan)
        deployment = operation_of(problem).arrange(problem, plan)
        states = operation_of(problem).steady(problem, deployment)
        assert tuple(state.period_us for state in states) == judged.periods_us, (problem, plan)
        found = SimulatedRunner(problem).measure(deployment, Budget(requests=50))
        rate = score(problem, plan).throughput
        assert rate is not None
        assert found.period_us == pytest.approx(1e6 / rate)


def test_rounds_that_are_played_end_at_the_period_of_the_judge() -> None:
    for problem, plan in CASES[::4]:
        operation = operation_of(problem)
        played = operation.play(problem, operation.arrange(problem, plan), 12)
        for stream, period_us in enumerate(values(problem, plan).periods_us):
            own = [event for event in played.events if event.stream == stream]
            last, before = (max(e.end_ns for e in own if e.request == number) for number in (11, 10))
            assert last - before == 1000 * period_us


def test_an_item_that_is_alone_takes_the_latency_of_the_judge() -> None:
    for problem, plan in CASES:
        judged = values(problem, plan)
        alone = operation_of(problem).deploy(problem, plan, task_slots=1)
        states = operation_of(problem).steady(problem, alone)
        assert max(state.period_us for state in states) == judged.latency_us


def test_every_message_lies_between_its_chunks_on_its_link() -> None:
    seen = 0
    for problem, plan in CASES:
        trace = simulate(problem, plan, requests=6)
        rows = {unit: trace.on(unit) for unit in trace.used_units}
        assert sum(map(len, rows.values())) == len(trace.events)
        for events in rows.values():
            assert all(one.end_ns <= other.start_ns for one, other in pairwise(events))
        chunks = {(e.stream, e.request, e.chunk): e for e in trace.events if not is_message(e, trace.streams)}
        for event in trace.events:
            key = event.stream, event.request, event.chunk
            if is_message(event, trace.streams):
                seen += 1
                source, target = event.unit.split(" -> ")
                own = chunks[key]
                if source == own.unit:
                    assert event.end_ns >= own.end_ns if problem.data.overlap else event.end_ns == own.end_ns
                    following = chunks.get((*key[:2], event.chunk + 1))
                    assert following is None or (
                        target == following.unit and following.start_ns >= event.end_ns
                    )
                else:
                    assert (source, event.chunk) == (problem.data.host, 0)
    assert seen > 100


def test_devices_at_work_are_busy_for_what_they_compute() -> None:
    for problem, plan in CASES:
        judged, deployment = values(problem, plan), operation_of(problem).arrange(problem, plan)
        shares = shares_of(operation_of(problem).steady(problem, deployment))
        for device, name in enumerate(problem.platform.unit_names):
            if device in judged.place:
                busy = judged.busy_us if problem.data.overlap else judged.stage_us
                share = busy[device] / judged.periods_us[judged.place[device]]
                assert shares[name].busy_us / shares[name].whole_us == pytest.approx(share)


def test_items_are_dealt_so_that_all_are_done_first() -> None:
    tried = 0
    for problem, plan in CASES:
        judged = values(problem, plan)
        if judged.pipelines != 2:
            continue
        tried += 1
        trace = simulate(problem, plan, requests=7, interval_us=0)
        latency = [sum(s.compute_us + s.message_us for s in line) for line in judged.stages]
        ends = [
            max(
                latency[p] + (count - 1) * judged.periods_us[p] if count else 0
                for p, count in enumerate((first, 7 - first))
            )
            for first in range(8)
        ]
        assert trace.makespan_us == min(ends)
        assert len(trace.output_us) == len(trace.latency_us) == len(trace.arrivals_us) == 7
    assert tried > 5


def test_memory_is_counted_as_the_judge_counts_it() -> None:
    for problem, plan in CASES:
        usage = trace_usage(problem, simulate(problem, plan, requests=5))
        judged, waiting = values(problem, plan), 0
        if not problem.data.in_slots + problem.data.out_slots:
            waiting = max(cluster_of(problem).boundary_bytes) * judged.devices
        assert usage.peak_bytes <= judged.peak_bytes + waiting
        assert len(usage.while_bytes) == 5


def test_a_plan_survives_being_deployed() -> None:
    for problem, plan in CASES:
        deployment = operation_of(problem).deploy(problem, plan)
        assert deployment.plan == plan
        assert deployment.plans == (plan,)
        assert [chunk.request for part in deployment.parts for chunk in part.chunks] == [""] * len(
            plan.chunks
        )


def test_how_pipelines_are_named_makes_no_difference() -> None:
    problem, plan = next((problem, plan) for problem, plan in CASES if len(plan.order) > 1)
    new = {name: f"z{10 - number}" for number, name in enumerate(plan.order)}
    other = Plan(
        chunks=tuple(replace(chunk, request=new[chunk.request]) for chunk in plan.chunks),
        order=tuple(new.values()),
    )
    operation = operation_of(problem)
    assert operation.deploy(problem, other) == operation.deploy(problem, plan)
    assert simulate(problem, other, requests=4).events == simulate(problem, plan, requests=4).events


def test_latency_asks_for_one_item_at_a_time() -> None:
    problem, plan = next((p, plan) for p, plan in CASES if not plan.order and len(plan.chunks) > 1)
    wanted = problem.with_objective("latency")
    assert operation_of(wanted).pace(wanted) == "latency"
    assert operation_of(wanted).deploy(wanted, plan).pace == "latency"
    assert operation_of(problem).deploy(problem, plan).pace == "period"


def board() -> Problem:
    """Return one board of three units, of which one shares its cores with the others."""
    problem = drawn_problem(1, layers=3, devices=3)
    units = (
        ProcessingUnit(name="big", cores=(0,)),
        ProcessingUnit(name="small", cores=(1,)),
        ProcessingUnit(name="all", cores=(0, 1)),
    )
    rows = ((10, 20, 7), (10, 20, 7), (10, 20, 7))
    return replace(
        problem,
        platform=Platform(name="board", units=units),
        networks=(replace(problem.network, forbidden_cuts=()),),
        costs=replace(
            problem.costs,
            units=("big", "small", "all"),
            networks=(NetworkCosts(network="net", layer_us=rows),),
        ),
        objective=problem.objective.parse("throughput"),
        data=Pipelines(),
    )


def test_baselines_are_plans_with_the_names_of_plans() -> None:
    problem = board()
    found = {one.label: one.deployment for one in baselines(problem)}
    assert list(found) == ["serial on big", "serial on small", "serial on all", "replicas on big+small"]
    both = found["replicas on big+small"]
    assert str(both.plan) == "pipeline 1: 0-2 big; pipeline 2: 0-2 small"
    pipes = (((0, 3, 0),), ((0, 3, 1),))
    planned = plan_of(cluster_of(problem), pipes)
    assert operation_of(problem).deploy(problem, planned).deployment_id == both.deployment_id
    latency = problem.with_objective("latency")
    assert len(baselines(latency)) == 3, "replicas make no item faster"


def test_rivals_have_one_pipeline() -> None:
    problem = board()
    (one,) = operation_of(problem).rivals(problem)
    assert one.data.most == 1
    assert not list(operation_of(one).rivals(one))
    latency = problem.with_objective("latency")
    assert not list(operation_of(latency).rivals(latency))


def test_units_of_one_board_run_and_several_devices_do_not() -> None:
    problem = board()
    operation_of(problem).check_executable(problem)
    link = Link(source="big", target="small", bytes_per_second=1000)
    inner = InnerDevice(device="big", platform=problem.platform, costs=problem.costs.networks[0])
    for data in (Pipelines(links=(link,)), Pipelines(inner=(inner,))):
        several = replace(problem, data=data)
        with pytest.raises(InvalidInputError, match="can be simulated"):
            operation_of(several).check_executable(several)


def test_chunks_of_devices_with_units_are_charged_by_their_inner_pipeline() -> None:
    problem = board()
    inner = InnerDevice(device="big", platform=problem.platform, costs=problem.costs.networks[0])
    nested = replace(problem, data=Pipelines(inner=(inner,)))
    plan = plan_of(cluster_of(nested), (((0, 3, 0),),))
    deployment = operation_of(nested).arrange(nested, plan)
    assert operation_of(nested).chunk_us(nested, deployment) == ((20,),)
    assert operation_of(problem).chunk_us(problem, deployment) == ((30,),)


def test_bad_input_is_refused() -> None:
    problem, plan = CASES[0]
    for options in ({"requests": 0}, {"requests": 1, "task_slots": 0}, {"requests": 1, "interval_us": -1}):
        with pytest.raises(InvalidInputError, match="at least"):
            simulate(problem, plan, **options)
    with pytest.raises(InvalidInputError, match="how many requests"):
        simulate(problem, plan)
    half = Plan(chunks=(replace(plan.chunks[0], request="", start=0, stop=99),))
    with pytest.raises(InvalidPlanError):
        simulate(problem, half, requests=1)
