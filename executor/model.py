"""What can be cut and run: a model as the pipeline and the profiler see it.

A model has the layers of a `Network`. Between two chunks of a plan, the tensors alive at the cut wait
in a task slot, by name. A piece is what one engine session runs: consecutive layers of one model,
with exactly the live tensors as inputs and outputs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from math import prod
from operator import mul
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from ..formulations.errors import InvalidInputError, InvalidPlanError
from ..formulations.network import Network, State
from ..formulations.validation import FileContent
from .comparing import Allowed, Decision, Reference

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .samples import Samples

    Arrays = Mapping[str, NDArray[Any]]
    """Tensors by name."""

ITEM_BYTES = {
    "float64": 8,
    "float32": 4,
    "float16": 2,
    "int64": 8,
    "int32": 4,
    "int16": 2,
    "int8": 1,
    "uint64": 8,
    "uint32": 4,
    "uint16": 2,
    "uint8": 1,
    "bool": 1,
}
"""Element types that tensors between chunks may have, by numpy name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorSpec(FileContent):
    """Name, fixed shape and element type (numpy name) of a tensor."""

    name: str
    shape: tuple[int, ...]
    dtype: str = "float32"

    @property
    def bytes(self) -> int:
        """Its size in bytes."""
        return prod(self.shape) * ITEM_BYTES[self.dtype]

    def empty(self) -> NDArray[Any]:
        """Return a new array of this shape and type, not initialised."""
        import numpy as np

        return np.empty(self.shape, dtype=self.dtype)


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorPart:
    """Some positions of a tensor along one axis.

    `start`, `stop`: which positions [start, stop).
    """

    whole: TensorSpec  # the tensor
    axis: int  # index of the axis
    start: int
    stop: int

    @property
    def spec(self) -> TensorSpec:
        """The part as a tensor, under the same name."""
        shape = list(self.whole.shape)
        shape[self.axis : self.axis + 1] = [self.stop - self.start] if shape else []
        return replace(self.whole, shape=tuple(shape))

    @property
    def place(self) -> tuple[int, tuple[int, ...]]:
        """Where it begins in the whole, and from one position to the next along each axis, bytes."""
        sizes = [ITEM_BYTES[self.whole.dtype], *reversed(self.whole.shape[1:])]
        strides = tuple(accumulate(sizes, mul))[::-1] if self.whole.shape else ()
        return (self.start * strides[self.axis] if strides else 0), strides

    def of(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return this part of the tensor, without a copy."""
        where = (*(slice(None),) * self.axis, slice(self.start, self.stop))
        part: NDArray[Any] = array[where[: array.ndim]]
        return part


class PieceContent(Protocol):
    """What an engine turns into something that it can run."""

    @property
    def kind(self) -> str:
        """Name of the form, e.g. "onnx" or "callable"; engines say which they take."""
        ...

    def read(self) -> bytes:
        """Return the piece in that form.

        "onnx": a serialised, self-contained ModelProto. "callable": a JSON document that says
        which functions of which Python source to call.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Consecutive layers of one model, ready for an engine.

    `inputs`, `outputs`: the tensors that cross its borders, in the order of the content. A tensor that is
    alive before and after, but that it does not touch, is in neither.
    """

    name: str
    """For messages, e.g. "mobilenetv2[3:17)"."""
    digest: str  # hexadecimal digest of its content: key of everything that is derived from it
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    content: PieceContent  # the piece itself; read when it is needed
    prefix: str = ""
    """What precedes the names of its tensors in task slots, and in the network, where several models follow
    each other."""
    parts: tuple[TensorPart, ...] = ()
    """Of a tile: which part of which tensor each input, then each output is; empty: they are whole."""
    most: tuple[int | None, ...] = ()
    """Of each input, the largest number with which an engine of 32 bits is right about whole numbers (see
    `executor.graph.magnitudes`), or None; empty: it is about whatever fits."""


class Model(Protocol):
    """A network that can be executed."""

    @property
    def network(self) -> Network:
        """Its layers, tensors and legal cuts, with `models` filled in."""
        ...

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        """Inputs of the whole."""
        ...

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        """Outputs of the whole."""
        ...

    def pieces(self, start: int, stop: int) -> tuple[Piece, ...]:
        """Return what to run, in order, for the chunk [start, stop).

        One piece for a model from one file; one for each model that the chunk touches where several
        models follow each other in one network.

        Raises InvalidPlanError: the range is not between two legal cuts.
        """
        ...

    def layer_of(self, tensor: str) -> int | None:
        """Return the index of the layer that makes a tensor, or None for a name that it does not know.

        Also of tensors that never leave their layer: an engine that fuses a convolution with its
        activation keeps the name between the two.
        """
        ...

    def sample_inputs(self, seed: int) -> dict[str, NDArray[Any]]:
        """Return inputs to try it with; the same for the same seed: given ones, or random ones."""
        ...

    def reference(self, inputs: Arrays, *, also: Collection[str] = ()) -> dict[str, NDArray[Any]]:
        """Return the right outputs for some inputs, from the uncut model.

        `inputs`: all inputs, by name; `also`: names of further tensors that cross a legal cut and are wanted
        too.
        """
        ...


@runtime_checkable
class OpenToSamples(Protocol):
    """A model that can be tried with other inputs than its own."""

    def with_samples(self, samples: Samples) -> Model:
        """Return the same model, tried with inputs of a user, or in some range.

        Raises InvalidInputError: they do not fit its inputs; all defects at once.
        """
        ...


def with_samples(model: Model, samples: Samples) -> Model:
    """Return a model that is tried with other inputs.

    Raises InvalidInputError: it takes no other inputs than its own, or these do not fit; all defects at once.
    """
    if not isinstance(model, OpenToSamples):
        raise InvalidInputError(f"the inputs of {model.network.name!r} are its own: no others can be given")
    return model.with_samples(samples)


@runtime_checkable
class OpenToOrders(Protocol):
    """A model whose layers can run in another order than that of its network."""

    def reordered(self, order: Sequence[int]) -> Model:
        """Return the same model with its layers in another topological order."""
        ...


@runtime_checkable
class OpenToDecisions(Protocol):
    """A model that knows which of its tensors are indices, comparisons or rounded numbers."""

    def decision(self, tensor: str) -> Decision | None:
        """Return how a tensor was decided, or None: it is computed, or nothing is known."""
        ...


def references(
    model: Model, seeds: Sequence[int], names: Collection[str] = (), states: Sequence[State] = ()
) -> dict[str, Reference]:
    """Return what tensors of a model should hold for its sample inputs of some seeds.

    `model`: the uncut model; `seeds`: one sample each. The scale of a tensor comes from all of them: use
    three or more; `names`: which tensors that cross a cut; its outputs are always there; `states`: what each
    sample leaves behind for the next one; the first one begins with its own.
    """
    outputs = [spec.name for spec in model.outputs]
    wanted = dict.fromkeys([*outputs, *names])
    decisions = {name: decision for name in wanted if (decision := decision_of(model, name))}
    behind = [name for decision in decisions.values() for name in decision.behind]
    inner = [name for name in dict.fromkeys([*wanted, *behind]) if name not in outputs]
    found: list[dict[str, NDArray[Any]]] = []
    for seed in seeds:
        left = {state.input: found[-1][state.output] for state in states if found}
        inputs = {**model.sample_inputs(seed), **left}
        found.append({**inputs, **model.reference(inputs, also=inner)})

    def plain(name: str) -> Reference:
        return Reference.of([each[name] for each in found])

    return {
        name: Reference.of(
            [each[name] for each in found],
            decision=decisions.get(name),
            behind=[plain(each) for each in decisions[name].behind] if name in decisions else (),
        )
        for name in wanted
    }


def decision_of(model: Model, tensor: str) -> Decision | None:
    """Return how a model decides a tensor; None: it is computed, or nothing is known."""
    return model.decision(tensor) if isinstance(model, OpenToDecisions) else None


def reordered(model: Model, order: Sequence[int]) -> Model:
    """Return a model with its layers in another topological order; empty: as it is.

    Raises InvalidPlanError: its layers run in their own order only.
    """
    if not order:
        return model
    if not isinstance(model, OpenToOrders):
        raise InvalidPlanError(
            f"the layers of {model.network.name!r} run in their own order only: parts in another order are "
            "for models of one ONNX file; plan it with --layer-order fixed"
        )
    return model.reordered(order)


def in_order_of(model: Model, network: Network) -> Model:
    """Return a model with its layers in the order of a network that was read from it; errors as above."""
    if model.network.order == network.order:
        return model
    count = len(model.network.layers)
    place = {number: layer for layer, number in enumerate(model.network.order or range(count))}
    return reordered(model, tuple(place[number] for number in network.order or range(count)))


def check_range(network: Network, start: int, stop: int) -> None:
    """Require that a chunk [start, stop) lies between two legal cuts of a network, or its ends.

    Raises InvalidPlanError: it does not.
    """
    count = len(network.layers)
    if not 0 <= start < stop <= count:
        raise InvalidPlanError(
            f"network {network.name!r} has the layers 0 to {count - 1}; [{start}, {stop}) is no chunk of it"
        )
    closed = sorted({start, stop} & set(network.forbidden_cuts))
    if closed:
        raise InvalidPlanError(f"network {network.name!r} may not be cut before layer {closed[0]}")


def tolerance(precision: str) -> float:
    """Return the largest relative error (see `executor.comparing`) that counts as equal."""
    return {"high": 1e-3, "normal": 1e-3, "low": 3e-2}[precision]


QUANTISED_ERROR = 4 / 127
"""Four steps of eight bits: two runtimes that compute in integers may round each layer to another step, and
in floats, with the steps emulated, a third result comes out. All of them are right."""

_IN_INTEGERS = {
    *("QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear"),
    *("ConvInteger", "MatMulInteger", "MatMulNBits", "QGemm"),
}
"""DequantizeLinear alone, too: for weights of few bits ONNX Runtime rounds what they are multiplied with."""

_IN_INTEGERS_PREFIX = "QLinear"


def is_quantised(network: Network) -> bool:
    """Return whether a network rounds what it computes to few bits on the way, or lets a runtime do so."""
    return rounds_to_few_bits(kind for layer in network.layers for kind in layer.op_types)


def rounds_to_few_bits(kinds: Iterable[str]) -> bool:
    """Return whether operators of some types round to few bits, or let a runtime do so."""
    own = {kind.rpartition(".")[2] for kind in kinds}
    return any(kind in _IN_INTEGERS or kind.startswith(_IN_INTEGERS_PREFIX) for kind in own)


def allowed_of(network: Network, precisions: Iterable[str]) -> Allowed:
    """Return what counts as equal for a network on units of some precisions."""
    return Allowed(allowed_error(network, precisions), quantised=is_quantised(network))


def allowed_error(network: Network, precisions: Iterable[str]) -> float:
    """Return the largest relative error of a network that counts as equal, on units of some precisions.

    A quantised network is allowed `QUANTISED_ERROR`.
    """
    least = QUANTISED_ERROR if is_quantised(network) else 0.0
    return max(least, *(tolerance(precision) for precision in precisions))
