"""Tensors in a model file: what they claim to hold, what is there, and weights kept in files beside it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path, PurePosixPath

import onnx
from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, SparseTensorProto, TensorProto

_PACKED_BITS = {
    "UINT4": 4,
    "INT4": 4,
    "FLOAT4E2M1": 4,
    "UINT2": 2,
    "INT2": 2,
    "FLOAT6E2M3": 6,
    "FLOAT6E3M2": 6,
}
_FIELD_BYTES = {"float_data": 4, "int32_data": 4, "int64_data": 8, "double_data": 8, "uint64_data": 8}
_MAX_RANK = 64
_LINK_ADVICE = (
    "allow it with --materialize (materialize=True) if you trust this model, or copy the real file there"
)


def all_graphs(model: ModelProto) -> Iterator[GraphProto | FunctionProto]:
    """Yield the graph, the local functions, and every graph nested in an attribute."""
    waiting: list[GraphProto | FunctionProto] = [model.graph, *model.functions]
    while waiting:
        graph = waiting.pop()
        yield graph
        for node in graph.node:
            waiting.extend(subgraphs(node.attribute))


def subgraphs(attributes: Iterable[AttributeProto]) -> Iterator[GraphProto]:
    """Yield the graphs held by the attributes of a node."""
    for attribute in attributes:
        if attribute.type == AttributeProto.GRAPH:
            yield attribute.g
        elif attribute.type == AttributeProto.GRAPHS:
            yield from attribute.graphs


def all_tensors(model: ModelProto) -> Iterator[TensorProto]:
    """Yield every dense tensor with data: initializers and attributes, at any depth."""
    for graph in all_graphs(model):
        if isinstance(graph, GraphProto):
            yield from graph.initializer
        for attribute in _attributes(graph):
            yield from attribute.tensors
            if attribute.HasField("t"):
                yield attribute.t


def sparse_tensors(model: ModelProto) -> Iterator[SparseTensorProto]:
    """Yield every sparse tensor: initializers and attributes, at any depth."""
    for graph in all_graphs(model):
        if isinstance(graph, GraphProto):
            yield from graph.sparse_initializer
        for attribute in _attributes(graph):
            yield from attribute.sparse_tensors
            if attribute.HasField("sparse_tensor"):
                yield attribute.sparse_tensor


def _attributes(graph: GraphProto | FunctionProto) -> Iterator[AttributeProto]:
    for node in graph.node:
        yield from node.attribute


def is_known_type(number: int) -> bool:
    """Return whether a number in a file stands for an element type that this onnx knows."""
    return number != TensorProto.UNDEFINED and number in TensorProto.DataType.values()


def weight_bytes(tensor: TensorProto) -> int:
    """Return the bytes that the type and the dimensions of a tensor claim; strings count as nothing."""
    name = TensorProto.DataType.Name(tensor.data_type)
    if name == "STRING":
        return 0
    bits = _PACKED_BITS.get(name)
    if bits is None:
        bits = 8 * onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize
    return int(prod(tensor.dims) * bits + 7) // 8


def is_external(tensor: TensorProto) -> bool:
    """Return whether the data of a tensor lies in another file."""
    return tensor.data_location == TensorProto.EXTERNAL


def inline_defect(tensor: TensorProto) -> str | None:
    """Return what is wrong with a tensor whose data lies in the model file, or None.

    Only lengths are looked at: nothing is allocated for what a tensor merely claims.
    """
    label = f"tensor {tensor.name!r}"
    if not is_known_type(tensor.data_type):
        return f"{label} has the unknown element type {tensor.data_type}"
    if len(tensor.dims) > _MAX_RANK or any(size < 0 for size in tensor.dims):
        return f"{label} has impossible dimensions: {list(tensor.dims)[:_MAX_RANK]}"
    if is_external(tensor):
        return None
    claimed = weight_bytes(tensor)
    stored = len(tensor.raw_data) + sum(
        len(getattr(tensor, field)) * size for field, size in _FIELD_BYTES.items()
    )
    if tensor.data_type == TensorProto.STRING:
        claimed, stored = prod(tensor.dims), len(tensor.string_data)
    if stored < claimed or (tensor.HasField("raw_data") and stored != claimed):
        return (
            f"{label} claims {claimed} bytes by its dimensions {list(tensor.dims)}, but holds {stored}: "
            "the file is damaged or was not written completely"
        )
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalData:
    """Where the data of one tensor lies outside the model file.

    `offset`, `length`: which bytes of it; None where the model file does not say.
    """

    tensor: str
    location: str  # path of the file, relative to the folder of the model
    offset: int
    length: int | None

    @classmethod
    def of(cls, tensor: TensorProto) -> ExternalData | str:
        """Return what a tensor says of its data, or what is wrong with it."""
        said = {entry.key: entry.value for entry in tensor.external_data}
        numbers = {key: said.get(key) or "0" for key in ("offset", "length")}
        for key, text in numbers.items():
            if not (text.isascii() and text.isdigit() and len(text) < 20):
                return f"tensor {tensor.name!r} has external data with the {key} {text[:40]!r}, not a number"
        return cls(
            tensor=tensor.name,
            location=said.get("location", ""),
            offset=int(numbers["offset"]),
            length=int(numbers["length"]) if said.get("length") else None,
        )


def external_defect(data: ExternalData, claimed: int, folder: Path, *, follow_links: bool) -> str | None:
    """Return why the data of a tensor cannot be read from another file, or None.

    `claimed`: bytes that the tensor needs by its type and dimensions; `follow_links`: accept files that are
    reached through symbolic links, and files with several names.
    """
    label = f"tensor {data.tensor!r} has its data in the file {data.location!r}"
    parts = PurePosixPath(data.location).parts
    if not parts or "\0" in data.location:
        return f"tensor {data.tensor!r} has external data without a usable file name"
    if data.location.startswith("/") or ".." in parts:
        return f"{label}, which is not inside the folder of the model: refused"
    path = folder.joinpath(*parts)
    try:
        status = path.stat()
    except OSError as error:
        return f"{label}, which cannot be read ({error.strerror}); put it into {folder}"
    if not stat.S_ISREG(status.st_mode):
        return f"{label}, which is not a regular file"
    if not follow_links and path.resolve() != folder.resolve().joinpath(*parts):
        return f"{label}, which is a symbolic link to {path.resolve()}: refused; {_LINK_ADVICE}"
    if not follow_links and status.st_nlink > 1:
        return f"{label}, which is a hard link (a file with {status.st_nlink} names): refused; {_LINK_ADVICE}"
    if data.length is not None and data.length != claimed:
        return f"{label}, where {data.length} bytes are said to be its own, but its dimensions need {claimed}"
    if data.offset + claimed > status.st_size:
        return (
            f"{label}, which is too short: bytes {data.offset} to {data.offset + claimed} are needed, it has "
            f"{status.st_size}; fetch or export it again"
        )
    return None


def read_external(data: ExternalData, size: int, folder: Path, *, follow_links: bool) -> bytes:
    """Return the data of a tensor from another file; `external_defect` has found nothing wrong."""
    flags = os.O_RDONLY | os.O_CLOEXEC | (0 if follow_links else os.O_NOFOLLOW)
    descriptor = os.open(folder / data.location, flags)
    with os.fdopen(descriptor, "rb") as file:
        file.seek(data.offset)
        content = file.read(size)
    if len(content) != size:
        raise OSError(f"{data.location} became shorter while it was read")
    return content
