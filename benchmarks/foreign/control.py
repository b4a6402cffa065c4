"""Control flow, and sizes that inference does not know."""

from __future__ import annotations

import numpy as np
from onnx import ModelProto, TensorProto, helper

from .building import Writer, model, subgraph, value

_INT, _BOOL = TensorProto.INT64, TensorProto.BOOL


def _features(w: Writer, x: str = "input", layers: int = 3) -> str:
    for before, after in ((3, 16), (16, 16), (16, 16))[:layers]:
        x = w.add("Relu", w.conv(x, (before, after), strides=[2, 2]))
    return x


def squeeze_under_if() -> ModelProto:
    """Return what torch's scripting writes for `squeeze`: an If whose branches differ in rank."""
    w = Writer(21, names="/if/{op}_{number}")
    x = w.add("GlobalAveragePool", _features(w))
    size = w.add("Gather", w.add("Shape", x), w.inline(3), axis=0)
    is_one = w.add("Equal", size, w.inline(1))
    then, other = Writer(names="then_{op}"), Writer(names="else_{op}")
    then.nodes.append(helper.make_node("Squeeze", [x, w.constant([2, 3], "int64")], ["squeezed"]))
    other.nodes.append(helper.make_node("Identity", [x], ["kept"]))
    x = w.add(
        "If",
        is_one,
        then_branch=subgraph(then, [], [value("squeezed", None)]),
        else_branch=subgraph(other, [], [value("kept", None)]),
    )
    w.add("Gemm", x, w.weight(10, 16), w.weight(10), output="output", transB=1)
    return model(
        w,
        [value("input", ["batch", 3, 64, 64])],
        [value("output", ["batch", 10])],
        opset=16,
        producer="pytorch",
    )


def branches_by_data() -> ModelProto:
    """Return an If whose condition is computed from the data; both branches give the same shape."""
    w = Writer(22, names="/gate/{op}_{number}")
    x = _features(w)
    positive = w.add("Greater", w.add("ReduceMean", x, keepdims=0), w.inline(0.2, "float32"))
    branches = []
    for seed, name in ((1, "left"), (2, "right")):
        inner = Writer(seed, names=name + "_{op}_{number}")
        weight = inner.weight(16, 16, 3, 3)
        inner.weights[-1].name = f"{name}_{weight}"
        made = inner.add("Conv", x, f"{name}_{weight}", pads=[1] * 4)
        branches.append(subgraph(inner, [], [value(made, None)]))
    x = w.add("If", positive, then_branch=branches[0], else_branch=branches[1])
    x = w.add("Relu", w.conv(x, (16, 16)))
    w.add("Flatten", w.add("GlobalAveragePool", x), output="output")
    return model(
        w, [value("input", [1, 3, 64, 64])], [value("output", [1, 16])], opset=13, producer="pytorch"
    )


def loop_of_fixed_turns() -> ModelProto:
    """Return a Loop that refines a state five times, and keeps every state (a scan output)."""
    w = Writer(23, names="/loop/{op}_{number}")
    state = w.dense(w.add("Flatten", w.add("GlobalAveragePool", _features(w))), 16, 16)
    body = Writer(3, names="body_{op}_{number}")
    weight = body.weight(16, 16, scale=0.2)
    body.weights[-1].name = f"body_{weight}"
    product = body.add("Tanh", body.add("MatMul", "state", f"body_{weight}"))
    body.add("Add", product, "state", output="next")
    body.add("Identity", "next", output="seen")
    body.add("Identity", "go", output="on")
    graph = subgraph(
        body,
        [value("turn", [], _INT), value("go", [], _BOOL), value("state", None)],
        [value("on", [], _BOOL), value("next", None), value("seen", None)],
    )
    last, states = w.several(
        "Loop", w.constant(5, "int64"), w.constant(1, "bool"), state, outputs=2, body=graph
    )
    w.add("Gemm", last, w.weight(8, 16), w.weight(8), output="output", transB=1)
    w.add("ReduceMax", states, output="strongest", axes=[0], keepdims=0)
    return model(
        w,
        [value("input", ["batch", 3, 64, 64])],
        [value("output", ["batch", 8]), value("strongest", ["batch", 16])],
        opset=13,
        producer="tf2onnx",
    )


def greedy_decoding() -> ModelProto:
    """Return a Loop over the frames of a recogniser: each turn reads one frame and gives the best word."""
    w = Writer(24, names="/decode/{op}_{number}")
    frames = w.dense("input", 16, 32)
    body = Writer(4, names="turn_{op}_{number}")
    weight = body.weight(32, 32, scale=0.2)
    body.weights[-1].name = f"turn_{weight}"
    frame = body.add("Gather", frames, "turn", axis=1)
    mixed = body.add("Tanh", body.add("Add", body.add("MatMul", "hidden", f"turn_{weight}"), frame))
    body.add("Identity", mixed, output="hidden_out")
    body.add("ArgMax", mixed, output="word", axis=-1, keepdims=0)
    body.add("Identity", "go", output="on")
    graph = subgraph(
        body,
        [value("turn", [], _INT), value("go", [], _BOOL), value("hidden", None)],
        [value("on", [], _BOOL), value("hidden_out", None), value("word", None, _INT)],
    )
    count = w.add("Gather", w.add("Shape", frames), w.constant(1, "int64"), axis=0)
    start = w.constant(np.zeros((1, 32), "float32"))
    _, words = w.several("Loop", count, "", start, outputs=2, body=graph)
    w.add("Transpose", words, output="words", perm=[1, 0])
    return model(
        w,
        [value("input", [1, "time", 16])],
        [value("words", [1, "time"], _INT)],
        opset=15,
        producer="pytorch",
    )


