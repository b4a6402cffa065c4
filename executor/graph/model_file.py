"""Reading ONNX files: everything that can be wrong with one is said before anything is built from it."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import onnx
import onnx.inliner
from onnx import ModelProto

from ...formulations.errors import InvalidModelError
from ..names import safe_name
from .renaming import is_readable, make_names_safe
from .tensor_data import (
    ExternalData,
    all_tensors,
    external_defect,
    inline_defect,
    is_external,
    read_external,
    sparse_tensors,
    weight_bytes,
)
from .watching import Watch

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
    _raise(file.path, filter(None, [checker_complaint(file.model)]))
    return ModelFile(path=file.path, digest=file.digest, model=_normal_form(file.path, file.model, watch))


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
    model.ir_version = max(model.ir_version, 4)
    if model.functions:
        watch.step("inlining its functions")
        model = _inlined(path, model)
    make_names_safe(model)
    return model


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

    Outputs without a shape are accepted, as every runtime does: shapes are inferred anyway.
    """
    bare = [
        value.type.tensor_type
        for value in model.graph.output
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
