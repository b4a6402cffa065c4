"""ONNX models that can be planned and executed."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from onnx import helper, numpy_helper

from ...formulations.errors import ExecutionError, InvalidModelError
from ...formulations.network import ModelRef, Network
from ...formulations.spatial import SpatialNetwork
from ..comparing import RANDOM, Decision
from ..model import Piece, TensorSpec, check_range, is_quantised
from ..names import safe_name
from ..samples import Samples
from .choices import Granularity, Simplification
from .geometry import spatial_network
from .grouping import Grouping, group, usual_grouping
from .model_file import ModelFile, read_model_file, weight_bytes
from .operators import Operator, OperatorCost, OperatorGraph, operator_cost, read_operators
from .preparing import Prepared, prepare
from .shapes import Shapes, fix_shapes
from .slicing import Cutter, value_info

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..model import Arrays
    from .opening import Opener


_INDICES = {"ArgMax": "largest", "ArgMin": "smallest", "TopK": "largest"}
_COMPARISONS = {"Greater", "Less", "GreaterOrEqual", "LessOrEqual", "Equal"}
_ROUNDINGS = {"Round": "nearest", "Floor": "floor", "Ceil": "ceil"}
_SHARES = {"Sigmoid": "sigmoid", "Softmax": "softmax"}
_MOVES = {"Identity", "Squeeze", "Unsqueeze", "Reshape", "Flatten", "Transpose", "Not", "Cast"}
"""They move entries and leave them as they are, or all turned round."""


def decision_in(graph: OperatorGraph, tensor: str) -> Decision | None:
    """Return how a tensor is decided from floats of known shape; None: it is not, or in no way known here."""
    if tensor in graph.at_random:
        return Decision(RANDOM, ())
    made_by = {name: operator for operator in graph.operators for name in operator.outputs}
    undo: list[tuple[str, tuple[int, ...]]] = []
    while (operator := made_by.get(tensor)) is not None and not operator.domain:
        found = _decided(operator, tensor, graph, made_by)
        if found is not None:
            return replace(found, undo=tuple(undo))
        if operator.op_type not in _MOVES or not operator.inputs or operator.inputs[0] not in graph.specs:
            return None
        (tensor, *_), before = operator.inputs, operator.inputs[0]
        undo.append(_move(operator, graph.specs[before].shape))
    return None


def _move(operator: Operator, shape: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
    """Return how to undo a move: which shape, or which permutation, its input had."""
    if operator.op_type != "Transpose":
        return ("shape", shape)
    order = _attributes(operator).get("perm", list(reversed(range(len(shape)))))
    return ("permutation", tuple(order.index(axis) for axis in range(len(shape))))


def _decided(
    operator: Operator, tensor: str, graph: OperatorGraph, made_by: Mapping[str, Operator]
) -> Decision | None:
    kind, names = operator.op_type, list(operator.node.input)
    if kind in _COMPARISONS:
        return _comparison(operator, graph)
    if not names or not _is_float(graph, names[0]):
        return None
    if kind in _INDICES:
        return _index(operator, tensor, graph)
    if kind in _ROUNDINGS:
        return Decision(_ROUNDINGS[kind], (names[0],))
    if kind in _SHARES:
        return Decision(_SHARES[kind], (names[0],))
    if kind == "QuantizeLinear":
        return _quantised(operator, graph)
    if kind == "Cast" and _is_integer(graph, tensor):
        before = made_by.get(names[0])
        while before is not None and before.op_type in ("Clip", "Identity"):
            before = made_by.get(before.node.input[0])
        if before is not None and before.op_type in _ROUNDINGS and before.node.input[0] in graph.specs:
            return Decision(_ROUNDINGS[before.op_type], (before.node.input[0],))
        return Decision("truncated", (names[0],))
    return None


def _index(operator: Operator, tensor: str, graph: OperatorGraph) -> Decision | None:
    attributes, values = _attributes(operator), operator.node.input[0]
    ranked = operator.op_type == "TopK"
    if ranked and (operator.node.output[1] != tensor or not attributes.get("sorted", 1)):
        return None  # its values are compared as floats; without an order any index is as good
    kind = _INDICES[operator.op_type] if attributes.get("largest", 1) else "smallest"
    axis = attributes.get("axis", -1 if ranked else 0) % len(graph.specs[values].shape)
    return Decision(kind, (values,), axis=axis, ranked=ranked)


def _comparison(operator: Operator, graph: OperatorGraph) -> Decision | None:
    names = list(operator.node.input)
    computed = [name for name in names if name not in graph.weights]
    if not computed or not all(_is_float(graph, name) for name in computed):
        return None
    constants = [numpy_helper.to_array(graph.weights[name]) for name in names if name in graph.weights]
    return Decision("comparison", tuple(computed), against=constants[0] if constants else None)


def _quantised(operator: Operator, graph: OperatorGraph) -> Decision | None:
    values, step, *zero = operator.node.input
    constants = [
        numpy_helper.to_array(graph.weights[name]).reshape(-1)
        for name in (step, *zero)
        if name in graph.weights
    ]
    if len(constants) != 1 + len(zero) or any(len(each) != 1 for each in constants):
        return None
    step_size, *zeros = (float(each[0]) for each in constants)
    return Decision("nearest", (values,), step=step_size, zero=zeros[0] if zeros else 0.0)


def _is_float(graph: OperatorGraph, name: str) -> bool:
    return name in graph.specs and graph.specs[name].dtype.startswith("float")


def _is_integer(graph: OperatorGraph, name: str) -> bool:
    return name in graph.specs and graph.specs[name].dtype.startswith(("int", "uint"))


def _attributes(operator: Operator) -> dict[str, Any]:
    return {each.name: helper.get_attribute_value(each) for each in operator.node.attribute}


CUTTER_VERSION = 1
"""Raised whenever the same file would be divided otherwise: old plans and measurements are refused then."""

_NOTABLE_BYTES = 100_000

PieceFinder = Callable[[SpatialNetwork], Sequence[int]]
"""Returns the number of the piece of each node of a network, -1 for inputs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OnnxModel:
    """A model from an ONNX file, divided into layers (see `executor.model.Model`).

    `inputs`, `outputs`: those of the simplified model; an input that changes nothing is left out.
    """

    network: Network  # its layers, and the tensors between them
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    graph: OperatorGraph = field(repr=False)
    content_digest: str  # SHA-256 of the file with its external data
    warnings: tuple[str, ...]
    """What a user should know: unsupported operators, several layers that had to become one, ..."""
    path: Path  # where the file lies
    cutter: Cutter = field(repr=False)  # makes the pieces
    makers: Mapping[str, int] = field(repr=False)  # the layer that makes each tensor
    materialize: bool  # whether its weights are read through links
    division: tuple[str, ...] = ()  # of the warnings, those of how it is divided: why several layers are one
    rewriting: tuple[str, ...] = ()
    """Of the warnings, those of what was made of the file: why it was not simplified, or not wholly."""
    idle_inputs: tuple[str, ...] = ()  # names of the inputs that change nothing
    samples: Samples = field(default=Samples(), repr=False)  # what it is tried with

    def pieces(self, start: int, stop: int) -> tuple[Piece, ...]:
        """Return the chunk [start, stop) as one piece; errors as for `executor.model.Model.pieces`."""
        check_range(self.network, start, stop)
        return (self.cutter.piece(start, stop),)

    def reordered(self, order: Sequence[int]) -> OnnxModel:
        """Return the model with its layers in another topological order."""
        place = {layer: position for position, layer in enumerate(order)}
        return replace(
            self,
            network=self.network.reordered(order),
            cutter=self.cutter.reordered(order),
            makers={name: place[layer] for name, layer in self.makers.items()},
        )

    def layer_of(self, tensor: str) -> int | None:
        """Return the layer that makes a tensor, also one that never leaves it; None: not known."""
        return self.makers.get(tensor)

    def decision(self, tensor: str) -> Decision | None:
        """Return how a tensor is decided: an index, a comparison, a rounded number, a share; or None."""
        return decision_in(self.graph, tensor)

    def spatial(self) -> SpatialNetwork:
        """Return which rows and columns each of its operators reads."""
        costs = [operator_cost(self.graph, operator) for operator in self.graph.operators]
        return spatial_network(self.graph, costs, name=self.network.name)

    def sample_inputs(self, seed: int) -> dict[str, NDArray[Any]]:
        """Return the inputs that were given, in turn, or random ones (see `Samples`)."""
        return self.samples.inputs(self.inputs, seed)

    def with_samples(self, samples: Samples) -> OnnxModel:
        """Return the model, tried with other inputs; errors as for `Samples.fitted`."""
        return replace(self, samples=samples.fitted(self.inputs, ignored=self.idle_inputs))

    def reference(self, inputs: Arrays, *, also: Collection[str] = ()) -> dict[str, NDArray[Any]]:
        """Return the right outputs: of the model as it stands in its file, before simplification.

        Tensors in `also` are those of the simplified model, as the file makes them where it has them.
        """
        from ..engines.ort_session import reference_outputs

        unknown = [name for name in also if name not in self.graph.specs]
        if unknown:
            raise InvalidModelError(
                f"model {self.network.name!r} has no tensor {', '.join(map(repr, unknown))}"
            )
        file, quantised = self._file(), is_quantised(self.network)
        outputs = [value.name for value in file.model.graph.output]
        made = {name for node in file.model.graph.node for name in node.output}
        of_file = [name for name in also if name in made and name not in outputs]
        file.model.graph.output.extend(map(value_info, self.cutter.specs(of_file)))
        content = file.model.SerializeToString()
        try:
            right = reference_outputs(content, {**_zeros(file), **inputs}, quantised=quantised)
        except ExecutionError as error:
            raise InvalidModelError(
                f"the model file {self.path}, as it stands, gives no numbers to compare with: {error}. Look "
                "at the inputs that it is tried with, export it again, or leave the comparison out where "
                "that is offered (--unchecked, check=False)"
            ) from error
        wanted = [name for name in also if name not in right]
        if wanted:  # what simplification has made; it was compared with the file
            whole = self.cutter.extract(0, len(self.network.layers), also=wanted)
            content = whole.SerializeToString()
            right |= reference_outputs(content, inputs, wanted, quantised=quantised)
        return right

    def _file(self) -> ModelFile:
        (ref,) = self.network.models
        file = read_model_file(self.path, materialize=self.materialize, digest=self.content_digest)
        fix_shapes(file.model, dict(ref.shapes))
        return file


