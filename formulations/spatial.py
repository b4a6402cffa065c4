"""The spatial side of a network: which rows and columns each operator reads for part of its output.

A convolution needs only a window of its input for each output position, so a feature map can be computed in
tiles by several devices; what they read twice, and compute twice, is the halo. Source: PICO 3.2.1 (Eq. 2, 3
and 5), with dilation, intervals instead of heights, and padding at real borders only (formulations,
section 13).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property

from .errors import InvalidProblemError
from .validation import Defects, FileContent

Interval = tuple[int, int]
"""Positions [start, stop) along an axis."""


class Axis(IntEnum):
    """Along which side of feature maps tiles lie; also the index of that side in sizes."""

    ROWS = 0
    COLUMNS = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Window(FileContent):
    """What of one input an operator reads, along one axis.

    Output positions [a, b) read the input from (a stride - before) // up to
    ((b - 1) stride - before + extent - 1) // up, both included, without what lies beyond the border.
    """

    stride: int = 1
    """Steps of the window in the input (times `up`) from one output position to the next."""
    extent: int = 1
    """How far the window reaches: dilation * (kernel - 1) + 1."""
    before: int = 0
    """Padding in front of the first position."""
    up: int = 1
    """By which whole factor the output is finer than the input; 1 but for enlargements."""

    def __post_init__(self) -> None:
        defects = Defects("window")
        for field in ("stride", "extent", "up"):
            defects.check_count(field, getattr(self, field), least=1)
        defects.check_count("before", self.before)
        defects.raise_as(InvalidProblemError)

    def first(self, start: int, size: int) -> int:
        """Return the first of `size` input positions that is read for outputs from `start` on."""
        return min(max(0, (start * self.stride - self.before) // self.up), size - 1)

    def last(self, stop: int, size: int) -> int:
        """Return one past the last position that is read for outputs before `stop`."""
        reach = ((stop - 1) * self.stride - self.before + self.extent - 1) // self.up + 1
        return max(1, min(reach, size))

    def halo(self, beyond: int) -> int:
        """Return how many input positions more are read for a given number of more outputs, inside a map."""
        return -(-(beyond * self.stride + max(0, self.extent - self.stride)) // self.up)


SAME = Window()
"""The window of an operator that computes each position from the same position of its input."""

Windows = tuple[Window | None, Window | None]
"""Along rows and along columns; None: every output position may read the whole input along that axis."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpatialNode(FileContent):
    """One operator, or an input of the network."""

    name: str
    """Unique in its network."""
    op_type: str
    """Of the operator; "Input" for an input of the network."""
    sources: tuple[int, ...] = ()
    """Indices of the nodes whose results it reads, each once; none for inputs."""
    windows: tuple[Windows, ...] = ()
    """What it reads of each source."""
    size: tuple[int, int] = (1, 1)
    """Rows and columns of its result; 1 x 1 for what is no map."""
    bytes: int = 0
    """Size of its result."""
    flops: int = 0
    """Floating-point operations of one run."""
    weight_bytes: int = 0
    """Size of its weights."""
    splits: tuple[bool, bool] = (True, True)
    """Whether its result can be computed in tiles along rows, and along columns."""

    def __post_init__(self) -> None:
        defects = Defects(f"spatial node {self.name!r}")
        defects.check_name("name", self.name)
        defects.check_name("op_type", self.op_type)
        for field in ("bytes", "flops", "weight_bytes"):
            defects.check_count(field, getattr(self, field))
        for side in self.size:
            defects.check_count("size", side, least=1)
        if len(self.windows) != len(self.sources):
            defects.add(f"{len(self.windows)} windows for {len(self.sources)} sources")
        defects.raise_as(InvalidProblemError)

    @property
    def is_input(self) -> bool:
        """Whether it is an input of the network."""
        return not self.sources and self.op_type == "Input"

    @property
    def is_whole(self) -> bool:
        """Whether its result cannot be divided at all."""
        return not any(self.splits) or self.size == (1, 1)

    @property
    def is_layer(self) -> bool:
        """Whether it is a convolution or a pooling: what tables count as layers (PICO, table 4)."""
        return "Conv" in self.op_type or "Pool" in self.op_type


