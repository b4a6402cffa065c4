"""Model files made ready for division into layers: checked, self-contained, simplified."""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from onnx import ModelProto, TensorProto

from ...formulations.errors import StoreError
from ..engines.cache import Cache, cache_key
from ..names import safe_name
from .choices import Simplification
from .model_file import Watch, checked, read_contents
from .shapes import Shape, Shapes, fix_shapes
from .simplify import rewritten

if TYPE_CHECKING:
    from onnx import ModelProto

    from ..engines.cache import Cache


VERSION = 5
"""Raised whenever the same file would be simplified otherwise."""

SUFFIX = ".simplified"

LEAST_S = 0.3
"""What is made faster than that is not kept."""

_LEAST_BYTES = 1024
"""Smaller weights are kept as they are."""

_PACKAGES = ("onnx", "onnxslim", "onnxruntime")
_HEAD = "gapless"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A simplified model, and what was found out while it was made."""

    model: ModelProto
    inputs: tuple[str, ...]  # names of the inputs in the file
    shapes: tuple[tuple[str, Shape], ...]  # the given shapes by input name
    warnings: tuple[str, ...]  # what could not be done, in words


def key_of(digest: str, shapes: Shapes, how: str) -> str:
    """Return the key of what becomes of a file with some content at given shapes, simplified in some way."""
    given = json.dumps(sorted((name, list(shape)) for name, shape in shapes.items()))
    return cache_key(SUFFIX, str(VERSION), *map(_version, _PACKAGES), digest, given, how)


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def weight_places(model: ModelProto) -> dict[str, int]:
    """Return where each large weight stands among the initializers of a file, by the digest of its data."""
    return {
        _digest(tensor): place
        for place, tensor in enumerate(model.graph.initializer)
        if len(tensor.raw_data) >= _LEAST_BYTES
    }


def keep(cache: Cache, key: str, kept: Kept, places: Mapping[str, int]) -> None:
    """Put a simplified model into a cache, without the weights of its file (see `weight_places`).

    A cache that takes nothing more is no reason to give up: the model is simplified again the next time.
    """
    light = ModelProto()
    light.CopyFrom(kept.model)
    taken = {}
    for index, tensor in enumerate(light.graph.initializer):
        place = places.get(_digest(tensor)) if len(tensor.raw_data) >= _LEAST_BYTES else None
        if place is not None:
            taken[index] = place
            tensor.ClearField("raw_data")
    head = {
        "inputs": kept.inputs,
        "shapes": kept.shapes,
        "warnings": kept.warnings,
        "weights": list(taken.items()),
    }
    light.metadata_props.add(key=_HEAD, value=json.dumps(head))
    with contextlib.suppress(StoreError):
        cache.put(key, SUFFIX, light.SerializeToString())


def find(cache: Cache, key: str, weights: Sequence[TensorProto]) -> Kept | None:
    """Return what was kept, or None."""
    path = cache.path(key, SUFFIX)
    if path is None:
        return None
    try:
        model = ModelProto.FromString(path.read_bytes())
        head = json.loads(model.metadata_props.pop().value)
        for index, place in head["weights"]:
            model.graph.initializer[index].raw_data = weights[place].raw_data
        return Kept(
            model=model,
            inputs=tuple(head["inputs"]),
            shapes=tuple((name, tuple(shape)) for name, shape in head["shapes"]),
            warnings=tuple(head["warnings"]),
        )
    except MemoryError:
        raise
    except Exception:  # whatever else is in the file, it is not what was kept: it is made again
        return None


def _digest(tensor: TensorProto) -> str:
    digest = hashlib.sha256(f"{tensor.data_type} {list(tensor.dims)} ".encode())
    digest.update(tensor.raw_data)
    return digest.hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """What is left of a model file once all that somebody else's code does with it is done."""

    path: Path  # absolute path of the file
    digest: str  # SHA-256 over the file and its external data, hexadecimal
    inputs: tuple[str, ...]  # names of the inputs in the file, also of those that change nothing
    shapes: tuple[tuple[str, Shape], ...]  # the given shapes by input name
    model: ModelProto = field(repr=False)  # simplified, with inferred shapes
    warnings: tuple[str, ...]  # what could not be done, in words


def prepare(
    path: str | Path,
    *,
    shapes: Shapes,
    materialize: bool = False,
    simplification: Simplification = Simplification.AUTO,
    compared: bool = True,
    watch: Watch | None = None,
    cache: Cache | None = None,
) -> Prepared:
    """Read, check and simplify an ONNX file in this process.

    `compared`: whether the simplified model is compared with the file: it runs then. `cache`: where
    simplified models are kept; None: nowhere.
    Raises MemoryError: there is too little memory.
    """
    watch = watch or Watch()
    read = read_contents(path, materialize=materialize, watch=watch)
    key = key_of(read.digest, shapes, simplification)
    kept = find(cache, key, read.model.graph.initializer) if cache is not None else None
    if kept is None:
        places = weight_places(read.model) if cache is not None else {}
        started = time.monotonic()
        settled = _settled_words(read.model)
        file = checked(read, watch=watch)
        inputs = tuple(value.name for value in file.model.graph.input)
        given = fix_shapes(file.model, shapes)
        made = rewritten(file.model, how=simplification, compared=compared, watch=watch)
        kept = Kept(model=made.model, inputs=inputs, shapes=given, warnings=(*made.warnings, *settled))
        if cache is not None and time.monotonic() - started >= LEAST_S:
            watch.step("keeping the simplified model")
            keep(cache, key, kept, places)
    return Prepared(
        path=read.path,
        digest=read.digest,
        inputs=kept.inputs,
        shapes=kept.shapes,
        model=kept.model,
        warnings=kept.warnings,
    )


def _settled_words(model: ModelProto) -> list[str]:
    """Say which inputs keep a value of the file; nothing where its weights have to be inputs, or all are."""
    weights = {tensor.name for tensor in model.graph.initializer}
    settled = [value.name for value in model.graph.input if value.name in weights]
    if model.ir_version < 4 or not settled or len(settled) == len(weights) > 1:
        return []
    names = ", ".join(repr(safe_name(name)) for name in settled)
    return [f"the file has a value for the input {names}, which is kept: no other one can be given"]
