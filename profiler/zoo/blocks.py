"""Building blocks of the built-in networks: operators with random weights of the true shapes.

Weights are uniform, and scaled by their fan-in so that activations stay of order one through the whole
depth (He et al., "Delving Deep into Rectifiers", 2015). They come from numpy's frozen generator
(`RandomState`), seeded by the name of the network: the same bytes on every machine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from math import pi
from typing import TYPE_CHECKING, Literal

import numpy as np
import onnx
import spox.opset.ai.onnx.v17 as op
from onnx import TensorProto, helper, numpy_helper
from spox import Tensor, Var, argument, build, inline

if TYPE_CHECKING:
    from numpy.typing import NDArray

OPSET = 17
IR_VERSION = 8
"""The version that belongs to the operator set: older runtimes refuse newer ones."""

INPUT, OUTPUT = "image", "logits"
CLASSES = 1000
"""Of ImageNet, as in all these networks."""

CENTRED = 0.5
"""How much of its mean is taken off each filter.

What passes a ReLU has a mean that hardly depends on the image. Passed on in full (0), it drowns what does:
all images give nearly the same numbers. Taken off in full (1), small errors grow a hundredfold
through a deep network, and correct engines seem to disagree.
"""

IMAGE, LINEAR = 12.0, 1.0
RECTIFIED = 2.0 * pi / (pi - 1.0 + (1.0 - CENTRED) ** 2)
"""Gain of weights by what they are applied to, so that what they give has variance 1.

