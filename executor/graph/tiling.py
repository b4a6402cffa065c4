"""Tiles of a chunk as self-contained ONNX models: the rows that they read in, the rows that they make.

Operators that run on some rows of a map: what changes in their nodes, above all the padding. Inside a map
there is none; at a real border there is what the operator has there. Everything is worked out from the window
of the operator (`formulations.spatial.Window`).

Tiles of a chunk as self-contained ONNX models: the rows that they read in, the rows that they make out. A
tile computes some rows (or columns) of each result of a chunk. Its inputs are cut out already, so padding
stands at the real borders of maps only; where an operator makes or gets more than the next one reads, a Slice
stands between them. Source: PICO 3.2.1, with intervals instead of heights (cooperation, sections 1 and 7).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from onnx import ModelProto, NodeProto, TensorProto
from onnx.helper import get_attribute_value, make_attribute, make_node
from onnx.numpy_helper import from_array, to_array

from ...formulations.errors import InvalidPlanError
from ...formulations.spatial import SAME, Axis, Interval, Window
from ...formulations.tiles import flops_of, needs, obstacles, reference_rows, tile_of
from ..model import Model, Piece, TensorPart, check_range
from .onnx_model import OnnxModel
from .operators import Operator, OperatorGraph
from .slicing import Cutter, value_info

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
    """Enlargement by a whole factor: all that comes from the rows that are read; sizes are given again."""
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


_SLICE_INPUTS_SINCE = 10
"""Operator set from which on the bounds of a Slice are inputs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TileContent:
    """A tile, serialised when it is read.

    `cutter`, `model`: who has the weights, and the model without them.
    """

    cutter: Cutter = field(repr=False)
    model: ModelProto = field(repr=False)
    weights: tuple[str, ...] = field(repr=False)  # names of the weights that it uses as they are
    kind: str = "onnx"  # always "onnx"

    def read(self) -> bytes:
        """Return the tile as a serialised, self-contained ModelProto; always the same bytes."""
        whole = ModelProto()
        whole.CopyFrom(self.model)
        whole.graph.initializer.extend(self.cutter.graph.weights[name] for name in self.weights)
        content: bytes = whole.SerializeToString(deterministic=True)
        return content


class Tiler:
    """Makes tiles of the chunks of one model.

    `model`: from one ONNX file: of others it is not known which part of its input each part of a result
    needs.
    Raises InvalidPlanError: it is another kind of model.
    """

    def __init__(self, model: Model) -> None:
        if not isinstance(model, OnnxModel):
            raise InvalidPlanError(
                f"network {model.network.name!r} cannot be computed in tiles: only a model from an ONNX file "
                "says which part of its input each part of a result needs; run each of its chunks on one unit"
            )
        self._layers = model.network
        self.cutter = model.cutter  # of the model
        # its spatial side: the inputs of the model, then its operators, in their order
        self.network = model.spatial()

    def rows(self, start: int, stop: int, axis: Axis) -> int:
        """Return into how many rows (or columns) the results of the chunk [start, stop) can be divided."""
        check_range(self._layers, start, stop)
        members = self._members(start, stop)
        defects = list(obstacles(self.network, members, axis))
        if defects:
            what = f"layers {start} to {stop - 1} of {self.cutter.name!r} cannot be computed in tiles:"
            raise InvalidPlanError(what, defects)
        return reference_rows(self.network, members, axis)

    def piece(self, start: int, stop: int, axis: Axis, rows: Interval) -> Piece:
        """Return what computes some rows of the results of the chunk [start, stop)."""
        total = self.rows(start, stop, axis)
        side = axis.name.lower()
        if not 0 <= rows[0] < rows[1] <= total:
            raise InvalidPlanError(
                f"layers {start} to {stop - 1} of {self.cutter.name!r} have the {side} 0 to {total - 1}; "
                f"[{rows[0]}, {rows[1]}) is no tile of them"
            )
        members = self._members(start, stop)
        asked = tile_of(self.network, members, rows, axis)
        drawing = _Drawing(self, needs(self.network, members, asked, axis), axis)
        for operator in self.cutter.operators(start, stop):
            drawing.add(operator)
        return drawing.piece(start, stop, asked, f"{side} {rows[0]} to {rows[1] - 1} of {total}")

    def work(self, start: int, stop: int, axis: Axis, rows: Interval) -> float:
        """Return which share of the operations of a chunk a tile of it does, its halo included."""
        members = self._members(start, stop)
        whole = sum(self.network.nodes[index].flops for index in members)
        needed = needs(self.network, members, tile_of(self.network, members, rows, axis), axis)
        total = reference_rows(self.network, members, axis)
        own = flops_of(self.network, members, needed, axis)
        return own / whole if whole else (rows[1] - rows[0]) / total

    def node(self, operator: int) -> int:
        """Return which node of the network an operator is."""
        return len(self.cutter.graph.inputs) + operator

    def _members(self, start: int, stop: int) -> tuple[int, ...]:
        return tuple(
            sorted(self.node(index) for members in self.cutter.layers[start:stop] for index in members)
        )


