"""Built-in networks as tables: layers with operations, bytes of weights and tensors, and no weights at all.

What a network of billions of bytes costs can be planned in seconds: its graph is built without weights, and
divided into layers as that of a model file is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...executor.engines.cache import default_cache
from ...executor.model import TensorSpec
from ...formulations.files import NETWORK, dump, load
from ...formulations.network import Network
from .catalog import digest_of, outline, zoo_entry

if TYPE_CHECKING:
    from ...executor.graph.grouping import Grouping
    from ...executor.graph.operators import OperatorGraph

TABLE_VERSION = 1
"""Raised whenever the same graph would be divided otherwise: tables in caches are made anew then."""


def table_of(name: str) -> Network:
    """Return a built-in network as a table; kept in the cache of the user.

    A layer is what a runtime fuses. Cuts are legal only where a single tensor crosses them: between the two
    halves of an encoder block and between blocks, as those who cut such networks by hand do it. The
    layers between are there for memory and costs.

    Raises InvalidModelError: there is no built-in network of this name, or spox is not installed.
    """
    cache, key = default_cache(), f"{digest_of(name)[:48]}{TABLE_VERSION:016x}"
    path = cache.path(key, ".json") or cache.put(key, ".json", dump(_made(name), NETWORK).encode())
    return load(path, NETWORK)


def operators_of(name: str) -> OperatorGraph:
    """Return the operators of a built-in network, whose weights have no content; errors as for `table_of`."""
    return _operators(outline(name), zoo_entry(name).inputs)


def grouped(name: str) -> tuple[OperatorGraph, Grouping]:
    """Return the operators of a built-in network, and how they are grouped into the layers of its table."""
    from ...executor.graph.choices import Granularity
    from ...executor.graph.grouping import group
    from ...executor.graph.operators import operator_cost

    graph = operators_of(name)
    costs = [operator_cost(graph, operator) for operator in graph.operators]
    return graph, group(graph, costs, Granularity.LAYER)


def _made(name: str) -> Network:
    _, grouping = grouped(name)
    count = len(grouping.layers)
    crossing = [
        sum(tensor.source < cut <= max(tensor.targets) for tensor in grouping.tensors)
        for cut in range(count + 1)
    ]
    return Network(
        name=name,
        layers=grouping.layers,
        tensors=grouping.tensors,
        forbidden_cuts=tuple(cut for cut in range(1, count) if crossing[cut] > 1),
        source=f"built-in network {name}, one layer for what a runtime fuses, cut where one tensor crosses",
    )


def _operators(outlined: bytes, inputs: Sequence[TensorSpec]) -> OperatorGraph:
    """Return the operators of a graph whose weights are inputs: they become initializers without content."""
    import onnx

    from ...executor.graph.operators import read_operators

    model = onnx.shape_inference.infer_shapes(onnx.load_from_string(outlined), strict_mode=True)
    own = {spec.name for spec in inputs}
    values = list(model.graph.input)
    del model.graph.input[:]
    for value in values:
        if value.name in own:
            model.graph.input.append(value)
        else:
            tensor = value.type.tensor_type
            sizes = [size.dim_value for size in tensor.shape.dim]
            weight = onnx.TensorProto(name=value.name, data_type=tensor.elem_type, dims=sizes)
            model.graph.initializer.append(weight)
    return read_operators(model)
