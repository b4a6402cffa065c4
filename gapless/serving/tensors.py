"""Tensors of the Open Inference Protocol: names of types, JSON data, binary data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..executor.model import TensorSpec
from ..formulations.errors import InvalidInputError
from ..formulations.nearness import shown

if TYPE_CHECKING:
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

_KINDS = {"b": "b", "u": "iu", "i": "iu", "f": "iuf"}
"""Which kinds of numbers in JSON are taken for each kind of element."""


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
    try:
        plain = np.asarray(data) if data else np.empty(0, spec.dtype)
    except (ValueError, OverflowError):
        raise _Defect("has data that is no array: its lists differ in length") from None
    wanted = np.dtype(spec.dtype)
    if plain.size and plain.dtype.kind not in _KINDS[wanted.kind]:
        raise _Defect(f"has data that are not all {DATATYPES[spec.dtype]}")
    if plain.shape not in (spec.shape, (plain.size,)) or plain.size * wanted.itemsize != spec.bytes:
        raise _Defect(
            f"has data of the shape {list(plain.shape)}, needs {list(spec.shape)}, or all in one list"
        )
    if wanted.kind in "iu" and plain.size:
        limits = np.iinfo(wanted)
        if int(plain.min()) < limits.min or int(plain.max()) > limits.max:
            raise _Defect(f"has data outside the range of {DATATYPES[spec.dtype]}")
    with np.errstate(over="ignore"):
        return plain.astype(wanted).reshape(spec.shape)


def json_data(name: str, array: NDArray[Any]) -> list[Any]:
    """Return an output as JSON data: one list in row-major order.

    Raises
    ------
    InvalidInputError
        It has numbers that JSON does not have.
    """
    import numpy as np

    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise InvalidInputError(
            f"output {name!r} has numbers that are not finite, which JSON cannot carry; ask for binary data"
        )
    found: list[Any] = array.ravel().tolist()
    return found


def binary_data(array: NDArray[Any]) -> bytes:
    """Return an output as binary data: row-major, little-endian."""
    import numpy as np

    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).tobytes()
