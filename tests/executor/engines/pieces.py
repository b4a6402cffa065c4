"""Small pieces in ONNX, and running them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from gapless.executor.engine import Session
from gapless.executor.graph.onnx_model import OnnxModel, load_onnx
from gapless.executor.model import Piece, TensorSpec
from gapless.formulations.hardware import EngineSettings, ProcessingUnit, UnitKind

Array = NDArray[Any]

UNIT = ProcessingUnit(name="cpu", kind=UnitKind.CPU, threads=1)
"""A unit that this process can stand for, whatever cores it may use."""

OPENCL = ProcessingUnit(name="gpu", kind=UnitKind.GPU, engine=EngineSettings(backend="opencl"))

_TYPES = {
    "float32": TensorProto.FLOAT,
    "float16": TensorProto.FLOAT16,
    "float64": TensorProto.DOUBLE,
    "int64": TensorProto.INT64,
    "int32": TensorProto.INT32,
    "int16": TensorProto.INT16,
    "int8": TensorProto.INT8,
    "uint8": TensorProto.UINT8,
    "bool": TensorProto.BOOL,
}


@dataclass(frozen=True)
class Content:
    """ONNX in memory."""

    data: bytes
    kind: ClassVar[str] = "onnx"

    def read(self) -> bytes:
        return self.data


def spec(name: str, shape: Sequence[int], dtype: str = "float32") -> TensorSpec:
    return TensorSpec(name=name, shape=tuple(shape), dtype=dtype)


def piece(
    nodes: Iterable[onnx.NodeProto],
    inputs: Sequence[TensorSpec],
    outputs: Sequence[TensorSpec],
    weights: Mapping[str, Array] = {},
    *,
    name: str = "piece",
) -> Piece:
    """Return a piece of some nodes."""
    graph = helper.make_graph(
        list(nodes),
        "graph",
        [helper.make_tensor_value_info(s.name, _TYPES[s.dtype], s.shape) for s in inputs],
        [helper.make_tensor_value_info(s.name, _TYPES[s.dtype], s.shape) for s in outputs],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own.domain", 1)]
    return of_model(helper.make_model(graph, opset_imports=opsets, ir_version=8), inputs, outputs, name)


def of_model(
    model: onnx.ModelProto, inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec], name: str
) -> Piece:
    """Return a whole model as a piece."""
    data = model.SerializeToString()
    return Piece(
        name=name,
        digest=hashlib.sha256(data).hexdigest(),
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        content=Content(data),
    )


def conv(name: str = "conv") -> Piece:
    """Return a convolution with an activation; both tensors are wanted."""
    weights = np.random.default_rng(0).random((8, 3, 3, 3), dtype=np.float32)
    return piece(
        [
            helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1]),
            helper.make_node("Relu", ["y"], ["z"]),
        ],
        [spec("x", (1, 3, 16, 16))],
        [spec("z", (1, 8, 16, 16)), spec("y", (1, 8, 16, 16))],
        {"w": weights},
        name=name,
    )


def unsupported(name: str = "random[3:7)") -> Piece:
    """Return a piece with operators that MNN lacks."""
    return piece(
        [
            helper.make_node("Bernoulli", ["x"], ["b"]),
            helper.make_node("Frobnicate", ["b"], ["y"], domain="own.domain"),
        ],
        [spec("x", (2, 3))],
        [spec("y", (2, 3))],
        name=name,
    )


def with_branches() -> Piece:
    """Return a piece with control flow."""
    branches = {
        branch: helper.make_graph(
            [helper.make_node(kind, ["x"], [branch])],
            branch,
            [],
            [helper.make_tensor_value_info(branch, TensorProto.FLOAT, [2, 3])],
        )
        for branch, kind in (("then_branch", "Relu"), ("else_branch", "Neg"))
    }
    return piece(
        [
            helper.make_node("ReduceSum", ["x"], ["s"], keepdims=0),
            helper.make_node("Greater", ["s", "zero"], ["positive"]),
            helper.make_node("If", ["positive"], ["y"], **branches),
        ],
        [spec("x", (2, 3))],
        [spec("y", (2, 3))],
        {"zero": np.zeros((), dtype=np.float32)},
        name="branches",
    )


def without_weights() -> Piece:
    """Return a piece whose weights are in a file that is not there."""
    whole = conv("weightless")
    model = onnx.load_from_string(whole.content.read())
    tensor = model.graph.initializer[0]
    size = len(tensor.raw_data)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", "gone.bin"), ("offset", "0"), ("length", str(size))):
        tensor.external_data.add(key=key, value=value)
    return of_model(model, whole.inputs, whole.outputs, whole.name)


def direction() -> OnnxModel:
    """Return the direction classifier of PP-OCR, the smallest of the real models."""
    found = find_spec("rapidocr_onnxruntime")  # without importing it, and ONNX Runtime with it
    assert found is not None
    assert found.origin is not None
    folder = Path(found.origin).parent / "models"
    return load_onnx(folder / "ch_ppocr_mobile_v2.0_cls_infer.onnx", shapes={"x": (1, 3, 48, 192)})


def run(session: Session, *inputs: Array) -> list[Array]:
    """Run a session once."""
    outputs = [spec.empty() for spec in session.artifact.outputs]
    session.copy_in([np.asarray(array) for array in inputs])
    session.run()
    session.copy_out(outputs)
    return outputs
