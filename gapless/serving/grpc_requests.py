"""Messages of gRPC as the documents that REST has: the same code reads, checks and answers both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from ..executor.coordination.requests import Served
from ..formulations.errors import InvalidInputError
from ..formulations.validation import shown
from .protocol import Draft, InferRequest, Interface, draft, read_document
from .tensors import BINARY_SIZE, DATATYPES
from .wire import wire

if TYPE_CHECKING:
    from numpy.typing import NDArray

LARGE_VALUES = 4096
"""Typed contents are converted in pieces of this size: meanwhile nothing else of the process works."""

_CONTENTS = {
    "BOOL": ("bool_contents", "bool"),
    "INT8": ("int_contents", "int32"),
    "INT16": ("int_contents", "int32"),
    "INT32": ("int_contents", "int32"),
    "INT64": ("int64_contents", "int64"),
    "UINT8": ("uint_contents", "uint32"),
    "UINT16": ("uint_contents", "uint32"),
    "UINT32": ("uint_contents", "uint32"),
    "UINT64": ("uint64_contents", "uint64"),
    "FP32": ("fp32_contents", "float32"),
    "FP64": ("fp64_contents", "float64"),
}
"""By datatype, the field that has its values, and what numpy calls the type of that field."""

_NUMPY = {name: dtype for dtype, name in DATATYPES.items()}


def is_small(message: Any) -> bool:
    """Return whether a request is read fast enough to hold up nobody."""
    return all(
        len(getattr(tensor.contents, field)) <= LARGE_VALUES
        for tensor in message.inputs
        for field in {field for field, _ in _CONTENTS.values()}
    )


def read_message(interface: Interface, message: Any) -> tuple[InferRequest, bytes]:
    """Return a request, and its inputs in binary form, one behind the other."""
    raw = list(message.raw_input_contents)
    if raw and len(raw) != len(message.inputs):
        raise InvalidInputError(
            f"raw_input_contents has {len(raw)} entries for {len(message.inputs)} inputs; give one for each"
        )
    interface.check_count(len(message.inputs))
    inputs, parts = [], list[bytes]()
    for index, tensor in enumerate(message.inputs):
        parameters = parameters_of(tensor.parameters)
        if BINARY_SIZE in parameters:
            raise InvalidInputError(
                f"input {shown(tensor.name)}: parameter {BINARY_SIZE} is for REST; gRPC has "
                "raw_input_contents"
            )
        if not parameters.get("shared_memory_region"):
            parts.append(_data(interface, tensor, raw[index] if raw else None))
            parameters[BINARY_SIZE] = len(parts[-1])
        inputs.append(
            {
                "name": tensor.name,
                "datatype": tensor.datatype,
                "shape": list(tensor.shape),
                "parameters": parameters,
            }
        )
    binary = parts[0] if len(parts) == 1 else b"".join(parts)
    outputs = [
        {"name": output.name, "parameters": parameters_of(output.parameters)} for output in message.outputs
    ]
    document = {
        "id": message.id,
        "parameters": parameters_of(message.parameters),
        "inputs": inputs,
        "outputs": outputs,
    }
    return read_document(interface, document, len(binary)), binary


def parameters_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters by name; one without a value is None."""
    found = {}
    for name, value in given.items():
        choice = value.WhichOneof("parameter_choice")
        found[name] = None if choice is None else getattr(value, choice)
    return found


def answer_message(
    interface: Interface, request: InferRequest, served: Served, *, compared: bool
) -> tuple[Any, int]:
    """Return the answer to a request, and how many bytes its outputs have."""
    binary = InferRequest(
        inputs=request.inputs,
        outputs=dict.fromkeys(request.outputs, True),
        id=request.id,
        wishes=request.wishes,
    )
    made: Draft = draft(interface, binary, served, compared=compared)
    told = made.document
    found = wire().messages["ModelInferResponse"](
        model_name=told["model_name"],
        model_version=told["model_version"],
        id=told.get("id", ""),
        raw_output_contents=made.blobs,
    )
    for name, value in told["parameters"].items():
        kind = {bool: "bool_param", int: "int64_param", str: "string_param"}[type(value)]
        setattr(found.parameters[name], kind, value)
    for output in told["outputs"]:
        found.outputs.add(name=output["name"], datatype=output["datatype"], shape=output["shape"])
    return found, sum(map(len, made.blobs))


def _data(interface: Interface, tensor: Any, raw: bytes | None) -> bytes:
    """Return the data of an input in binary form."""
    given = [field.name for field, _ in tensor.contents.ListFields()]
    if raw is not None:
        if given:
            raise InvalidInputError(
                f"input {shown(tensor.name)} has contents ({given[0]}) and raw_input_contents; give one"
            )
        return raw
    spec = next((spec for spec in interface.inputs if spec.name == tensor.name), None)
    if tensor.datatype not in _CONTENTS or spec is None:
        if given or spec is not None:
            return _refused(tensor)
        return b""  # the name is refused further on
    field, dtype = _CONTENTS[tensor.datatype]
    if any(name != field for name in given):
        raise InvalidInputError(
            f"input {shown(tensor.name)} is {tensor.datatype} and has {', '.join(given)}; its values belong "
            f"in {field}, or all inputs in raw_input_contents"
        )
    values = getattr(tensor.contents, field)
    if len(values) != prod(spec.shape):
        raise InvalidInputError(
            f"input {tensor.name!r} has {len(values)} values in {field}, needs {prod(spec.shape)}"
        )
    return b"".join(_converted(tensor, values, dtype))


def _refused(tensor: Any) -> bytes:
    known = "raw_input_contents" if tensor.datatype == "FP16" else f"one of {', '.join(_CONTENTS)}, FP16"
    raise InvalidInputError(
        f"input {shown(tensor.name)} has the datatype {shown(tensor.datatype)}, whose values come in {known}"
    )


def _converted(tensor: Any, values: Sequence[Any], dtype: str) -> Iterator[bytes]:
    import numpy as np

    wanted = np.dtype(_NUMPY[tensor.datatype])
    for begin in range(0, len(values), LARGE_VALUES):
        array: NDArray[Any] = np.array(values[begin : begin + LARGE_VALUES], dtype)
        if wanted.itemsize < array.dtype.itemsize:
            limits = np.iinfo(wanted)
            if ((array < limits.min) | (array > limits.max)).any():
                at = int(((array < limits.min) | (array > limits.max)).argmax())
                raise InvalidInputError(
                    f"input {tensor.name!r} has {array[at]} at {begin + at}, which {tensor.datatype} does "
                    "not have"
                )
        yield array.astype(wanted.newbyteorder("<")).tobytes()
