"""Fixed shapes: what the user gives for inputs whose sizes a model leaves open. Nothing is ever guessed."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from ...formulations.errors import InvalidInputError, InvalidModelError, OpenShapesError

if TYPE_CHECKING:
    from onnx import ModelProto, ValueInfoProto

Shape = tuple[int, ...]
Shapes = Mapping[str, Shape]
"""Shapes by name of the input; "" stands for the only input of a model."""

_OPEN = "?"


def parse_shapes(texts: Sequence[str]) -> dict[str, Shape]:
    """Return shapes from texts such as "x=1,3,480,640", or "1,3,480,640" for a model with one input."""
    shapes: dict[str, Shape] = {}
    defects = []
    for text in texts:
        name, _, sizes = text.rpartition("=")
        try:
            shape = tuple(_size(part) for part in sizes.split(","))
        except ValueError:
            defects.append(
                f"--shape {text!r}: expected a name and positive whole numbers such as x=1,3,480,640"
            )
            continue
        if name in shapes:
            defects.append(f"--shape {text!r}: the input {name!r} is given twice")
        shapes[name] = shape
    if defects:
        raise InvalidInputError("shapes cannot be read:", defects)
    return shapes


def fix_shapes(model: ModelProto, given: Shapes) -> tuple[tuple[str, Shape], ...]:
    """Write fixed shapes into the inputs of a model, in place, and return the given ones by input name.

    What else the file calls by the same symbol gets the same size: an output (batch, 10) of a model whose
    input is (batch, 3, 64, 64). Where inference knows better, that counts.

    `given`: shapes of inputs; those that the model fixes itself need none.
    """
    declared = {value.name: _declared(value) for value in model.graph.input}
    named = _with_names(given, tuple(declared))
    defects = [
        f"--shape {name}=...: the model has no such input; it has {', '.join(declared)}"
        for name in named
        if name not in declared
    ]
    for name, sizes in declared.items():
        defects += _defects(name, sizes, named.get(name))
    if defects:
        raise OpenShapesError("the shapes of the inputs are not settled:", defects)
    bound = _bound_symbols(model.graph.input, named)
    for value in model.graph.input:
        _write(value, named.get(value.name))
    for value in (*model.graph.output, *model.graph.value_info):
        for size in value.type.tensor_type.shape.dim:
            if size.dim_param in bound:
                size.dim_value = bound[size.dim_param]
    return tuple(sorted(named.items()))


def _bound_symbols(inputs: Iterable[ValueInfoProto], named: Shapes) -> dict[str, int]:
    """Return the sizes of symbols; one that would need two sizes is not bound."""
    sizes: dict[str, set[int]] = {}
    for value in inputs:
        dimensions = value.type.tensor_type.shape.dim
        for dimension, size in zip(dimensions, named.get(value.name, ()), strict=False):
            if dimension.dim_param:
                sizes.setdefault(dimension.dim_param, set()).add(size)
    return {symbol: found.pop() for symbol, found in sizes.items() if len(found) == 1}


def _size(text: str) -> int:
    if not (text.strip().isascii() and text.strip().isdigit() and len(text) < 12 and int(text) > 0):
        raise ValueError(text)
    return int(text)


def _with_names(given: Shapes, inputs: Sequence[str]) -> dict[str, Shape]:
    if "" in given and len(inputs) != 1:
        raise InvalidModelError(
            "a shape without a name needs a model with one input; this one has "
            f"{', '.join(inputs) or 'none'}: write --shape NAME={','.join(map(str, given['']))}"
        )
    return {name or inputs[0]: tuple(shape) for name, shape in given.items()}


def _declared(value: ValueInfoProto) -> tuple[int | str, ...] | None:
    """Return sizes, symbols where they are open; None where not even the rank is known."""
    if not value.type.HasField("tensor_type"):
        raise InvalidModelError(
            f"input {value.name!r} is not a tensor but a {value.type.WhichOneof('value') or 'nothing'}: "
            "only tensors can be passed between units"
        )
    if not value.type.tensor_type.elem_type:
        raise InvalidModelError(f"input {value.name!r} has no element type: export the model again")
    if not value.type.tensor_type.HasField("shape"):
        return None
    return tuple(
        size.dim_value if size.HasField("dim_value") and size.dim_value >= 0 else _symbol(size.dim_param)
        for size in value.type.tensor_type.shape.dim
    )


def _symbol(name: str) -> str:
    return name if name.isprintable() and 0 < len(name) <= 40 and "," not in name else _OPEN


def _defects(name: str, sizes: tuple[int | str, ...] | None, given: Shape | None) -> list[str]:
    if given is None:
        if sizes is None:
            return [f"input {name!r} has no shape at all: give it with --shape {name}=..."]
        if all(isinstance(size, int) for size in sizes):
            return [] if 0 not in sizes else [f"input {name!r} has the shape {_text(sizes)}, which is empty"]
        return [
            f"input {name!r} has open dimensions ({_text(sizes)}): fix them with --shape "
            f"{_option(name, sizes)}, numbers in place of words"
        ]
    if any(not isinstance(size, int) or size < 1 for size in given):
        return [f"--shape {_option(name, given)}: sizes must be positive whole numbers"]
    if sizes is not None and len(sizes) != len(given):
        return [
            f"--shape {_option(name, given)}: input {name!r} has {len(sizes)} dimensions ({_text(sizes)})"
        ]
    wrong = [
        f"dimension {axis} is {size}, not {wanted}"
        for axis, (size, wanted) in enumerate(zip(sizes or given, given, strict=True))
        if isinstance(size, int) and size != wanted
    ]
    if wrong:
        return [f"--shape {_option(name, given)} contradicts the model: {'; '.join(wrong)}"]
    return []


def _option(name: str, sizes: Sequence[int | str]) -> str:
    words = [f"{size}" if size != _OPEN else f"SIZE{axis}" for axis, size in enumerate(sizes)]
    return shlex.quote(f"{name}={','.join(words)}")


def _text(sizes: Sequence[int | str]) -> str:
    return " x ".join(map(str, sizes)) or "a scalar"


def _write(value: ValueInfoProto, shape: Shape | None) -> None:
    if shape is not None:
        target = value.type.tensor_type.shape
        del target.dim[:]
        for size in shape:
            target.dim.add().dim_value = size