Pixels are uniform in [0, 1], of variance 1/12; a ReLU leaves a variance of (1 - 1/pi) / 2, and a mean whose
square is 1 / (2 pi).
"""

RESIDUAL_SCALE = 0.3
"""Scale of the last normalisation before a sum, so that sums after sums stay of order one."""

Activation = Literal["relu", "relu6", "none"]


class Blocks:
    """A network under construction: every method adds one named operator and returns its output.

    Parameters
    ----------
    name
        Name of the network; seeds its weights.
    shape
        Shape of its image, (1, channels, height, width).
    """

    def __init__(self, name: str, shape: tuple[int, ...]) -> None:
        self.image = argument(Tensor(np.float32, shape))
        self._name = name
        self._random = np.random.RandomState(int(hashlib.sha256(name.encode()).hexdigest()[:8], 16))
        self._weights: dict[str, NDArray[np.float32]] = {}
        self._constants: dict[str, Var] = {}
        self._named: dict[str, Var] = {}

    def conv(
        self,
        x: Var,
        name: str,
        channels: int,
        kernel: int = 1,
        *,
        stride: int = 1,
        pad: int | None = None,
        groups: int = 1,
        bias: bool = False,
        gain: float = RECTIFIED,
    ) -> Var:
        """Add a square convolution; `pad` None keeps the size at stride 1."""
        pad = kernel // 2 if pad is None else pad
        shape = (channels, shape_of(x)[1] // groups, kernel, kernel)
        return self._add(
            name,
            op.conv(
                x,
                self._constant(f"{name}.weight", self._draw(shape, gain)),
                self._constant(f"{name}.bias", self._around(0.0, channels)) if bias else None,
                kernel_shape=(kernel, kernel),
                pads=(pad,) * 4,
                strides=(stride, stride),
                group=groups,
            ),
        )

    def batch_norm(self, x: Var, name: str, *, scale: float = 1.0) -> Var:
        """Add a batch normalisation with the statistics of a trained one: mean about 0, variance about 1.

        Built from one ONNX node, because the constructor of spox gives it the outputs of training mode.
        """
        shape = shape_of(x)
        means = {"weight": scale, "bias": 0.0, "running_mean": 0.0, "running_var": 1.0}
        values = [self._constant(f"{name}.{k}", self._around(v, shape[1])) for k, v in means.items()]
        inputs = [("x", shape), *((key, shape[1:2]) for key in means)]
        node = helper.make_node("BatchNormalization", [key for key, _ in inputs], ["y"])
        graph = helper.make_graph(
            [node], name, [_float_info(*pair) for pair in inputs], [_float_info("y", shape)]
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
        return self._add(name, inline(model)(x, *values)["y"])

    def conv_bn(
        self,
        x: Var,
        name: str,
        channels: int,
        kernel: int = 1,
        *,
        stride: int = 1,
        groups: int = 1,
        gain: float = RECTIFIED,
        scale: float = 1.0,
        activation: Activation = "relu",
    ) -> Var:
        """Add a convolution, its batch normalisation (`scale` as there) and an activation."""
        x = self.conv(x, name, channels, kernel, stride=stride, groups=groups, gain=gain)
        x = self.batch_norm(x, f"{name}.bn", scale=scale)
        match activation:
            case "relu":
                return self.relu(x, f"{name}.relu")
            case "relu6":
                return self.relu6(x, f"{name}.relu6")
            case "none":
                return x

    def conv_relu(
        self,
        x: Var,
        name: str,
        channels: int,
        kernel: int = 1,
        *,
        stride: int = 1,
        pad: int | None = None,
        gain: float = RECTIFIED,
    ) -> Var:
        """Add a convolution with bias, and max(x, 0)."""
        x = self.conv(x, name, channels, kernel, stride=stride, pad=pad, bias=True, gain=gain)
        return self.relu(x, f"{name}.relu")

    def relu(self, x: Var, name: str) -> Var:
        """Add max(x, 0)."""
        return self._add(name, op.relu(x))

    def relu6(self, x: Var, name: str) -> Var:
        """Add min(max(x, 0), 6)."""
        low, high = (self._constant(f"relu6.{n}", np.float32(v)) for n, v in (("low", 0), ("high", 6)))
        return self._add(name, op.clip(x, low, high))

    def max_pool(
        self, x: Var, name: str, kernel: int, *, stride: int, pad: int = 0, ceil: bool = False
    ) -> Var:
        """Add a square max pooling; `ceil` keeps windows that reach over the border."""
        pooled, _ = op.max_pool(
            x, kernel_shape=(kernel, kernel), strides=(stride, stride), pads=(pad,) * 4, ceil_mode=int(ceil)
        )
        return self._add(name, pooled)

    def global_average_pool(self, x: Var, name: str) -> Var:
        """Add the mean over height and width."""
        return self._add(name, op.global_average_pool(x))

    def flatten(self, x: Var, name: str) -> Var:
        """Add a reshape to (1, values)."""
        return self._add(name, op.flatten(x))

    def linear(self, x: Var, name: str, features: int) -> Var:
        """Add a fully connected operator with bias."""
        weight = self._constant(f"{name}.weight", self._draw((features, shape_of(x)[1]), RECTIFIED))
        bias = self._constant(f"{name}.bias", self._around(0.0, features))
        return self._add(name, op.gemm(x, weight, bias, transB=1))

    def add(self, x: Var, y: Var, name: str) -> Var:
        """Add the sum of two tensors."""
        return self._add(name, op.add(x, y))

    def concat(self, tensors: Sequence[Var], name: str) -> Var:
        """Add a concatenation of channels."""
        return self._add(name, op.concat(tensors, axis=1))

    def classify(self, x: Var) -> bytes:
        """Add global pooling and a fully connected operator, and return the finished network."""
        x = self.flatten(self.global_average_pool(x, "pool"), "flatten")
        return self.serialise(self.linear(x, "classifier", CLASSES))

    def serialise(self, output: Var) -> bytes:
        """Return the network as a self-contained ONNX file that ends in one tensor."""
        self._named = {(OUTPUT if var is output else name): var for name, var in self._named.items()}
        model = build({INPUT: self.image, **self._constants}, self._named)
        graph = model.graph
        _use_given_names(graph)
        graph.name = self._name
        model.ir_version = IR_VERSION
        graph.initializer.extend(numpy_helper.from_array(v, name) for name, v in self._weights.items())
        _keep(graph.input, INPUT)
        _keep(graph.output, OUTPUT)
        data: bytes = model.SerializeToString(deterministic=True)
        return data

    def _add(self, name: str, value: Var) -> Var:
        assert name not in self._named, name
        self._named[name] = value
        return value

    def _constant(self, name: str, value: NDArray[np.float32] | np.float32) -> Var:
        """Return a weight: an input of the graph while it is built, an initializer in the end."""
        if name not in self._constants:
            self._weights[name] = np.asarray(value)
            self._constants[name] = argument(Tensor(np.float32, np.shape(value)))
        return self._constants[name]

    def _draw(self, shape: tuple[int, ...], gain: float) -> NDArray[np.float32]:
        """Return weights with the variance gain / fan-in, before they are centred."""
        bound = np.sqrt(3.0 * gain / np.prod(shape[1:]))
        weights = self._random.uniform(-bound, bound, shape)
        axes = tuple(range(1, len(shape)))
        share = 1.0 if gain == IMAGE else CENTRED  # the mean of an image is no feature
        weights -= share * weights.mean(axis=axes, keepdims=True)
        drawn: NDArray[np.float32] = weights.astype(np.float32)
        return drawn

    def _around(self, centre: float, count: int) -> NDArray[np.float32]:
        values: NDArray[np.float32] = self._random.uniform(centre - 0.1, centre + 0.1, count).astype(
            np.float32
        )
        return values


def shape_of(x: Var) -> tuple[int, ...]:
    """Return the shape of a tensor under construction: batch, channels, height, width."""
    shape = x.unwrap_tensor().shape
    assert shape is not None
    return tuple(int(size) for size in shape if size is not None)


def _float_info(name: str, shape: tuple[int, ...]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def _use_given_names(graph: onnx.GraphProto) -> None:
    """Replace the Identity nodes by which `build` names its outputs by the names themselves."""
    given = {node.input[0]: node.output[0] for node in graph.node if node.op_type == "Identity"}
    nodes = [node for node in graph.node if node.op_type != "Identity"]
    for node in nodes:
        node.input[:] = [given.get(name, name) for name in node.input]
        node.output[:] = [given[node.output[0]]]  # the indices of poolings are not wanted
        node.name = node.output[0]
    del graph.node[:]
    graph.node.extend(nodes)


def _keep(values: list[onnx.ValueInfoProto], name: str) -> None:
    kept = [value for value in values if value.name == name]
    del values[:]
    values.extend(kept)
