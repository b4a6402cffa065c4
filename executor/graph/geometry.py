"""Which rows and columns each operator of a model reads: `SpatialNetwork` from ONNX operators.

Maps are tensors of rank 4, with rows and columns last. An operator splits along an axis where equal numbers
come out when it runs on a part of its input; whatever is not known to split, does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...formulations.spatial import SAME, SpatialNetwork, SpatialNode, Window, Windows
from ..names import distinct, safe_name
from .op_types import ELEMENTWISE

if TYPE_CHECKING:
    from onnx import AttributeProto

    from ..model import TensorSpec
    from .operators import Operator, OperatorCost, OperatorGraph

_RANK = 4
_NO_MAP = (1, 1)
_WHOLE: Windows = (None, None)


class _NoSplitError(Exception):
    """An operator cannot be computed in parts."""


@dataclass(frozen=True, slots=True)
class _Geometry:
    """What an operator reads of its first input, by axis; None: it cannot be split along that axis."""

    rows: Window | None
    columns: Window | None


def spatial_network(
    graph: OperatorGraph, costs: Sequence[OperatorCost], *, name: str = "network"
) -> SpatialNetwork:
    """Return the spatial side of a model: a node for each input, then one for each operator, in order.

    `graph`: its operators. `costs`: their costs, for FLOPs; unknown ones count as none.
    """
    first = len(graph.inputs)
    made = {spec.name: index for index, spec in enumerate(graph.inputs)}
    made |= {tensor: first + index for tensor, index in graph.producers().items()}
    given = [safe_name(spec.name) for spec in graph.inputs]
    given += [safe_name(op.name or f"{op.op_type}_{index}") for index, op in enumerate(graph.operators)]
    names = distinct(given)
    inputs = [
        SpatialNode(name=named, op_type="Input", size=_size(spec), bytes=spec.bytes)
        for named, spec in zip(names, graph.inputs, strict=False)
    ]
    nodes = [
        _node(graph, operator, cost, named, made)
        for operator, cost, named in zip(graph.operators, costs, names[first:], strict=True)
    ]
    outputs = tuple(dict.fromkeys(made[spec.name] for spec in graph.outputs))
    return SpatialNetwork(name=name, nodes=(*inputs, *nodes), outputs=outputs)


def _size(spec: TensorSpec | None) -> tuple[int, int]:
    return (spec.shape[2], spec.shape[3]) if spec is not None and len(spec.shape) == _RANK else _NO_MAP


def _node(
    graph: OperatorGraph, operator: Operator, cost: OperatorCost, name: str, made: Mapping[str, int]
) -> SpatialNode:
    made_here = [graph.specs.get(tensor) for tensor in operator.outputs]
    sizes = {_size(spec) for spec in made_here}
    reading = _Reading(graph, operator)
    try:
        windows = reading.windows(sizes)
    except (_NoSplitError, KeyError, IndexError, ValueError):
        windows = dict.fromkeys(operator.inputs, _WHOLE)
        splits = (False, False)
    else:
        splits = reading.splits
    by_source: dict[int, Windows] = {}
    for tensor, read in windows.items():
        known = by_source.setdefault(made[tensor], read)
        if known != read:  # two tensors of one source, read in different ways
            by_source[made[tensor]], splits = _WHOLE, (False, False)
    return SpatialNode(
        name=name,
        op_type=operator.kind,
        sources=tuple(by_source),
        windows=tuple(by_source.values()),
        size=sizes.pop() if len(sizes) == 1 else _NO_MAP,
        bytes=sum(spec.bytes for spec in made_here if spec is not None),
        flops=cost.flops or 0,
        weight_bytes=cost.weight_bytes,
        splits=splits,
    )


class _Reading:
    """One operator with its shapes and constants; KeyError where one is not known."""

    def __init__(self, graph: OperatorGraph, operator: Operator) -> None:
        self.graph = graph
        self.operator = operator
        self.names = list(operator.node.input)
        self.attributes: Mapping[str, AttributeProto] = {a.name: a for a in operator.node.attribute}
        self.splits = (False, False)

    def windows(self, sizes: set[tuple[int, int]]) -> dict[str, Windows]:
        """Return what is read of each tensor; sets `splits`."""
        operator = self.operator
        if operator.domain or operator.has_subgraphs or len(self.output) != _RANK or len(sizes) != 1:
            raise _NoSplitError
        if operator.op_type in ELEMENTWISE and operator.op_type not in _KINDS:
            return self._broadcast()
        maps = self.names if operator.op_type == "Concat" else self.names[:1]
        if len(self.shape(0)) != _RANK or any(tensor not in operator.inputs for tensor in maps):
            raise _NoSplitError  # a constant map would have to be cut, too
        geometry = _KINDS[operator.op_type](self)
        self.splits = (geometry.rows is not None, geometry.columns is not None)
        if not any(self.splits):
            raise _NoSplitError
        read: dict[str, Windows] = dict.fromkeys(operator.inputs, _WHOLE)
        read |= dict.fromkeys(maps, (geometry.rows, geometry.columns))
        return read

    def _broadcast(self) -> dict[str, Windows]:
        """Element by element: what is of size 1 along an axis is read whole there."""
        for weight in self.operator.weights:
            if any(size != 1 for size in self.graph.weights[weight].dims[-2:]):
                raise _NoSplitError  # a constant map would have to be cut, too
        read: dict[str, Windows] = {}
        for tensor in self.operator.inputs:
            shape = self.graph.specs[tensor].shape
            trailing = (1, 1, *shape)[-2:]
            if len(shape) != _RANK and trailing != (1, 1):
                raise _NoSplitError
            rows, columns = (
                SAME if own == whole else None for own, whole in zip(trailing, self.output[2:], strict=True)
            )
            read[tensor] = (rows, columns)
        self.splits = (True, True)
        return read

    @property
    def output(self) -> tuple[int, ...]:
        """Shape of the first output."""
        return self.graph.specs[next(filter(None, self.operator.node.output))].shape

    def shape(self, position: int) -> tuple[int, ...]:
        """Shape of an input."""
        weight = self.graph.weights.get(self.names[position])
        return tuple(weight.dims) if weight is not None else self.graph.specs[self.names[position]].shape

    def text(self, name: str, default: str) -> str:
        """Return an attribute."""
        return self.attributes[name].s.decode() if name in self.attributes else default

    def number(self, name: str, default: int) -> int:
        """Return an attribute."""
        return self.attributes[name].i if name in self.attributes else default

    def numbers(self, name: str, default: Iterable[int] = ()) -> tuple[int, ...]:
        """Return an attribute, or what stands in for a missing one."""
        return tuple(self.attributes[name].ints) if name in self.attributes else tuple(default)

    def constant(self, position: int, name: str = "") -> tuple[float, ...] | None:
        """Return a constant input, or the attribute that older versions had; None: not given.

        KeyError: it is computed, or its content is not known.
        """
        if name in self.attributes:
            held = self.attributes[name]
            return tuple(held.ints) or tuple(held.floats)
        if position >= len(self.names) or not self.names[position]:
            return None
        from onnx import numpy_helper

        return tuple(numpy_helper.to_array(self.graph.weights[self.names[position]]).reshape(-1).tolist())

    def axis(self, default: int) -> int:
        """Return the attribute `axis`, counted from the front."""
        return self.number("axis", default) % len(self.shape(0))

    @property
    def opset(self) -> int:
        """Version of the operators of ONNX."""
        return max((entry.version for entry in self.graph.header.opset_import if not entry.domain), default=0)


def _along(read: Callable[[int], Window | None]) -> _Geometry:
    return _Geometry(read(0), read(1))


def _except(axes: Iterable[int]) -> _Geometry:
    """Each position from the same one; but not in parts along some axes of the tensor."""
    closed = set(axes)
    return _along(lambda axis: None if axis + 2 in closed else SAME)


def _convolution(reading: _Reading) -> _Geometry:
    return _sliding(reading, reading.numbers("kernel_shape") or reading.shape(1)[2:])


def _pooling(reading: _Reading) -> _Geometry:
    if sum(map(bool, reading.operator.node.output)) > 1:
        raise _NoSplitError  # indices count positions of the whole map
    return _sliding(reading, reading.numbers("kernel_shape"))


def _sliding(reading: _Reading, kernel: Sequence[int]) -> _Geometry:
    strides = reading.numbers("strides", (1, 1))
    dilations = reading.numbers("dilations", (1, 1))
    pads = reading.numbers("pads", (0,) * 4)
    auto_pad = reading.text("auto_pad", "NOTSET")

    def read(axis: int) -> Window:
        extent = dilations[axis] * (kernel[axis] - 1) + 1
        before = pads[axis] if auto_pad == "NOTSET" else 0
        if auto_pad.startswith("SAME"):
            reach = (reading.output[axis + 2] - 1) * strides[axis] + extent
            padding = max(0, reach - reading.shape(0)[axis + 2])
            before = padding // 2 if auto_pad == "SAME_UPPER" else padding - padding // 2
        if before < 0:
            raise _NoSplitError
        return Window(stride=strides[axis], extent=extent, before=before)

    return _along(read)


def _transposed(reading: _Reading) -> _Geometry:
    """Output position o is made of the inputs i with 0 <= o + pad - stride i < extent."""
    if reading.text("auto_pad", "NOTSET") != "NOTSET" or "output_shape" in reading.attributes:
        raise _NoSplitError
    kernel = reading.numbers("kernel_shape") or reading.shape(1)[2:]
    strides = reading.numbers("strides", (1, 1))
    dilations = reading.numbers("dilations", (1, 1))
    pads = reading.numbers("pads", (0,) * 4)

    def read(axis: int) -> Window:
        extent, stride = dilations[axis] * (kernel[axis] - 1) + 1, strides[axis]
        before = max(0, extent - pads[axis] - stride)
        return Window(extent=pads[axis] + before + 1, before=before, up=stride)

    return _along(read)


_CENTRED = {"half_pixel", "pytorch_half_pixel"}


def _resize(reading: _Reading) -> _Geometry:
    """Enlargements by whole factors; nearest copies each position, linear mixes neighbours."""
    old = reading.operator.op_type == "Upsample"
    mode, how = reading.text("mode", "nearest"), "asymmetric" if old or reading.opset < 11 else "half_pixel"
    how = reading.text("coordinate_transformation_mode", how)
    ties = reading.text("nearest_mode", "floor" if old or reading.opset < 11 else "round_prefer_floor")
    sizes = tuple(zip(reading.shape(0), reading.output, strict=True))
    scales = reading.constant(1 if old or reading.opset < 11 else 2, "scales")
    copies = (how, ties) in {("asymmetric", "floor"), ("tf_half_pixel_for_nn", "floor")} or (
        how in _CENTRED and ties.startswith("round")
    )
    if (
        mode not in ("nearest", "linear")
        or (mode == "nearest" and not copies)
        or (mode == "linear" and how not in (*_CENTRED, "asymmetric"))
        or reading.number("antialias", 0)
        or any(after % before for before, after in sizes)
        or sizes[0][0] != sizes[0][1]
        or sizes[1][0] != sizes[1][1]
        or (scales and any(s != after // before for s, (before, after) in zip(scales, sizes, strict=True)))
    ):
        raise _NoSplitError

    def read(axis: int) -> Window:
        before, after = sizes[axis + 2]
        factor = after // before
        if factor == 1:
            return SAME
        if mode == "nearest":
            return Window(up=factor)
        return Window(extent=2 * factor + 1, before=factor, up=factor)

    return _along(read)


def _pad(reading: _Reading) -> _Geometry:
    pads = [int(size) for size in reading.constant(1, "pads") or ()]
    if len(pads) != 2 * _RANK or len(reading.names) > 3:
        raise _NoSplitError
    constant = reading.text("mode", "constant") == "constant"

    def read(axis: int) -> Window | None:
        before, after = pads[axis + 2], pads[axis + 2 + _RANK]
        return (
            Window(before=before) if min(before, after) >= 0 and (constant or before == after == 0) else None
        )

    return _along(read)


def _slice(reading: _Reading) -> _Geometry:
    axes = reading.constant(3, "axes") or range(_RANK)
    backward = any(step < 0 for step in reading.constant(4) or ())
    changed = {axis for axis in range(_RANK) if reading.shape(0)[axis] != reading.output[axis]}
    return _except(changed | ({int(axis) % _RANK for axis in axes} if backward else set()))


def _transpose(reading: _Reading) -> _Geometry:
    order = reading.numbers("perm", reversed(range(_RANK)))
    return _except(axis for axis in range(_RANK) if order[axis] != axis)


def _reduce(reading: _Reading) -> _Geometry:
    if not reading.number("keepdims", 1):
        raise _NoSplitError
    axes = reading.constant(1, "axes") or range(_RANK)
    return _except(int(axis) % _RANK for axis in axes)


def _arg(reading: _Reading) -> _Geometry:
    if not reading.number("keepdims", 1):
        raise _NoSplitError
    return _except((reading.axis(0),))


def _softmax(reading: _Reading) -> _Geometry:
    """Before version 13, all axes from the given one on were one."""
    if reading.opset < 13:
        return _except(range(reading.axis(1), _RANK))
    return _except((reading.axis(-1),))


def _split(reading: _Reading) -> _Geometry:
    if reading.axis(0) >= 2:
        raise _NoSplitError  # its results differ in size
    return _except(())


def _one_axis(default: int) -> Callable[[_Reading], _Geometry]:
    return lambda reading: _except((reading.axis(default),))


def _scaled(reading: _Reading) -> _Geometry:
    """Quantize and dequantize: with one scale, or one for each position of an axis."""
    return _except((reading.axis(1),) if len(reading.shape(1)) == 1 and reading.shape(1)[0] > 1 else ())


def _same(reading: _Reading) -> _Geometry:
    return _except(())


_KINDS: Mapping[str, Callable[[_Reading], _Geometry]] = {
    **dict.fromkeys(("Conv", "ConvInteger", "QLinearConv"), _convolution),
    **dict.fromkeys(("MaxPool", "AveragePool", "LpPool"), _pooling),
    "ConvTranspose": _transposed,
    **dict.fromkeys(("Resize", "Upsample"), _resize),
    "Pad": _pad,
    "Slice": _slice,
    "Transpose": _transpose,
    "Split": _split,
    "Concat": _one_axis(1),
    "Gather": _one_axis(0),
    "LpNormalization": _one_axis(-1),
    "LayerNormalization": lambda reading: _except(range(reading.axis(-1), _RANK)),
    **dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax"), _softmax),
    **dict.fromkeys(("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2"), _reduce),
    **dict.fromkeys(("ArgMax", "ArgMin"), _arg),
    **dict.fromkeys(("QuantizeLinear", "DequantizeLinear"), _scaled),
    **dict.fromkeys(("Identity", "Dropout", "Cast", "LRN", "BatchNormalization", "Clip"), _same),
    "DepthToSpace": lambda reading: _along(lambda axis: Window(up=reading.number("blocksize", 1))),
    "SpaceToDepth": lambda reading: _along(
        lambda axis: Window(stride=reading.number("blocksize", 1), extent=reading.number("blocksize", 1))
    ),
}
"""How operators that split read their first input; what is neither here nor element by element does not."""
