"""Tiles of a chunk as self-contained ONNX models: the rows that they read in, the rows that they make out.

A tile computes some rows (or columns) of each result of a chunk. Its inputs are cut out already, so padding
stands at the real borders of maps only; where an operator makes or gets more than the next one reads, a Slice
stands between them. Source: PICO 3.2.1, with intervals instead of heights (cooperation, sections 1 and 7).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

from onnx import ModelProto, NodeProto, TensorProto
from onnx.helper import make_node
from onnx.numpy_helper import from_array

from ...formulations.errors import InvalidPlanError
from ...formulations.spatial import Axis, Interval, Window
from ...formulations.tiles import flops_of, needs, obstacles, reference_rows, tile_of
from ..model import Model, Piece, TensorPart, check_range
from .onnx_model import OnnxModel
from .operators import Operator
from .slicing import Cutter, value_info
from .tile_nodes import CannotSplitError, Step, adapted

_RANK = 4

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
