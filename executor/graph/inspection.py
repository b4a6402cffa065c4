"""What a model looks like to the planner: `gapless tools inspect`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ...formulations.network import Network
from ...formulations.operators import described
from ...formulations.validation import FileContent
from ..model import TensorSpec
from .choices import Granularity
from .grouping import Grouping, group
from .onnx_model import OnnxModel
from .operators import Operator, OperatorGraph, operator_cost

if TYPE_CHECKING:
    from onnx import AttributeProto


@dataclass(frozen=True, slots=True, kw_only=True)
class CutSummary(FileContent):
    """One legal cut."""

    cut: int  # number of the layer behind it
    bytes: int  # bytes alive at it
    tensors: int  # number of tensors alive at it


def cut_summaries(network: Network) -> tuple[CutSummary, ...]:
    """Return the legal cuts of a network, in order."""
    held = network.boundary_bytes
    return tuple(
        CutSummary(
            cut=cut,
            bytes=held[cut],
            tensors=sum(tensor.source < cut <= max(tensor.targets) for tensor in network.tensors),
        )
        for cut in network.legal_cuts
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerSummary(FileContent):
    """One layer."""

    name: str
    op_types: tuple[str, ...]  # types of its operators
    operators: int
    flops: int | None  # floating-point operations; None when unknown
    weight_bytes: int
    out_bytes: int  # bytes of the tensors that it makes for others


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection(FileContent):
    """Everything about a model that matters for planning.

    `path`, `digest`: the file, and the SHA-256 of its content; `inputs`, `outputs`: those of the model;
    `layers`, `cuts`: in order.
    """

    network: str
    path: str
    digest: str
    granularity: str  # how operators were grouped
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    layers: tuple[LayerSummary, ...]
    cuts: tuple[CutSummary, ...]
    op_counts: tuple[tuple[str, int], ...]  # operators by type, the most frequent first
    flops: int  # floating-point operations whose number is known
    layers_without_flops: int  # layers of which it is not known
    weight_bytes: int  # bytes of all weights, each counted once
    foreign_operators: tuple[str, ...]  # types that are not part of ONNX: an engine may not know them
    warnings: tuple[str, ...]  # what a user should know, in words


def inspect_model(model: OnnxModel) -> Inspection:
    """Return what a loaded model looks like to the planner."""
    network = model.network
    counts = Counter(operator.kind for operator in model.graph.operators)
    return Inspection(
        network=network.name,
        path=str(model.path),
        digest=model.content_digest,
        granularity=network.models[0].granularity,
        inputs=model.inputs,
        outputs=model.outputs,
        layers=_layers(model),
        cuts=cut_summaries(network),
        op_counts=tuple(sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))),
        flops=sum(layer.flops or 0 for layer in network.layers),
        layers_without_flops=sum(layer.flops is None for layer in network.layers),
        weight_bytes=model.graph.weight_bytes,
        foreign_operators=tuple(sorted(model.graph.foreign)),
        warnings=model.warnings,
    )


def _layers(model: OnnxModel) -> tuple[LayerSummary, ...]:
    made: Counter[int] = Counter()
    for tensor in model.network.tensors:
        made[tensor.source] += tensor.bytes
    return tuple(
        LayerSummary(
            name=layer.name,
            op_types=layer.op_types,
            operators=len(members),
            flops=layer.flops,
            weight_bytes=layer.weight_bytes,
            out_bytes=made[place],
        )
        for place, (layer, members) in enumerate(zip(model.network.layers, model.cutter.layers, strict=True))
    )


_LARGEST = {"kernel_shape": "kernel", "strides": "stride", "dilations": "dilation"}
"""Lists of numbers, of which the largest counts."""


def operator_text(operator: Operator) -> str:
    """Return an operator as `formulations.operators` describes it: "Conv[kernel=3,stride=2]"."""
    found = dict(_attributes(attribute) for attribute in operator.node.attribute)
    return described(operator.kind, {name: value for name, value in found.items() if name})


def divided(
    graph: OperatorGraph, classes: Sequence[Hashable], *, name: str, source: str = ""
) -> tuple[Network, Grouping]:
    """Return a model in layers of what a runtime fuses, each of operators of one class only.

    Layers have their operators in words instead of plain types, which rules about units can name.
    """
    costs = [operator_cost(graph, operator) for operator in graph.operators]
    grouping = group(graph, costs, Granularity.LAYER, classes=classes)
    texts = list(map(operator_text, graph.operators))
    layers = tuple(
        replace(layer, op_types=tuple(dict.fromkeys(texts[index] for index in members)))
        for layer, members in zip(grouping.layers, grouping.operators, strict=True)
    )
    return Network(
        name=name, layers=layers, tensors=grouping.tensors, shared=grouping.shared, source=source
    ), grouping


def _attributes(attribute: AttributeProto) -> tuple[str, str | int]:
    """Return name and value as descriptions have them; an empty name: not of interest."""
    if attribute.name in _LARGEST and attribute.ints:
        return _LARGEST[attribute.name], max(attribute.ints)
    if attribute.name == "group":
        return "group", attribute.i
    if attribute.name == "mode":
        return "mode", attribute.s.decode()
    return "", ""