def load_onnx(
    path: str | Path,
    *,
    shapes: Shapes = MappingProxyType({}),
    granularity: Granularity = Granularity.AUTO,
    name: str | None = None,
    materialize: bool = False,
    simplification: Simplification = Simplification.AUTO,
    locator: str | None = None,
    opener: Opener | None = None,
    pieces: PieceFinder | None = None,
) -> OnnxModel:
    """Read an ONNX file and divide it into layers.

    `shapes`: shapes of the inputs with open dimensions, by name (see `shapes.parse_shapes`). `name`: name of
    the network; None: from the file name. `materialize`: accept external data behind symbolic and hard links.
    `locator`: what the network says it was read from; None: the absolute path. `opener`: the process in which
    the file is checked and simplified; None: this one, without limits, for files that are trusted. `pieces`:
    who finds pieces, for granularity "piece".
    Raises InvalidModelError: the file, its shapes or its content cannot be used; the message says what to do.
    """
    prepared = (opener.prepare if opener else prepare)(
        path, shapes=shapes, materialize=materialize, simplification=simplification
    )
    graph = read_operators(prepared.model, complaint=" ".join(prepared.warnings))
    costs = [operator_cost(graph, operator) for operator in graph.operators]
    name = name or _network_name(prepared.path)
    granularity, grouping, coarser = _grouped(graph, costs, granularity, pieces, name)
    idle = [name for name in prepared.inputs if name not in {spec.name for spec in graph.inputs}]
    division = (*grouping.obstacles, *filter(None, [coarser]))
    network = Network(
        name=name,
        layers=grouping.layers,
        tensors=grouping.tensors,
        # The name of a file in the cache has a digest of sources in it: problems would change with them.
        source=f"ONNX file {safe_name(prepared.path.name)}" if locator is None else locator,
        shared=grouping.shared,
        models=(
            ModelRef(
                locator=locator or str(prepared.path),
                digest=_digest(prepared, granularity, graph, grouping),
                shapes=prepared.shapes,
                granularity=str(granularity),
                simplify=str(simplification),
            ),
        ),
    )
    return OnnxModel(
        network=network,
        inputs=graph.inputs,
        outputs=graph.outputs,
        graph=graph,
        content_digest=prepared.digest,
        path=prepared.path,
        warnings=(
            *prepared.warnings,
            *_warnings(graph, idle),
            *division,
        ),
        division=division,
        rewriting=prepared.warnings,
        cutter=Cutter.of(network.name, graph, grouping.operators),
        makers={
            name: layer
            for layer, members in enumerate(grouping.operators)
            for index in members
            for name in graph.operators[index].outputs
        },
        materialize=materialize,
        idle_inputs=tuple(idle),
    )


