"""Tensors of the Open Inference Protocol: names of types, JSON data, binary data."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from math import prod
from typing import TYPE_CHECKING, Any, Self

from ..executor.model import TensorSpec
from ..formulations.errors import InvalidInputError
from ..formulations.validation import shortened, shown

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DATATYPES = {
    "bool": "BOOL",
    "uint8": "UINT8",
    "uint16": "UINT16",
    "uint32": "UINT32",
    "uint64": "UINT64",
    "int8": "INT8",
    "int16": "INT16",
    "int32": "INT32",
    "int64": "INT64",
    "float16": "FP16",
    "float32": "FP32",
    "float64": "FP64",
}
"""Names of element types in the protocol, by numpy name. BYTES (texts) has no model here."""

SHARED_MEMORY = ("shared_memory_region", "shared_memory_offset", "shared_memory_byte_size")
"""Parameters of tensors that lie in memory which clients and the server share; it is not offered."""

BINARY_SIZE = "binary_data_size"
"""Parameter of a tensor that says how many bytes of the binary data are its own."""

_OF_INPUTS = (BINARY_SIZE, *SHARED_MEMORY)

_TYPES: dict[str, set[type]] = {"b": {bool}, "u": {int}, "i": {int}, "f": {int, float}}
"""Which types of JSON values are taken for each kind of element."""


class Spelled(float):
    """A number of a JSON document that keeps how it is written there: 1e400 is more than `inf` tells."""

    def __new__(cls, text: str) -> Self:
        """Return a number from its text."""
        found = super().__new__(cls, text)
        found.text = text
        return found

    text: str


def described(specs: Sequence[TensorSpec]) -> list[dict[str, Any]]:
    """Return tensors as metadata: name, datatype, shape."""
    return [
        {"name": spec.name, "datatype": DATATYPES[spec.dtype], "shape": list(spec.shape)} for spec in specs
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """Inputs of a request."""

    arrays: Mapping[str, NDArray[Any]]  # by name, those that came in JSON
    spans: Mapping[str, tuple[int, int]]  # by name, where the others begin and end in the binary data

    def complete(self, specs: Sequence[TensorSpec], binary: memoryview) -> dict[str, NDArray[Any]]:
        """Return all of them; those in binary form are not copied."""
        found = dict(self.arrays)
        for spec in specs:
            if span := self.spans.get(spec.name):
                found[spec.name] = _from_bytes(binary[slice(*span)], spec)
        return found


def read_inputs(specs: Sequence[TensorSpec], given: Sequence[Mapping[str, Any]], binary_bytes: int) -> Inputs:
    """Return the inputs of a request.

    `given`: "inputs" of the request: objects with a name; `binary_bytes`: how much follows its JSON document:
    the binary inputs, one behind the other.
    """
    known = {spec.name: spec for spec in specs}
    arrays: dict[str, NDArray[Any]] = {}
    spans: dict[str, tuple[int, int]] = {}
    defects, at = [], 0
    for tensor in given:
        name, size = tensor["name"], None
        try:
            if name not in known or name in arrays or name in spans:
                raise _Defect("is no input of the model" if name not in known else "is given twice")
            size = _binary_size(tensor)
            _check(tensor, known[name])
            if size is None:
                arrays[name] = _from_json(tensor, known[name])
            else:
                if "data" in tensor:
                    raise _Defect(f"has data and {BINARY_SIZE}; give one")
                _check_size(size, known[name], binary_bytes - at)
                spans[name] = at, at + size
                at += size
        except _Defect as defect:
            defects.append(f"input {shown(name)} {defect}")
            if size is not None:
                break  # where the next one begins is not known
    if not defects and at < binary_bytes:
        defects.append(f"{binary_bytes - at} bytes follow the last binary input")
    if not defects:
        defects = [f"input {name!r} is missing" for name in known if name not in arrays and name not in spans]
    if defects:
        raise InvalidInputError("the request does not fit the model:", defects)
    return Inputs(arrays=arrays, spans=spans)


def members(document: Mapping[str, Any], key: str, where: str) -> Mapping[str, Any]:
    """Return an object in a document; it may be absent, or null."""
    found = document.get(key)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise InvalidInputError(f"{where} is {written(found)}, must be an object")
    return found


def written(value: Any) -> str:
    """Return a JSON value for a message, as the client has written it, and never longer than a line."""
    return shortened(value.text if isinstance(value, Spelled) else json.dumps(value))


def has(given: Mapping[str, Any], key: str) -> str:
    """Return what an object has by a key, for a message; it may not be there."""
    return f"has the {key} {written(given[key])}" if key in given else f"has no {key}"


class _Defect(Exception):
    """What is wrong with one tensor."""


def _binary_size(tensor: Mapping[str, Any]) -> Any:
    """Return the length that a tensor has in binary form, whatever it is; None: it is in JSON."""
    found = tensor.get("parameters")
    if found is None:
        return None
    if not isinstance(found, dict):
        raise _Defect(f"has parameters that are no object: {written(found)}")
    if found.get("shared_memory_region"):
        raise _Defect("is in shared memory, which is not offered: send it in binary form")
    if unknown := [name for name in found if name not in _OF_INPUTS]:
        raise _Defect(f"has the parameter {shown(unknown[0])}, which is not known here")
    return found.get(BINARY_SIZE)


def _check_size(size: Any, spec: TensorSpec, left_bytes: int) -> None:
    if type(size) is not int or not 0 <= size <= left_bytes:
        raise _Defect(f"has the binary_data_size {written(size)}, but {left_bytes} bytes are left")
    if size != spec.bytes:
        raise _Defect(f"has {size} bytes, needs {spec.bytes}")


def _check(tensor: Mapping[str, Any], spec: TensorSpec) -> None:
    datatype, shape = tensor.get("datatype"), tensor.get("shape")
    if datatype == "BYTES":
        raise _Defect(f"has the datatype BYTES, which no model here takes; it is {DATATYPES[spec.dtype]}")
    if datatype != DATATYPES[spec.dtype]:
        raise _Defect(f"{has(tensor, 'datatype')}, needs {DATATYPES[spec.dtype]}")
    if shape != list(spec.shape) or not {*map(type, shape)} <= {int}:
        raise _Defect(f"{has(tensor, 'shape')}, needs {list(spec.shape)}")


def _from_bytes(data: memoryview, spec: TensorSpec) -> NDArray[Any]:
    import numpy as np

    if spec.dtype == "bool" and (values := np.frombuffer(data, np.uint8)).max(initial=0) > 1:
        at = int((values > 1).argmax())
        raise InvalidInputError(
            f"input {spec.name!r} has the byte {values[at]} at {_place(at, spec)}, which BOOL in binary form "
            "does not have: 0 is false, 1 is true"
        )
    return (
        np.frombuffer(data, dtype=np.dtype(spec.dtype).newbyteorder("<"))
        .reshape(spec.shape)
        .astype(spec.dtype, copy=False)
    )


def _from_json(tensor: Mapping[str, Any], spec: TensorSpec) -> NDArray[Any]:
    """Return data as nested lists, or as one list in row-major order."""
    import numpy as np

    data = tensor.get("data")
    if not isinstance(data, list):
        raise _Defect(f"{has(tensor, 'data')}: a list is needed, or binary_data_size")
    values, wanted = _flat(data, spec.shape), np.dtype(spec.dtype)
    kinds = {float if kind is Spelled else kind for kind in {*map(type, values)}}
    if kinds <= _TYPES[wanted.kind]:
        with (
            suppress(OverflowError),
            np.errstate(over="ignore"),
        ):  # numbers that are too large are named below
            if wanted.kind not in "iu" or not values or _within(np.iinfo(wanted), min(values), max(values)):
                found = np.array(values, dtype=wanted).reshape(spec.shape)
                if wanted.kind != "f" or np.isfinite(found).all():
                    return found
    raise _Defect(_misfit(values, spec))


def _flat(data: list[Any], shape: Sequence[int]) -> list[Any]:
    """Return the values of nested lists of a shape, or of one list that has as many."""
    if len(data) == prod(shape) and list not in map(type, data):
        return data
    rows: list[Any] = [data]
    for length in shape:
        if not {*map(type, rows)} <= {list} or not {*map(len, rows)} <= {length}:
            break
        rows = list(chain.from_iterable(rows))
    else:
        if list not in map(type, rows):
            return rows
    raise _Defect(f"has data of another shape: {list(shape)} is needed as nested lists, or all in one list")


def _within(limits: Any, least: int, most: int) -> bool:
    return bool(limits.min <= least and most <= limits.max)


def _misfit(values: Sequence[Any], spec: TensorSpec) -> str:
    """Return which value is the first that a type does not have, and where it is, in words."""
    import numpy as np

    at = next(index for index, value in enumerate(values) if not _fits(value, np.dtype(spec.dtype)))
    where, datatype = _place(at, spec), DATATYPES[spec.dtype]
    return f"has {written(values[at])} at {where}, which {datatype} in JSON does not have"


def _place(at: int, spec: TensorSpec) -> list[int]:
    """Return the indices of a value, given its place in row-major order."""
    import numpy as np

    return [int(index) for index in np.unravel_index(at, spec.shape)] if spec.shape else []


def _fits(value: Any, wanted: np.dtype[Any]) -> bool:
    import numpy as np

    kind = float if isinstance(value, Spelled) else type(value)
    if kind not in _TYPES[wanted.kind]:
        return False
    if wanted.kind in "iu":
        return _within(np.iinfo(wanted), value, value)
    try:
        with np.errstate(over="ignore"):
            return bool(np.isfinite(wanted.type(value)))
    except OverflowError:
        return False


def json_data(array: NDArray[Any]) -> tuple[list[Any], dict[str, int]]:
    """Return an output as JSON data, one list in row-major order, and how many of its numbers JSON lacks.

    These are null in the list; they are counted by kind: "nan", "infinity", "-infinity".
    """
    import numpy as np

    flat = array.ravel()
    found: list[Any] = flat.tolist()
    if array.dtype.kind != "f" or np.isfinite(flat).all():
        return found, {}
    for index in np.flatnonzero(~np.isfinite(flat)).tolist():
        found[index] = None
    kinds = {"nan": np.isnan(flat), "infinity": np.isposinf(flat), "-infinity": np.isneginf(flat)}
    return found, {kind: int(which.sum()) for kind, which in kinds.items() if which.any()}


def binary_data(array: NDArray[Any]) -> bytes:
    """Return an output as binary data: row-major, little-endian."""
    import numpy as np

    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).tobytes()
