"""What a model looks like to the planner: `gapless inspect`."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, ClassVar

from ...formulations.validation import STRICT
from ..cuts import CutSummary, cut_summaries
from ..model import TensorSpec
from .onnx_model import OnnxModel


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerSummary:
    """One layer.

    Attributes
    ----------
    name
        Its name.
    op_types
        Types of its operators.
    operators
        Number of its operators.
    flops
        Floating-point operations; None when unknown.
    weight_bytes
        Bytes of its weights.
    out_bytes
        Bytes of the tensors that it makes for others.
    """

    __pydantic_config__: ClassVar[Any] = STRICT

    name: str
    op_types: tuple[str, ...]
    operators: int
    flops: int | None
    weight_bytes: int
    out_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """Everything about a model that matters for planning.

    Attributes
    ----------
    network
        Its name.
    path, digest
        The file, and the SHA-256 of its content.
    granularity
        How operators were grouped.
    inputs, outputs
        Those of the model.
    layers, cuts
        In order.
    op_counts
        Operators by type, the most frequent first.
    flops
        Floating-point operations whose number is known.
    layers_without_flops
        Layers of which it is not known.
    weight_bytes
        Bytes of all weights, each counted once.
    foreign_operators
        Types that are not part of ONNX: an engine may not know them.
    warnings
        What a user should know, in words.
    """

    __pydantic_config__: ClassVar[Any] = STRICT

    network: str
    path: str
    digest: str
    granularity: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    layers: tuple[LayerSummary, ...]
    cuts: tuple[CutSummary, ...]
    op_counts: tuple[tuple[str, int], ...]
    flops: int
    layers_without_flops: int
    weight_bytes: int
    foreign_operators: tuple[str, ...]
    warnings: tuple[str, ...]


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
