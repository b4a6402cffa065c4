"""What a model looks like to the planner: `gapless tools inspect`."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from ...formulations.validation import FileContent
from ..cuts import CutSummary, cut_summaries
from ..model import TensorSpec
from .onnx_model import OnnxModel


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
