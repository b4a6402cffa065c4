"""Fixed shapes: what the user gives, and what is observed by running the model.

Shapes that inference does not know: observed by running the model once on each of two random inputs.
Operators with subgraphs, those of other domains and tree ensembles have shapes that only a runtime knows.
What differs between two inputs depends on the data and stays unknown, and so does what follows from an
operator whose output is as long as the data make it, unless its length did differ: equal sizes may be chance
then, as when a detector finds as many boxes as it may in both.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any

from onnx import GraphProto, ModelProto, NodeProto, ValueInfoProto
from onnx.helper import make_tensor_value_info, np_dtype_to_tensor_dtype

from ...formulations.errors import ExecutionError, InvalidInputError, InvalidModelError, OpenShapesError
from ..model import ITEM_BYTES, TensorSpec
from ..samples import random_inputs
from .model_file import named_in, subgraphs
from .operators import tensor_spec

if TYPE_CHECKING:
    from numpy.typing import NDArray

Shape = tuple[int, ...]
Shapes = Mapping[str, Shape]
"""Shapes by name of the input; "" stands for the only input of a model."""

_OPEN = "?"


def parse_shapes(texts: Sequence[str]) -> dict[str, Shape]:
    """Return shapes from texts such as "x=1,3,480,640", or "1,3,480,640" for a model with one input."""
    shapes: dict[str, Shape] = {}
    defects = []
    for text in texts:
        name, _, sizes = text.rpartition("=")
        try:
            shape = tuple(_size(part) for part in sizes.split(","))
        except ValueError:
            defects.append(
                f"--shape {text!r}: expected a name and positive whole numbers such as x=1,3,480,640"
            )
            continue
        if name in shapes:
            defects.append(f"--shape {text!r}: the input {name!r} is given twice")
        shapes[name] = shape
    if defects:
        raise InvalidInputError("shapes cannot be read:", defects)
    return shapes


def fix_shapes(model: ModelProto, given: Shapes) -> tuple[tuple[str, Shape], ...]:
    """Write fixed shapes into the inputs of a model, in place, and return the given ones by input name.

    What else the file calls by the same symbol gets the same size: an output (batch, 10) of a model whose
    input is (batch, 3, 64, 64). Where inference knows better, that counts.

    `given`: shapes of inputs; those that the model fixes itself need none.
    """
    declared = {value.name: _declared(value) for value in model.graph.input}
    named = _with_names(given, tuple(declared))
    defects = [
        f"--shape {name}=...: the model has no such input; it has {', '.join(declared)}"
        for name in named
        if name not in declared
    ]
    for name, sizes in declared.items():
        defects += _defects(name, sizes, named.get(name))
    if defects:
        raise OpenShapesError("the shapes of the inputs are not settled:", defects)
    bound = _bound_symbols(model.graph.input, named)
    for value in model.graph.input:
        _write(value, named.get(value.name))
    for value in (*model.graph.output, *model.graph.value_info):
        for size in value.type.tensor_type.shape.dim:
            if size.dim_param in bound:
                size.dim_value = bound[size.dim_param]
    return tuple(sorted(named.items()))


def _bound_symbols(inputs: Iterable[ValueInfoProto], named: Shapes) -> dict[str, int]:
    """Return the sizes of symbols; one that would need two sizes is not bound."""
    sizes: dict[str, set[int]] = {}
    for value in inputs:
        dimensions = value.type.tensor_type.shape.dim
        for dimension, size in zip(dimensions, named.get(value.name, ()), strict=False):
            if dimension.dim_param:
                sizes.setdefault(dimension.dim_param, set()).add(size)
    return {symbol: found.pop() for symbol, found in sizes.items() if len(found) == 1}


def _size(text: str) -> int:
    if not (text.strip().isascii() and text.strip().isdigit() and len(text) < 12 and int(text) > 0):
        raise ValueError(text)
    return int(text)


def _with_names(given: Shapes, inputs: Sequence[str]) -> dict[str, Shape]:
    if "" in given and len(inputs) != 1:
        raise InvalidModelError(
            "a shape without a name needs a model with one input; this one has "
            f"{', '.join(inputs) or 'none'}: write --shape NAME={','.join(map(str, given['']))}"
        )
    return {name or inputs[0]: tuple(shape) for name, shape in given.items()}


def _declared(value: ValueInfoProto) -> tuple[int | str, ...] | None:
    """Return sizes, symbols where they are open; None where not even the rank is known."""
    if not value.type.HasField("tensor_type"):
        raise InvalidModelError(
            f"input {value.name!r} is not a tensor but a {value.type.WhichOneof('value') or 'nothing'}: "
            "only tensors can be passed between units"
        )
    if not value.type.tensor_type.elem_type:
        raise InvalidModelError(f"input {value.name!r} has no element type: export the model again")
    if not value.type.tensor_type.HasField("shape"):
        return None
    return tuple(
        size.dim_value if size.HasField("dim_value") and size.dim_value >= 0 else _symbol(size.dim_param)
        for size in value.type.tensor_type.shape.dim
    )


def _symbol(name: str) -> str:
    return name if name.isprintable() and 0 < len(name) <= 40 and "," not in name else _OPEN


def _defects(name: str, sizes: tuple[int | str, ...] | None, given: Shape | None) -> list[str]:
    if given is None:
        if sizes is None:
            return [f"input {name!r} has no shape at all: give it with --shape {name}=..."]
        if all(isinstance(size, int) for size in sizes):
            return [] if 0 not in sizes else [f"input {name!r} has the shape {_text(sizes)}, which is empty"]
        return [
            f"input {name!r} has open dimensions ({_text(sizes)}): fix them with --shape "
            f"{_option(name, sizes)}, numbers in place of words"
        ]
    if any(not isinstance(size, int) or size < 1 for size in given):
        return [f"--shape {_option(name, given)}: sizes must be positive whole numbers"]
    if sizes is not None and len(sizes) != len(given):
        return [
            f"--shape {_option(name, given)}: input {name!r} has {len(sizes)} dimensions ({_text(sizes)})"
        ]
    wrong = [
        f"dimension {axis} is {size}, not {wanted}"
        for axis, (size, wanted) in enumerate(zip(sizes or given, given, strict=True))
        if isinstance(size, int) and size != wanted
    ]
    if wrong:
        return [f"--shape {_option(name, given)} contradicts the model: {'; '.join(wrong)}"]
    return []


def _option(name: str, sizes: Sequence[int | str]) -> str:
    words = [f"{size}" if size != _OPEN else f"SIZE{axis}" for axis, size in enumerate(sizes)]
    return shlex.quote(f"{name}={','.join(words)}")


def _text(sizes: Sequence[int | str]) -> str:
    return " x ".join(map(str, sizes)) or "a scalar"


def _write(value: ValueInfoProto, shape: Shape | None) -> None:
    if shape is not None:
        target = value.type.tensor_type.shape
        del target.dim[:]
        for size in shape:
            target.dim.add().dim_value = size


SEEDS = (1, 2)

LIMIT_S = 30.0
"""How long each run may take."""

_SIZED_BY_DATA = frozenset(("NonZero", "NonMaxSuppression", "Unique", "Compress", "StringSplit"))


def is_static(value: ValueInfoProto) -> bool:
    """Return whether the type and all sizes of a tensor are known."""
    tensor = value.type.tensor_type
    sizes = tensor.shape.dim
    return bool(tensor.elem_type) and tensor.HasField("shape") and all(s.HasField("dim_value") for s in sizes)


def unknown_tensors(model: ModelProto) -> list[str]:
    """Return the tensors between operators, and outputs, of which not all sizes are known, in order."""
    values = {v.name: v for v in (*model.graph.value_info, *model.graph.output)}
    made = (name for node in model.graph.node for name in node.output if name)
    return [name for name in made if name not in values or not is_static(values[name])]


def observe_shapes(model: ModelProto) -> str | None:
    """Write shapes that are observed into a model, in place; return why none can be, or None.

    `model`: self-contained, with inferred shapes; those of its inputs are fixed.
    Raises MemoryError: there is too little memory.
    """
    unknown = unknown_tensors(model)
    inputs = [tensor_spec(value.name, value) for value in model.graph.input]
    specs = [each for each in inputs if isinstance(each, TensorSpec)]
    if not unknown or len(specs) < len(inputs):  # operators are read later, and say what is wrong with it
        return None
    try:
        first, second = _runs(model, specs, unknown)
    except ImportError:
        return "some shapes are not known, and ONNX Runtime is not installed to observe them"
    except (ExecutionError, InvalidInputError) as error:
        text = " ".join(str(error).split())[:300]
        return f"some shapes are not known, and could not be observed: {text}"
    trusted = [
        name for name in unknown if name in first and name in second and _alike(first[name], second[name])
    ]
    doubtful = _doubtful(model.graph, {n for n in unknown if n not in trusted})
    _write_observed(model.graph, {name: first[name] for name in trusted if name not in doubtful})
    return None


def _runs(
    model: ModelProto, specs: Sequence[TensorSpec], wanted: Sequence[str]
) -> list[Mapping[str, NDArray[Any]]]:
    """Return the tensors that a run for each seed makes, without sequences and strings."""
    from ..engines.ort_session import observed_outputs

    requests = [random_inputs(specs, seed) for seed in SEEDS]
    asked = with_outputs(model, wanted).SerializeToString()
    return [arrays_of(found) for found in observed_outputs(asked, requests, seconds=LIMIT_S)]


def with_outputs(model: ModelProto, wanted: Iterable[str]) -> ModelProto:
    """Return a model of which any tensors are the outputs; their types are left to a runtime."""
    asked = ModelProto()
    asked.CopyFrom(model)
    del asked.graph.output[:]
    asked.graph.output.extend(ValueInfoProto(name=name) for name in wanted)
    return asked


def arrays_of(found: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """Return what a run gave, without sequences and strings."""
    import numpy as np

    return {
        name: array
        for name, array in found.items()
        if isinstance(array, np.ndarray) and array.dtype.name in ITEM_BYTES
    }


def _alike(one: NDArray[Any], other: NDArray[Any]) -> bool:
    return one.shape == other.shape and one.dtype == other.dtype


def _doubtful(graph: GraphProto, varying: Set[str]) -> set[str]:
    """Return what follows from operators sized by data of which no output has differed."""
    found: set[str] = set()
    for node in graph.node:
        taken = set(named_in(node))
        sized = _is_sized_by_data(node) and varying.isdisjoint(node.output)
        if sized or not found.isdisjoint(taken):
            found.update(node.output)
    return found


def _is_sized_by_data(node: NodeProto) -> bool:
    inner = (each for graph in subgraphs(node.attribute) for each in graph.node)
    return node.op_type in _SIZED_BY_DATA or any(map(_is_sized_by_data, inner))


def _write_observed(graph: GraphProto, observed: Mapping[str, NDArray[Any]]) -> None:
    values = {
        name: make_tensor_value_info(name, np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in observed.items()
    }
    kept = [value for value in graph.value_info if value.name not in values]
    outputs = {value.name for value in graph.output}
    del graph.value_info[:]
    graph.value_info.extend([*kept, *(value for name, value in values.items() if name not in outputs)])
    for output in graph.output:
        if output.name in values:
            output.CopyFrom(values[output.name])