def _grouped(
    graph: OperatorGraph,
    costs: Sequence[OperatorCost],
    granularity: Granularity,
    pieces: PieceFinder | None,
    name: str,
) -> tuple[Granularity, Grouping, str]:
    """Return how a model is divided, and why not as usual; "" where it is as usual, or as was asked."""
    if granularity == Granularity.AUTO:
        return usual_grouping(graph, costs)
    labels: Sequence[int] = ()
    if granularity == Granularity.PIECE:
        if pieces is None:
            raise InvalidModelError(f"nobody finds pieces here: divide {name!r} with another --granularity")
        labels = pieces(spatial_network(graph, costs, name=name))[len(graph.inputs) :]
    return granularity, group(graph, costs, granularity, pieces=labels), ""


def _network_name(path: Path) -> str:
    """Return the file's name with what might mean something to a shell or a path replaced."""
    return safe_name(re.sub(r"[^A-Za-z0-9_.-]+", "-", path.stem).strip("-") or "model", most=60)


def _digest(prepared: Prepared, granularity: Granularity, graph: OperatorGraph, grouping: Grouping) -> str:
    """Return a digest of all that decides numbers and layers: also of what simplification has made of it."""
    layers = [[graph.operators[index].outputs for index in members] for members in grouping.operators]
    parts = [CUTTER_VERSION, prepared.digest, prepared.shapes, str(granularity), layers]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _warnings(graph: OperatorGraph, idle: Sequence[str]) -> Iterator[str]:
    if idle:
        yield f"no output depends on the input {', '.join(map(repr, idle))}: it is left out"
    if graph.foreign:
        yield f"operators that are not part of ONNX, which an engine may not know: {_listed(graph.foreign)}"
    nested = Counter(operator.kind for operator in graph.operators if operator.has_subgraphs)
    if nested:
        yield f"control flow, which not every engine can run, and never cut inside: {_listed(nested)}"
    random = sorted({operator.kind for operator in graph.random})
    if random:
        yield f"random operators, so that no two runs give equal numbers: {', '.join(random)}"
    users = Counter(weight for operator in graph.operators for weight in operator.weights)
    shared = sum(weight_bytes(graph.weights[name]) for name, count in users.items() if count > 1)
    if shared > _NOTABLE_BYTES:
        yield (
            f"{shared / 1e6:.1f} MB of weights are used by several operators: each chunk that uses them has "
            "one copy"
        )


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{kind} ({count})" for kind, count in sorted(counts.items()))


def _zeros(file: ModelFile) -> Mapping[str, NDArray[Any]]:
    """Return something for every input of the file: those that change nothing are not asked for."""
    import numpy as np
    from onnx.helper import tensor_dtype_to_np_dtype

    return {
        value.name: np.zeros(
            [size.dim_value for size in value.type.tensor_type.shape.dim],
            dtype=tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type),
        )
        for value in file.model.graph.input
    }
