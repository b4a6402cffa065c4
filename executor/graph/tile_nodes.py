"""Operators that run on some rows of a map: what changes in their nodes, above all the padding.

Inside a map there is none; at a real border there is what the operator has there. Everything is worked out
from the window of the operator (`formulations.spatial.Window`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from onnx import NodeProto
from onnx.helper import get_attribute_value, make_attribute
from onnx.numpy_helper import to_array

from ...formulations.spatial import SAME, Axis, Interval, Window
from .operators import Operator, OperatorGraph

_RANK = 4


class CannotSplitError(Exception):
    """An operator that cannot be computed in parts after all, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One operator of a tile.

    `graph`, `operator`: what it is, and where it comes from.
    """

    graph: OperatorGraph
    operator: Operator
    axis: Axis  # along which side the tile is cut
    rows: Interval  # what is needed of its results
    read: Interval  # what it reads of its first input, and with which window (None: all of it)
    window: Window | None  # see `read`


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapted:
    """How an operator runs in a tile."""

    rows: Interval  # what it makes: what is needed, or more
    attributes: Mapping[str, Any]  # new values of attributes; None: left out
    constants: Mapping[int, Sequence[int]]  # new constant inputs, by position

    def node(self, operator: Operator) -> NodeProto:
        """Return the node with its new attributes; inputs are as before."""
        changed = NodeProto()
        changed.CopyFrom(operator.node)
        kept = [attribute for attribute in changed.attribute if attribute.name not in self.attributes]
        new = [make_attribute(name, value) for name, value in self.attributes.items() if value is not None]
        del changed.attribute[:]
        changed.attribute.extend([*kept, *new])
        return changed


def adapted(step: Step) -> Adapted:
    """Return how an operator runs in a tile."""
    return _RULES.get(step.operator.op_type, _plain)(step)


def _adapted(rows: Interval, constants: Mapping[int, Sequence[int]] = {}, **attributes: Any) -> Adapted:
    return Adapted(rows=rows, attributes=attributes, constants=constants)


def _plain(step: Step) -> Adapted:
    """Leave an operator as it is; it makes whole blocks where each input position gives several."""
    window = step.window
    if window is None or window == SAME or (window.stride == window.extent and not window.before):
        factor = 1 if window is None else window.up
        return _adapted(step.rows if factor == 1 else (step.read[0] * factor, step.read[1] * factor))
    raise CannotSplitError("its padding is not known")


def _attributes(step: Step) -> dict[str, Any]:
    return {entry.name: get_attribute_value(entry) for entry in step.operator.node.attribute}


def _shape(step: Step, position: int) -> tuple[int, ...]:
    name = step.operator.node.input[position]
    weight = step.graph.weights.get(name)
    return tuple(weight.dims) if weight is not None else step.graph.specs[name].shape


def _output_shape(step: Step) -> tuple[int, ...]:
    return step.graph.specs[next(filter(None, step.operator.node.output))].shape


def _bounds(step: Step) -> tuple[int, int]:
    """Return which positions the windows cover in all, beyond the borders too."""
    window = step.window
    assert window is not None
    start, stop = step.rows
    return start * window.stride - window.before, (stop - 1) * window.stride - window.before + window.extent


def _sliding(step: Step) -> Adapted:
    """Convolutions and pools: explicit padding on both axes; a pool that rounds up keeps doing so.

    Where windows lie in the padding alone, as many more rows are made as it takes to reach what is read.
    """
    assert step.window is not None
    pads, stride = _explicit_pads(step, _attributes(step)), step.window.stride
    first, end = _bounds(step)
    sooner, later = (max(0, -(-gap // stride)) for gap in (first - step.read[0], step.read[1] - end))
    pads[step.axis] = step.read[0] - (first - sooner * stride)
    beyond, after = end + later * stride - step.read[1], pads[step.axis + 2]
    # What a window has beyond the padding, a pool that rounds up leaves out.
    pads[step.axis + 2] = min(beyond, after) if step.read[1] == _shape(step, 0)[step.axis + 2] else beyond
    return _adapted((step.rows[0] - sooner, step.rows[1] + later), pads=pads, auto_pad=None)


def _explicit_pads(step: Step, given: Mapping[str, Any]) -> list[int]:
    """Return the padding of a convolution or pool: before rows and columns, behind rows and columns."""
    how = given.get("auto_pad", b"NOTSET").decode()
    if how == "NOTSET":
        return list(given.get("pads", [0] * 4))
    pads = [0] * 4
    if how == "VALID":
        return pads
    kernel = given.get("kernel_shape") or _shape(step, 1)[2:]
    strides, dilations = given.get("strides", (1, 1)), given.get("dilations", (1, 1))
    for axis in range(2):
        extent = dilations[axis] * (kernel[axis] - 1) + 1
        reach = (_output_shape(step)[axis + 2] - 1) * strides[axis] + extent
        padding = max(0, reach - _shape(step, 0)[axis + 2])
        pads[axis] = padding // 2 if how == "SAME_UPPER" else padding - padding // 2
        pads[axis + 2] = padding - pads[axis]
    return pads


def _transposed(step: Step) -> Adapted:
    """Transposed convolutions: input i makes outputs from stride * i - pad on, `extent` of them."""
    given = _attributes(step)
    axis = step.axis
    stride = given.get("strides", (1, 1))[axis]
    kernel = given.get("kernel_shape") or _shape(step, 1)[2:]
    extent = given.get("dilations", (1, 1))[axis] * (kernel[axis] - 1) + 1
    pads, more = list(given.get("pads", [0] * 4)), list(given.get("output_padding", [0, 0]))
    start, stop = step.rows
    made = (step.read[1] - step.read[0] - 1) * stride + extent
    before = pads[axis] + start - step.read[0] * stride
    behind = made - before - (stop - start)
    pads[axis], pads[axis + 2], more[axis] = before, max(0, behind), max(0, -behind)
    return _adapted(step.rows, pads=pads, output_padding=more)


def _pad(step: Step) -> Adapted:
    """Pad at real borders as before; a tile that lies in the padding alone has negative padding, too."""
    first, end = _bounds(step)
    given = _attributes(step)
    pads = [int(size) for size in given.get("pads") or _constant(step, 1)]
    pads[step.axis + 2], pads[step.axis + 2 + _RANK] = step.read[0] - first, end - step.read[1]
    if "pads" in given:
        return _adapted(step.rows, pads=pads)
    return _adapted(step.rows, {1: pads})


def _resize(step: Step) -> Adapted:
    """Enlargement by a whole factor: all that comes from the rows that are read; sizes are given anew."""
    assert step.window is not None
    factor = step.window.up
    rows = (step.read[0] * factor, step.read[1] * factor)
    if len(step.operator.node.input) <= 3 or not step.operator.node.input[3]:
        return _adapted(rows)
    sizes = list(_output_shape(step))
    sizes[step.axis + 2] = rows[1] - rows[0]
    return _adapted(rows, {3: sizes})


def _constant(step: Step, position: int) -> Sequence[int]:
    found: Sequence[int] = (
        to_array(step.graph.weights[step.operator.node.input[position]]).astype(int).tolist()
    )
    return found


_RULES: Mapping[str, Callable[[Step], Adapted]] = {
    **dict.fromkeys(("Conv", "ConvInteger", "QLinearConv", "MaxPool", "AveragePool", "LpPool"), _sliding),
    "ConvTranspose": _transposed,
    "Pad": _pad,
    **dict.fromkeys(("Resize", "Upsample"), _resize),
}
"""Operators whose nodes change, by type; all others run on rows as they are."""
