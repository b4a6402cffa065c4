"""Reading ONNX files: everything that can be wrong with one is said before anything is built."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableSequence
from contextlib import suppress
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from math import prod
from pathlib import Path, PurePosixPath

import onnx
import onnx.inliner
from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    SparseTensorProto,
    TensorProto,
)

from ...formulations.errors import InvalidModelError
from ..names import distinct, safe_name


class Watch:
    """Is told of the steps of opening a file; this one ignores them."""

    def step(self, name: str) -> None:
        """Hear that a step begins; its name is the subject of a sentence."""

    def size(self, count: int) -> None:
        """Hear how many bytes the model holds, those in other files included."""


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


def is_readable(model: ModelProto) -> bool:
    """Return whether all names in a model are text: protobuf finds out when they are read."""
    try:
        return all(isinstance(text, str) for graph in all_graphs(model) for text in _texts(graph))
    except UnicodeDecodeError:
        return False


def make_names_safe(model: ModelProto) -> None:
    """Rename, in place, each tensor whose name is too long or cannot be printed.

    The same names always become the same; all others are left alone. The model has no local functions.
    """
    names = dict.fromkeys(name for graph in all_graphs(model) for name in _names(graph) if name)
    good = [name for name in names if safe_name(name) == name]
    bad = [name for name in names if safe_name(name) != name]
    given = distinct([*good, *(safe_name(name) for name in bad)])[len(good) :]
    new = dict(zip(bad, given, strict=True))
    if new:
        for graph in all_graphs(model):
            rename(graph, new)


def renamed(content: bytes, outer: Callable[[str], str]) -> bytes:
    """Return a serialised model without local functions, with other names for all its tensors.

    `outer`: from a name to the new one; different names stay different.
    """
    model = ModelProto.FromString(content)
    for graph in all_graphs(model):
        rename(graph, {name: outer(name) for name in _names(graph) if name})
    found: bytes = model.SerializeToString(deterministic=True)
    return found


def _texts(graph: GraphProto | FunctionProto) -> Iterator[str]:
    yield graph.name
    for node in graph.node:
        yield from (node.name, node.op_type, node.domain, *node.input, *node.output)
        yield from (attribute.name for attribute in node.attribute)
    if isinstance(graph, GraphProto):
        yield from (tensor.name for tensor in graph.initializer)
        for value in (*graph.input, *graph.output, *graph.value_info):
            yield value.name
            yield from (size.dim_param for size in value.type.tensor_type.shape.dim)


def _names(graph: GraphProto | FunctionProto) -> Iterator[str]:
    assert isinstance(graph, GraphProto)
    for group in (graph.input, graph.output, graph.initializer):
        yield from (entry.name for entry in group)
    for node in graph.node:
        yield from node.input
        yield from node.output


def rename(graph: GraphProto | FunctionProto, new: Mapping[str, str]) -> None:
    """Give tensors other names, in place, in one graph without those nested in it."""
    assert isinstance(graph, GraphProto)
    for group in (graph.input, graph.output, graph.initializer, graph.value_info):
        for entry in group:
            entry.name = new.get(entry.name, entry.name)
    for node in graph.node:
        _replace(node.input, new)
        _replace(node.output, new)


def _replace(names: MutableSequence[str], new: Mapping[str, str]) -> None:
    for position, name in enumerate(names):
        if name in new:
            names[position] = new[name]


MAX_MODEL_BYTES = 2**31 - 2**24
"""Largest model, its weights included: protobuf ends at 2 GiB, and a piece may be nearly the whole."""

_STANDARD_DOMAINS = ("", "ai.onnx")
_MAX_LISTED = 20
_OTHER_FORMATS = (
    (0, b"version https://git-lfs", "a Git LFS pointer: run `git lfs pull` to fetch the model"),
    (0, b"PK\x03\x04", "a zip archive (PyTorch saves those): export the model to ONNX"),
    (0, b"\x89HDF", "an HDF5 file (Keras saves those): export the model to ONNX"),
    (4, b"TFL3", "a TensorFlow Lite model: convert it to ONNX"),
    (0, b"<", "a text such as HTML, perhaps a saved error page: download the model again"),
    (0, b"{", "a JSON text: name the .onnx file instead"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFile:
    """A model with all its weights in memory; the rest holds once it is `checked`."""

    path: Path  # absolute path it was read from
    digest: str  # SHA-256 over the file and its external data, hexadecimal
    model: ModelProto
    """Self-contained, without local functions; no initializer stands among the inputs of its graph, and its
    tensors have printable names of bounded length."""


def read_model_file(
    path: str | Path, *, materialize: bool = False, digest: str | None = None, watch: Watch | None = None
) -> ModelFile:
    """Read and validate an ONNX file with its external data.

    `materialize`: accept external data behind symbolic and hard links (a Hugging Face cache is full of them),
    by reading it through them; the model is self-contained from then on. `digest`: the digest that it must
    have: another file is refused before more is done with it.
    """
    file = read_contents(path, materialize=materialize, watch=watch)
    if digest not in (None, file.digest):
        raise InvalidModelError(f"the model file {file.path} has changed since it was loaded: load it again")
    return checked(file, watch=watch)


def read_contents(path: str | Path, *, materialize: bool = False, watch: Watch | None = None) -> ModelFile:
    """Read an ONNX file with its external data, as it stands there: it is not `checked` yet.

    Parameters and errors are those of `read_model_file`.
    """
    watch = watch or Watch()
    absolute = Path(os.path.abspath(path))
    data = _read(absolute, watch)
    size, found = len(data), hashlib.sha256(data)
    model = _parse(absolute, data)
    del data  # as large as the model
    _raise(absolute, _version_defects(model))
    size, defects = _tensor_defects(absolute, model, size, follow_links=materialize)
    _raise(absolute, defects)
    watch.size(size)
    for tensor in filter(is_external, all_tensors(model)):
        where = ExternalData.of(tensor)
        assert isinstance(where, ExternalData)
        try:
            content = read_external(where, weight_bytes(tensor), absolute.parent, follow_links=materialize)
        except OSError as error:
            _raise(absolute, [f"the data of tensor {tensor.name!r} cannot be read: {error}"])
        found.update(content)
        tensor.raw_data = content
        tensor.ClearField("external_data")
        tensor.ClearField("data_location")
    return ModelFile(path=absolute, digest=found.hexdigest(), model=model)


def checked(file: ModelFile, *, watch: Watch | None = None) -> ModelFile:
    """Return a file that was read, checked and in its normal form; its model is used up.

    Raises InvalidModelError: the checker has something against it, or its functions cannot be inlined.
    """
    watch = watch or Watch()
    watch.step("the check")
    file.model.ir_version = max(file.model.ir_version, 4)  # before, initializers had to be inputs, too
    for graph in all_graphs(file.model):
        if isinstance(graph, GraphProto):
            _put_in_order(graph)
    _raise(file.path, filter(None, [checker_complaint(file.model)]))
    return ModelFile(path=file.path, digest=file.digest, model=_normal_form(file.path, file.model, watch))


def _put_in_order(graph: GraphProto) -> None:
    """Put nodes, in place, behind those that make what they need, as runtimes do; a cycle is left alone."""
    made = {name: place for place, node in enumerate(graph.node) for name in node.output if name}
    needed = [{made[name] for name in named_in(node) if name in made} for node in graph.node]
    if all(max(places, default=-1) < place for place, places in enumerate(needed)):
        return
    with suppress(CycleError):
        order = list(TopologicalSorter(dict(enumerate(needed))).static_order())
        ordered = GraphProto(node=[graph.node[place] for place in order])
        del graph.node[:]
        graph.node.extend(ordered.node)


def named_in(node: NodeProto) -> Iterator[str]:
    """Yield the names that a node takes, and all that are named inside it."""
    yield from node.input
    for graph in subgraphs(node.attribute):
        yield from (value.name for value in graph.output)
        for inner in graph.node:
            yield from named_in(inner)


def external_files(path: str | Path, *, materialize: bool = False) -> tuple[str, ...]:
    """Return the files in which an ONNX file keeps weights, by their paths below its folder.

    `materialize`: accept external data behind symbolic and hard links.
    Raises InvalidModelError: as for `read_model_file`, as far as it can be told without reading the weights.
    """
    absolute = Path(os.path.abspath(path))
    data = _read(absolute, Watch())
    model = _parse(absolute, data)
    _raise(absolute, _tensor_defects(absolute, model, len(data), follow_links=materialize)[1])
    found = (ExternalData.of(tensor) for tensor in all_tensors(model) if is_external(tensor))
    return tuple(
        dict.fromkeys(str(PurePosixPath(each.location)) for each in found if not isinstance(each, str))
    )


def _read(path: Path, watch: Watch) -> bytes:
    try:
        # O_NONBLOCK: a named pipe must not hang us.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InvalidModelError(f"the model file {path} cannot be read: {reason}") from None
    try:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            profiled = path / "problem.json"
            hint = f", or {profiled}, where a problem may stand" if profiled.is_file() else ""
            raise InvalidModelError(f"{path} is a folder: name the .onnx file in it{hint}")
        if not stat.S_ISREG(status.st_mode):
            raise InvalidModelError(f"{path} is not a regular file")
        if status.st_size > MAX_MODEL_BYTES:
            raise InvalidModelError(_too_large(path, status.st_size))
        watch.size(status.st_size)
        with open(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)


def _too_large(path: Path, size: int) -> str:
    return (
        f"model {path} holds {size / 1e9:.2f} GB with its weights; at most {MAX_MODEL_BYTES / 1e9:.2f} GB "
        "can be cut and run, because a self-contained ONNX model ends at 2 GiB: quantise it, or export it "
        "in parts"
    )


def _parse(path: Path, data: bytes) -> ModelProto:
    if not data:
        raise InvalidModelError(f"the model file {path} is empty: export or download it again")
    for offset, start, meaning in _OTHER_FORMATS:
        if data.startswith(start, offset):
            raise InvalidModelError(f"{path} is not an ONNX model, but {meaning}")
    try:
        model: ModelProto = ModelProto.FromString(data)
    except Exception:  # protobuf has no typed exceptions
        raise InvalidModelError(
            f"{path} is not an ONNX model, or is truncated, damaged or nested too deeply "
            f"({len(data)} bytes): export or download it again"
        ) from None
    if not is_readable(model):
        raise InvalidModelError(f"{path} holds names that are not UTF-8 text: the file is damaged")
    if not model.graph.node:
        raise InvalidModelError(f"{path} is not an ONNX model, or one without any operator")
    return model


def _version_defects(model: ModelProto) -> Iterable[str]:
    advice = f"which onnx {onnx.__version__} does not know"
    cure = "install a newer onnx (pip install -U onnx), or export the model for an older version"
    if model.ir_version > onnx.IR_VERSION:
        yield f"it has IR version {model.ir_version}, {advice} (up to {onnx.IR_VERSION}): {cure}"
    newest = onnx.defs.onnx_opset_version()
    for opset in model.opset_import:
        if opset.domain in _STANDARD_DOMAINS and opset.version > newest:
            yield f"it uses opset {opset.version}, {advice} (up to {newest}): {cure}"


def _tensor_defects(path: Path, model: ModelProto, size: int, *, follow_links: bool) -> tuple[int, list[str]]:
    """Return the bytes of the model with what lies in other files, and what is wrong with its tensors."""
    defects = [
        f"tensor {sparse.values.name!r} is sparse, which is not supported: store it densely"
        for sparse in sparse_tensors(model)
    ]
    for tensor in all_tensors(model):
        defect = inline_defect(tensor)
        if defect is None and is_external(tensor):
            size += weight_bytes(tensor)
            where = ExternalData.of(tensor)
            defect = (
                where
                if isinstance(where, str)
                else external_defect(where, weight_bytes(tensor), path.parent, follow_links=follow_links)
            )
        if defect is not None:
            defects.append(defect)
    if not defects and size > MAX_MODEL_BYTES:
        defects.append(_too_large(path, size))
    return size, defects


def _normal_form(path: Path, model: ModelProto, watch: Watch) -> ModelProto:
    """Return a model without the liberties that only make reading harder."""
    weights = {tensor.name for tensor in model.graph.initializer}
    inputs = [value for value in model.graph.input if value.name not in weights]
    del model.graph.input[:]  # IR versions up to 3 repeat the initializers here
    model.graph.input.extend(inputs)
    if model.functions:
        watch.step("inlining its functions")
        model = _inlined(path, model)
    _name_parts(model)
    make_names_safe(model)
    return model


def _name_parts(model: ModelProto) -> None:
    """Name, in place, the parts of a Split that nobody takes: ONNX Runtime crashes without their names."""
    nodes = [node for graph in all_graphs(model) for node in graph.node if node.op_type == "Split"]
    places = [(node, place) for node in nodes for place, name in enumerate(node.output) if not name]
    taken = list({name for graph in all_graphs(model) for name in _names(graph)}) if places else []
    given = distinct([*taken, *("part" for _ in places)])[len(taken) :]
    for (node, place), name in zip(places, given, strict=True):
        node.output[place] = name


def _inlined(path: Path, model: ModelProto) -> ModelProto:
    """Return a model without local functions."""
    defects = []
    try:
        model = onnx.inliner.inline_local_functions(model)
        defects = [
            f"its function {safe_name(f'{each.domain}.{each.name}')} cannot be inlined, because it is "
            "written for other versions of operators than the model: export the model for one opset"
            for each in model.functions
        ]
    except MemoryError:
        raise
    except Exception as error:  # C++ assertions, as RuntimeError
        defects = [f"its functions cannot be inlined: {' '.join(str(error).split())[:300]}"]
    _raise(path, defects)
    return model


def _raise(path: Path, defects: Iterable[str]) -> None:
    found = list(defects)
    if len(found) > _MAX_LISTED:
        found = [*found[:_MAX_LISTED], f"and {len(found) - _MAX_LISTED} more like these"]
    if found:
        raise InvalidModelError(f"model {path} cannot be used:", found)


def checker_complaint(model: ModelProto) -> str | None:
    """Return what the ONNX checker has against a model, or None.

    Inputs and outputs without a shape are accepted, as every runtime does: a user gives those of inputs, the
    others are inferred anyway.
    """
    bare = [
        value.type.tensor_type
        for value in (*model.graph.input, *model.graph.output)
        if value.type.HasField("tensor_type") and not value.type.tensor_type.HasField("shape")
    ]
    for tensor in bare:
        tensor.shape.SetInParent()
    try:
        onnx.checker.check_model(model)
    except MemoryError:
        raise
    except Exception as error:  # the checker raises its own classes, which are not public in all versions
        return f"the ONNX checker says: {' '.join(str(error).split())[:600]}"
    finally:
        for tensor in bare:
            tensor.ClearField("shape")
    return None
