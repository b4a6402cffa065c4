"""Simplified models, kept in the cache: simplification is nearly all of what opening a large graph takes.

An entry is found by the content of the file, the given shapes and the versions of all that had a part in it.
Weights that are those of the file are not kept again: they are read from there.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata

from onnx import ModelProto, TensorProto

from ...formulations.errors import StoreError
from ..engines.cache import Cache, cache_key
from .shapes import Shape, Shapes

VERSION = 2
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