@dataclass(frozen=True, kw_only=True)  # no slots: the computed properties below are kept
class SpatialNetwork(FileContent):
    """Operators in topological order, with what each reads of the others."""

    name: str
    """Of the network."""
    nodes: tuple[SpatialNode, ...]
    """In topological order: the sources of a node come before it."""
    outputs: tuple[int, ...]
    """Indices of the nodes whose results leave the network."""

    def __post_init__(self) -> None:
        defects = Defects(f"spatial network {self.name!r}")
        defects.check_size("nodes", len(self.nodes), most=100_000)
        defects.check_unique("node names", [node.name for node in self.nodes])
        for index, node in enumerate(self.nodes):
            for source in node.sources:
                if not 0 <= source < index:
                    defects.add(f"node {node.name!r} reads node {source}, which does not come before it")
        for output in self.outputs:
            if not 0 <= output < len(self.nodes):
                defects.add(f"output {output} is no node; there are {len(self.nodes)}")
        if not self.outputs:
            defects.add("outputs are missing")
        defects.raise_as(InvalidProblemError)

    @cached_property
    def readers(self) -> tuple[tuple[int, ...], ...]:
        """By node the nodes that read its result."""
        found: list[list[int]] = [[] for _ in self.nodes]
        for index, node in enumerate(self.nodes):
            for source in node.sources:
                found[source].append(index)
        return tuple(map(tuple, found))

    def batched(self, count: int) -> SpatialNetwork:
        """Return the network for a given number of inferences that are computed together, as one item."""
        nodes = (replace(node, bytes=node.bytes * count, flops=node.flops * count) for node in self.nodes)
        return replace(self, nodes=tuple(nodes))

    @cached_property
    def operators(self) -> tuple[int, ...]:
        """Indices of the nodes that are no inputs."""
        return tuple(index for index, node in enumerate(self.nodes) if not node.is_input)

    def edges(self) -> Iterator[tuple[int, int, Windows]]:
        """Yield (source, reader, windows) between operators."""
        for reader in self.operators:
            node = self.nodes[reader]
            for source, windows in zip(node.sources, node.windows, strict=True):
                if not self.nodes[source].is_input:
                    yield source, reader, windows

    def sinks(self, members: Iterable[int]) -> tuple[int, ...]:
        """Return which of some nodes have a result that others or nobody but the caller need, in order."""
        inside = set(members)
        return tuple(
            index
            for index in sorted(inside)
            if index in self.outputs or any(reader not in inside for reader in self.readers[index])
        )


def check_pieces(network: SpatialNetwork, pieces: tuple[int, ...], *, passing: bool = False) -> Iterator[str]:
    """Yield what is wrong with a labelling of nodes by pieces (formulations, section 13).

    Inputs have the label -1; along every edge between operators the label stays or grows by one; no number
    is left out. `passing`: it may grow by more, a result then passes by pieces that do not read it.
    """
    if len(pieces) != len(network.nodes):
        yield f"{len(pieces)} labels for {len(network.nodes)} nodes"
        return
    for node, label in zip(network.nodes, pieces, strict=True):
        if (label == -1) != node.is_input or label < -1:
            yield f"node {node.name!r} has the label {label}"
    for source, reader, _ in network.edges():
        grown = pieces[reader] - pieces[source]
        if grown < 0 or (grown > 1 and not passing):
            names = f"{network.nodes[source].name!r} to {network.nodes[reader].name!r}"
            yield f"from {names} the label goes from {pieces[source]} to {pieces[reader]}"
    used = set(pieces) - {-1}
    if used != set(range(len(used))):
        yield f"the labels are {sorted(used)}, must be 0 to {len(used) - 1}"
