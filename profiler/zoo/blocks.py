"""Building blocks of the built-in networks: named operators, with random weights of the true shapes.

The weights are drawn last, in the order in which they were asked for, from a generator that the name of the
network seeds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

import numpy as np
import onnx
import spox.opset.ai.onnx.v17 as op
from onnx import TensorProto, helper, numpy_helper
from spox import Tensor, Var, argument, build, inline

from ...executor.model import TensorSpec
from .weights import RECTIFIED, After, Weight, around, filters, slopes

if TYPE_CHECKING:
    from numpy.typing import NDArray

Outputs = Mapping[str, Var]
"""What a network gives: its outputs by name."""

OPSET = 17
IR_VERSION = 8
"""The version that belongs to the operator set: older runtimes refuse newer ones."""

CLASSES = 1000
"""Of ImageNet, as in all the classifiers."""

RESIDUAL_SCALE = 0.3
"""Scale of the last normalisation before a sum, so that sums after sums stay of order one."""

Activation = Literal["relu", "relu6", "leaky", "prelu", "mish", "hard_swish", "none"]


class How(TypedDict, total=False):
    """What a convolution is, besides its channels and its kernel."""

    stride: int
    pad: int | None
    """None keeps the size at stride 1."""
    groups: int
    after: After


class Blocks:
    """A network under construction: every method adds named operators and returns the output."""

    def __init__(self, name: str, inputs: Sequence[TensorSpec]) -> None:
        self.inputs = {spec.name: argument(Tensor(np.dtype(spec.dtype), spec.shape)) for spec in inputs}
        self._name = name
        self._weights: dict[str, Weight] = {}
        self._arguments = dict(self.inputs)
        self._named: dict[str, Var] = {}

    def named(self, name: str, value: Var) -> Var:
        """Give the operator that makes a value its name."""
        assert name not in self._named, name
        self._named[name] = value
        return value

    def weight(self, name: str, weight: Weight) -> Var:
        """Return a trained weight: an input of the graph until it is drawn, an initializer in the end.

        Operators that ask for the same name share it.
        """
        if name not in self._weights:
            self._weights[name] = weight
            self._arguments[name] = argument(Tensor(np.float32, weight.shape))
        return self._arguments[name]

    def fixed(self, name: str, value: NDArray[Any] | np.float32) -> Var:
        """Return an initializer that is not trained, such as a bound or a shape; made once for a name."""
        return self._named.get(name) or self.named(name, op.const(value))

    def conv(
        self,
        x: Var,
        name: str,
        channels: int,
        kernel: int | tuple[int, int] = 1,
        *,
        stride: int = 1,
        pad: int | None = None,
        groups: int = 1,
        bias: bool = False,
        after: After = RECTIFIED,
        shared: str = "",
    ) -> Var:
        """Add a convolution; `kernel` is square or (height, width), `pad` None keeps the size at stride 1.

        `shared` names weights that several convolutions have in common.
        """
        weights = shared or name
        kernel = (kernel, kernel) if isinstance(kernel, int) else kernel
        pads = tuple(size // 2 if pad is None else pad for size in kernel)
        shape = (channels, tensor_shape(x)[1] // groups, *kernel)
        return self.named(
            name,
            op.conv(
                x,
                self.weight(f"{weights}.weight", filters(shape, after)),
                self.weight(f"{weights}.bias", around(0.0, channels)) if bias else None,
                kernel_shape=kernel,
                pads=pads * 2,
                strides=(stride, stride),
                group=groups,
            ),
        )

    def batch_norm(self, x: Var, name: str, *, scale: float = 1.0) -> Var:
        """Add a batch normalisation with the statistics of a trained one: mean about 0, variance about 1.

        Built from one ONNX node, because the constructor of spox gives it the outputs of training mode.
        """
        shape = tensor_shape(x)
        means = {"weight": scale, "bias": 0.0, "running_mean": 0.0, "running_var": 1.0}
        values = [self.weight(f"{name}.{key}", around(mean, shape[1])) for key, mean in means.items()]
        inputs = [("x", shape), *((key, shape[1:2]) for key in means)]
        node = helper.make_node("BatchNormalization", [key for key, _ in inputs], ["y"])
        graph = helper.make_graph(
            [node], name, [_float_info(*pair) for pair in inputs], [_float_info("y", shape)]
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
        return self.named(name, inline(model)(x, *values)["y"])

    def conv_bn(
        self,
        x: Var,
        name: str,
        channels: int,
        kernel: int | tuple[int, int] = 1,
        *,
        scale: float = 1.0,
        activation: Activation = "relu",
        **how: Unpack[How],
    ) -> Var:
        """Add a convolution, its batch normalisation (`scale` as there) and an activation."""
        x = self.conv(x, name, channels, kernel, **how)
        x = self.batch_norm(x, f"{name}.bn", scale=scale)
        return self.activation(x, name, activation)

    def conv_relu(self, x: Var, name: str, channels: int, kernel: int = 1, **how: Unpack[How]) -> Var:
        """Add a convolution with bias, and max(x, 0)."""
        x = self.conv(x, name, channels, kernel, bias=True, **how)
        return self.activation(x, name, "relu")

    def activation(self, x: Var, name: str, kind: Activation = "relu") -> Var:
        """Add an activation, named after the operator `name` that it follows."""
        match kind:
            case "relu":
                value = op.relu(x)
            case "relu6":
                value = op.clip(x, *(self.fixed(f"relu6.{n}", np.float32(v)) for n, v in _RELU6.items()))
            case "leaky":
                value = op.leaky_relu(x, alpha=0.1)
            case "prelu":  # a trained slope for each channel
                slope = self.weight(f"{name}.prelu.slope", slopes(tensor_shape(x)[1]))
                value = op.prelu(x, slope)
            case "hard_swish":
                value = op.hard_swish(x)
            case "mish":
                softplus = self.named(f"{name}.softplus", op.softplus(x))
                value = op.mul(x, self.named(f"{name}.tanh", op.tanh(softplus)))
            case "none":
                return x
        return self.named(f"{name}.{kind}", value)

    def doubled(self, x: Var, name: str) -> Var:
        """Add a nearest-neighbour resize to twice the height and width."""
        scales = self.fixed("upsample.scales", np.array([1, 1, 2, 2], np.float32))
        return self.named(
            name,
            op.resize(x, scales=scales, coordinate_transformation_mode="asymmetric", nearest_mode="floor"),
        )

    def max_pool(
        self, x: Var, name: str, kernel: int, *, stride: int, pad: int = 0, ceil: bool = False
    ) -> Var:
        """Add a square max pooling; `ceil` keeps windows that reach over the border."""
        pooled, _ = op.max_pool(
            x, kernel_shape=(kernel, kernel), strides=(stride, stride), pads=(pad,) * 4, ceil_mode=int(ceil)
        )
        return self.named(name, pooled)

    def global_average_pool(self, x: Var, name: str) -> Var:
        """Add the mean over height and width."""
        return self.named(name, op.global_average_pool(x))

    def flatten(self, x: Var, name: str) -> Var:
        """Add a reshape to (1, values)."""
        return self.named(name, op.flatten(x))

    def linear(self, x: Var, name: str, features: int, *, after: After = RECTIFIED) -> Var:
        """Add a fully connected operator with bias."""
        weight = self.weight(f"{name}.weight", filters((features, tensor_shape(x)[1]), after))
        return self.named(
            name, op.gemm(x, weight, self.weight(f"{name}.bias", around(0.0, features)), transB=1)
        )

    def add(self, x: Var, y: Var, name: str) -> Var:
        """Add the sum of two tensors."""
        return self.named(name, op.add(x, y))

    def concat(self, tensors: Sequence[Var], name: str) -> Var:
        """Add a concatenation along the second axis: of channels, or of tokens."""
        return self.named(name, op.concat(tensors, axis=1))

    def classify(self, x: Var) -> Outputs:
        """Add global pooling and a fully connected operator."""
        x = self.flatten(self.global_average_pool(x, "pool"), "flatten")
        return {"logits": self.linear(x, "classifier", CLASSES)}

    def outline(self, outputs: Outputs) -> onnx.ModelProto:
        """Return the network without its weights, which stay inputs of the graph."""
        renamed = {var: name for name, var in outputs.items()}
        named = {renamed.get(var, name): var for name, var in self._named.items()}
        model = build(self._arguments, named)
        graph = model.graph
        _use_given_names(graph)
        graph.name = self._name
        model.ir_version = IR_VERSION
        _keep(graph.output, list(outputs))
        return model

    def serialise(self, outputs: Outputs) -> bytes:
        """Return the network as a self-contained ONNX file."""
        model = self.outline(outputs)
        random = np.random.RandomState(int(hashlib.sha256(self._name.encode()).hexdigest()[:8], 16))
        for name, weight in self._weights.items():
            model.graph.initializer.append(numpy_helper.from_array(weight.draw(random), name))
        _keep(model.graph.input, list(self.inputs))
        data: bytes = model.SerializeToString(deterministic=True)
        return data


_RELU6 = {"low": 0.0, "high": 6.0}


def tensor_shape(x: Var) -> tuple[int, ...]:
    """Return the shape of a tensor under construction: batch, channels, height, width."""
    shape = x.unwrap_tensor().shape
    assert shape is not None
    return tuple(int(size) for size in shape if size is not None)


def _float_info(name: str, shape: tuple[int, ...]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def _use_given_names(graph: onnx.GraphProto) -> None:
    """Replace the Identity nodes by which `build` names its outputs by the names themselves.

    Constants become initializers.
    """
    given = {node.input[0]: node.output[0] for node in graph.node if node.op_type == "Identity"}
    nodes = []
    for node in graph.node:
        if node.op_type == "Constant":
            graph.initializer.append(node.attribute[0].t)
            graph.initializer[-1].name = given[node.output[0]]
        elif node.op_type != "Identity":
            node.input[:] = [given.get(name, name) for name in node.input]
            node.output[:] = [given[node.output[0]]]  # other outputs, as indices of poolings, are not wanted
            node.name = node.output[0]
            nodes.append(node)
    del graph.node[:]
    graph.node.extend(nodes)


def _keep(values: list[onnx.ValueInfoProto], names: Sequence[str]) -> None:
    kept = {value.name: value for value in values if value.name in names}
    del values[:]
    values.extend(kept[name] for name in names)
