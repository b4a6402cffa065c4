"""Layers side by side at work: pieces start no later than the judge says, and are charged for what is."""

from __future__ import annotations

from dataclasses import replace

import pytest

import gapless
from gapless.executor.simulated import SimulatedRunner
from gapless.executor.tuning.candidates import asked_pace, baselines, plan_candidates, predicted
from gapless.files.plans import DEPLOYMENT
from gapless.formulations.deployment import Deployment
from gapless.formulations.errors import InvalidInputError, InvalidPlanError
from gapless.formulations.files import dump, parse
from gapless.formulations.jobs.space import all_plans
from gapless.formulations.jobs.task_formulation import pieces_of
from gapless.formulations.jobs.tasks import ScheduleValues, tables_of
from gapless.formulations.judge import check, score
from gapless.formulations.operation import operation_of
from gapless.formulations.plan import Chunk, Plan
from gapless.formulations.problem import Problem
from gapless.formulations.simulate import trace_usage
from gapless.formulations.streams import Dataflow, Stream
from tests.task_graph_instances import small_tasks


def branches() -> Problem:
    """Return a stem, branches of two and of one layer, and a last layer that joins them."""
    return gapless.graphs.latency_graph(
        {"stem": [4, 4], "a1": [3, 3], "a2": [3, 3], "b": [5, 5], "join": [2, 2]},
        [("stem", "a1"), ("stem", "b"), ("a1", "a2"), ("a2", "join"), ("b", "join")],
        ["x", "y"],
    )


def side_by_side(order: str = "stem a1 b a2 join") -> Plan:
    chunks = [(0, 3, "x"), (3, 4, "y"), (4, 5, "x")]
    return Plan(
        chunks=tuple(Chunk(network="network", start=a, stop=b, unit=unit) for a, b, unit in chunks),
        order=tuple(order.split()),
    )


def test_tasks_of_one_unit_are_one_piece_unless_somebody_waits() -> None:
    problem = branches()
    tables = tables_of(problem)
    found = pieces_of(tables, problem.formulation.code(problem, side_by_side()))
    # The stem ends before both branches begin; the join needs both.
    assert [[tables.layers[task] for task in own] for own in found.tasks] == [
        ["stem"], ["a1", "a2"], ["b"], ["join"],
    ]  # fmt: skip
    assert found.waits == ((), (0,), (0,), (1, 2))
    played = gapless.simulate(problem, side_by_side(), requests=1)
    assert [event.span_us for event in played.events] == [
        (0, 4000),
        (4000, 9000),
        (4000, 10000),
        (10000, 12000),
    ]