def scan_of_frames() -> ModelProto:
    """Return a Scan that sums up frames, opset 12."""
    w = Writer(25, names="/scan/{op}_{number}")
    frames = w.add("Relu", w.dense("input", 8, 12))
    body = Writer(5, names="step_{op}_{number}")
    body.add("Add", "total", "frame", output="total_out")
    body.add("Tanh", "total_out", output="kept")
    graph = subgraph(
        body,
        [value("total", [12]), value("frame", [12])],
        [value("total_out", [12]), value("kept", [12])],
    )
    start = w.constant(np.zeros(12, "float32"))
    _, kept = w.several("Scan", start, frames, outputs=2, body=graph, num_scan_inputs=1)
    w.add("MatMul", kept, w.weight(12, 4, scale=0.3), output="output")
    return model(
        w, [value("input", ["time", 8])], [value("output", ["time", 4])], opset=12, producer="tf2onnx"
    )


def frames_in_a_sequence() -> ModelProto:
    """Return a tensor that is split into a sequence and joined again, as list code in Python is exported."""
    w = Writer(26, names="/list/{op}_{number}")
    x = _features(w)
    parts = w.add("SplitToSequence", x, w.constant(8, "int64"), axis=1)
    first, second = (w.add("SequenceAt", parts, w.constant(place, "int64")) for place in (0, 1))
    swapped = w.add("SequenceConstruct", second, first)
    x = w.add("ConcatFromSequence", swapped, axis=1)
    x = w.add("Relu", w.conv(x, (16, 8)))
    w.add("Flatten", w.add("GlobalAveragePool", x), output="output")
    return model(w, [value("input", [1, 3, 32, 32])], [value("output", [1, 8])], opset=13, producer="pytorch")


def _head(w: Writer, boxes: int) -> tuple[str, str]:
    """Return boxes (1, n, 4) and scores (1, classes, n) from features of 8 x 8."""
    x = _features(w)
    raw = w.add("Reshape", w.conv(x, (16, 4), kernel=1), w.constant([1, 4, boxes], "int64"))
    places = w.add("Sigmoid", w.add("Transpose", raw, perm=[0, 2, 1]))
    logits = w.add("Reshape", w.conv(x, (16, 3), kernel=1), w.constant([1, 3, boxes], "int64"))
    return places, w.add("Sigmoid", logits)


def detector_of_fixed_size() -> ModelProto:
    """Return a detector that suppresses boxes and pads what is left to ten, as exports "end to end" do."""
    w = Writer(27, names="/detect/{op}_{number}")
    boxes, scores = _head(w, 64)
    limits = [
        w.constant([number], dtype) for number, dtype in ((20, "int64"), (0.5, "float32"), (0.4, "float32"))
    ]
    chosen = w.add("NonMaxSuppression", boxes, scores, *limits)
    places = w.add("Gather", chosen, w.constant(2, "int64"), axis=1)
    found = w.add("Gather", w.add("Squeeze", boxes, w.constant([0], "int64")), places)
    best = w.add("Gather", w.add("ReduceMax", scores, axes=[0, 1], keepdims=0), places)
    table = w.add("Concat", found, w.add("Unsqueeze", best, w.constant([1], "int64")), axis=1)
    padded = w.add("Concat", table, w.constant(np.zeros((10, 5), "float32")), axis=0)
    limits = [w.constant([number], "int64") for number in (0, 10, 0)]
    w.add("Slice", padded, *limits, output="detections")
    return model(
        w, [value("input", [1, 3, 64, 64])], [value("detections", [10, 5])], opset=13, producer="pytorch"
    )


def detector_with_suppression() -> ModelProto:
    """Return what a detector counts after suppression: only sizes inside depend on the data."""
    w = Writer(28, names="/nms/{op}_{number}")
    boxes, scores = _head(w, 64)
    limits = [
        w.constant([number], dtype) for number, dtype in ((5, "int64"), (0.5, "float32"), (0.45, "float32"))
    ]
    chosen = w.add("NonMaxSuppression", boxes, scores, *limits)
    classes = w.add("Gather", chosen, w.constant(1, "int64"), axis=1)
    kinds = w.add("OneHot", classes, w.constant(3, "int64"), w.constant([0.0, 1.0], "float32"))
    w.add("ReduceSum", kinds, w.constant([0], "int64"), output="counts", keepdims=0)
    return model(
        w, [value("input", [1, 3, 64, 64])], [value("counts", ["classes"])], opset=13, producer="tf2onnx"
    )


def detector_with_raw_head() -> ModelProto:
    """Return a detector of the YOLO family, opset 12: three scales joined, sizes of the input are open."""
    w = Writer(29, names="/yolo/{op}_{number}")
    x, outputs = w.conv("images", (3, 16), strides=[2, 2]), []
    for _ in range(3):
        x = w.conv(w.add("Mul", x, w.add("Sigmoid", x)), (16, 16), strides=[2, 2])
        raw = w.conv(x, (16, 3 * 7), kernel=1)
        shape = w.constant([1, 3, 7, -1], "int64")
        flat = w.add("Transpose", w.add("Reshape", raw, shape), perm=[0, 1, 3, 2])
        outputs.append(w.add("Reshape", flat, w.constant([1, -1, 7], "int64")))
    joined = w.add("Sigmoid", w.add("Concat", *outputs, axis=1))
    w.add("Identity", joined, output="output0")
    return model(
        w,
        [value("images", [1, 3, "height", "width"])],
        [value("output0", [1, "anchors", 7])],
        opset=12,
        producer="pytorch",
    )
