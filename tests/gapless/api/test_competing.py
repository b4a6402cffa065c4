"""Models with layers that MNN lacks are tuned from end to end, with both engines, on this machine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import gapless
from gapless.executor.runner import Budget
from gapless.executor.tuning.racing import Rung, TuningOptions
from gapless.formulations.errors import InvalidInputError, LayerNotRunnableError
from gapless.formulations.files import dump_problem, load_problem
from gapless.formulations.plan import Chunk, Plan
from gapless.profiler.profile import Method, ProfileOptions

pytestmark = [pytest.mark.measures, pytest.mark.slow]

WIDTH, ROWS = 64, 16
QUICK = TuningOptions(rungs=(Rung(seconds=0.1, rounds=1),))
SHORT = ProfileOptions(min_repetitions=5, min_seconds_per_item=0.005, checks=1, retries=0, most_far=2.0)

Node = onnx.NodeProto


class Graph:
    """A graph in the making, with weights that do not matter."""

    def __init__(self) -> None:
        self.random = np.random.default_rng(0)
        self.nodes: list[Node] = []
        self.weights: list[onnx.TensorProto] = []

    def weight(self, name: str, *shape: int) -> str:
        values = self.random.normal(0, 0.1, shape).astype(np.float32)
        self.weights.append(numpy_helper.from_array(values, name))
        return name

    def constant(self, name: str, values: Any) -> str:
        self.weights.append(numpy_helper.from_array(np.array(values), name))
        return name

    def add(self, kind: str, inputs: list[str], output: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(kind, inputs, [output], name=output, **attributes))
        return output

    def dense(self, source: str, name: str) -> str:
        product = self.add("MatMul", [source, self.weight(f"{name}_w", WIDTH, WIDTH)], f"{name}_product")
        return self.add("Relu", [product], name)

    def saved(self, path: Path, shape: list[int], output: str) -> Path:
        ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n in ("x", output)]
        graph = helper.make_graph(self.nodes, path.stem, ends[:1], ends[1:], self.weights)
        model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)])
        onnx.save(onnx.shape_inference.infer_shapes(model), str(path))
        return path


def gru(folder: Path) -> Path:
    """A bidirectional GRU between products."""
    made, half = Graph(), WIDTH // 2
    names = [
        made.weight("w", 2, 3 * half, WIDTH),
        made.weight("r", 2, 3 * half, half),
        made.weight("b", 2, 6 * half),
    ]
    source = made.dense(made.dense("x", "first"), "second")
    made.add(
        "GRU", [source, *names], "states", hidden_size=half, direction="bidirectional", linear_before_reset=1
    )
    turned = made.add("Transpose", ["states"], "turned", perm=[0, 2, 1, 3])
    joined = made.add("Reshape", [turned, made.constant("shape", [ROWS, 1, WIDTH])], "joined")
    return made.saved(folder / "gru.onnx", [ROWS, 1, WIDTH], made.dense(made.dense(joined, "third"), "last"))


def branch(folder: Path) -> Path:
    """An If between products."""
    made = Graph()
    source = made.dense(made.dense("x", "first"), "second")
    total = made.add("ReduceSum", [source], "total", keepdims=0)
    positive = made.add("Greater", [total, made.constant("zero", np.float32(0))], "positive")
    sides = {
        side: helper.make_graph(
            [helper.make_node(kind, [source], [side], name=f"{side}_node")],
            side,
            [],
            [helper.make_tensor_value_info(side, TensorProto.FLOAT, [ROWS, WIDTH])],
        )
        for side, kind in (("then_branch", "Relu"), ("else_branch", "Neg"))
    }
    chosen = made.add("If", [positive], "chosen", **sides)
    return made.saved(folder / "branch.onnx", [ROWS, WIDTH], made.dense(made.dense(chosen, "third"), "last"))


def quantised(folder: Path) -> Path:
    """Products whose weights and tensors are 8-bit integers between QuantizeLinear and DequantizeLinear."""
    made = Graph()
    source = "x"
    for name in ("first", "second", "third"):
        scale, zero = (
            made.constant(f"{name}_scale", np.float32(0.05)),
            made.constant(f"{name}_zero", np.int8(0)),
        )
        made.add("QuantizeLinear", [source, scale, zero], f"{name}_q")
        values = made.random.integers(-20, 20, (WIDTH, WIDTH)).astype(np.int8)
        weight = made.constant(f"{name}_w", values)
        small = made.constant(f"{name}_small", np.float32(0.00517))
        made.add("DequantizeLinear", [f"{name}_q", scale, zero], f"{name}_in")
        made.add("DequantizeLinear", [weight, small, zero], f"{name}_weight")
        source = made.add("MatMul", [f"{name}_in", f"{name}_weight"], name)
    return made.saved(folder / "quantised.onnx", [ROWS, WIDTH], source)


@pytest.mark.parametrize("made", [gru, branch, quantised])
def test_a_model_that_mnn_lacks_layers_of_is_tuned(made: Callable[[Path], Path], tmp_path: Path) -> None:
    tuned = gapless.tune(made(tmp_path), options=QUICK, profile_options=SHORT, top=1)
    assert tuned.deployment is not None
    assert tuned.profile is not None
    units = {unit.name: unit for unit in tuned.problem.platform.units}
    assert any(unit.engine.name == "onnxruntime" for unit in units.values())
    measured = [row for row in tuned.result.rows if row.receipts]
    assert measured
    for row in measured:
        for receipt in row.receipts:
            ran = receipt.engine.lower().replace(" ", "")
            assert ran.startswith(units[receipt.unit].engine.name)


def test_each_chunk_has_its_engine_and_a_receipt_that_says_so(tmp_path: Path) -> None:
    taken = gapless.profile(gru(tmp_path), options=SHORT, methods=[Method.ISOLATED])
    problem = gapless.profiled_problem(taken, costs="isolated")
    (lacking,) = [n for n, layer in enumerate(taken.network.layers) if "GRU" in layer.op_types]
    rows = taken.table(Method.ISOLATED).of("gru").layer_us
    columns = {unit.name: (n, unit) for n, unit in enumerate(problem.platform.units)}
    for column, unit in columns.values():
        assert (rows[lacking][column] is None) == (unit.engine.name == "mnn")
        assert rows[0][column] is not None
    assert any(text.startswith("mnn cannot run") for text in taken.warnings)

    path = tmp_path / "problem.json"
    path.write_text(dump_problem(problem))
    kept = load_problem(path)
    assert kept == problem
    first = next(name for name, (_, unit) in columns.items() if unit.engine.name == "mnn")
    rivals = problem.platform.exclusive[columns[first][0]]
    second = next(
        (name for name, (n, u) in columns.items() if u.engine.name == "onnxruntime" and n not in rivals), None
    )
    if second is None:
        pytest.skip("this machine has one core")
    parts = [(0, lacking, first), (lacking, len(rows), second)]
    plan = Plan(chunks=tuple(Chunk(network="gru", start=a, stop=b, unit=unit) for a, b, unit in parts))
    found = gapless.run(kept, plan, budget=Budget(requests=3))
    assert {receipt.unit: receipt.engine.split()[0] for receipt in found.receipts} == {
        first: "MNN",
        second: "ONNX",
    }
    everything = gapless.run(kept, plan, budget=Budget(requests=3), engine="onnxruntime")
    assert {receipt.engine.split()[0] for receipt in everything.receipts} == {"ONNX"}


def test_one_engine_alone_says_what_it_lacks_and_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(
        LayerNotRunnableError, match=r"(?s)layer 'states' of 'gru'; add an engine .*--engine mnn"
    ):
        gapless.profile(gru(tmp_path), engine="mnn", options=SHORT)


def test_groups_of_units_have_one_engine(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="one of mnn, onnxruntime must be chosen"):
        gapless.tune(gru(tmp_path), engine="mnn,onnxruntime", groups="all")
