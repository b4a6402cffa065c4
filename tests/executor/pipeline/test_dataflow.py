"""Layers side by side at work: pieces begin when their inputs are there, shared cores take turns."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import gapless
from gapless.executor.engines.registry import get_engine
from gapless.executor.graph.onnx_model import OnnxModel
from gapless.executor.pipeline.pipeline import Pipeline
from gapless.executor.pipeline.trace_file import read_trace, trace_parts
from gapless.executor.pipeline.verify import References, verify
from gapless.executor.simulated import SimulatedRunner
from gapless.formulations.costs import CostTable, NetworkCosts
from gapless.formulations.deployment import Deployment
from gapless.formulations.errors import ExecutionError, InvalidPlanError
from gapless.formulations.hardware import Platform
from gapless.formulations.jobs.tasks import tables_of
from gapless.formulations.operation import operation_of
from gapless.formulations.plan import Plan
from gapless.formulations.problem import Problem
from gapless.formulations.streams import Dataflow
from gapless.formulations.task_graphs import TaskGraph

from .fakes import chain
from .test_orders import by_tensor, parts_of, two_branches
from .test_pipeline import opened, stream

ORDER = ("s", "a1", "b1", "a2", "b2", "sum", "y")


def units_here(engine: str) -> Platform:
    """Return units a and b, which exclude nobody, and c, which shares a core with a."""
    core = gapless.this_device(engine=engine).units[0]
    apart = replace(core, cores=())
    return Platform(
        name="test",
        units=(replace(core, name="a"), replace(apart, name="b"), replace(core, name="c")),
    )


def problem_on(loaded: OnnxModel, platform: Platform) -> Problem:
    rows = tuple((100, 100, 100) for _ in loaded.network.layers)
    return Problem(
        platform=platform,
        networks=(loaded.network,),
        costs=CostTable(
            units=platform.unit_names, networks=(NetworkCosts(network=loaded.network.name, layer_us=rows),)
        ),
        data=TaskGraph(),
        objective=gapless.Objective(terms=("latency",)),
    )


def schedule(loaded: OnnxModel, **units: str) -> Plan:
    """Return which tensors are made where, in the order `ORDER`."""
    placed = parts_of(
        loaded.network, *((unit, by_tensor(loaded, *made.split())) for unit, made in units.items())
    )
    names = loaded.network.layer_names
    return replace(placed, order=tuple(names[layer] for layer in by_tensor(loaded, *ORDER)))


def branches_apart(loaded: OnnxModel) -> Plan:
    return schedule(loaded, a="s a1 a2", b="b1 b2", c="sum y")


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["onnxruntime", "mnn"])
def test_branches_run_side_by_side_and_give_the_numbers_of_the_uncut_model(
    tmp_path: Path, engine: str
) -> None:
    pytest.importorskip({"mnn": "MNN"}.get(engine, engine))
    loaded = two_branches(tmp_path)
    problem = problem_on(loaded, units_here(engine))
    plan = branches_apart(loaded)
    (stream,) = operation_of(problem).deploy(problem, plan).streams
    assert [chunk.unit for chunk in stream.chunks] == ["a", "a", "b", "c"]
    # The last piece waits for both branches; that a and c share a core says the same.
    assert stream.waits == ((), (0,), (0,), (1, 2))
    with gapless.open_pipeline(problem, plan, model=loaded, engine=engine) as pipeline:
        assert verify(pipeline, References({loaded.network.name: loaded})).worst_error is not None
        assert len(pipeline.receipts) == len(stream.chunks)
        frames = [loaded.sample_inputs(seed) for seed in range(9)]
        for frame, found in zip(frames, pipeline.map(frames), strict=True):
            np.testing.assert_allclose(found["y"], loaded.reference(frame)["y"], rtol=1e-4, atol=1e-4)
        trace = pipeline.trace(requests=5)
        measured = pipeline.measure(gapless.Budget(requests=20))
    assert measured.requests == 20
    assert len(trace.events) == 20
    done = {(event.request, event.chunk): event.end_ns for event in trace.events}
    for event in trace.events:
        for other in stream.waits[event.chunk]:
            assert done[event.request, other] <= event.start_ns
        if event.request:  # one request at a time
            assert done[event.request - 1, len(stream.chunks) - 1] <= event.start_ns


@pytest.mark.slow
def test_units_that_share_a_core_take_turns(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    loaded = two_branches(tmp_path)
    problem = problem_on(loaded, units_here("onnxruntime"))
    plan = schedule(loaded, b="s sum y", a="a1 a2", c="b1 b2")
    (stream,) = operation_of(problem).deploy(problem, plan).streams
    # The branches read nothing from each other, but a1, b1, a2, b2 take turns.
    assert [chunk.unit for chunk in stream.chunks] == ["b", "a", "c", "a", "c", "b"]
    assert stream.waits == ((), (0,), (1,), (2,), (3,), (4,))
    with gapless.open_pipeline(problem, plan, model=loaded, engine="onnxruntime") as pipeline:
        trace = pipeline.trace(requests=5)
    spans = sorted((e.start_ns, e.end_ns) for e in trace.events if e.unit in "ac")
    assert all(one[1] <= other[0] for one, other in pairwise(spans))


def test_a_piece_has_to_wait_for_what_it_reads(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    loaded = two_branches(tmp_path)
    problem = problem_on(loaded, units_here("onnxruntime"))
    (stream,) = operation_of(problem).deploy(problem, branches_apart(loaded)).streams
    assert stream.dataflow is not None
    hasty = Dataflow(waits=((), (0,), (), (1, 2)), starts=stream.dataflow.starts)
    wrong = Deployment(streams=(replace(stream, dataflow=hasty),))
    engine = get_engine("onnxruntime")
    with pytest.raises(InvalidPlanError, match="needs tensors that no earlier piece makes"):
        Pipeline(wrong, {loaded.network.name: loaded}, problem.platform, engine)


@pytest.mark.parametrize(
    ("layers", "says"), [("crash", "killed by SIGKILL"), ("fail", "chunk 1, layers 1 to 1")]
)
def test_a_worker_that_fails_ends_the_run(layers: str, says: str) -> None:
    model = chain("add", layers, "add", name="net")
    flow = Dataflow(waits=((), (0,), (1,)), starts=model.network.layer_names)
    run = replace(stream("net", (1, "a"), (2, "b"), (3, "a")), task_slots=1, dataflow=flow)
    with opened([model], run) as pipeline:
        with pytest.raises(ExecutionError, match=says):
            pipeline.measure(gapless.Budget(requests=5))
        assert not pipeline.is_open


def test_traces_of_both_kinds_are_read_again(tmp_path: Path) -> None:
    loaded = two_branches(tmp_path)
    problem = problem_on(loaded, units_here("onnxruntime"))
    plan = branches_apart(loaded)
    deployment = operation_of(problem).deploy(problem, plan)
    path = tmp_path / "trace.json"
    for history in (
        gapless.simulate(problem, plan, requests=3),
        SimulatedRunner(problem).trace(deployment, requests=3),
    ):
        path.write_text("".join(trace_parts(history)))
        assert read_trace(path) == history


def test_layers_around_a_closed_cut_stay_together(tmp_path: Path) -> None:
    loaded = two_branches(tmp_path)
    problem = problem_on(loaded, units_here("onnxruntime"))
    closed = replace(problem.network, forbidden_cuts=(1, 2))
    again = replace(problem, networks=(closed,))
    assert tables_of(again).task_count == len(closed.layers) - 2
