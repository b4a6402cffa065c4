"""Shapes that inference does not know: observed by running the model once on each of two random inputs.

Operators with subgraphs, those of other domains and tree ensembles have shapes that only a runtime knows.
What differs between two inputs depends on the data and stays unknown, and so does what follows from an
operator whose output is as long as the data make it, unless its length did differ: equal sizes may be
chance then, as when a detector finds as many boxes as it may in both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any

from onnx import GraphProto, ModelProto, NodeProto, ValueInfoProto
from onnx.helper import make_tensor_value_info, np_dtype_to_tensor_dtype

from ...formulations.errors import ExecutionError, InvalidInputError
from ..model import ITEM_BYTES, TensorSpec
from ..samples import random_inputs
from .operators import tensor_spec
from .tensor_data import subgraphs

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
    _write(model.graph, {name: first[name] for name in trusted if name not in doubtful})
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
        taken = {*node.input, *_names_inside(node)}
        sized = _is_sized_by_data(node) and varying.isdisjoint(node.output)
        if sized or not found.isdisjoint(taken):
            found.update(node.output)
    return found


def _is_sized_by_data(node: NodeProto) -> bool:
    inner = (each for graph in subgraphs(node.attribute) for each in graph.node)
    return node.op_type in _SIZED_BY_DATA or any(map(_is_sized_by_data, inner))


def _names_inside(node: NodeProto) -> Iterator[str]:
    for graph in subgraphs(node.attribute):
        yield from (value.name for value in graph.output)
        for inner in graph.node:
            yield from inner.input
            yield from _names_inside(inner)


def _write(graph: GraphProto, observed: Mapping[str, NDArray[Any]]) -> None:
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
