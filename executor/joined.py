"""Several models that run one after the other for each request, as one network."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

from ..formulations.errors import InvalidModelError
from ..formulations.network import Layer, Network, SharedWeights, Tensor
from ..formulations.validation import MAX_NAME_LENGTH
from .comparing import Decision
from .model import Model, Piece, TensorSpec, check_range, decision_of, with_samples
from .names import distinct, safe_name

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .model import Arrays
    from .samples import Samples

_MAX_PREFIX = 60


def join(models: Sequence[Model], *, name: str | None = None) -> Model:
    """Return one model that runs each of several models once for each request.

    Layers and tensors are called "model/layer" and "model/tensor"; of models with the same name, the later
    ones are called "model#2" and so on. The inputs of all models are there from the beginning, and the
    outputs of all models stay until the end. One model alone is returned as it is.

    `models`: in the order in which they run. `name`: name of the network; None: the names of the models,
    joined by "+".
    """
    if not models:
        raise InvalidModelError("no model is given: at least one is needed")
    if len(models) == 1:
        return models[0]
    names = distinct(safe_name(model.network.name, most=_MAX_PREFIX) for model in models)
    prefixes = tuple(f"{own}/" for own in names)
    title = name or safe_name("+".join(names), most=MAX_NAME_LENGTH)
    return JoinedModel(
        network=_network(models, prefixes, title),
        inputs=tuple(_prefixed(models, prefixes, "inputs")),
        outputs=tuple(_prefixed(models, prefixes, "outputs")),
        models=tuple(models),
        prefixes=prefixes,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedModel:
    """Several models, one after the other (see `executor.model.Model`, and `join`)."""

    network: Network  # layers of all models
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    models: tuple[Model, ...]  # the models, in order
    prefixes: tuple[str, ...]  # what precedes the names of each model's tensors

    def pieces(self, start: int, stop: int) -> tuple[Piece, ...]:
        """Return one piece for each model that [start, stop) touches; errors as for `Model.pieces`."""
        check_range(self.network, start, stop)
        found = []
        for model, prefix, (first, last) in zip(
            self.models, self.prefixes, pairwise(layer_offsets(self.models)), strict=True
        ):
            if first < stop and start < last:
                pieces = model.pieces(max(start, first) - first, min(stop, last) - first)
                found += [replace(piece, prefix=prefix + piece.prefix) for piece in pieces]
        return tuple(found)

    def layer_of(self, tensor: str) -> int | None:
        """Return the layer that makes a tensor; None: no model knows it."""
        offsets = layer_offsets(self.models)
        for model, prefix, offset in zip(self.models, self.prefixes, offsets, strict=False):
            if tensor.startswith(prefix):
                layer = model.layer_of(tensor.removeprefix(prefix))
                return None if layer is None else layer + offset
        return None

    def decision(self, tensor: str) -> Decision | None:
        """Return how the model that makes a tensor decides it; None: it does not, or none knows it."""
        for model, prefix in zip(self.models, self.prefixes, strict=True):
            if tensor.startswith(prefix) and (found := decision_of(model, tensor.removeprefix(prefix))):
                return replace(found, behind=tuple(prefix + name for name in found.behind))
        return None

    def with_samples(self, samples: Samples) -> JoinedModel:
        """Return the models, tried with other inputs, which have the names of the whole.

        Errors as for `Samples.fitted`.
        """
        known = samples.fitted(self.inputs)
        pairs = zip(self.models, self.prefixes, strict=True)
        return replace(self, models=tuple(with_samples(model, known.of(prefix)) for model, prefix in pairs))

    def sample_inputs(self, seed: int) -> dict[str, NDArray[Any]]:
        """Return random inputs for all models."""
        return {
            prefix + name: array
            for model, prefix in zip(self.models, self.prefixes, strict=True)
            for name, array in model.sample_inputs(seed).items()
        }

    def reference(self, inputs: Arrays, *, also: Collection[str] = ()) -> dict[str, NDArray[Any]]:
        """Return the right outputs of all models, from the uncut models."""
        right: dict[str, NDArray[Any]] = {}
        for model, prefix in zip(self.models, self.prefixes, strict=True):
            own = {key.removeprefix(prefix): value for key, value in inputs.items() if key.startswith(prefix)}
            wanted = [key.removeprefix(prefix) for key in also if key.startswith(prefix)]
            found = model.reference(own, also=wanted)
            right |= {prefix + key: array for key, array in found.items()}
        return right


def layer_offsets(models: Sequence[Model]) -> list[int]:
    """Return where the layers of each model begin, and where the last ones end."""
    return list(accumulate((len(model.network.layers) for model in models), initial=0))


def _network(models: Sequence[Model], prefixes: Sequence[str], name: str) -> Network:
    offsets = layer_offsets(models)
    layers: list[Layer] = []
    tensors: list[Tensor] = []
    forbidden: list[int] = []
    shared: list[SharedWeights] = []
    for model, prefix, offset in zip(models, prefixes, offsets, strict=False):
        network = model.network
        layers += [
            replace(layer, name=safe_name(prefix + layer.name, most=MAX_NAME_LENGTH))
            for layer in network.layers
        ]
        tensors += [
            _moved(tensor, prefix, offset, len(network.layers), offsets[-1]) for tensor in network.tensors
        ]
        forbidden += [cut + offset for cut in network.forbidden_cuts]
        shared += network.shifted_weights(offset)
    return Network(
        name=name,
        layers=tuple(layers),
        tensors=tuple(tensors),
        forbidden_cuts=tuple(forbidden),
        shared=tuple(shared),
        source="; ".join(dict.fromkeys(filter(None, (model.network.source for model in models)))),
        models=tuple(ref for model in models for ref in model.network.models),
    )


def _moved(tensor: Tensor, prefix: str, offset: int, own_end: int, end: int) -> Tensor:
    """Return a tensor of one model as a tensor of the whole."""
    return replace(
        tensor,
        name=prefix + tensor.name,
        source=tensor.source + offset if tensor.source >= 0 else -1,
        targets=tuple(end if target == own_end else target + offset for target in tensor.targets),
    )


def _prefixed(models: Sequence[Model], prefixes: Sequence[str], what: str) -> Iterator[TensorSpec]:
    for model, prefix in zip(models, prefixes, strict=True):
        specs: tuple[TensorSpec, ...] = getattr(model, what)
        yield from (replace(spec, name=prefix + spec.name) for spec in specs)
