"""Valid ONNX models that are damaged: small, and of every kind of thing that a model file can hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any

import numpy as np
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from .damage import BYTE_DAMAGE, STRANGE_NUMBERS, STRANGE_TEXTS, Damage

OPSET = 17


def value(name: str, *sizes: int | str, kind: int = TensorProto.FLOAT) -> ValueInfoProto:
    """Return a typed name."""
    return helper.make_tensor_value_info(name, kind, sizes)


def weight(name: str, *sizes: int) -> TensorProto:
    """Return a weight."""
    return numpy_helper.from_array(
        np.linspace(-1, 1, int(np.prod(sizes))).reshape(sizes).astype("float32"), name
    )


def numbers(name: str, *given: int) -> TensorProto:
    """Return a constant of whole numbers."""
    return numpy_helper.from_array(np.array(given, dtype="int64"), name)


def written(
    nodes: Sequence[NodeProto],
    inputs: Sequence[ValueInfoProto],
    outputs: Sequence[ValueInfoProto],
    weights: Sequence[TensorProto] = (),
    **more: Any,
) -> bytes:
    """Return a serialised model."""
    graph = helper.make_graph(nodes, "graph", inputs, outputs, weights)
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("own", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8, **more)
    content: bytes = model.SerializeToString()
    return content


def _convolutions() -> bytes:
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["c1"], pads=[1, 1, 1, 1], name="first"),
        helper.make_node("BatchNormalization", ["c1", "b1", "b1", "b1", "v"], ["n1"]),
        helper.make_node("Relu", ["n1"], ["r1"]),
        helper.make_node("Conv", ["r1", "w2"], ["c2"], pads=[1, 1, 1, 1], name="second"),
        helper.make_node("Add", ["c2", "r1"], ["s"]),
        helper.make_node("GlobalAveragePool", ["s"], ["p"]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("Gemm", ["f", "w3"], ["y"], transB=1),
    ]
    variance = numpy_helper.from_array(np.ones(4, "float32"), "v")
    weights = [
        weight("w1", 4, 3, 3, 3),
        weight("b1", 4),
        variance,
        weight("w2", 4, 4, 3, 3),
        weight("w3", 5, 4),
    ]
    return written(nodes, [value("x", 1, 3, 8, 8)], [value("y", 1, 5)], weights)


def _shapes() -> bytes:
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "zero"], ["n"]),
        helper.make_node("Concat", ["n", "minus"], ["t"], axis=0),
        helper.make_node("Reshape", ["x", "t"], ["r"]),
        helper.make_node("Slice", ["r", "from", "to", "axes"], ["cut"]),
        helper.make_node("Expand", ["cut", "wide"], ["e"]),
        helper.make_node("Constant", [], ["k"], value=weight("", 1)),
        helper.make_node("Mul", ["e", "k"], ["y"]),
    ]
    constants = [
        numbers("zero", 0),
        numbers("minus", -1),
        numbers("from", 0),
        numbers("to", 4),
        numbers("axes", 1),
        numbers("wide", 3, 2, 4),
    ]
    return written(nodes, [value("x", 2, 3, 5)], [value("y", 3, 2, 4)], constants)


def _control_flow() -> bytes:
    true, scalar = TensorProto.BOOL, TensorProto.INT64
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["again"]), helper.make_node("Add", ["v", "x"], ["w"])],
        "body",
        [value("i", kind=scalar), value("go", kind=true), value("v", 1, 4)],
        [value("again", kind=true), value("w", 1, 4)],
    )
    arm = helper.make_graph([helper.make_node("Neg", ["l"], ["out"])], "arm", [], [value("out", 1, 4)])
    other = helper.make_graph([helper.make_node("Abs", ["l"], ["out"])], "other", [], [value("out", 1, 4)])
    nodes = [
        helper.make_node("Loop", ["turns", "", "x"], ["l"], body=body),
        helper.make_node("ReduceSum", ["l"], ["sum"], keepdims=0),
        helper.make_node("Greater", ["sum", "limit"], ["q"]),
        helper.make_node("If", ["q"], ["y"], then_branch=arm, else_branch=other),
    ]
    limit = numpy_helper.from_array(np.array(0, "float32"), "limit")
    return written(
        nodes, [value("x", 1, 4)], [value("y", 1, 4)], [numpy_helper.from_array(np.array(3), "turns"), limit]
    )


def _functions() -> bytes:
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("own", 1)]
    inner = helper.make_function(
        "own", "Twice", ["a"], ["b"], [helper.make_node("Add", ["a", "a"], ["b"])], opsets
    )
    calls = [
        helper.make_node("Twice", ["a"], ["b"], domain="own"),
        helper.make_node("Twice", ["b"], ["c"], domain="own"),
    ]
    outer = helper.make_function("own", "Four", ["a"], ["c"], calls, opsets)
    nodes = [helper.make_node("Four", ["x"], ["h"], domain="own"), helper.make_node("Tanh", ["h"], ["y"])]
    return written(nodes, [value("x", 2, 3)], [value("y", 2, 3)], functions=[inner, outer])


def _sequence() -> bytes:
    nodes = [
        helper.make_node("Split", ["x", "parts"], ["a", "b"], axis=1),
        helper.make_node("SequenceConstruct", ["a", "b"], ["q"]),
        helper.make_node("ConcatFromSequence", ["q"], ["j"], axis=0),
        helper.make_node("Foreign", ["j"], ["f"], domain="own", text="t", list=[1, 2], real=0.5),
        helper.make_node("Softmax", ["f"], ["y"]),
    ]
    return written(nodes, [value("x", 2, 4)], [value("y", 4, 2)], [numbers("parts", 2, 2)])


def _quantised() -> bytes:
    zero = numpy_helper.from_array(np.array(128, "uint8"), "z")
    scale = numpy_helper.from_array(np.array(0.1, "float32"), "s")
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        helper.make_node("MatMul", ["d", "w"], ["m"]),
        helper.make_node("LSTM", ["u", "wi", "wr"], ["", "h"], hidden_size=2),
        helper.make_node("Unsqueeze", ["m", "axis"], ["u"]),
        helper.make_node("Squeeze", ["h"], ["y"]),
    ]
    nodes[3], nodes[4] = nodes[4], nodes[3]
    weights = [
        zero,
        scale,
        weight("w", 4, 4),
        weight("wi", 1, 8, 4),
        weight("wr", 1, 8, 2),
        numbers("axis", 0),
    ]
    return written(nodes, [value("x", 3, 4)], [value("y", 3, 2)], weights)


def valid_models() -> Mapping[str, bytes]:
    """Return valid models by name."""
    return {
        "convolutions": _convolutions(),
        "shapes": _shapes(),
        "control flow": _control_flow(),
        "functions": _functions(),
        "sequence": _sequence(),
        "quantised": _quantised(),
    }


def _messages(message: Message) -> Iterator[Message]:
    yield message
    for field, content in message.ListFields():
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            for inner in content if hasattr(content, "extend") else (content,):
                yield from _messages(inner)


def edit_fields(random: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Change some fields of a model as protobuf knows them: values, counts, order, presence."""
    model = ModelProto.FromString(data)
    spare = ModelProto.FromString(random.choice(others))
    for _ in range(random.choice((1, 1, 1, 2, 3, 8))):
        messages = list(_messages(model))
        message = random.choice(messages)
        field = random.choice(message.DESCRIPTOR.fields)
        if hasattr(getattr(message, field.name), "extend"):
            _edit_list(random, message, field, spare)
        elif random.random() < 0.2:
            message.ClearField(field.name)
        elif field.type == FieldDescriptor.TYPE_MESSAGE:
            alike = [each for each in _messages(spare) if each.DESCRIPTOR is field.message_type]
            if alike:
                getattr(message, field.name).CopyFrom(random.choice(alike))
            else:
                getattr(message, field.name).SetInParent()
        else:
            setattr(message, field.name, _scalar(random, field, message))
    content: bytes = model.SerializeToString()
    return content


