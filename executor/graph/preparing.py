"""Model files made ready for division into layers: checked, self-contained, simplified."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from .choices import Simplification
from .keeping import LEAST_S, Kept, find, keep, key_of, weight_places
from .model_file import checked, read_contents
from .rewriting import rewritten
from .shapes import Shape, Shapes, fix_shapes
from .watching import Watch

if TYPE_CHECKING:
    from onnx import ModelProto

    from ..engines.cache import Cache


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
        file = checked(read, watch=watch)
        inputs = tuple(value.name for value in file.model.graph.input)
        given = fix_shapes(file.model, shapes)
        made = rewritten(file.model, how=simplification, compared=compared, watch=watch)
        kept = Kept(model=made.model, inputs=inputs, shapes=given, warnings=made.warnings)
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
