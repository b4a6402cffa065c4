"""Outputs that depend on no input, such as the anchors of a map of fixed size: answered as constants.

Engines are given what they know: an operator that hands over a weight. Inside the model, the weight itself is
used, so that no tensor crosses a cut for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, count

from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, numpy_helper
from onnx.helper import make_node, make_tensor_value_info

from ...formulations.errors import ExecutionError
from .observing import LIMIT_S, arrays_of, with_outputs
from .op_types import RANDOM
from .operators import Operator, alive, operators_of
from .renaming import rename
from .tensor_data import all_graphs, subgraphs

HANDS_OVER = "/constant"
"""End of the name of the weight behind an output."""


def answer_constants(model: ModelProto) -> None:
    """Make, in place, a weight of each output that depends on no input, and an operator that hands it over.

    A model of which no output depends on an input is left alone, and so is what cannot be computed here.
    """
    graph = model.graph
    operators = operators_of(graph)
    varying = {value.name for value in graph.input}
    for operator in operators:
        if _is_random(operator.node) or not varying.isdisjoint(operator.inputs):
            varying.update(operator.outputs)
    constant = [value for value in graph.output if value.name not in varying]
    if not constant or len(constant) == len(graph.output):
        return
    for tensor in _values(model, operators, constant):
        _hand_over(model, tensor)


def _is_random(node: NodeProto) -> bool:
    inner = (each for graph in subgraphs(node.attribute) for each in graph.node)
    return node.op_type in RANDOM or any(map(_is_random, inner))


def _values(
    model: ModelProto, operators: Sequence[Operator], wanted: Sequence[ValueInfoProto]
) -> list[TensorProto]:
    """Return outputs that depend on no input, as far as they can be computed."""
    names = {value.name for value in wanted}
    found = [tensor for tensor in model.graph.initializer if tensor.name in names]
    computed = sorted(names - {tensor.name for tensor in found})
    if not computed:
        return found
    own = ModelProto()
    own.CopyFrom(with_outputs(model, computed))
    del own.graph.input[:], own.graph.node[:], own.graph.value_info[:]
    own.graph.node.extend(operator.node for operator in alive(operators, wanted))
    try:
        from ..engines.ort_session import observed_outputs

        (values,) = observed_outputs(own.SerializeToString(), [{}], seconds=LIMIT_S)
    except (ImportError, ExecutionError):
        return found
    return found + [numpy_helper.from_array(array, name) for name, array in arrays_of(values).items()]


def _hand_over(model: ModelProto, tensor: TensorProto) -> None:
    graph, name = model.graph, tensor.name
    taken = {each.name for group in (graph.input, graph.initializer) for each in group}
    taken |= {made for inner in all_graphs(model) for node in inner.node for made in node.output}
    weight = _free(name + HANDS_OVER, taken)
    value = make_tensor_value_info(name, tensor.data_type, tensor.dims)
    own = TensorProto()
    own.CopyFrom(tensor)
    own.name = weight
    _drop(graph, name, _free(name + "/computed", taken))
    for inner in all_graphs(model):
        rename(inner, {name: weight})
    graph.initializer.append(own)
    graph.node.append(make_node("Identity", [weight], [name], name=name))
    next(each for each in graph.output if each.name == weight).CopyFrom(value)


def _drop(graph: GraphProto, name: str, unused: str) -> None:
    """Take what makes or holds a tensor out of a graph; its node makes another one, for nobody."""
    for node in graph.node:
        for place, made in enumerate(node.output):
            if made == name:
                node.output[place] = unused
    kept = [tensor for tensor in graph.initializer if tensor.name != name]
    if len(kept) < len(graph.initializer):
        copies = GraphProto(initializer=kept)
        del graph.initializer[:]
        graph.initializer.extend(copies.initializer)


def _free(name: str, taken: set[str]) -> str:
    numbered = (f"{name}#{number}" for number in count(2))
    found = next(each for each in chain([name], numbered) if each not in taken)
    taken.add(found)
    return found
