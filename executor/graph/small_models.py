"""Small ONNX models from a few operators, as pieces: for trying engines."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from onnx import TensorProto
from onnx.helper import (
    make_graph,
    make_model,
    make_node,
    make_opsetid,
    make_tensor_value_info,
    np_dtype_to_tensor_dtype,
)
from onnx.numpy_helper import from_array

from ..model import Piece, TensorSpec

if TYPE_CHECKING:
    from numpy.typing import NDArray

OPSET = 13
OWN_DOMAIN = "gapless.nowhere"
"""Domain of operators that no engine has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallOperator:
    """One operator: its type, the tensors that it takes and gives, its attributes."""

    kind: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    domain: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallContent:
    """A serialised model."""

    kind: ClassVar[str] = "onnx"
    data: bytes = field(repr=False)

    def read(self) -> bytes:
        """Return it."""
        return self.data


def piece_of_bytes(
    name: str, data: bytes, inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec]
) -> Piece:
    """Return a serialised model, or what should be one, as a piece."""
    return Piece(
        name=name,
        digest=hashlib.sha256(data).hexdigest(),
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        content=SmallContent(data=data),
    )


def small_piece(
    name: str,
    operators: Sequence[SmallOperator],
    inputs: Sequence[TensorSpec],
    outputs: Sequence[TensorSpec],
    weights: Mapping[str, NDArray[Any]] | None = None,
    *,
    weights_file: str | None = None,
) -> Piece:
    """Return a piece of some operators.

    `operators`: in the order in which they run. `weights_file`: name of a file beside the model that the
    weights are said to be in; None: they are in the model.
    """
    tensors = [from_array(array, key) for key, array in (weights or {}).items()]
    if weights_file is not None:
        for tensor in tensors:
            _move(tensor, weights_file)
    ends = [
        [make_tensor_value_info(s.name, np_dtype_to_tensor_dtype(np.dtype(s.dtype)), s.shape) for s in side]
        for side in (inputs, outputs)
    ]
    nodes = [make_node(o.kind, o.inputs, o.outputs, domain=o.domain, **o.attributes) for o in operators]
    opsets = [make_opsetid("", OPSET), make_opsetid(OWN_DOMAIN, 1)]
    model = make_model(make_graph(nodes, name, ends[0], ends[1], tensors), opset_imports=opsets, ir_version=8)
    return piece_of_bytes(name, model.SerializeToString(deterministic=True), inputs, outputs)


def _move(tensor: TensorProto, file: str) -> None:
    size = len(tensor.raw_data)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", file), ("offset", "0"), ("length", str(size))):
        tensor.external_data.add(key=key, value=value)
