"""Networks: a chain of layers in topological order, and the tensors that cross its cuts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate

from .errors import InvalidProblemError
from .validation import Defects, FileContent, meant, shown
from .weights import Weights

MAX_LAYERS = 2_000
"""Most layers of one network that planners accept which say nothing else; larger graphs are grouped first."""

LARGEST_GRAPH = 20_000
"""Most layers of any network."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer(FileContent):
    """The smallest piece of a network that the planner may place."""

    name: str
    """Name of the layer, unique in its network."""
    weight_bytes: int = 0
    """Size of its constant weights in bytes, also of those that other layers read, too."""
    flops: int | None = None
    """Floating-point operations of one run, or None when unknown."""
    op_types: tuple[str, ...] = ()
    """Operators it is made of, for reports and support checks: types, or with attributes, as "Conv[kernel=3]"
    (`operators`)."""

    def __post_init__(self) -> None:
        defects = Defects(f"layer {self.name!r}")
        defects.check_name("name", self.name)
        defects.check_count("weight_bytes", self.weight_bytes)
        if self.flops is not None:
            defects.check_count("flops", self.flops)
        defects.raise_as(InvalidProblemError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor(FileContent):
    """A value that one layer makes and later layers use."""

    name: str
    """Name of the tensor, unique in its network."""
    bytes: int
    """Its size in bytes."""
    source: int
    """Index of the layer that makes it; -1 for an input of the network."""
    targets: tuple[int, ...]
    """Indices of the layers that use it; the number of layers stands for "output of the network"."""

    def __post_init__(self) -> None:
        defects = Defects(f"tensor {self.name!r}")
        defects.check_name("name", self.name)
        defects.check_count("bytes", self.bytes)
        defects.check_count("source", self.source, least=-1)
        if not self.targets:
            defects.add("targets are missing: a tensor that nothing uses has no place in a network")
        for target in self.targets:
            if target <= self.source:
                defects.add(f"target {target} does not come after its source {self.source}")
        defects.raise_as(InvalidProblemError)


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedWeights(FileContent):
    """Weights that several layers read; a chunk with some of them holds one copy."""

    bytes: int
    """Their size in bytes, which is part of the `weight_bytes` of each of these layers."""
    layers: tuple[int, ...]
    """Indices of the layers that read them, ascending."""

    def __post_init__(self) -> None:
        defects = Defects(f"weights shared by the layers {', '.join(map(str, self.layers))}")
        defects.check_count("bytes", self.bytes, least=1)
        defects.check_counts("layers", self.layers)
        if len(self.layers) < 2 or list(self.layers) != sorted(set(self.layers)):
            defects.add("layers must be at least two, ascending, each named once")
        defects.raise_as(InvalidProblemError)


@dataclass(frozen=True, slots=True, kw_only=True)
class State(FileContent):
    """What one request of a stream leaves behind for the next one: a recurrence."""

    input: str
    """The input of the network that takes it."""
    output: str
    """The output that gives the next one."""

    def __str__(self) -> str:
        return f"{self.input}={self.output}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRef(FileContent):
    """Which model a network was read from, so that a plan for it can be executed."""

    locator: str
    """Path of an ONNX file, "path.py:NAME" of a pipeline of Python functions, or "zoo:NAME"."""
    digest: str
    """Hexadecimal digest of everything that decides its numbers and its layers: content, shapes, granularity.
    A model that has changed is refused."""
    shapes: tuple[tuple[str, tuple[int, ...]], ...] = ()
    """Fixed shapes of its inputs, as given: (input, dimensions)."""
    granularity: str = "layer"
    """How operators were grouped into layers."""
    simplify: str = "auto"
    """How far it was simplified: "auto" or "off"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Network(FileContent):
    """Layers 0..n-1 in topological order.

    A cut c (0 < c < n) lies between the layers c-1 and c.
    """

    name: str
    """Name of the network."""
    layers: tuple[Layer, ...]
    """Its layers in topological order."""
    tensors: tuple[Tensor, ...] = ()
    """The tensors between them. Empty when sizes are not known: then no cut carries bytes."""
    forbidden_cuts: tuple[int, ...] = ()
    """Cuts where a chunk may not end."""
    source: str = ""
    """Where the description comes from."""
    models: tuple[ModelRef, ...] = ()
    """The models it was read from, in order: usually one; several that run one after the other for each
    request; none for a network that is only a table."""
    order: tuple[int, ...] = ()
    """Its layers by their numbers in the model, or in the table that it was first, where they are in another
    order than there (`reordered`). Empty: in that order."""
    shared: tuple[SharedWeights, ...] = ()
    """Weights that several layers read. Empty: there are none, or it is not known which."""
    states: tuple[State, ...] = ()
    """What requests of a stream leave behind for the next one. What reads a state and what makes the next one
    are in one chunk (`state_cuts`): so the next request finds it there when its turn comes, and a stream has
    the period that it has without it."""

    def __post_init__(self) -> None:
        defects = Defects(f"network {self.name!r}")
        count = len(self.layers)
        defects.check_name("name", self.name)
        defects.check_size("layers", count, most=LARGEST_GRAPH)
        defects.check_unique("layer names", self.layer_names)
        defects.check_unique("tensor names", [tensor.name for tensor in self.tensors])
        for tensor in self.tensors:
            if tensor.source >= count or max(tensor.targets) > count:
                defects.add(f"tensor {tensor.name!r} names a layer beyond the last, {count - 1}")
        defects.check_unique("forbidden cuts", self.forbidden_cuts)
        for cut in self.forbidden_cuts:
            if not 0 < cut < count:
                defects.add(f"forbidden cut {cut} is not between 1 and {count - 1}")
        if self.order and sorted(self.order) != [*range(count)]:
            defects.add(f"its order must name each of the layers 0 to {count - 1} once")
        self._check_shared(defects)
        self._check_states(defects)
        held = sum(layer.weight_bytes for layer in self.layers) + sum(t.bytes for t in self.tensors)
        defects.check_count("the size of all weights and tensors together, in bytes,", held)
        defects.raise_as(InvalidProblemError)

    def _check_shared(self, defects: Defects) -> None:
        defects.check_unique("sets of layers that share weights", [each.layers for each in self.shared])
        read = [0] * len(self.layers)
        for each in self.shared:
            if each.layers[-1] >= len(self.layers):
                defects.add(
                    f"shared weights name layer {each.layers[-1]}; the last one is {len(self.layers) - 1}"
                )
                return
            for index in each.layers:
                read[index] += each.bytes
        for layer, size in zip(self.layers, read, strict=True):
            if size > layer.weight_bytes:
                defects.add(
                    f"layer {layer.name!r} shares {size} bytes of weights, but has {layer.weight_bytes}"
                )

    def _check_states(self, defects: Defects) -> None:
        tensors = {tensor.name: tensor for tensor in self.tensors}
        inputs = [name for name, tensor in tensors.items() if tensor.source < 0]
        outputs = [
            name
            for name, tensor in tensors.items()
            if tensor.source >= 0 and len(self.layers) in tensor.targets
        ]
        wrong = len(defects.found)
        for state in self.states:
            for what, name, known in (("input", state.input, inputs), ("output", state.output, outputs)):
                if name not in known:
                    defects.add(f"state {state}: it has no {what} {shown(name)}; {meant(name, known)}")
        defects.check_unique("inputs of states", [state.input for state in self.states])
        defects.check_unique("outputs of states", [state.output for state in self.states])
        if len(defects.found) > wrong:
            return
        for state in self.states:
            sizes = tensors[state.input].bytes, tensors[state.output].bytes
            if sizes[0] != sizes[1]:
                defects.add(f"state {state}: the input has {sizes[0]:,} bytes, the output {sizes[1]:,}")
        if open_cuts := sorted(set(self.state_cuts) - set(self.forbidden_cuts)):
            cuts = ", ".join(map(str, open_cuts))
            defects.add(f"cuts {cuts} must be forbidden: they part what reads a state from what makes it")

    @property
    def state_cuts(self) -> tuple[int, ...]:
        """Cuts between the layers that read a state and the one that makes the next one, ascending."""
        return _cuts_of(len(self.layers), self.tensors, self.states)

    def with_states(self, states: Sequence[State]) -> Network:
        """Return the same network with what its requests leave behind; its recurrences are not cut.

        Raises InvalidProblemError: it has no such inputs and outputs.
        """
        cuts = _cuts_of(len(self.layers), self.tensors, states)
        forbidden = tuple(sorted({*self.forbidden_cuts, *cuts}))
        return replace(self, states=tuple(states), forbidden_cuts=forbidden)

    @property
    def weights(self) -> Weights:
        """Bytes of the weights of its layers: what they share counts once in a chunk."""
        return _weights(self.layers, self.shared)

    def shifted_weights(self, offset: int) -> tuple[SharedWeights, ...]:
        """Return what its layers share where some others stand before them."""
        return tuple(
            replace(each, layers=tuple(layer + offset for layer in each.layers)) for each in self.shared
        )

    @property
    def layer_names(self) -> tuple[str, ...]:
        """Names of the layers, in order."""
        return tuple(layer.name for layer in self.layers)

    @property
    def legal_cuts(self) -> tuple[int, ...]:
        """Cuts where a chunk may end, ascending; 0 and n are not among them."""
        return _legal_cuts(len(self.layers), self.forbidden_cuts)

    def reordered(self, order: Sequence[int]) -> Network:
        """Return the same network with its layers in another topological order, which it keeps (`order`).

        A cut is closed where it parts two layers between which a cut is forbidden now.

        `order`: the index of each layer, in their new order.
        """
        count = len(self.layers)
        numbers = tuple(self.order[layer] if self.order else layer for layer in order)
        place = {layer: position for position, layer in enumerate(order)} | {-1: -1, count: count}
        moved = (
            replace(
                tensor,
                source=place[tensor.source],
                targets=tuple(sorted(place[target] for target in tensor.targets)),
            )
            for tensor in self.tensors
        )
        ends = (sorted((place[cut - 1], place[cut])) for cut in self.forbidden_cuts)
        return replace(
            self,
            layers=tuple(self.layers[layer] for layer in order),
            tensors=tuple(sorted(moved, key=lambda tensor: tensor.source)),
            forbidden_cuts=tuple(sorted({cut for low, high in ends for cut in range(low + 1, high + 1)})),
            order=() if numbers == tuple(range(count)) else numbers,
            shared=tuple(
                replace(each, layers=tuple(sorted(place[layer] for layer in each.layers)))
                for each in self.shared
            ),
        )

    @property
    def boundary_bytes(self) -> tuple[int, ...]:
        """Bytes alive at each boundary 0..n: made (or given) before it and used at or after it."""
        return _boundary_bytes(len(self.layers), self.tensors)

    @property
    def working_bytes(self) -> tuple[int, ...]:
        """Bytes of the tensors in memory while each layer runs: alive before it, or made by it."""
        return _working_bytes(len(self.layers), self.tensors)


@cache
def _legal_cuts(count: int, forbidden: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(set(range(1, count)) - set(forbidden)))


def _cuts_of(count: int, tensors: Sequence[Tensor], states: Sequence[State]) -> tuple[int, ...]:
    """Return the cuts that part what reads a state from what makes the next one."""
    by_name = {tensor.name: tensor for tensor in tensors}
    cuts = set[int]()
    for state in states:
        if state.input in by_name and state.output in by_name:
            readers = (layer for layer in by_name[state.input].targets if layer < count)
            layers = [by_name[state.output].source, *readers]
            cuts.update(range(min(layers) + 1, max(layers) + 1))
    return tuple(sorted(cuts))


@cache
def _weights(layers: tuple[Layer, ...], shared: tuple[SharedWeights, ...]) -> Weights:
    own = [layer.weight_bytes for layer in layers]
    for each in shared:
        for layer in each.layers:
            own[layer] -= each.bytes
    return Weights(tuple(accumulate(own, initial=0)), tuple((each.bytes, each.layers) for each in shared))


@cache
def _boundary_bytes(count: int, tensors: tuple[Tensor, ...]) -> tuple[int, ...]:
    change = [0] * (count + 2)
    for tensor in tensors:
        change[tensor.source + 1] += tensor.bytes
        change[max(tensor.targets) + 1] -= tensor.bytes
    return tuple(accumulate(change))[: count + 1]


@cache
def _working_bytes(count: int, tensors: tuple[Tensor, ...]) -> tuple[int, ...]:
    working = list(_boundary_bytes(count, tensors)[:count])
    for tensor in tensors:
        if tensor.source >= 0:
            working[tensor.source] += tensor.bytes
    return tuple(working)
