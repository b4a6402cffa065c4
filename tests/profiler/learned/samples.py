"""A small ONNX model, and devices whose times follow a known law."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

from gapless.formulations.hardware import Platform, ProcessingUnit
from gapless.profiler.learned.device import (
    REFERENCE,
    DeviceDescription,
    NetworkTimes,
    SpanTime,
)
from gapless.profiler.learned.features import KINDS, NUMBERS, STATISTICS, NetworkFeatures

CHANNELS = 8


def weight(name: str, *shape: int) -> onnx.TensorProto:
    return onnx.numpy_helper.from_array(np.full(shape, 0.01, np.float32), name)


def branching_model(path: Path) -> Path:
    """Write: convolution, two branches (depthwise convolution; max pool), their sum, a product, softmax."""
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["a"], "stem", kernel_shape=[3, 3], pads=[1] * 4),
        helper.make_node("Conv", ["a", "w2"], ["b"], "deep", group=CHANNELS, pads=[1] * 4, strides=[2, 2]),
        helper.make_node("MaxPool", ["a"], ["c"], "pool", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Add", ["b", "c"], ["d"], "sum"),
        helper.make_node("Flatten", ["d"], ["e"], "flat"),
        helper.make_node("MatMul", ["e", "w3"], ["f"], "product"),
        helper.make_node("Softmax", ["f"], ["y"], "shares"),
    ]
    graph = helper.make_graph(
        nodes,
        "branching",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 16, 16])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 10])],
        [weight("w1", CHANNELS, 3, 3, 3), weight("w2", CHANNELS, 1, 3, 3), weight("w3", CHANNELS * 64, 10)],
    )
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


def random_features(name: str, layers: int, seed: int) -> NetworkFeatures:
    """Return layers of random work, one kind each."""
    random = np.random.default_rng(seed)
    kinds = random.integers(0, 4, layers)
    numbers = np.zeros((layers, len(NUMBERS)), int)
    for statistic in STATISTICS:
        numbers[:, NUMBERS.index(statistic)] = 10 ** random.uniform(4, 7, layers)
    numbers[:, NUMBERS.index("operators")] = random.integers(1, 5, layers)
    numbers[:, NUMBERS.index("macs")] = numbers[:, [NUMBERS.index(s) for s in STATISTICS[:3]]].sum(axis=1)
    return NetworkFeatures(
        network=name,
        kinds=tuple(kinds.tolist()),
        counts=tuple(tuple(int(place == kind) for place in range(len(KINDS))) for kind in kinds),
        numbers=tuple(map(tuple, numbers.tolist())),
    )


def times(
    features: NetworkFeatures, unit: str, weights: Sequence[float], *, more: Sequence[float] = (1, 1, 1, 1)
) -> NetworkTimes:
    """Return times that are linear in the statistics, but for a factor `more` by kind of layer."""
    layer_us = features.statistics() @ np.array(weights[:-1]) * np.array(more)[list(features.kinds)]
    count = len(layer_us)
    spans = [(0, count), (0, 1), (1, count // 2), (count // 2, count), (2, 3)]
    return NetworkTimes(
        unit=unit,
        network=features.network,
        spans=tuple(
            SpanTime(
                start=start,
                stop=stop,
                run_us=float(layer_us[start:stop].sum() + weights[-1]),
                copy_in_us=6.0,
                copy_out_us=7.0,
                load_in=(1.0, 4096.0),
                load_out=(1.0, 4096.0),
            )
            for start, stop in spans
            if start < stop
        ),
        layer_us=tuple(layer_us.tolist()),
    )


def device(
    speeds: dict[str, float], *, networks: int = 6, more: Sequence[float] = (1, 1, 1, 1)
) -> DeviceDescription:
    """Return a device whose units take so many times as long as `REFERENCE`."""
    features = tuple(random_features(f"net{seed}", 12, seed) for seed in range(networks))
    return DeviceDescription(
        platform=Platform(name="board", units=tuple(ProcessingUnit(name=name) for name in speeds)),
        engine="fake 1",
        device="a test",
        taken_at="2026-01-01T00:00:00+00:00",
        networks=features,
        times=tuple(
            times(one, unit, [speed * weight for weight in REFERENCE], more=more)
            for unit, speed in speeds.items()
            for one in features
        ),
    )
