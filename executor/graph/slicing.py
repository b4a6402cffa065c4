"""Chunks of a model as self-contained ONNX models: the live tensors in, the live tensors out."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from onnx import ModelProto, ValueInfoProto
from onnx.helper import make_tensor_value_info, np_dtype_to_tensor_dtype

from ..model import Piece, TensorSpec
from .magnitudes import largest_inputs
from .operators import Operator, OperatorGraph


@dataclass(frozen=True, slots=True, kw_only=True)
class OnnxContent:
    """A chunk of a model, serialised when it is read.

    `start`, `stop`: which layers.
    """

    cutter: Cutter = field(repr=False)  # who makes it
    start: int
    stop: int
    kind: str = "onnx"  # always "onnx"

    def read(self) -> bytes:
        """Return the chunk as a serialised, self-contained ModelProto; always the same bytes."""
        model = self.cutter.extract(self.start, self.stop)
        content: bytes = model.SerializeToString(deterministic=True)
        return content


@dataclass(frozen=True, slots=True, kw_only=True)
class Cutter:
    """Cuts a model; what it does for a chunk takes time in proportion to that chunk alone."""

    name: str  # name of the network, for messages
    graph: OperatorGraph
    layers: tuple[tuple[int, ...], ...]  # indices of the operators of each layer
    last_use: Mapping[str, int]
    """For each tensor the last layer that uses it; the number of layers for an output of the model."""
    weight_digests: Mapping[str, bytes]
    """SHA-256 of each initializer: chunks are told apart without reading their weights again."""
    numbers: tuple[int, ...]  # of each layer the number by which people know it

    @classmethod
    def of(cls, name: str, graph: OperatorGraph, layers: tuple[tuple[int, ...], ...]) -> Cutter:
        """Return a cutter for a model whose operators are grouped into layers."""
        digests = {
            name: hashlib.sha256(tensor.SerializeToString(deterministic=True)).digest()
            for name, tensor in graph.weights.items()
        }
        return cls(
            name=name,
            graph=graph,
            layers=layers,
            last_use=_last_use(graph, layers),
            weight_digests=digests,
            numbers=tuple(range(len(layers))),
        )

    def reordered(self, order: Sequence[int]) -> Cutter:
        """Return a cutter for the same model with its layers in another topological order."""
        layers = tuple(self.layers[layer] for layer in order)
        return replace(
            self,
            layers=layers,
            last_use=_last_use(self.graph, layers),
            numbers=tuple(self.numbers[layer] for layer in order),
        )

    def piece(self, start: int, stop: int) -> Piece:
        """Return the chunk [start, stop)."""
        operators = self.operators(start, stop)
        digest = hashlib.sha256(self._skeleton(start, stop).SerializeToString(deterministic=True))
        for weight in _weights(operators):
            digest.update(self.weight_digests[weight])
        taken, most = _inputs(operators), largest_inputs(self.graph, operators)
        return Piece(
            name=f"{self.name}{_ranges(self.numbers[start:stop])}",
            digest=digest.hexdigest(),
            inputs=self.specs(taken),
            outputs=self.specs(self.outputs(start, stop)),
            content=OnnxContent(cutter=self, start=start, stop=stop),
            most=tuple(most.get(name) for name in taken) if most else (),
        )

    def extract(self, start: int, stop: int, *, also: Collection[str] = ()) -> ModelProto:
        """Return the chunk [start, stop) as a model, with further tensors of it as outputs."""
        model = self._skeleton(start, stop, also=also)
        weights = _weights(self.operators(start, stop))
        model.graph.initializer.extend(self.graph.weights[name] for name in weights)
        return model

    def _skeleton(self, start: int, stop: int, *, also: Collection[str] = ()) -> ModelProto:
        """Return the chunk without its weights."""
        operators = self.operators(start, stop)
        outputs = dict.fromkeys((*self.outputs(start, stop), *sorted(also)))
        model = ModelProto()
        model.CopyFrom(self.graph.header)
        model.graph.name = "chunk"
        model.graph.node.extend(operator.node for operator in operators)
        model.graph.input.extend(map(value_info, self.specs(_inputs(operators))))
        model.graph.output.extend(map(value_info, self.specs(list(outputs))))
        return model

    def operators(self, start: int, stop: int) -> list[Operator]:
        """Return the operators of a chunk, in order."""
        return [self.graph.operators[index] for members in self.layers[start:stop] for index in members]

    def outputs(self, start: int, stop: int) -> list[str]:
        """Return the tensors that a chunk makes and something after it needs, in order."""
        made = (name for operator in self.operators(start, stop) for name in operator.outputs)
        return [name for name in made if self.last_use.get(name, -1) >= stop]

    def specs(self, names: Sequence[str]) -> tuple[TensorSpec, ...]:
        """Return what is known of some tensors."""
        return tuple(self.graph.specs[name] for name in names)


def _last_use(graph: OperatorGraph, layers: Sequence[Sequence[int]]) -> dict[str, int]:
    found = {
        tensor: place
        for place, members in enumerate(layers)
        for index in members
        for tensor in graph.operators[index].inputs
    }
    return found | {spec.name: len(layers) for spec in graph.outputs}


def _ranges(numbers: Sequence[int]) -> str:
    """Return numbers as ranges, in words."""
    runs = groupby(enumerate(sorted(numbers)), key=lambda place: place[1] - place[0])
    ends = ([number for _, number in run] for _, run in runs)
    return f"[{','.join(f'{run[0]}:{run[-1] + 1}' for run in ends)})"


def _inputs(operators: Sequence[Operator]) -> list[str]:
    """Return the tensors that come from outside, in the order of first use."""
    made = {name for operator in operators for name in operator.outputs}
    used = dict.fromkeys(name for operator in operators for name in operator.inputs)
    return [name for name in used if name not in made]


def _weights(operators: Sequence[Operator]) -> list[str]:
    return list(dict.fromkeys(name for operator in operators for name in operator.weights))


def value_info(spec: TensorSpec) -> ValueInfoProto:
    """Return a tensor as an input or output of a model."""
    import numpy as np

    return make_tensor_value_info(spec.name, np_dtype_to_tensor_dtype(np.dtype(spec.dtype)), spec.shape)