@pytest.mark.parametrize("seed", range(40))
def test_nothing_starts_later_for_being_in_a_piece(seed: int) -> None:
    problem = small_tasks(seed)
    tables = tables_of(problem)
    joined = 0
    for code, _ in zip(all_plans(tables), range(300), strict=False):
        found, values = pieces_of(tables, code), ScheduleValues(tables, code)
        assert sorted(task for own in found.tasks for task in own) == [*range(tables.task_count)]
        plan = problem.formulation.plan(problem, code)
        deployment = operation_of(problem).deploy(problem, plan)
        (state,) = operation_of(problem).steady(problem, deployment)
        runs = [tuple(at // 1000 for at in event.engine_ns) for event in state.events]
        # From what pieces wait for alone follows that they start when the judge says.
        assert [start for start, _ in runs] == [values.start_us[own[0]] for own in found.tasks]
        assert state.period_us <= values.latency_us
        for piece, unit in enumerate(found.units):  # units that exclude each other take turns
            for other in range(piece):
                if found.units[other] in tables.near[unit]:
                    assert runs[other][1] <= runs[piece][0]
        joined += tables.task_count - len(found.tasks)
    assert joined


@pytest.mark.parametrize("seed", range(12))
def test_the_simulated_device_agrees_with_the_judge(seed: int) -> None:
    problem = small_tasks(seed)
    best = gapless.plan(problem).plan
    if best is None:
        pytest.skip("no plan fits into the memory")
    deployment = operation_of(problem).deploy(problem, best)
    assert deployment.pace == "latency"
    judged = score(problem, best).value("latency")
    if deployment.is_dataflow:
        assert deployment.plan == best
        found = SimulatedRunner(problem).measure(deployment, gapless.Budget(requests=5))
        assert found.period_us == judged
    played = gapless.simulate(problem, best, requests=3)
    assert len(played.events) == 3 * len(deployment.streams[0].chunks)
    assert played.period_us == judged
    assert max(played.latency_us) <= judged
    assert trace_usage(problem, played).peak_bytes >= tables_of(problem).weights.whole


def test_pieces_of_branches_are_played_as_they_run() -> None:
    problem = branches()
    whole = replace(problem, data=replace(problem.data, segments=((1, 2),)))
    (stream,) = operation_of(whole).deploy(whole, side_by_side("stem a1 a2 b join")).streams
    for one in (problem, whole):  # a deployment says itself what its pieces are
        found = operation_of(one).steady(one, Deployment(streams=(stream,)))[0]
        assert found.period_us == 12_000
        assert [event.chunk for event in found.events] == [0, 1, 2, 3]


def test_a_deployment_is_kept_in_files_and_told_from_others() -> None:
    problem = branches()
    deployment = operation_of(problem).deploy(problem, side_by_side())
    assert deployment.plan == side_by_side()
    assert str(deployment) == "0-2,4-4 x & 3-3 y"
    assert parse(dump(deployment, DEPLOYMENT).encode(), DEPLOYMENT, name="it") == deployment
    (stream,) = deployment.streams
    assert stream.dataflow is not None
    later = replace(stream.dataflow, waits=((), (0,), (0, 1), (1, 2)))
    other = replace(deployment, streams=(replace(stream, dataflow=later),))
    assert other.deployment_id != deployment.deployment_id


def test_one_unit_alone_is_what_anybody_would_run() -> None:
    problem = branches()
    whole = Plan(chunks=(Chunk(network="network", start=0, stop=5, unit="x"),))
    assert not check(problem, whole)  # without an order layers start in that of the network
    deployment = operation_of(problem).deploy(problem, whole)
    baselines = dict(operation_of(problem).baselines(problem, [("x",), ("y",)]))
    assert deployment == baselines["serial on x"]
    assert operation_of(problem).charged(problem, deployment).data is None


@pytest.mark.parametrize(
    ("waits", "slots", "says"),
    [
        (((), (1,)), 1, "only chunks before it"),
        (((),), 1, "1 lists"),
        (((), (0, 0)), 1, "each once"),
        (((), (0,)), 2, "one request at a time"),
    ],
)
def test_streams_that_cannot_be(waits: tuple[tuple[int, ...], ...], slots: int, says: str) -> None:
    chunks = tuple(Chunk(network="net", start=layer, stop=layer + 1, unit="ab"[layer]) for layer in (0, 1))
    flow = Dataflow(waits=waits, starts=("l0", "l1"))
    with pytest.raises(InvalidPlanError, match=says):
        Deployment(streams=(Stream(name="net", chunks=chunks, task_slots=slots, dataflow=flow),))


def test_one_request_at_a_time() -> None:
    problem = branches()
    with pytest.raises(InvalidInputError, match="one request at a time"):
        operation_of(problem).deploy(problem, side_by_side(), task_slots=3)
    with pytest.raises(InvalidInputError, match="one request at a time"):
        gapless.simulate(problem, side_by_side(), requests=3, task_slots=2)


def test_rivals_use_two_units_or_are_chunks_in_a_row() -> None:
    problem = branches()
    layers, whole, chain = operation_of(problem).rivals(problem)
    assert layers.limits.min_units == whole.limits.min_units == 2
    assert whole.data.segments == ((1, 2),)
    assert (chain.data, chain.objective.terms) == (None, ("latency",))
    (alone,) = operation_of(problem).rivals(replace(problem, limits=replace(problem.limits, max_units=1)))
    assert alone.data is None
    assert gapless.plan(layers).objective == 12_000
    assert gapless.plan(whole).objective == 12_000


def test_each_candidate_is_charged_for_what_it_does() -> None:
    problem = branches()
    tables = {"given": problem}
    (planned,) = plan_candidates([side_by_side()], tables=tables)
    assert planned.predicted("given") == score(problem, side_by_side()).value("latency") == 12_000
    single = [predicted(one, tables) for one in baselines(problem)]
    assert [(one.label, one.predicted("given")) for one in single] == [
        ("serial on x", 17_000),
        ("serial on y", 17_000),
    ]
    assert asked_pace(problem) == "latency"
    # Chunks in a row wait for each other, though the branches would not have to.
    chain = list(operation_of(problem).rivals(problem))[-1]
    chunks = ((0, 3, "x"), (3, 5, "y"))
    row = Plan(chunks=tuple(Chunk(network="network", start=a, stop=b, unit=unit) for a, b, unit in chunks))
    (rival,) = plan_candidates([row], tables=tables, planned=chain)
    assert rival.predicted("given") == 17_000
    assert score(problem, row).value("latency") == 12_000


def test_devices_that_links_join_are_not_run_here() -> None:
    problem = gapless.graphs.with_side_by_side(
        gapless.clusters.cluster_problem("squeezenet", "raspberry-pis", pipelines="one")
    )
    with pytest.raises(InvalidInputError, match="for several devices"):
        operation_of(problem).check_executable(problem)
