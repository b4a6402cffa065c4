"""Small ONNX models for the tests, and running a model chunk by chunk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from gapless.executor.engines.ort_session import reference_outputs
from gapless.executor.graph.onnx_model import OnnxModel, load_onnx
from gapless.solvers.pieces.finding import find_pieces

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gapless.executor.model import Model

    Arrays = Mapping[str, NDArray[Any]]

OPSET = 17
Dims = Sequence[int | str | None]


def node(op_type: str, inputs: str, outputs: str, **attributes: Any) -> NodeProto:
    """Return a node; names are separated by spaces, "_" stands for an absent one."""
    taken, made = (["" if name == "_" else name for name in text.split()] for text in (inputs, outputs))
    return helper.make_node(op_type, taken, made, **attributes)


def value(name: str, dims: Dims | None, kind: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    """Return a typed input or output."""
    return helper.make_tensor_value_info(name, kind, dims)


def weights(seed: int = 0, /, **shapes: tuple[int, ...]) -> list[TensorProto]:
    """Return random weights by name and shape."""
    random = np.random.default_rng(seed)
    return [
        numpy_helper.from_array(random.standard_normal(shape).astype(np.float32) * 0.3, name)
        for name, shape in shapes.items()
    ]


def constant(name: str, numbers: Any, dtype: str = "int64") -> TensorProto:
    """Return a constant weight."""
    return numpy_helper.from_array(np.array(numbers, dtype=dtype), name)


def model(
    nodes: Sequence[NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    initializers: Sequence[TensorProto] = (),
    *,
    opsets: Mapping[str, int] | None = None,
    functions: Sequence[onnx.FunctionProto] = (),
) -> ModelProto:
    """Return a model."""
    graph = helper.make_graph(nodes, "test", inputs, outputs, initializers)
    imports = [helper.make_opsetid(*entry) for entry in (opsets or {"": OPSET}).items()]
    return helper.make_model(graph, opset_imports=imports, ir_version=8, functions=functions)


def tiny(**changes: Any) -> ModelProto:
    """Return x (1, 4) -> MatMul with w (4, 4) -> Relu -> y."""
    parts: dict[str, Any] = {
        "nodes": [node("MatMul", "x w", "h"), node("Relu", "h", "y")],
        "inputs": [value("x", [1, 4])],
        "outputs": [value("y", [1, 4])],
        "initializers": weights(w=(4, 4)),
    }
    return model(**{**parts, **changes})


def residual(blocks: int = 3, channels: int = 8, size: int = 12) -> ModelProto:
    """Return a network of residual blocks, with batch normalisation and two kinds of activations."""
    nodes = [node("Conv", "x stem_w", "b0", pads=[1, 1, 1, 1])]
    shapes: dict[str, tuple[int, ...]] = {"stem_w": (channels, 3, 3, 3)}
    for block in range(blocks):
        i = f"b{block}"
        nodes += [
            node("Conv", f"{i} {i}_w1", f"{i}_c1", pads=[1, 1, 1, 1], name=f"{i}/first"),
            node("BatchNormalization", f"{i}_c1 {i}_s {i}_o {i}_m {i}_v", f"{i}_n"),
            node("Sigmoid", f"{i}_n", f"{i}_g"),
            node("Mul", f"{i}_n {i}_g", f"{i}_a"),
            node("Conv", f"{i}_a {i}_w2", f"{i}_c2", pads=[1, 1, 1, 1], name=f"{i}/second"),
            node("Add", f"{i}_c2 {i}", f"{i}_r"),
            node("Relu", f"{i}_r", f"b{block + 1}"),
        ]
        shapes |= {f"{i}_w1": (channels, channels, 3, 3), f"{i}_w2": (channels, channels, 3, 3)}
        shapes |= {f"{i}_{part}": (channels,) for part in "som"}
    variances = [
        constant(f"b{block}_v", np.linspace(0.5, 1.5, channels), "float32") for block in range(blocks)
    ]
    return model(
        nodes,
        [value("x", [1, 3, size, size])],
        [value(f"b{blocks}", [1, channels, size, size])],
        [*weights(**shapes), *variances],
    )


def ocr_model(task: str) -> Path:
    """Return the file of a real text model: "det", "cls" or "rec"."""
    spec = find_spec("rapidocr_onnxruntime")
    assert spec is not None
    assert spec.origin is not None
    (path,) = Path(spec.origin).with_name("models").glob(f"*_{task}_infer.onnx")
    return path


OCR_SHAPES = {"det": (1, 3, 480, 640), "cls": (1, 3, 48, 192), "rec": (1, 3, 48, 320)}
"""Their usual sizes."""


@cache
def opened_ocr(task: str) -> OnnxModel:
    """Return a real text model at its usual size: opened once, it takes seconds."""
    return load_onnx(ocr_model(task), shapes={"x": OCR_SHAPES[task]}, name=task)


def load(proto: ModelProto, folder: Path, **options: Any) -> OnnxModel:
    """Write a model into a folder and load it."""
    path = folder / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    return load_onnx(path, pieces=lambda spatial: find_pieces(spatial).labels, **options)


def run_in_chunks(network: Model, cuts: Sequence[int], inputs: Arrays) -> dict[str, NDArray[Any]]:
    """Run a model chunk by chunk; between chunks only the tensors alive at the cut are kept."""
    slots = dict(inputs)
    count = len(network.network.layers)
    for start, stop in pairwise([0, *cuts, count]):
        for piece in network.pieces(start, stop):
            content = piece.content.read()
            onnx.checker.check_model(content, full_check=True)
            feeds = {spec.name: slots[piece.prefix + spec.name] for spec in piece.inputs}
            found = reference_outputs(content, feeds)
            assert list(found) == [spec.name for spec in piece.outputs]
            for spec in piece.outputs:
                assert (found[spec.name].shape, found[spec.name].dtype.name) == (spec.shape, spec.dtype)
                slots[piece.prefix + spec.name] = found[spec.name]
        alive = {t.name for t in network.network.tensors if t.source < stop <= max(t.targets)}
        slots = {name: array for name, array in slots.items() if name in alive}
        assert set(slots) == alive
    return {spec.name: slots[spec.name] for spec in network.outputs}
