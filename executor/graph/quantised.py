"""Quantised graphs made ready for cuts: integers cross them, in the layout in which runtimes compute.

A runtime fuses DequantizeLinear -> operator -> QuantizeLinear into one operator on integers. So a
DequantizeLinear belongs to the operator that reads it, and integers cross every cut: a quarter of the bytes.
Where it belonged to what comes before it, float32 would cross and the operator would run in floats.

Convolutions on integers run with the channels last. ONNX Runtime carries that layout through a whole graph,
but not from an input that has its channels first: it then transposes around every convolution behind a
residual connection (5 to 8 % of the time; `benchmarks.foreign_models --parts int8`). So maps are handed over
with the channels last. Inside a chunk the two transpositions meet, and a runtime removes both.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, count
from typing import Literal

from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto
from onnx.helper import make_node, make_tensor_value_info

DEQUANTISE, QUANTISE = "DequantizeLinear", "QuantizeLinear"

CHANNELS_LAST = "/channels_last"
"""End of the name of a map that is handed over with its channels last."""

_IN_INTEGERS = "QLinear"
_LAST, _FIRST = (0, 2, 3, 1), (0, 3, 1, 2)
_BYTES = (TensorProto.INT8, TensorProto.UINT8)


def ready_for_cuts(model: ModelProto) -> None:
    """Change a simplified model, in place, so that it can be cut without loss; it computes the same."""
    give_each_user_its_own(model)
    if any(node.op_type == QUANTISE or node.op_type.startswith(_IN_INTEGERS) for node in model.graph.node):
        _hand_over_channels_last(model.graph)


def give_each_user_its_own(model: ModelProto) -> None:
    """Copy, in place, each DequantizeLinear with several users so that each of them has its own.

    Simplification makes them common, because they compute the same. Users in subgraphs, and outputs of the
    model, keep the original.
    """
    graph = model.graph
    names = {each.name for each in (*graph.input, *graph.initializer)}
    names |= {name for node in graph.node for name in node.output}
    values = {value.name: value for value in graph.value_info}
    users: dict[str, list[tuple[NodeProto, int]]] = {}
    for node in graph.node:
        for place, name in enumerate(node.input):
            users.setdefault(name, []).append((node, place))
    nodes: list[NodeProto] = []
    for node in graph.node:
        nodes.append(node)
        if node.op_type != DEQUANTISE:
            continue
        (name,) = node.output
        first = 0 if any(output.name == name for output in graph.output) else 1
        for user, place in users.get(name, [])[first:]:
            own = _free(name, names)
            copy = NodeProto()
            copy.CopyFrom(node)
            copy.name = copy.output[0] = user.input[place] = own  # nodes of a name are refused, too
            nodes.append(copy)
            if name in values:
                graph.value_info.add().CopyFrom(values[name])
                graph.value_info[-1].name = own
    if len(nodes) > len(graph.node):
        _replace(graph, nodes)


def _hand_over_channels_last(graph: GraphProto) -> None:
    """Put a pair of transpositions between what makes a map of bytes and all that read it."""
    names = {name for node in graph.node for name in node.output}
    values = {value.name: value for value in graph.value_info}
    users: dict[str, list[tuple[NodeProto, int]]] = {}
    for node in graph.node:
        for place, name in enumerate(node.input):
            users.setdefault(name, []).append((node, place))
    kept = {value.name for value in graph.output}
    nodes: list[NodeProto] = []
    for node in graph.node:
        readers = users.get(node.output[0], [])
        value = values.get(node.output[0])
        nodes.append(node)
        if value is None or value.name in kept or not _is_map(node, value, [user for user, _ in readers]):
            continue
        shape = [size.dim_value for size in value.type.tensor_type.shape.dim]
        kind = value.type.tensor_type.elem_type
        last = _free(value.name + CHANNELS_LAST, names)
        nodes.append(_transposition(value.name, last, _LAST))
        graph.value_info.append(make_tensor_value_info(last, kind, [shape[place] for place in _LAST]))
        for user, place in readers:
            own = _free(value.name, names)
            nodes.append(_transposition(last, own, _FIRST))
            graph.value_info.append(make_tensor_value_info(own, kind, shape))
            user.input[place] = own
    if len(nodes) > len(graph.node):
        _replace(graph, nodes)


def _is_map(node: NodeProto, value: ValueInfoProto, readers: Sequence[NodeProto]) -> bool:
    """Return whether a tensor holds bytes with channels in the second of four dimensions, for integers."""
    tensor = value.type.tensor_type
    return (
        tensor.elem_type in _BYTES
        and len(tensor.shape.dim) == len(_LAST)
        and all(size.dim_value > 0 for size in tensor.shape.dim)
        and (node.op_type == QUANTISE or node.op_type.startswith(_IN_INTEGERS))
        and bool(readers)
        and all(user.op_type == DEQUANTISE or user.op_type.startswith(_IN_INTEGERS) for user in readers)
    )


def _transposition(taken: str, made: str, order: Sequence[int]) -> NodeProto:
    return make_node("Transpose", [taken], [made], name=made, perm=order)


def _free(name: str, used: set[str]) -> str:
    """Return a name like this one that is not used yet, and note that it is."""
    numbered = (f"{name}#{number}" for number in count(2))
    found = next(own for own in chain([name], numbered) if own not in used)
    used.add(found)
    return found


def _replace(graph: GraphProto, nodes: Sequence[NodeProto]) -> None:
    changed = GraphProto()
    changed.node.extend(nodes)  # copies: those of the graph go with the next line
    del graph.node[:]
    graph.node.extend(changed.node)


def side_of_cut(
    op_type: str, inputs: Sequence[str], outputs: Sequence[str]
) -> Literal["maker", "reader"] | None:
    """Return whom an operator belongs to that stands at the side of a possible cut; None: it does not."""
    if op_type == QUANTISE or (op_type == "Transpose" and CHANNELS_LAST in outputs[0]):
        return "maker"
    if op_type == DEQUANTISE or (op_type == "Transpose" and CHANNELS_LAST in "".join(inputs)):
        return "reader"
    return None
