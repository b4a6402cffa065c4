"""Quantised graphs: pairs of QuantizeLinear and DequantizeLinear around what runs in integers.

A runtime fuses DequantizeLinear -> operator -> QuantizeLinear into one operator on integers. So a
DequantizeLinear belongs to the operator that reads it, and integers cross every cut: a quarter of the bytes.
Where it belonged to what comes before it, float32 would cross and the operator would run in floats.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from onnx import GraphProto, ModelProto, NodeProto

DEQUANTISE, QUANTISE = "DequantizeLinear", "QuantizeLinear"


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


def _free(name: str, used: set[str]) -> str:
    """Return a name that is not used yet, and note that it is."""
    found = next(own for number in count(2) if (own := f"{name}#{number}") not in used)
    used.add(found)
    return found


def _replace(graph: GraphProto, nodes: Sequence[NodeProto]) -> None:
    changed = GraphProto()
    changed.node.extend(nodes)  # copies: those of the graph go with the next line
    del graph.node[:]
    graph.node.extend(changed.node)
