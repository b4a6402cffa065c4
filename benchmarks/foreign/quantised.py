"""Quantised files: by ONNX Runtime's three ways, by training, and with weights of few bits."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx
from onnx import ModelProto, TensorProto, helper
from onnxruntime.quantization import QuantFormat, QuantType, quantize_dynamic, quantize_static

from .building import Writer, model, value

REQUESTS = 4
"""Inputs that the ranges of activations are taken from."""


def _network(blocks: int = 6, channels: int = 32, size: int = 64) -> ModelProto:
    """Return a float network with residual blocks, whose work is in its convolutions."""
    w = Writer(41, names="/q/{op}_{number}")
    x = w.add("Relu", w.conv("input", (3, channels), strides=[2, 2]))
    for _ in range(blocks):
        y = w.add("Relu", w.conv(x, (channels, channels)))
        x = w.add("Relu", w.add("Add", w.conv(y, (channels, channels)), x))
    x = w.add("Flatten", w.add("GlobalAveragePool", x))
    w.add("Gemm", x, w.weight(10, channels), w.weight(10), output="output", transB=1)
    return model(
        w,
        [value("input", [1, 3, size, size])],
        [value("output", [1, 10])],
        opset=13,
        producer="pytorch",
    )


class _Inputs:
    """What ONNX Runtime calibrates with: an iterator in its own manner."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        random = np.random.default_rng(5)
        arrays = (random.standard_normal(shape).astype("float32") for _ in range(REQUESTS))
        self._left: Iterator[dict[str, np.ndarray]] = ({"input": array} for array in arrays)

    def get_next(self) -> dict[str, np.ndarray] | None:
        """Return the next request, or None."""
        return next(self._left, None)


def _by(quantise: Callable[[str, str], None], network: ModelProto) -> ModelProto:
    with tempfile.TemporaryDirectory(prefix="gapless-") as folder:
        source, target = str(Path(folder, "float.onnx")), str(Path(folder, "int8.onnx"))
        onnx.save(network, source)
        quantise(source, target)
        return onnx.load(target)


def _static(way: str, network: ModelProto, shape: tuple[int, ...], *, per_channel: bool) -> ModelProto:
    def quantise(source: str, target: str) -> None:
        quantize_static(
            source,
            target,
            _Inputs(shape),
            quant_format=QuantFormat[way],
            per_channel=per_channel,
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
        )

    return _by(quantise, network)


def static_with_pairs(blocks: int = 6, channels: int = 32, size: int = 64) -> ModelProto:
    """Return static quantisation in the QDQ format: pairs of QuantizeLinear and DequantizeLinear."""
    network = _network(blocks, channels, size)
    return _static("QDQ", network, (1, 3, size, size), per_channel=True)


def static_with_operators() -> ModelProto:
    """Return static quantisation in the QOperator format: QLinearConv and its like."""
    return _static("QOperator", _network(), (1, 3, 64, 64), per_channel=False)


def dynamic() -> ModelProto:
    """Return dynamic quantisation: ranges of activations are found at run time."""
    return _by(quantize_dynamic, _products())


def _products() -> ModelProto:
    w = Writer(42, names="/mlp/{op}_{number}")
    x = "input"
    for _ in range(4):
        x = w.add("Relu", w.dense(x, 128, 128))
    w.add("Identity", x, output="output")
    return model(
        w,
        [value("input", ["batch", 128])],
        [value("output", ["batch", 128])],
        opset=13,
        producer="pytorch",
    )


def trained_with_pairs() -> ModelProto:
    """Return quantisation-aware training by torch: signed, pairs also around additions."""
    w = Writer(43, names="/qat/{op}_{number}")

    def pair(x: str) -> str:
        scale, zero = w.constant(0.05, "float32"), w.constant(0, "int8")
        return w.add("DequantizeLinear", w.add("QuantizeLinear", x, scale, zero), scale, zero)

    def convolution(x: str, before: int, after: int) -> str:
        random = np.random.default_rng(len(w.nodes))
        weight = w.constant(random.integers(-90, 90, (after, before, 3, 3)), "int8")
        scale, zero = w.constant(0.002, "float32"), w.constant(0, "int8")
        return w.add("Conv", x, w.add("DequantizeLinear", weight, scale, zero), pads=[1] * 4)

    x = pair("input")
    x = pair(w.add("Relu", convolution(x, 3, 16)))
    for _ in range(3):
        y = pair(w.add("Relu", convolution(x, 16, 16)))
        x = pair(w.add("Add", pair(convolution(y, 16, 16)), x))
    w.add("Flatten", w.add("GlobalAveragePool", x), output="output")
    return model(
        w, [value("input", [1, 3, 32, 32])], [value("output", [1, 16])], opset=13, producer="pytorch"
    )


def weights_of_four_bits() -> ModelProto:
    """Return weights in blocks of four bits, opset 21: DequantizeLinear with a block size."""
    w = Writer(44, names="/int4/{op}_{number}")
    x, width, block = "input", 64, 16
    for number in range(3):
        codes = np.random.default_rng(number).integers(-8, 8, width * width)
        tensor = helper.make_tensor(f"codes_{number}", TensorProto.INT4, [width, width], codes)
        w.weights.append(tensor)
        scales = w.constant(np.full((width // block, width), 0.03, "float32"))
        weight = w.add("DequantizeLinear", tensor.name, scales, axis=0, block_size=block)
        x = w.add("Relu", w.add("MatMul", x, weight))
    w.add("Identity", x, output="output")
    return model(
        w,
        [value("input", ["batch", width])],
        [value("output", ["batch", width])],
        opset=21,
        producer="onnxruntime-genai",
    )
