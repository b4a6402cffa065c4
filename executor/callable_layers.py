"""Pipelines of Python functions and models: what a user writes in a file.

>>> from gapless.running import CallableLayer, CallableModel, TensorSpec
>>> image = TensorSpec(name="image", shape=(480, 640))
>>> PIPELINE = CallableModel(
...     name="vision",
...     inputs=(image,),
...     layers=(
...         CallableLayer(name="blurred", variants={"*": lambda image: 0.5 * image}),
...         CallableLayer(name="edges", variants={"*": lambda b, i: i - b}, inputs=("blurred", "image")),
...     ),
... )

`gapless tune path.py:PIPELINE` then measures, plans and runs it like a model file. A `ModelStep` among the
layers is a whole model, which takes what layers before it give.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, get_args

from ..formulations.errors import InvalidModelError
from ..formulations.hardware import UnitKind
from ..formulations.network import MAX_LAYERS
from ..formulations.validation import Defects
from .model import ITEM_BYTES, TensorSpec
from .opencl_functions import OPENCL, OpenClFunction

if TYPE_CHECKING:
    from numpy.typing import NDArray

Function = Callable[..., Any]
"""Takes numpy arrays by position, and returns one, or a tuple of several."""

ANY_UNIT = "*"
"""Kind of unit under which a function stands that runs anywhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallableLayer:
    """One step of a pipeline: a function of some tensors that gives others.

    A function depends on its inputs alone, keeps nothing from one call to the next, and does not write
    into its inputs (they are write-protected): the layers of a pipeline run in different processes.
    Shapes are fixed. Where the size of a result depends on the data, give a tensor of the largest size,
    padded, and a second one with the number of valid entries.

    Attributes
    ----------
    name
        Unique in its pipeline.
    variants
        Functions by kind of unit ("cpu", "gpu", "npu", ...); "*" is for every kind that is not named.
        A unit of a kind without a function cannot run the layer. Under "opencl" stands an `OpenClFunction`,
        for the engine "opencl", whose units with an OpenCL backend run nothing else.
    inputs
        Names of the tensors that it takes, in the order of the parameters: inputs of the pipeline, and
        outputs of earlier layers. Empty: all outputs of the layer before.
    outputs
        The tensors that it gives, in the order in which the function returns them: specifications, or
        just names, whose shapes are found by running the layer on a sample. Empty: one tensor with the
        name of the layer.
    """

    name: str
    variants: Mapping[str, Function]
    inputs: tuple[str, ...] = ()
    outputs: tuple[TensorSpec | str, ...] = ()

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the tensors that it takes, as they are given."""
        return self.inputs

    @property
    def output_names(self) -> tuple[str, ...]:
        """Names of the tensors that it gives."""
        named = (output.name if isinstance(output, TensorSpec) else output for output in self.outputs)
        return tuple(named) or (self.name,)

    def variant_for(self, kind: str) -> str | None:
        """Return under which key the function for a kind of unit stands, or None; `OPENCL` is a kind."""
        keys = (kind,) if kind == OPENCL else (kind, ANY_UNIT)
        return next((key for key in keys if key in self.variants), None)

    @property
    def reference_variant(self) -> str:
        """Key of the function whose numbers are right: that for CPUs, else the first."""
        return self.variant_for(UnitKind.CPU) or next(iter(self.variants))


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelStep:
    """A step of a pipeline that is a model of its own, with as many layers as it has.

    It is cut like every model, and its layers and inner tensors are called "step/layer" and "step/tensor".
    Its open dimensions are fixed by what it is given.

    Attributes
    ----------
    name
        Unique in its pipeline, without "/".
    model
        Path of an ONNX file, if relative then from the folder of the Python file; or a built-in network.
    inputs
        For each input of the model, the tensor that it is given: an input of the pipeline, or an output of
        an earlier layer. Empty: the one output of the layer before, for the only input of the model.
    outputs
        What each output of the model is called in the pipeline. Empty: the only output of the model is
        called like the step.
    """

    name: str
    model: str | Path
    inputs: Mapping[str, str] = field(default_factory=dict)
    outputs: Mapping[str, str] = field(default_factory=dict)

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the tensors that it takes, as they are given."""
        return tuple(self.inputs.values())

    @property
    def output_names(self) -> tuple[str, ...]:
        """Names of the tensors that it gives."""
        return tuple(self.outputs.values()) or (self.name,)

    def file(self, folder: Path) -> Path | None:
        """Return the path of its file, seen from the folder of the Python file; None: there is none."""
        path = folder / self.model
        return path if path.is_file() else None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallableModel:
    """A pipeline of Python functions, and of models if it has any.

    Attributes
    ----------
    name
        Name of the network that it becomes.
    inputs
        What comes in with each request.
    layers
        Functions and models, in the order in which they run.
    outputs
        Names of the tensors that are wanted in the end. Empty: all outputs of the last layer.
    sample
        Function from a seed to realistic inputs, {name: array}; the same for the same seed.
        None: random numbers (floating point in [0, 1), integers up to 255).

    Raises
    ------
    InvalidModelError
        Something does not fit; the message lists all defects.
    """

    name: str
    inputs: tuple[TensorSpec, ...]
    layers: tuple[CallableLayer | ModelStep, ...]
    outputs: tuple[str, ...] = ()
    sample: Callable[[int], Mapping[str, NDArray[Any]]] | None = None

    def __post_init__(self) -> None:
        defects = Defects(f"pipeline {self.name!r}")
        defects.check_name("name", self.name)
        _check_types(self, defects)
        defects.check_size("inputs", len(self.inputs), most=MAX_LAYERS)
        defects.check_size("layers", len(self.layers), most=MAX_LAYERS)
        defects.check_unique("layer names", [layer.name for layer in self.layers])
        for spec in self.inputs:
            _check_spec(spec, f"input {spec.name!r}", defects)
        for index, layer in enumerate(self.layers):
            if isinstance(layer, ModelStep):
                _check_step(self, index, layer, defects)
            else:
                _check_layer(layer, defects)
        _check_names(self, defects)
        defects.raise_as(InvalidModelError)

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of what comes in with each request."""
        return tuple(spec.name for spec in self.inputs)

    @property
    def output_names(self) -> tuple[str, ...]:
        """Names of the tensors that are wanted in the end."""
        return self.outputs or self.layers[-1].output_names

    def inputs_of(self, index: int) -> tuple[str, ...]:
        """Return the names of the tensors that a layer takes."""
        before = self.layers[index - 1].output_names if index else self.input_names
        return self.layers[index].input_names or before

    def functions(self, start: int = 0, stop: int | None = None) -> tuple[CallableLayer, ...]:
        """Return the layers [start, stop), which are functions.

        Raises
        ------
        InvalidModelError
            One of them is a model.
        """
        layers = self.layers[start:stop]
        for layer in layers:
            if isinstance(layer, ModelStep):
                raise InvalidModelError(
                    f"layer {layer.name!r} of {self.name!r} is a model, no function: open the pipeline with "
                    "gapless.open_model"
                )
        return tuple(layer for layer in layers if isinstance(layer, CallableLayer))

    @property
    def steps(self) -> tuple[ModelStep, ...]:
        """The layers that are models."""
        return tuple(layer for layer in self.layers if isinstance(layer, ModelStep))

    def stretches(self) -> tuple[range, ...]:
        """Return the indices of its layers in order: each model alone, functions in between together."""
        indices = range(len(self.layers))
        steps = {index for index, layer in enumerate(self.layers) if isinstance(layer, ModelStep)}
        groups = (list(group) for _, group in groupby(indices, lambda i: i if i in steps else -1))
        return tuple(range(group[0], group[-1] + 1) for group in groups)


def _check_types(model: CallableModel, defects: Defects) -> None:
    """Look for what later checks would stumble over."""
    _check_tuple("inputs", model.inputs, TensorSpec, defects)
    _check_tuple("layers", model.layers, CallableLayer | ModelStep, defects)
    _check_tuple("outputs", model.outputs, str, defects)
    defects.raise_as(InvalidModelError)
    for layer in model.layers:
        defects.check_name("name of a layer", layer.name)
        if isinstance(layer, ModelStep):
            _check_mappings(layer, defects)
            continue
        _check_tuple(f"inputs of layer {layer.name!r}", layer.inputs, str, defects)
        _check_tuple(f"outputs of layer {layer.name!r}", layer.outputs, TensorSpec | str, defects)
        if not isinstance(layer.variants, Mapping) or not layer.variants:
            defects.add(f"variants of layer {layer.name!r} must be functions by kind of unit: {{'*': f}}")
    if model.sample is not None and not callable(model.sample):
        defects.add(f"sample must be a function of a seed, got {type(model.sample).__name__}")
    defects.raise_as(InvalidModelError)
    for name in _tensor_names(model):
        defects.check_name("name of a tensor", name)
    defects.raise_as(InvalidModelError)


def _tensor_names(model: CallableModel) -> list[str]:
    """Return the names of all tensors, in the order in which they come to be."""
    return [*model.input_names, *(name for layer in model.layers for name in layer.output_names)]


def _check_tuple(field: str, values: object, kind: type | UnionType, defects: Defects) -> None:
    if not isinstance(values, tuple):
        defects.add(f"{field} must be a tuple, got {type(values).__name__} (a tuple of one: (x,))")
    elif wrong := [value for value in values if not isinstance(value, kind)]:
        names = " or ".join(each.__name__ for each in get_args(kind) or (kind,))
        defects.add(f"{field} must hold {names}, found {type(wrong[0]).__name__}")


def _check_mappings(step: ModelStep, defects: Defects) -> None:
    if not isinstance(step.model, str | Path) or not str(step.model):
        defects.add(f"model of step {step.name!r} must be a path or a name, got {step.model!r}")
    for field_name, given in (("inputs", step.inputs), ("outputs", step.outputs)):
        if not isinstance(given, Mapping) or not all(
            isinstance(text, str) for pair in given.items() for text in pair
        ):
            defects.add(
                f"{field_name} of step {step.name!r} must say which tensor of the pipeline each tensor of "
                f"the model is: {{'x': 'photo'}}, got {given!r}"
            )


def _check_step(model: CallableModel, index: int, step: ModelStep, defects: Defects) -> None:
    if "/" in step.name:
        defects.add(f"name of step {step.name!r} holds '/', which stands before the names of its layers")
    taken = model.inputs_of(index)
    if not step.inputs and len(taken) != 1:
        defects.add(
            f"step {step.name!r} has no inputs, and before it come {', '.join(map(repr, taken))}: say which "
            "input of the model is given which of them"
        )
    if len(set(taken)) < len(taken):
        defects.add(f"step {step.name!r} gives one tensor to several inputs of the model: copy it before")
    within = f"{step.name}/"
    for name in dict.fromkeys([*(layer.name for layer in model.layers), *_tensor_names(model)]):
        if name.startswith(within):
            defects.add(f"{name!r} is called like something inside step {step.name!r}: choose another name")


def _check_layer(layer: CallableLayer, defects: Defects) -> None:
    known = (*UnitKind, ANY_UNIT, OPENCL)
    if set(layer.variants) == {OPENCL}:
        defects.add(f"layer {layer.name!r} has an OpenCL function alone: numbers are compared with another")
    for kind, function in layer.variants.items():
        if (kind == OPENCL) != isinstance(function, OpenClFunction):
            defects.add(f"variants of layer {layer.name!r}: an OpenClFunction stands under {OPENCL!r}, alone")
        if kind not in known:
            defects.add(f"variant {kind!r} of layer {layer.name!r} is no kind of unit: {', '.join(known)}")
        if not callable(function):
            defects.add(f"variant {kind!r} of layer {layer.name!r} is no function: {type(function).__name__}")
    for output in layer.outputs:
        if isinstance(output, TensorSpec):
            _check_spec(output, f"output {output.name!r} of layer {layer.name!r}", defects)


def _check_spec(spec: TensorSpec, what: str, defects: Defects) -> None:
    if not isinstance(spec.shape, tuple) or not all(isinstance(size, int) for size in spec.shape):
        defects.add(f"{what}: shape must be a tuple of integers, got {spec.shape!r}")
    elif min(spec.shape, default=1) < 1:
        defects.add(f"{what}: shape is {spec.shape}, all sizes must be at least 1")
    if spec.dtype not in ITEM_BYTES:
        defects.add(f"{what}: dtype is {spec.dtype!r}, must be one of {', '.join(ITEM_BYTES)}")


def _check_names(model: CallableModel, defects: Defects) -> None:
    """Require that every tensor is made before it is used, once, and used at all."""
    made = list(model.input_names)
    used = set(model.output_names) if model.layers else set()
    for index, layer in enumerate(model.layers):
        for name in model.inputs_of(index):
            used.add(name)
            if name not in made:
                defects.add(f"layer {layer.name!r} takes {name!r}, which comes in nowhere before it")
        made += layer.output_names
    defects.check_unique("tensor names", made)
    for name in model.outputs:
        if name not in made or name in model.input_names:
            defects.add(f"output {name!r} is made by no layer")
    for name in dict.fromkeys(made):
        if name not in used:
            defects.add(f"tensor {name!r} is used by no layer: remove it, or name it in outputs")
