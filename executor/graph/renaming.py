"""Names in a model that nothing further has to fear: text, printable, short, unique."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableSequence

from onnx import FunctionProto, GraphProto, ModelProto

from ..names import distinct, safe_name
from .tensor_data import all_graphs


def is_readable(model: ModelProto) -> bool:
    """Return whether all names in a model are text: protobuf finds out when they are read."""
    try:
        return all(isinstance(text, str) for graph in all_graphs(model) for text in _texts(graph))
    except UnicodeDecodeError:
        return False


def make_names_safe(model: ModelProto) -> None:
    """Rename, in place, each tensor whose name is too long or cannot be printed.

    The same names always become the same; all others are left alone. The model has no local functions.
    """
    names = dict.fromkeys(name for graph in all_graphs(model) for name in _names(graph) if name)
    good = [name for name in names if safe_name(name) == name]
    bad = [name for name in names if safe_name(name) != name]
    given = distinct([*good, *(safe_name(name) for name in bad)])[len(good) :]
    new = dict(zip(bad, given, strict=True))
    if new:
        for graph in all_graphs(model):
            rename(graph, new)


def renamed(content: bytes, outer: Callable[[str], str]) -> bytes:
    """Return a serialised model without local functions, with other names for all its tensors.

    `outer`: from a name to the new one; different names stay different.
    """
    model = ModelProto.FromString(content)
    for graph in all_graphs(model):
        rename(graph, {name: outer(name) for name in _names(graph) if name})
    found: bytes = model.SerializeToString(deterministic=True)
    return found


def _texts(graph: GraphProto | FunctionProto) -> Iterator[str]:
    yield graph.name
    for node in graph.node:
        yield from (node.name, node.op_type, node.domain, *node.input, *node.output)
        yield from (attribute.name for attribute in node.attribute)
    if isinstance(graph, GraphProto):
        yield from (tensor.name for tensor in graph.initializer)
        for value in (*graph.input, *graph.output, *graph.value_info):
            yield value.name
            yield from (size.dim_param for size in value.type.tensor_type.shape.dim)


def _names(graph: GraphProto | FunctionProto) -> Iterator[str]:
    assert isinstance(graph, GraphProto)
    for group in (graph.input, graph.output, graph.initializer):
        yield from (entry.name for entry in group)
    for node in graph.node:
        yield from node.input
        yield from node.output


def rename(graph: GraphProto | FunctionProto, new: Mapping[str, str]) -> None:
    """Give tensors other names, in place, in one graph without those nested in it."""
    assert isinstance(graph, GraphProto)
    for group in (graph.input, graph.output, graph.initializer, graph.value_info):
        for entry in group:
            entry.name = new.get(entry.name, entry.name)
    for node in graph.node:
        _replace(node.input, new)
        _replace(node.output, new)


def _replace(names: MutableSequence[str], new: Mapping[str, str]) -> None:
    for position, name in enumerate(names):
        if name in new:
            names[position] = new[name]