def _edit_list(random: Random, message: Message, field: FieldDescriptor, spare: ModelProto) -> None:
    items = getattr(message, field.name)
    choice = random.randrange(4)
    if choice == 0 and items:
        del items[random.randrange(len(items))]
    elif field.type == FieldDescriptor.TYPE_MESSAGE:
        alike = [each for each in _messages(spare) if each.DESCRIPTOR is field.message_type]
        if choice == 1 and len(items) > 1:
            first = random.randrange(len(items))
            items.append(items[first])
            del items[first]
        elif items or alike:
            source = random.choice([*items, *alike])
            items.extend([source] * random.choice((1, 1, 2, 50)))
    elif choice == 1 and items:
        items[random.randrange(len(items))] = _scalar(random, field, message)
    elif choice == 2 and items:
        items.append(random.choice(items))
    else:
        items.append(_scalar(random, field, message))


def _scalar(random: Random, field: FieldDescriptor, near: Message) -> Any:
    """Return a strange value for a field; for a text often the name of something else in the model."""
    kinds = FieldDescriptor
    if field.type == kinds.TYPE_STRING:
        known = [
            text
            for each, text in near.ListFields()
            if each.type == kinds.TYPE_STRING and isinstance(text, str)
        ]
        text = random.choice([*STRANGE_TEXTS, "x", "y", "w", "s", *known, *known])
        return text.encode(errors="replace").decode()
    if field.type == kinds.TYPE_BYTES:
        return random.randbytes(random.choice((0, 1, 3, 4, 8, 100)))
    if field.type in (kinds.TYPE_FLOAT, kinds.TYPE_DOUBLE):
        return random.choice((0.0, -0.0, 1e30, -1e-30, float("inf"), float("nan")))
    if field.type == kinds.TYPE_ENUM:
        assert field.enum_type is not None
        return random.choice([each.number for each in field.enum_type.values])
    bits = 31 if field.type == kinds.TYPE_INT32 else 63
    number = random.choice((*STRANGE_NUMBERS, random.randrange(40), random.randrange(40)))
    return max(-(2**bits), min(2**bits - 1, number)) if field.type != kinds.TYPE_UINT64 else abs(number)


MODEL_DAMAGE: tuple[Damage, ...] = (*BYTE_DAMAGE, *(edit_fields,) * 10)
"""Most files that are damaged byte by byte are no longer protobuf; those with edited fields are."""
