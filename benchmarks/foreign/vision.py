"""Convolutional networks as torch, Keras, MXNet, Paddle and others write them."""

from __future__ import annotations

import numpy as np
from onnx import ModelProto, TensorProto

from .building import Writer, model, value

Shape = list[int | str]


def _residual(w: Writer, x: str, channels: int) -> str:
    first = w.add("Relu", w.conv(x, (channels, channels)))
    return w.add("Relu", w.add("Add", w.conv(first, (channels, channels)), x))


def _stem(w: Writer, channels: int = 32, blocks: int = 4) -> str:
    x = w.add("Relu", w.conv("input", (3, channels), strides=[2, 2]))
    for _ in range(blocks):
        x = _residual(w, x, channels)
    return x


def torch_script_resnet(opset: int = 13) -> ModelProto:
    """Return a network of torch's first exporter: constants as nodes, sizes computed in the graph."""
    w = Writer(1, names="/layer{number}/{op}_output_0")
    x = w.add("GlobalAveragePool", _stem(w))
    batch = w.add("Gather", w.add("Shape", x), w.inline(0), axis=0)
    batch = w.add("Unsqueeze", batch, w.inline([0])) if opset >= 13 else w.add("Unsqueeze", batch, axes=[0])
    x = w.add("Reshape", x, w.add("Concat", batch, w.inline([-1]), axis=0))
    w.add("Gemm", x, w.weight(10, 32), w.weight(10), output="output", transB=1)
    shapes: tuple[Shape, Shape] = (["batch_size", 3, 64, 64], ["batch_size", 10])
    return model(
        w, [value("input", shapes[0])], [value("output", shapes[1])], opset=opset, producer="pytorch"
    )


def torch_dynamo_cnn() -> ModelProto:
    """Return a network of torch's second exporter: opset 18, names such as val_3, symbolic dimensions s0."""
    w = Writer(2, names="val_{number}")
    x = w.conv("input", (3, 24), strides=[2, 2])
    for _ in range(3):
        gate = w.add("Mul", x, w.add("Sigmoid", x))
        deep = w.conv(gate, (24, 24), group=24)
        x = w.add("Add", w.conv(deep, (24, 24), kernel=1), x)
    x = w.add("ReduceMean", x, w.constant([2, 3], "int64"), keepdims=0)
    w.add("Softmax", w.dense(x, 24, 8), output="output", axis=-1)
    return model(
        w,
        [value("input", ["s0", 3, 48, 48])],
        [value("output", ["s0", 8])],
        opset=18,
        producer="pytorch",
    )


def mxnet_cnn() -> ModelProto:
    """Return a network of MXNet, opset 7: weights among the inputs (IR 3), old attributes."""
    w = Writer(3, names="mxnet_{op}{number}")
    x = "input"
    for before, after in ((3, 16), (16, 32), (32, 32)):
        x = w.conv(x, (before, after))
        ones = [w.constant(np.ones(after, "float32")) for _ in range(2)]
        zeros = [w.constant(np.zeros(after, "float32")) for _ in range(2)]
        x = w.add("BatchNormalization", x, ones[0], zeros[0], zeros[1], ones[1], epsilon=1e-5)
        x = w.add("MaxPool", w.add("Relu", x), kernel_shape=[2, 2], strides=[2, 2])
    x = w.add("Dropout", w.add("Flatten", x), ratio=0.5)
    w.add("Gemm", x, w.weight(10, 512), w.weight(10), output="output", transB=1)
    return model(
        w,
        [value("input", [1, 3, 32, 32])],
        [value("output", [1, 10])],
        opset=7,
        producer="mxnet",
        weights_are_inputs=True,
    )


def keras_cnn() -> ModelProto:
    """Return a Keras model by tf2onnx, opset 15: NHWC with transpositions, unk__ symbols."""
    w = Writer(4, names="StatefulPartitionedCall/model/{op}_{number}:0")
    x = w.add("Transpose", "input", perm=[0, 3, 1, 2])
    for before, after in ((3, 16), (16, 24), (24, 32)):
        x = w.add("Relu", w.conv(x, (before, after), strides=[2, 2]))
    x = w.add("Transpose", x, perm=[0, 2, 3, 1])
    x = w.add("ReduceMean", x, axes=[1, 2], keepdims=0)
    w.add("Softmax", w.dense(x, 32, 10), output="output")
    return model(
        w,
        [value("input", ["unk__6", 64, 64, 3])],
        [value("output", ["unk__7", 10])],
        opset=15,
        producer="tf2onnx",
    )


