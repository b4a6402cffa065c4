"""Transformers and recurrent networks."""

from __future__ import annotations

import numpy as np
from onnx import ModelProto, TensorProto

from .building import Writer, model, value

WIDTH, HEADS, WORDS = 64, 4, 500
_INT = TensorProto.INT64


def _heads(w: Writer, x: str) -> str:
    """Split into heads with sizes that the graph computes, as torch's first exporter does."""
    shape = w.add("Shape", x)
    batch = w.add("Unsqueeze", w.add("Gather", shape, w.inline(0), axis=0), w.inline([0]))
    length = w.add("Unsqueeze", w.add("Gather", shape, w.inline(1), axis=0), w.inline([0]))
    target = w.add("Concat", batch, length, w.inline([HEADS]), w.inline([WIDTH // HEADS]), axis=0)
    return w.add("Transpose", w.add("Reshape", x, target), perm=[0, 2, 1, 3])


def _attention(w: Writer, x: str, mask: str | None) -> str:
    query, key, content = (_heads(w, w.dense(x, WIDTH, WIDTH)) for _ in range(3))
    scores = w.add("MatMul", query, w.add("Transpose", key, perm=[0, 1, 3, 2]))
    scores = w.add("Div", scores, w.inline((WIDTH / HEADS) ** 0.5, "float32"))
    scores = w.add("Add", scores, mask) if mask else scores
    mixed = w.add("MatMul", w.add("Softmax", scores, axis=-1), content)
    mixed = w.add("Transpose", mixed, perm=[0, 2, 1, 3])
    joined = w.add("Reshape", mixed, w.inline([0, 0, WIDTH]))
    return w.dense(joined, WIDTH, WIDTH)


def _normalised(w: Writer, x: str) -> str:
    """Write layer normalisation out, as before opset 17."""
    centred = w.add("Sub", x, w.add("ReduceMean", x, axes=[-1]))
    variance = w.add("ReduceMean", w.add("Pow", centred, w.inline(2.0, "float32")), axes=[-1])
    spread = w.add("Sqrt", w.add("Add", variance, w.inline(1e-5, "float32")))
    scaled = w.add("Mul", w.add("Div", centred, spread), w.constant(np.ones(WIDTH, "float32")))
    return w.add("Add", scaled, w.constant(np.zeros(WIDTH, "float32")))


def _gelu(w: Writer, x: str) -> str:
    inner = w.add("Erf", w.add("Div", x, w.inline(2**0.5, "float32")))
    return w.add(
        "Mul", w.add("Mul", x, w.add("Add", inner, w.inline(1.0, "float32"))), w.inline(0.5, "float32")
    )


def bert_by_torch() -> ModelProto:
    """Return an encoder with mask and three inputs, opset 14, dynamic batch and length."""
    w = Writer(11, names="/encoder/{op}_{number}_output_0")
    words = w.add("Gather", w.weight(WORDS, WIDTH, scale=1.0), "input_ids")
    kinds = w.add("Gather", w.weight(2, WIDTH, scale=1.0), "token_type_ids")
    x = _normalised(w, w.add("Add", words, kinds))
    mask = w.add("Cast", w.add("Unsqueeze", "attention_mask", w.inline([1, 2])), to=TensorProto.FLOAT)
    mask = w.add("Mul", w.add("Sub", w.inline(1.0, "float32"), mask), w.inline(-10000.0, "float32"))
    for _ in range(2):
        x = _normalised(w, w.add("Add", _attention(w, x, mask), x))
        inner = _gelu(w, w.dense(x, WIDTH, 4 * WIDTH))
        x = _normalised(w, w.add("Add", w.dense(inner, 4 * WIDTH, WIDTH), x))
    w.add("Identity", x, output="last_hidden_state")
    shape: list[int | str] = ["batch_size", "sequence_length"]
    names = ("input_ids", "attention_mask", "token_type_ids")
    return model(
        w,
        [value(name, shape, _INT) for name in names],
        [value("last_hidden_state", [*shape, WIDTH])],
        opset=14,
        producer="pytorch",
    )


def decoder_with_cache() -> ModelProto:
    """Return one step of a decoder, opset 17: keys and values of the past go in and out, longer by one."""
    w = Writer(12, names="/model/{op}_{number}")
    x = w.add("Gather", w.weight(WORDS, WIDTH, scale=1.0), "input_ids")
    outputs = []
    for layer in range(2):
        scale, shift = (w.constant(np.full(WIDTH, number, "float32")) for number in (1, 0))
        normal = w.add("LayerNormalization", x, scale, shift, axis=-1)
        query, key, content = (_heads(w, w.dense(normal, WIDTH, WIDTH)) for _ in range(3))
        key = w.add("Concat", f"past.{layer}.key", key, axis=2, output=f"present.{layer}.key")
        content = w.add("Concat", f"past.{layer}.value", content, axis=2, output=f"present.{layer}.value")
        scores = w.add("MatMul", query, w.add("Transpose", key, perm=[0, 1, 3, 2]))
        mixed = w.add("MatMul", w.add("Softmax", scores, axis=-1), content)
        mixed = w.add("Reshape", w.add("Transpose", mixed, perm=[0, 2, 1, 3]), w.inline([0, 0, WIDTH]))
        x = w.add("Add", w.dense(mixed, WIDTH, WIDTH), x)
        x = w.add("Add", w.dense(w.add("Relu", w.dense(x, WIDTH, 4 * WIDTH)), 4 * WIDTH, WIDTH), x)
        outputs += [f"present.{layer}.key", f"present.{layer}.value"]
    w.add("MatMul", x, w.weight(WIDTH, WORDS, scale=0.1), output="logits")
    past: list[int | str] = ["batch", HEADS, "past_sequence_length", WIDTH // HEADS]
    present: list[int | str] = ["batch", HEADS, "past_sequence_length + 1", WIDTH // HEADS]
    return model(
        w,
        [
            value("input_ids", ["batch", "sequence"], _INT),
            *(value(name.replace("present", "past"), past) for name in outputs),
        ],
        [value("logits", ["batch", "sequence", WORDS]), *(value(name, present) for name in outputs)],
        opset=17,
        producer="optimum",
    )


def fused_by_onnxruntime() -> ModelProto:
    """Return what ONNX Runtime's transformer optimiser writes: operators of com.microsoft."""
    w = Writer(13, names="fused_{op}_{number}")
    x = w.add("Gather", w.weight(WORDS, WIDTH, scale=1.0), "input_ids")
    ones, zeros = (w.constant(np.full(WIDTH, number, "float32")) for number in (1, 0))
    for _ in range(2):
        weight, bias = w.weight(WIDTH, 3 * WIDTH, scale=0.1), w.weight(3 * WIDTH, scale=0.02)
        mixed = w.add("Attention", x, weight, bias, domain="com.microsoft", num_heads=HEADS)
        mixed = w.dense(mixed, WIDTH, WIDTH)
        x = w.add("SkipLayerNormalization", mixed, x, ones, zeros, domain="com.microsoft", epsilon=1e-5)
        inner = w.add("MatMul", x, w.weight(WIDTH, 4 * WIDTH, scale=0.1))
        inner = w.add("BiasGelu", inner, w.weight(4 * WIDTH, scale=0.02), domain="com.microsoft")
        outer = w.dense(inner, 4 * WIDTH, WIDTH)
        x = w.add("SkipLayerNormalization", outer, x, ones, zeros, domain="com.microsoft", epsilon=1e-5)
    w.add("Identity", x, output="output")
    return model(
        w,
        [value("input_ids", ["batch", "length"], _INT)],
        [value("output", ["batch", "length", WIDTH])],
        opset=17,
        producer="onnxruntime.transformers",
        domains={"com.microsoft": 1},
    )


def attention_of_opset_23() -> ModelProto:
    """Return attention and RMS normalisation as operators of opset 23."""
    w = Writer(14, names="v23_{op}_{number}")
    x, ones = "input", w.constant(np.ones(WIDTH, "float32"))
    for _ in range(2):
        normal = w.add("RMSNormalization", x, ones, axis=-1)
        parts = [w.dense(normal, WIDTH, WIDTH) for _ in range(3)]
        mixed = w.add("Attention", *parts, q_num_heads=HEADS, kv_num_heads=HEADS)
        x = w.add("Add", w.dense(mixed, WIDTH, WIDTH), x)
    w.add("Identity", x, output="output")
    return model(
        w,
        [value("input", ["B", "L", WIDTH])],
        [value("output", ["B", "L", WIDTH])],
        opset=23,
        producer="pytorch",
    )


def vision_transformer() -> ModelProto:
    """Return patches by convolution and an encoder, opset 16, with a class token that Expand repeats."""
    w = Writer(15, names="/vit/{op}_{number}")
    x = w.add("Conv", "input", w.weight(WIDTH, 3, 8, 8), kernel_shape=[8, 8], strides=[8, 8])
    x = w.add("Transpose", w.add("Reshape", x, w.inline([0, WIDTH, -1])), perm=[0, 2, 1])
    batch = w.add("Unsqueeze", w.add("Gather", w.add("Shape", x), w.inline(0)), w.inline([0]))
    token = w.add("Expand", w.weight(1, 1, WIDTH), w.add("Concat", batch, w.inline([1, WIDTH]), axis=0))
    x = w.add("Add", w.add("Concat", token, x, axis=1), w.weight(1, 17, WIDTH))
    for _ in range(2):
        x = w.add("Add", _attention(w, _normalised(w, x), None), x)
        inner = _gelu(w, w.dense(_normalised(w, x), WIDTH, 2 * WIDTH))
        x = w.add("Add", w.dense(inner, 2 * WIDTH, WIDTH), x)
    first = w.add("Gather", x, w.inline(0), axis=1)
    w.add("Gemm", first, w.weight(10, WIDTH), w.weight(10), output="output", transB=1)
    return model(
        w,
        [value("input", ["batch", 3, 32, 32])],
        [value("output", ["batch", 10])],
        opset=16,
        producer="pytorch",
    )


def _recurrent(op: str, gates: int, *, both: bool, opset: int) -> ModelProto:
    """Return a recogniser of sequences: recurrent layers between two products."""
    width, directions = 32, 2 if both else 1
    w = Writer(16 + gates, names=f"/{op.lower()}/{{op}}_{{number}}")
    x = w.add("Transpose", w.dense("input", 16, width), perm=[1, 0, 2])
    for layer in range(2):
        before = width if layer == 0 else width * directions
        sizes = ((gates * width, before), (gates * width, width))
        weights = [w.weight(directions, *size, scale=0.1) for size in sizes]
        bias = w.weight(directions, 2 * gates * width, scale=0.1)
        more = {"linear_before_reset": 1} if op == "GRU" else {}
        direction = "bidirectional" if both else "forward"
        y, _ = w.several(op, x, *weights, bias, outputs=2, hidden_size=width, direction=direction, **more)
        shape = w.constant([0, 0, -1], "int64")
        x = w.add("Reshape", w.add("Transpose", y, perm=[0, 2, 1, 3]), shape)
    x = w.add("Transpose", x, perm=[1, 0, 2])
    x = w.dense(x, width * directions, 20)
    w.add("LogSoftmax", x, output="output", axis=-1)
    return model(
        w,
        [value("input", ["batch", "time", 16])],
        [value("output", ["batch", "time", 20])],
        opset=opset,
        producer="pytorch",
    )


def lstm_both_ways() -> ModelProto:
    """Return two bidirectional LSTM layers, opset 14."""
    return _recurrent("LSTM", 4, both=True, opset=14)


def gru_both_ways() -> ModelProto:
    """Return two bidirectional GRU layers, opset 17."""
    return _recurrent("GRU", 3, both=True, opset=17)


def lstm_one_way() -> ModelProto:
    """Return two LSTM layers, opset 11."""
    return _recurrent("LSTM", 4, both=False, opset=11)
