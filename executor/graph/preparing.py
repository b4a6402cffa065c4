"""Model files made ready for division into layers: checked, self-contained, simplified."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from .model_file import read_model_file
from .shapes import Shape, Shapes, fix_shapes
from .simplify import simplify
from .watching import Watch

if TYPE_CHECKING:
    from onnx import ModelProto


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """What is left of a model file once all that somebody else's code does with it is done.

    Attributes
    ----------
    path
        Absolute path of the file.
    digest
        SHA-256 over the file and its external data, hexadecimal.
    inputs
        Names of the inputs in the file, also of those that change nothing.
    shapes
        The given shapes by input name.
    model
        Simplified, with inferred shapes.
    warnings
        What could not be done, in words.
    """

    path: Path
    digest: str
    inputs: tuple[str, ...]
    shapes: tuple[tuple[str, Shape], ...]
    model: ModelProto = field(repr=False)
    warnings: tuple[str, ...]


def prepare(
    path: str | Path, *, shapes: Shapes, materialize: bool = False, watch: Watch | None = None
) -> Prepared:
    """Read, check and simplify an ONNX file in this process.

    Parameters
    ----------
    path, shapes, materialize
        As for `load_onnx`.
    watch
        Is told of each step.

    Raises
    ------
    InvalidModelError
        As for `load_onnx`.
    MemoryError
        There is too little memory.
    """
    watch = watch or Watch()
    file = read_model_file(path, materialize=materialize, watch=watch)
    inputs = tuple(value.name for value in file.model.graph.input)
    given = fix_shapes(file.model, shapes)
    simplified = simplify(file.model, watch=watch)
    return Prepared(
        path=file.path,
        digest=file.digest,
        inputs=inputs,
        shapes=given,
        model=simplified.model,
        warnings=simplified.warnings,
    )
