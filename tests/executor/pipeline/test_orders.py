"""Partitions at work: chunks of another order of the layers, and tensors that skip parts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest

import gapless
from gapless.api.models import models_of
from gapless.executor.graph.choices import Granularity
from gapless.executor.graph.onnx_model import OnnxModel, load_onnx
from gapless.executor.model import in_order_of, reordered
from gapless.executor.pipeline.blueprint import stream_pieces
from gapless.executor.pipeline.trace_file import read_trace, trace_parts
from gapless.executor.pipeline.verify import References, verify
from gapless.executor.simulated import SimulatedRunner
from gapless.files.plans import DEPLOYMENT
from gapless.formulations.costs import CostTable, NetworkCosts
from gapless.formulations.deployment import Deployment
from gapless.formulations.errors import InvalidInputError, InvalidPlanError, MalformedPlanError
from gapless.formulations.files import dump, parse
from gapless.formulations.hardware import Platform, ProcessingUnit
from gapless.formulations.network import Network
from gapless.formulations.operation import operation_of
from gapless.formulations.partitions import Partition
from gapless.formulations.plan import Chunk, Plan
from gapless.formulations.problem import Problem
from gapless.formulations.simulate import trace_usage
from gapless.formulations.streams import Stream
from gapless.formulations.terms import Objective
from tests.executor.graph.models import model, node, value, weights
from tests.executor.pipeline.fakes import chain

SIDE = 16
UNITS = Platform(name="test", units=tuple(ProcessingUnit(name=name) for name in "abc"))


def two_branches(folder: Path) -> OnnxModel:
    """Return a stem, two branches of two layers and their sum; the stem is read at the end, too."""
    names = {"s": "w0", "a1": "wa", "b1": "wb", "a2": "va", "b2": "vb"}
    reads = {"s": "x", "a1": "s", "b1": "s", "a2": "a1", "b2": "b1"}
    nodes = [node("MatMul", f"{reads[out]} {weight}", out) for out, weight in names.items()]
    nodes += [node("Add", "a2 b2", "sum"), node("Mul", "sum s", "y")]
    found = model(
        nodes,
        [value("x", [1, SIDE])],
        [value("y", [1, SIDE])],
        weights(**dict.fromkeys(names.values(), (SIDE, SIDE))),
    )
    path = folder / "branches.onnx"
    onnx.save(found, path)
    return load_onnx(path, granularity=Granularity.OPERATOR)


def by_tensor(loaded: OnnxModel, *names: str) -> list[int]:
    layers = [loaded.layer_of(name) for name in names]
    return [layer for layer in layers if layer is not None]


def parts_of(network: Network, *parts: tuple[str, list[int]]) -> Plan:
    """Return a plan from the layers of each unit."""
    return Plan(
        chunks=tuple(
            Chunk(network=network.name, start=layer, stop=layer + 1, unit=unit)
            for unit, layers in parts
            for layer in layers
        )
    )


def problem_of(network: Network, units: Platform) -> Problem:
    rows = tuple((100,) * len(units.units) for _ in network.layers)
    costs = CostTable(units=units.unit_names, networks=(NetworkCosts(network=network.name, layer_us=rows),))
    return Problem(
        platform=units,
        networks=(network,),
        costs=costs,
        data=Partition(tensor_us=tuple((7,) * len(units.units) for _ in network.tensors)),
        objective=Objective(terms=("period",)),
    )


def branch_problem(loaded: OnnxModel) -> tuple[Problem, Plan]:
    """Return three parts, the second and third across both branches; what the stem makes skips the second."""
    plan = parts_of(
        loaded.network,
        ("a", by_tensor(loaded, "s")),
        ("b", by_tensor(loaded, "a1", "b1")),
        ("c", by_tensor(loaded, "a2", "b2", "sum", "y")),
    )
    return problem_of(loaded.network, UNITS), plan


def test_pieces_have_what_crosses_their_borders_also_what_skips_a_part(tmp_path: Path) -> None:
    loaded = two_branches(tmp_path)
    problem, plan = branch_problem(loaded)
    (stream,) = operation_of(problem).deploy(problem, plan).streams
    assert stream.order
    assert {chunk.unit for chunk in stream.chunks} == {"a", "b", "c"}
    found = {
        chunk.unit: [({s.name for s in p.inputs}, {s.name for s in p.outputs}) for p in pieces]
        for chunk, pieces in zip(stream.chunks, stream_pieces(stream, loaded), strict=True)
    }
    assert found == {
        "a": [({"x"}, {"s"})],
        "b": [({"s"}, {"a1", "b1"})],
        "c": [({"s", "a1", "b1"}, {"y"})],
    }


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["onnxruntime", "mnn"])
def test_a_partition_runs_and_gives_the_numbers_of_the_uncut_model(tmp_path: Path, engine: str) -> None:
    pytest.importorskip({"mnn": "MNN"}.get(engine, engine))
    loaded = two_branches(tmp_path)
    core = gapless.this_device(engine=engine).units[0]
    units = Platform(name="test", units=tuple(replace(core, name=name) for name in "abc"))
    _, plan = branch_problem(loaded)
    problem = problem_of(loaded.network, units)
    with gapless.open_pipeline(problem, plan, model=loaded, engine=engine) as pipeline:
        assert verify(pipeline, References({loaded.network.name: loaded})).worst_error is not None
        assert {receipt.unit for receipt in pipeline.receipts} == {"a", "b", "c"}
        frames = [loaded.sample_inputs(seed) for seed in range(9)]
        for frame, found in zip(frames, pipeline.map(frames), strict=True):
            np.testing.assert_allclose(found["y"], loaded.reference(frame)["y"], rtol=1e-4, atol=1e-4)
        trace = pipeline.trace(requests=3)
    assert len(trace.events) == 9


def test_the_simulated_device_agrees_with_the_judge(tmp_path: Path) -> None:
    loaded = two_branches(tmp_path)
    problem, plan = branch_problem(loaded)
    deployment = operation_of(problem).deploy(problem, plan)
    found = SimulatedRunner(problem).measure(deployment, gapless.Budget(requests=20))
    judged = gapless.score(problem, plan)
    assert found.period_us == judged.value("period")
    played = gapless.simulate(problem, plan, requests=6)
    assert played.period_us == judged.value("period")
    # The middle part receives one tensor and sends two.
    (middle,) = [chunk for chunk in found.chunks if chunk.unit == "b"]
    assert (middle.copy_in_us.median, middle.run_us.median, middle.copy_out_us.median) == (7, 200, 14)
    used = trace_usage(problem, played)
    assert used.peak_bytes > 5 * SIDE * SIDE * 4


def test_a_deployment_gives_back_its_plan_and_is_kept_in_files(tmp_path: Path) -> None:
    loaded = two_branches(tmp_path)
    problem, plan = branch_problem(loaded)
    deployment = operation_of(problem).deploy(problem, plan)
    assert deployment.plan is not None
    code = problem.formulation.code(problem, plan)
    assert problem.formulation.code(problem, deployment.plan) == code
    assert parse(dump(deployment, DEPLOYMENT).encode(), DEPLOYMENT, name="it") == deployment
    given = replace(deployment.streams[0], order=())
    assert replace(deployment, streams=(given,)).deployment_id != deployment.deployment_id


def test_traces_of_both_kinds_are_read_again(tmp_path: Path) -> None:
    loaded = two_branches(tmp_path)
    problem, plan = branch_problem(loaded)
    deployment = operation_of(problem).deploy(problem, plan)
    path = tmp_path / "trace.json"
    for history in (
        gapless.simulate(problem, plan, requests=3),
        SimulatedRunner(problem).trace(deployment, requests=3),
    ):
        path.write_text("".join(trace_parts(history)))
        assert read_trace(path) == history


def test_parts_in_the_order_of_the_network_are_chunks() -> None:
    network = chain(*["add"] * 4).network
    problem = problem_of(network, UNITS)
    plan = parts_of(network, ("b", [0, 1]), ("a", [2, 3]))
    (stream,) = operation_of(problem).deploy(problem, plan).streams
    assert stream.order == ()
    assert [(c.start, c.stop, c.unit) for c in stream.chunks] == [(0, 2, "b"), (2, 4, "a")]


def test_a_problem_in_another_order_opens_its_model_in_it(tmp_path: Path) -> None:
    loaded = two_branches(tmp_path)
    order = by_tensor(loaded, "s", "b1", "a1", "b2", "a2", "sum", "y")
    network = loaded.network.reordered(order)
    assert network.order == tuple(order)
    opened = models_of(network)
    assert opened.network == network
    assert opened.network.layer_names == tuple(loaded.network.layer_names[layer] for layer in order)
    assert in_order_of(loaded, network).network == network
    assert in_order_of(opened, loaded.network).network == loaded.network
    assert in_order_of(opened, network) is opened
    inputs = loaded.sample_inputs(0)
    np.testing.assert_array_equal(opened.reference(inputs)["y"], loaded.reference(inputs)["y"])
    for start in range(len(order)):
        (piece,) = opened.pieces(start, start + 1)
        assert piece.name == loaded.pieces(order[start], order[start] + 1)[0].name


def test_what_cannot_run_is_refused(tmp_path: Path) -> None:
    fake = chain(*["add"] * 3)
    with pytest.raises(InvalidPlanError, match="--layer-order fixed"):
        reordered(fake, (0, 2, 1))
    with pytest.raises(InvalidPlanError, match="order of stream 'net'"):
        Deployment(
            streams=(
                Stream(
                    name="net", chunks=(Chunk(network="net", start=0, stop=3, unit="a"),), order=(0, 0, 1)
                ),
            )
        )
    loaded = two_branches(tmp_path)
    problem, _ = branch_problem(loaded)
    circle = parts_of(
        loaded.network,
        ("a", by_tensor(loaded, "s", "a2", "b2", "sum", "y")),
        ("b", by_tensor(loaded, "a1", "b1")),
    )
    with pytest.raises(MalformedPlanError, match="not convex"):
        operation_of(problem).deploy(problem, circle)
    data = Partition(backward=(len(loaded.network.layers) - 1,))
    with pytest.raises(InvalidInputError, match="backward"):
        operation_of(problem).check_executable(replace(problem, data=data))


def test_a_network_keeps_closed_cuts_closed_in_another_order() -> None:
    network = replace(chain(*["add"] * 4).network, tensors=(), forbidden_cuts=(2,))
    again = network.reordered((1, 0, 3, 2))
    assert [layer.name for layer in again.layers] == [network.layers[i].name for i in (1, 0, 3, 2)]
    assert again.forbidden_cuts == (1, 2, 3)