def paddle_segmentation() -> ModelProto:
    """Return a network of Paddle's exporter, opset 11: -1 for open sizes, Resize to computed sizes."""
    w = Writer(5, names="p2o.{op}.{number}")
    x = w.add("HardSigmoid", w.conv("input", (3, 16), strides=[2, 2]), alpha=0.2)
    low = w.add("Relu", w.conv(x, (16, 32), strides=[2, 2]))
    sizes = w.add("Slice", w.add("Shape", x), w.constant([2], "int64"), w.constant([4], "int64"))
    front = w.add("Slice", w.add("Shape", low), w.constant([0], "int64"), w.constant([2], "int64"))
    target = w.add("Concat", front, sizes, axis=0)
    empty = w.constant(np.zeros(0, "float32"))
    high = w.add("Resize", low, empty, empty, target, mode="nearest", nearest_mode="floor")
    x = w.conv(w.add("Concat", high, x, axis=1), (48, 16))
    x = w.add("ConvTranspose", x, w.weight(16, 1, 2, 2), strides=[2, 2], kernel_shape=[2, 2])
    w.add("Sigmoid", x, output="output")
    return model(
        w,
        [value("input", [-1, 3, -1, -1])],
        [value("output", [-1, 1, -1, -1])],
        opset=11,
        producer="PaddlePaddle",
    )


def caffe_shuffle() -> ModelProto:
    """Return a network of Caffe2, opset 9: reshapes and transpositions between grouped convolutions."""
    w = Writer(6, names="gpu_0/{op}_{number}")
    x = w.add("Relu", w.conv("input", (3, 32), strides=[2, 2]))
    for _ in range(4):
        y = w.add("Relu", w.conv(x, (32, 32), kernel=1, group=4))
        y = w.add("Reshape", y, w.constant([1, 4, 8, 32, 32], "int64"))
        y = w.add("Transpose", y, perm=[0, 2, 1, 3, 4])
        y = w.add("Reshape", y, w.constant([1, 32, 32, 32], "int64"))
        x = w.add("Add", w.conv(y, (32, 32), group=32), x)
    x = w.add("Flatten", w.add("GlobalAveragePool", x))
    w.add("Gemm", x, w.weight(32, 10), w.weight(10), output="output")
    return model(
        w, [value("input", [1, 3, 64, 64])], [value("output", [1, 10])], opset=9, producer="onnx-caffe2"
    )


def half_precision_cnn() -> ModelProto:
    """Return a network in float16 throughout, opset 17, with casts at both ends as converters leave them."""
    w = Writer(7, names="half_{op}_{number}", dtype="float16")
    x = w.add("Cast", "input", to=TensorProto.FLOAT16)
    for before, after in ((3, 16), (16, 16), (16, 32)):
        x = w.add("Relu", w.conv(x, (before, after)))
    x = w.add("Flatten", w.add("GlobalAveragePool", x))
    x = w.add("Gemm", x, w.weight(32, 10), w.weight(10, scale=0.1))
    w.add("Cast", x, output="output", to=TensorProto.FLOAT)
    return model(
        w,
        [value("input", [1, 3, 32, 32])],
        [value("output", [1, 10])],
        opset=17,
        producer="onnxconverter-common",
    )


def convolutions_in_one_dimension() -> ModelProto:
    """Return an acoustic model, opset 14: dilated 1-D convolutions with gates, dynamic length."""
    w = Writer(8, names="/wavenet/{op}_{number}")
    x, skip = w.add("Conv", "input", w.weight(32, 16, 1), kernel_shape=[1]), []
    for dilation in (1, 2, 4, 8):
        y = w.add("Conv", x, w.weight(64, 32, 3), dilations=[dilation], pads=[dilation] * 2, kernel_shape=[3])
        left, right = w.several("Split", y, w.constant([32, 32], "int64"), outputs=2, axis=1)
        y = w.add("Mul", w.add("Tanh", left), w.add("Sigmoid", right))
        y = w.add("Conv", y, w.weight(32, 32, 1), kernel_shape=[1])
        skip.append(y)
        x = w.add("Add", x, y)
    total = w.add("Relu", w.add("Sum", *skip))
    w.add("Conv", total, w.weight(8, 32, 1), output="output", kernel_shape=[1])
    return model(
        w,
        [value("input", [1, 16, "frames"])],
        [value("output", [1, 8, "frames"])],
        opset=14,
        producer="pytorch",
    )


def many_operators(blocks: int = 150) -> ModelProto:
    """Return several hundred operators, opset 12: six for each block."""
    w = Writer(9, names="/block{number}/{op}_output")
    x = w.add("Relu", w.conv("input", (3, 16), strides=[2, 2]))
    for _ in range(blocks):
        y = w.add("Mul", x, w.add("Sigmoid", w.conv(x, (16, 16), kernel=1, scale=0.05)))
        x = w.add("Add", w.add("Relu", w.conv(y, (16, 16), group=16, scale=0.02)), x)
    w.add("Flatten", w.add("GlobalAveragePool", x), output="output")
    return model(
        w,
        [value("input", ["N", 3, 32, 32])],
        [value("output", ["N", 16])],
        opset=12,
        producer="pytorch",
    )
