"""Tensors of the Open Inference Protocol: names of types, JSON data, binary data."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import chain
from math import prod
from typing import TYPE_CHECKING, Any, Self

from ..executor.model import TensorSpec
from ..formulations.errors import InvalidInputError
from ..formulations.nearness import shown

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


def parse_inputs(
    specs: Sequence[TensorSpec], given: Sequence[Mapping[str, Any]], binary: memoryview
) -> dict[str, NDArray[Any]]:
    """Return the inputs of a request as arrays; those in binary form are not copied.

    Parameters
    ----------
    specs
        What the model takes.
    given
        "inputs" of the request.
    binary
        What follows its JSON document: the binary inputs, one behind the other.

    Raises
    ------
    InvalidInputError
        Something does not fit; the message lists all defects.
    """
    known = {spec.name: spec for spec in specs}
    found: dict[str, NDArray[Any]] = {}
    defects, at = [], 0
    for tensor in given:
        name = tensor.get("name")
        try:
            if name not in known or name in found:
                raise _Defect("is no input of the model" if name not in known else "is given twice")
            size = _parameters(tensor).get("binary_data_size")
            _check(tensor, known[name])
            if size is None:
                found[name] = _from_json(tensor, known[name])
            else:
                if type(size) is not int or not 0 <= size <= len(binary) - at:
                    raise _Defect(
                        f"binary_data_size is {shown(str(size))}, but {len(binary) - at} bytes are left"
                    )
                found[name] = _from_bytes(binary[at : at + size], known[name])
                at += size
        except _Defect as defect:
            defects.append(f"input {shown(str(name))} {defect}")
            if not _is_json(tensor):
                break  # where the next one begins is not known
    if not defects and at < len(binary):
        defects.append(f"{len(binary) - at} bytes follow the last binary input")
    defects += [] if defects else [f"input {name!r} is missing" for name in known if name not in found]
    if defects:
        raise InvalidInputError("the request does not fit the model:", defects)
    return found


class _Defect(Exception):
    """What is wrong with one tensor."""


def _is_json(tensor: Mapping[str, Any]) -> bool:
    return isinstance(tensor.get("parameters", {}), dict) and "binary_data_size" not in tensor.get(
        "parameters", {}
    )


def _parameters(tensor: Mapping[str, Any]) -> Mapping[str, Any]:
    found = tensor.get("parameters", {})
    if not isinstance(found, dict):
        raise _Defect("has parameters that are no object")
    return found


def _check(tensor: Mapping[str, Any], spec: TensorSpec) -> None:
    datatype, shape = tensor.get("datatype"), tensor.get("shape")
    if datatype == "BYTES":
        raise _Defect(f"has the datatype BYTES, which no model here takes; it is {DATATYPES[spec.dtype]}")
    if datatype != DATATYPES[spec.dtype]:
        raise _Defect(f"has the datatype {shown(str(datatype))}, needs {DATATYPES[spec.dtype]}")
    if shape != list(spec.shape):
        raise _Defect(f"has the shape {shown(str(shape))}, needs {list(spec.shape)}")


def _from_bytes(data: memoryview, spec: TensorSpec) -> NDArray[Any]:
    import numpy as np

    if len(data) != spec.bytes:
        raise _Defect(f"has {len(data)} bytes, needs {spec.bytes}")
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
        raise _Defect("has no data: a list is needed, or binary_data_size")
    values, wanted = _flat(data, spec.shape), np.dtype(spec.dtype)
    if {*map(type, values)} <= _TYPES[wanted.kind]:
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
    where = [int(index) for index in np.unravel_index(at, spec.shape)] if spec.shape else []
    value = values[at]
    text = value.text if isinstance(value, Spelled) else json.dumps(value)
    return f"has {shown(text)} at {where}, which {DATATYPES[spec.dtype]} in JSON does not have"


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
