"""What a pipeline of Python functions looks like to the planner: `gapless inspect path.py:NAME`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ..formulations.validation import STRICT
from .callables import CallablePipeline, function_name
from .cuts import CutSummary, cut_summaries
from .model import TensorSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionSummary:
    """One layer.

    Attributes
    ----------
    name
        Its name.
    kinds
        Kinds of units that it has a function for; "*" is any other.
    functions
        Names of these functions.
    inputs
        Names of the tensors that it takes.
    outputs
        What it gives, with the shapes that it gave for a sample.
    """

    __pydantic_config__: ClassVar[Any] = STRICT

    name: str
    kinds: tuple[str, ...]
    functions: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[TensorSpec, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineInspection:
    """Everything about a pipeline that matters for planning.

    Attributes
    ----------
    network
        Its name.
    path, digest
        Where it stands ("path.py:NAME"), and a digest of that source.
    inputs, outputs
        Those of the whole.
    layers, cuts
        In order.
    """

    __pydantic_config__: ClassVar[Any] = STRICT

    network: str
    path: str
    digest: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    layers: tuple[FunctionSummary, ...]
    cuts: tuple[CutSummary, ...]


def inspect_pipeline(model: CallablePipeline) -> PipelineInspection:
    """Return what a loaded pipeline looks like to the planner."""
    network, declared = model.network, model.declared
    (origin,) = network.models
    return PipelineInspection(
        network=network.name,
        path=origin.locator,
        digest=origin.digest,
        inputs=model.inputs,
        outputs=model.outputs,
        layers=tuple(
            FunctionSummary(
                name=layer.name,
                kinds=tuple(layer.variants),
                functions=tuple(function_name(function) for function in layer.variants.values()),
                inputs=tuple(declared.inputs_of(index)),
                outputs=tuple(model.spec(name) for name in layer.output_names),
            )
            for index, layer in enumerate(declared.layers)
        ),
        cuts=cut_summaries(network),
    )
