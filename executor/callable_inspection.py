"""What a pipeline of functions and models looks like to the planner: `gapless tools inspect path.py:NAME`."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from ..formulations.validation import FileContent
from .callable_layers import CallableLayer, Function
from .callables import CallablePipeline, function_name
from .chained import ChainedModel
from .graph.inspection import CutSummary, cut_summaries
from .model import TensorSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionSummary(FileContent):
    """One function, or one model.

    `layer`, `layers`: index of its first layer in the network, and how many it is there: a function is one.
    """

    name: str
    layer: int
    layers: int
    kinds: tuple[str, ...]  # kinds of units that it has a function for, "*" is any other; of a model: "model"
    functions: tuple[str, ...]  # names of these functions; of a model: where it lies
    inputs: tuple[str, ...]  # names of the tensors that it takes
    outputs: tuple[TensorSpec, ...]  # what it gives, with the shapes that it gave for a sample


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineInspection(FileContent):
    """Everything about a pipeline that matters for planning.

    `path`, `digest`: where it stands ("path.py:NAME"), and a digest of that source; `inputs`, `outputs`:
    those of the whole; `layers`, `cuts`: in order.
    """

    network: str
    path: str
    digest: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    layers: tuple[FunctionSummary, ...]
    cuts: tuple[CutSummary, ...]


def inspect_pipeline(model: CallablePipeline | ChainedModel) -> PipelineInspection:
    """Return what a loaded pipeline looks like to the planner."""
    network = model.network
    (origin,) = network.models
    return PipelineInspection(
        network=network.name,
        path=origin.locator,
        digest=origin.digest,
        inputs=model.inputs,
        outputs=model.outputs,
        layers=_summaries(model),
        cuts=cut_summaries(network),
    )


def _summaries(model: CallablePipeline | ChainedModel) -> tuple[FunctionSummary, ...]:
    declared, found = model.declared, []
    firsts = accumulate(model.sizes, initial=0)
    for index, (layer, first, size) in enumerate(zip(declared.layers, firsts, model.sizes, strict=False)):
        functions = layer.variants if isinstance(layer, CallableLayer) else {"model": layer.model}
        found.append(
            FunctionSummary(
                name=layer.name,
                layer=first,
                layers=size,
                kinds=tuple(functions),
                functions=tuple(map(_called, functions.values())),
                inputs=tuple(declared.inputs_of(index)),
                outputs=tuple(model.spec(name) for name in layer.output_names),
            )
        )
    return tuple(found)


def _called(what: Function | str | Path) -> str:
    return str(what) if isinstance(what, str | Path) else function_name(what)
