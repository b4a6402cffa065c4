"""Pipelines of Python functions: what a user writes in a file, and how one function is called.

>>> from gapless import CallableLayer, CallableModel, TensorSpec
>>> image = TensorSpec(name="image", shape=(480, 640))
>>> PIPELINE = CallableModel(
...     name="vision",
...     inputs=(image,),
...     layers=(
...         CallableLayer(name="blurred", variants={"*": lambda image: 0.5 * image}),
...         CallableLayer(name="edges", variants={"*": lambda b, i: i - b}, inputs=("blurred", "image")),
...     ),
... )

`gapless tune path.py:PIPELINE` then measures, plans and runs it like a model file.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import UnionType
from typing import TYPE_CHECKING, Any

from ..formulations.errors import ExecutionError, InvalidModelError
from ..formulations.hardware import UnitKind
from ..formulations.network import MAX_LAYERS
from ..formulations.validation import Defects
from .model import ITEM_BYTES, TensorSpec

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
        A unit of a kind without a function cannot run the layer.
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
    def output_names(self) -> tuple[str, ...]:
        """Names of the tensors that it gives."""
        named = (output.name if isinstance(output, TensorSpec) else output for output in self.outputs)
        return tuple(named) or (self.name,)

    def variant_for(self, kind: str) -> str | None:
        """Return under which key the function for a kind of unit stands, or None."""
        return next((key for key in (kind, ANY_UNIT) if key in self.variants), None)

    @property
    def reference_variant(self) -> str:
        """Key of the function whose numbers are right: that for CPUs, else the first."""
        return self.variant_for(UnitKind.CPU) or next(iter(self.variants))


@dataclass(frozen=True, slots=True, kw_only=True)
class CallableModel:
    """A pipeline of Python functions.

    Attributes
    ----------
    name
        Name of the network that it becomes.
    inputs
        What comes in with each request.
    layers
        In the order in which they run.
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
    layers: tuple[CallableLayer, ...]
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
        for layer in self.layers:
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
        return self.layers[index].inputs or before


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerCall:
    """A layer with one of its functions, ready to be called.

    Attributes
    ----------
    layer
        Name of the layer.
    function
        What is called.
    inputs, outputs
        Names of what it takes; what it has to give.
    """

    layer: str
    function: Function
    inputs: tuple[str, ...]
    outputs: tuple[TensorSpec, ...]

    def run(self, tensors: dict[str, NDArray[Any]]) -> None:
        """Call the function on some of the tensors, and add its results to them, write-protected.

        Raises
        ------
        ExecutionError
            It raised an exception, or gave something else than it should; the message names the layer.
        """
        arrays = call(self.layer, self.function, [tensors[name] for name in self.inputs])
        if len(arrays) != len(self.outputs):
            raise ExecutionError(
                f"layer {self.layer!r} returned {len(arrays)} arrays, its outputs are {len(self.outputs)}"
            )
        for spec, array in zip(self.outputs, arrays, strict=True):
            require(spec, array, f"output {spec.name!r} of layer {self.layer!r}")
            tensors[spec.name] = protected(array)


def call(layer: str, function: Function, arrays: Sequence[NDArray[Any]]) -> tuple[NDArray[Any], ...]:
    """Call the function of a layer, and return what it gave: at least one array.

    Raises
    ------
    ExecutionError
        It raised an exception, or gave something else than arrays.
    """
    import numpy as np

    result = guarded(f"layer {layer!r}", function, *arrays)
    results = result if isinstance(result, tuple | list) else (result,)
    for value in results:
        if not isinstance(value, np.ndarray | np.generic):
            raise ExecutionError(
                f"layer {layer!r} returned {type(value).__name__}, must return a numpy array, "
                "or a tuple of several"
            )
    return tuple(np.asarray(value) for value in results)


def guarded(what: str, function: Function, *arguments: Any) -> Any:
    """Call a function that a user wrote; `what` stands for it in messages.

    What it prints goes to standard error, because standard output may be a JSON document.

    Raises
    ------
    ExecutionError
        It raised an exception; the message says which, and in which line.
    """
    try:
        with contextlib.redirect_stdout(sys.stderr):
            return function(*arguments)
    except (Exception, SystemExit) as error:
        trace = error.__traceback__
        inner = trace.tb_next if trace is not None else None  # the user's own function
        where = f" ({inner.tb_frame.f_code.co_filename}, line {inner.tb_lineno})" if inner else ""
        hint = "; layers must not write into their inputs" if "read-only" in str(error) else ""
        raise ExecutionError(f"{what} raised {type(error).__name__}: {error}{where}{hint}") from error


def require(spec: TensorSpec, array: object, what: str) -> None:
    """Refuse what is no array of the specified shape and type.

    Raises
    ------
    ExecutionError
        They differ.
    """
    import numpy as np

    if not isinstance(array, np.ndarray):
        raise ExecutionError(f"{what} is {type(array).__name__}, must be a numpy array")
    if array.shape != spec.shape or array.dtype.name != spec.dtype:
        raise ExecutionError(f"{what} is {array.dtype.name} {array.shape}, must be {spec.dtype} {spec.shape}")


def protected(array: NDArray[Any]) -> NDArray[Any]:
    """Return a view that cannot be written to: other layers may need the same tensor."""
    view = array.view()
    view.flags.writeable = False
    return view


def _check_types(model: CallableModel, defects: Defects) -> None:
    """Look for what later checks would stumble over."""
    _check_tuple("inputs", model.inputs, TensorSpec, defects)
    _check_tuple("layers", model.layers, CallableLayer, defects)
    _check_tuple("outputs", model.outputs, str, defects)
    defects.raise_as(InvalidModelError)
    for layer in model.layers:
        defects.check_name("name of a layer", layer.name)
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
        name = kind.__name__ if isinstance(kind, type) else kind
        defects.add(f"{field} must hold {name}, found {type(wrong[0]).__name__}")


def _check_layer(layer: CallableLayer, defects: Defects) -> None:
    known = (*UnitKind, ANY_UNIT)
    for kind, function in layer.variants.items():
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