class _Drawing:
    """One tile while it is made."""

    def __init__(self, tiler: Tiler, needed: Mapping[int, Interval], axis: Axis) -> None:
        graph = tiler.cutter.graph
        self._tiler = tiler
        self._graph = graph
        self._needed = needed
        self._axis = axis
        self._node_of = {name: tiler.node(index) for name, index in graph.producers().items()}
        self._node_of |= {spec.name: index for index, spec in enumerate(graph.inputs)}
        self._made: dict[str, Interval] = {}
        self._inputs: dict[str, Interval] = {}
        self._parts: dict[tuple[str, Interval], str] = {}
        self._weights: dict[str, None] = {}
        self._constants: dict[str, TensorProto] = {}
        self._nodes: list[NodeProto] = []
        self._taken = {*self._node_of, *graph.weights}

    def add(self, operator: Operator) -> None:
        """Add an operator, so that it makes what is needed of it."""
        number = self._node_of[operator.outputs[0]]
        node = self._tiler.network.nodes[number]
        windows = {source: both[self._axis] for source, both in zip(node.sources, node.windows, strict=True)}
        rows = self._needed[number]
        reads = {
            name: self._read(name, windows[self._node_of[name]], rows)
            for name in dict.fromkeys(operator.inputs)
        }
        first = operator.node.input[0]
        step = Step(
            graph=self._graph,
            operator=operator,
            axis=self._axis,
            rows=rows,
            read=reads.get(first, (0, 1)),
            window=windows[self._node_of[first]] if first in reads else None,
        )
        try:
            change = adapted(step)
        except CannotSplitError as error:
            raise InvalidPlanError(
                f"operator {node.name!r} ({operator.kind}) of {self._tiler.cutter.name!r} cannot be computed "
                f"in parts of its {self._axis.name.lower()}: {error}"
            ) from None
        changed = change.node(operator)
        for position, name in enumerate(operator.node.input):
            if position in change.constants:
                changed.input[position] = self._constant(name, change.constants[position])
            elif name in reads:
                changed.input[position] = self._part(name, reads[name])
            elif name:
                self._weights[name] = None
        self._nodes.append(changed)
        self._made |= dict.fromkeys(operator.outputs, change.rows)

    def piece(self, start: int, stop: int, asked: Mapping[int, Interval], what: str) -> Piece:
        """Return the tile."""
        cutter = self._tiler.cutter
        wanted = {name: asked[self._node_of[name]] for name in cutter.outputs(start, stop)}
        for name, interval in wanted.items():
            if self._made[name] != interval:
                self._deliver(name, interval)
        inputs = [self._part_of(name, interval) for name, interval in self._inputs.items()]
        outputs = [self._part_of(name, interval) for name, interval in wanted.items()]
        model = ModelProto()
        model.CopyFrom(cutter.graph.header)
        model.graph.name = "tile"
        model.graph.node.extend(self._nodes)
        model.graph.input.extend(value_info(part.spec) for part in inputs)
        model.graph.output.extend(value_info(part.spec) for part in outputs)
        model.graph.initializer.extend(self._constants.values())
        digest = hashlib.sha256(model.SerializeToString(deterministic=True))
        for weight in self._weights:
            digest.update(cutter.weight_digests[weight])
        return Piece(
            name=f"{cutter.name}[{start}:{stop}) {what}",
            digest=digest.hexdigest(),
            inputs=tuple(part.spec for part in inputs),
            outputs=tuple(part.spec for part in outputs),
            content=TileContent(cutter=cutter, model=model, weights=tuple(self._weights)),
            parts=(*inputs, *outputs),
        )

    def _read(self, name: str, window: Window | None, rows: Interval) -> Interval:
        size = self._size(name)
        return (0, size) if window is None else (window.first(rows[0], size), window.last(rows[1], size))

    def _size(self, name: str) -> int:
        """Return how long a tensor is along the axis; 1 for what is no map."""
        shape = self._graph.specs[name].shape
        return shape[2 + self._axis] if len(shape) == _RANK else 1

    def _part(self, name: str, interval: Interval) -> str:
        """Return what some rows of a tensor are called; they are cut out when they are first needed."""
        if name not in self._made:  # it comes from outside
            node, size = self._node_of[name], self._size(name)
            is_like_node = self._tiler.network.nodes[node].size[self._axis] == size
            self._made[name] = self._inputs[name] = self._needed[node] if is_like_node else (0, size)
        if interval == self._made[name]:
            return name
        if (name, interval) not in self._parts:
            self._parts[name, interval] = self._fresh(name)
            self._slice(name, self._parts[name, interval], name, interval)
        return self._parts[name, interval]

    def _deliver(self, name: str, interval: Interval) -> None:
        """Have an output hold just what is asked for; what its operator makes is called otherwise."""
        more = self._fresh(name)
        for node in self._nodes:
            for names in (node.input, node.output):
                names[:] = [more if found == name else found for found in names]
        self._slice(more, name, name, interval)

    def _slice(self, source: str, target: str, tensor: str, interval: Interval) -> None:
        """Cut rows of a tensor out of those that `source` holds."""
        offset = self._made[tensor][0]
        starts, ends, axes = [interval[0] - offset], [interval[1] - offset], [2 + self._axis]
        opset = max(entry.version for entry in self._graph.header.opset_import if not entry.domain)
        if opset < _SLICE_INPUTS_SINCE:
            node = make_node("Slice", [source], [target], starts=starts, ends=ends, axes=axes)
        else:
            names = [self._constant(target, bound) for bound in (starts, ends, axes)]
            node = make_node("Slice", [source, *names], [target])
        self._nodes.append(node)

    def _constant(self, like: str, numbers: Sequence[int]) -> str:
        import numpy as np

        name = self._fresh(like)
        self._constants[name] = from_array(np.array(numbers, dtype=np.int64), name)
        return name

    def _fresh(self, like: str) -> str:
        """Return a new name like another one."""
        name = next(name for number in count() if (name := f"{like}/tile{number}") not in self._taken)
        self._taken.add(name)
        return name

    def _part_of(self, name: str, interval: Interval) -> TensorPart:
        spec = self._graph.specs[name]
        if len(spec.shape) == _RANK:
            return TensorPart(whole=spec, axis=2 + self._axis, start=interval[0], stop=interval[1])
        return TensorPart(whole=spec, axis=0, start=0, stop=spec.shape[0] if spec.shape else 0)
