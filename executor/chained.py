"""Pipelines of models and Python functions: what one gives is what the next one takes.

A pipeline is a row of members: a model from an ONNX file, or functions that stand together. Each is a model
by itself, with names of its own; outside, a tensor that is handed over has the name that the pipeline gives
it, and what never leaves a model is called "step/tensor".
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ..formulations.errors import ExecutionError, InvalidInputError, InvalidModelError
from ..formulations.network import Layer, ModelRef, Network, SharedWeights, Tensor
from ..formulations.validation import MAX_NAME_LENGTH, Defects
from .callable_file import CallableSource
from .callable_layers import CallableModel, ModelStep
from .callables import CallablePipeline, find_pipeline, sample_of
from .comparing import Decision
from .joined import layer_offsets
from .model import Model, Piece, TensorSpec, check_range, decision_of
from .names import safe_name
from .samples import Samples

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .model import Arrays

    Values = dict[str, NDArray[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One model of a pipeline."""

    model: Model  # the model; of functions that stand together, a `CallablePipeline`
    prefix: str = ""
    """What precedes the names of its layers, and of tensors that the pipeline gives no name; empty for
    functions."""
    names: Mapping[str, str] = field(default_factory=dict)
    """What the pipeline calls inputs and outputs of the model."""

    def outer(self, name: str) -> str:
        """Return what the pipeline calls a tensor of the model."""
        return self.names.get(name, self.prefix + name)

    def inner(self, name: str) -> str:
        """Return what the model calls a tensor of the pipeline."""
        own = {outer: inner for inner, outer in self.names.items()}
        return own.get(name, name.removeprefix(self.prefix))

    def layer_of(self, name: str) -> int | None:
        """Return which layer of the model makes a tensor of the pipeline; None: none does."""
        own = self.inner(name)
        return self.model.layer_of(own) if self.outer(own) == name else None

    def run(self, values: Arrays, *, also: Collection[str] = ()) -> Values:
        """Return the right outputs, and further tensors if they are its own, by the names of the pipeline."""
        inputs = {spec.name: values[self.outer(spec.name)] for spec in self.model.inputs}
        wanted = [self.inner(name) for name in also if self.layer_of(name) is not None]
        found = self.model.reference(inputs, also=wanted)
        return {self.outer(name): array for name, array in found.items()}

    def pieces(self, start: int, stop: int) -> tuple[Piece, ...]:
        """Return the pieces of some of its layers, with the names of the pipeline."""
        pieces = self.model.pieces(start, stop)
        return tuple(self._renamed(piece) for piece in pieces) if self.prefix else pieces

    def _renamed(self, piece: Piece) -> Piece:
        names = "|".join([self.prefix, *(f"{inner}={outer}" for inner, outer in sorted(self.names.items()))])
        return replace(
            piece,
            digest=hashlib.sha256(f"{piece.digest} as {names}".encode()).hexdigest(),
            inputs=tuple(replace(spec, name=self.outer(spec.name)) for spec in piece.inputs),
            outputs=tuple(replace(spec, name=self.outer(spec.name)) for spec in piece.outputs),
            content=RenamedContent(piece=piece, outer=self.outer, kind=piece.content.kind),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RenamedContent:
    """An ONNX piece with other names for all its tensors."""

    piece: Piece
    outer: Callable[[str], str]  # from the name of a tensor to the new one
    kind: str = "onnx"

    def read(self) -> bytes:
        """Return the renamed model."""
        from .graph.model_file import renamed

        return renamed(self.piece.content.read(), self.outer)


class ChainedModel:
    """A pipeline of models and functions that can be cut and run; see `Model`.

    `members`: its models, and its functions in groups, in order.
    """

    def __init__(
        self, *, declared: CallableModel, members: Sequence[Member], name: str, ref: ModelRef
    ) -> None:
        self.declared = declared
        self.members = tuple(members)
        self._samples = Samples()
        self._offsets = layer_offsets([member.model for member in members])
        self._specs = {spec.name: spec for spec in declared.inputs}
        for member in members:
            self._specs |= {spec.name: spec for spec in member_outputs(member)}
        self.network = _network(declared, self.members, self._offsets, name, ref)

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        """Inputs of the whole."""
        return self.declared.inputs

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        """Outputs of the whole."""
        return tuple(self._specs[name] for name in self.declared.output_names)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Layers of the network that each layer of the declaration is."""
        return tuple(
            size
            for member in self.members
            for size in ([len(member.model.network.layers)] if member.prefix else _sizes(member.model))
        )

    def spec(self, tensor: str) -> TensorSpec:
        """Return what is known of a tensor between members; KeyError: there is none of this name."""
        return self._specs[tensor]

    def pieces(self, start: int, stop: int) -> tuple[Piece, ...]:
        """Return one piece for each member that [start, stop) touches; errors as for `Model.pieces`."""
        check_range(self.network, start, stop)
        found: list[Piece] = []
        for member, (first, last) in self._spans():
            if first < stop and start < last:
                found += member.pieces(max(start, first) - first, min(stop, last) - first)
        return tuple(found)

    def layer_of(self, tensor: str) -> int | None:
        """Return the layer that makes a tensor; None: no member knows it."""
        for member, (first, _) in self._spans():
            layer = member.layer_of(tensor)
            if layer is not None:
                return first + layer
        return None

    def decision(self, tensor: str) -> Decision | None:
        """Return how the member that makes a tensor decides it; None: it does not, or none knows it."""
        for member in self.members:
            if member.layer_of(tensor) is not None and (
                found := decision_of(member.model, member.inner(tensor))
            ):
                behind = tuple(member.outer(name) for name in found.behind)
                known = all(self.layer_of(name) is not None for name in behind)
                return replace(found, behind=behind) if known else None
        return None

    def sample_inputs(self, seed: int) -> Values:
        """Return the inputs that the user's own `sample` gives, or random ones; see `CallablePipeline`."""
        return self._samples.over(partial(sample_of, self.declared), self.inputs, seed)

    def with_samples(self, samples: Samples) -> ChainedModel:
        """Return the pipeline, tried with other inputs; errors as for `Samples.fitted`."""
        changed = copy(self)
        changed._samples = samples.fitted(self.inputs)
        return changed

    def reference(self, inputs: Arrays, *, also: Collection[str] = ()) -> Values:
        """Return the right outputs: models by ONNX Runtime, functions by theirs for CPUs.

        Raises ExecutionError: a layer failed.
        """
        defects = [f"input {name!r} is missing" for name in self.declared.input_names if name not in inputs]
        defects += [
            f"no tensor is called {name!r}"
            for name in also
            if name not in inputs and self.layer_of(name) is None
        ]
        if defects:
            raise InvalidInputError(f"{self.network.name!r} cannot be run:", defects)
        values = dict(inputs)
        for member in self.members:
            values |= member.run(values, also=also)
        return {name: values[name] for name in dict.fromkeys((*self.declared.output_names, *also))}

    def _spans(self) -> Iterator[tuple[Member, tuple[int, int]]]:
        return zip(self.members, pairwise(self._offsets), strict=True)


def member_outputs(member: Member) -> list[TensorSpec]:
    """Return what a member gives, by the names of the pipeline."""
    if isinstance(member.model, CallablePipeline):  # also what only its own functions use
        names = (name for layer in member.model.declared.layers for name in layer.output_names)
        return [member.model.spec(name) for name in names]
    return [replace(spec, name=member.outer(spec.name)) for spec in member.model.outputs]


def _sizes(model: Model) -> tuple[int, ...]:
    assert isinstance(model, CallablePipeline)
    return model.sizes


def _network(
    declared: CallableModel, members: Sequence[Member], offsets: Sequence[int], name: str, ref: ModelRef
) -> Network:
    layers: list[Layer] = []
    uses: dict[str, tuple[int, int, list[int]]] = {}  # bytes, source, targets
    forbidden: list[int] = []
    shared: list[SharedWeights] = []
    for member, offset in zip(members, offsets, strict=False):
        network = member.model.network
        layers += [
            replace(layer, name=safe_name(member.prefix + layer.name, most=MAX_NAME_LENGTH))
            for layer in network.layers
        ]
        forbidden += [cut + offset for cut in network.forbidden_cuts]
        shared += network.shifted_weights(offset)
        for tensor in network.tensors:
            source = tensor.source + offset if tensor.source >= 0 else -1
            _, _, targets = uses.setdefault(member.outer(tensor.name), (tensor.bytes, source, []))
            targets += [target + offset for target in tensor.targets if target < len(network.layers)]
    for output in declared.output_names:
        uses[output][2].append(offsets[-1])
    return Network(
        name=name,
        layers=tuple(layers),
        tensors=tuple(
            Tensor(name=tensor, bytes=size, source=source, targets=tuple(targets))
            for tensor, (size, source, targets) in uses.items()
        ),
        forbidden_cuts=tuple(forbidden),
        shared=tuple(shared),
        source=ref.locator,
        models=(ref,),
    )


StepOpener = Callable[[ModelStep, CallableSource, Mapping[str, tuple[int, ...]]], Model]
"""Opens the model of a step of a pipeline in a source, with shapes by name of input ("": of the only one)."""

_SAMPLE_SEED = 0


def load_pipeline(
    locator: str,
    open_step: StepOpener,
    *,
    name: str | None = None,
    granularity: str = "layer",
    simplify: str = "auto",
) -> CallablePipeline | ChainedModel:
    """Load a pipeline of Python functions, and of models if it has any.

    Functions are run twice on a sample: on what the models before them give in ONNX Runtime.

    `locator`: "path.py:NAME" of a `CallableModel`, or "package.module:NAME" where a package holds it. `name`:
    name of the network; None: as the pipeline says. `granularity`, `simplify`: how `open_step` groups
    operators, and simplifies; kept with the network.
    Raises InvalidModelError: as for `load_callable`; or a model cannot be opened, or its inputs, outputs,
    shapes or types do not fit what is handed over: the message lists all such defects that can be seen.
    """
    declared, source, attribute = find_pipeline(locator)
    title = declared.name if name is None else name
    if not declared.steps:
        return CallablePipeline(declared, source, attribute, name=title)
    loading = _Loading(declared, source, attribute, open_step)
    members = loading.members()
    digest = hashlib.sha256(f"{source.digest}:{attribute}".encode())
    for ref in (ref for member in members if member.prefix for ref in member.model.network.models):
        digest.update(ref.digest.encode())
    ref = ModelRef(
        locator=loading.place, digest=digest.hexdigest(), granularity=granularity, simplify=simplify
    )
    return ChainedModel(declared=declared, members=members, name=title, ref=ref)


class _Loading:
    """Opens the members of a pipeline in order, and keeps what is known of the tensors between them.

    A member whose inputs are unknown, because what makes them has a defect, is passed over: it would only
    repeat that.
    """

    def __init__(
        self, declared: CallableModel, source: CallableSource, attribute: str, open_step: StepOpener
    ) -> None:
        self.place = f"{source.where}:{attribute}"
        self._declared = declared
        self._source = source
        self._attribute = attribute
        self._open_step = open_step
        self._defects = Defects(f"pipeline {self.place}")
        self._specs: dict[str, TensorSpec] = {spec.name: spec for spec in declared.inputs}
        self._last_functions = max((s[-1] for s in declared.stretches() if not self._is_step(s)), default=-1)

    def members(self) -> tuple[Member, ...]:
        """Return all members."""
        try:
            self._values: Values = sample_of(self._declared, _SAMPLE_SEED)
        except ExecutionError as error:
            raise InvalidModelError(f"{self.place}: {error}") from error
        found = [self._member(stretch) for stretch in self._declared.stretches()]
        self._defects.raise_as(InvalidModelError)
        return tuple(member for member in found if member is not None)

    def _is_step(self, stretch: range) -> bool:
        return isinstance(self._declared.layers[stretch[0]], ModelStep)

    def _member(self, stretch: range) -> Member | None:
        layer = self._declared.layers[stretch[0]]
        if any(name not in self._specs for name in self._taken(stretch)):
            return None
        member = self._model(stretch[0], layer) if isinstance(layer, ModelStep) else self._functions(stretch)
        if member is None:
            return None
        self._specs |= {spec.name: spec for spec in member_outputs(member)}
        if stretch[-1] < self._last_functions:  # functions behind it are tried on what it gives
            self._values |= member.run(self._values)
        return member

    def _taken(self, stretch: range) -> tuple[str, ...]:
        """Return the names of what layers take from outside."""
        names = dict.fromkeys(name for index in stretch for name in self._declared.inputs_of(index))
        made = {name for index in stretch for name in self._declared.layers[index].output_names}
        return tuple(name for name in names if name not in made)

    def _functions(self, stretch: range) -> Member:
        """Return functions that stand together as a pipeline of their own, tried on the sample."""
        declared, taken = self._declared, self._taken(stretch)
        layers = declared.functions(stretch.start, stretch.stop)
        later = {name for i in range(stretch.stop, len(declared.layers)) for name in declared.inputs_of(i)}
        wanted = later | set(declared.output_names)
        values = {name: self._values[name] for name in taken}
        part = CallableModel(
            name=declared.name,
            inputs=tuple(self._specs[name] for name in taken),
            layers=tuple(
                replace(layer, inputs=declared.inputs_of(index))
                for index, layer in zip(stretch, layers, strict=True)
            ),
            outputs=tuple(name for layer in layers for name in layer.output_names if name in wanted),
            sample=lambda _: values,
        )
        model = CallablePipeline(
            part, self._source, self._attribute, name=layers[0].name, first=stretch.start
        )
        return Member(model=model)

    def _model(self, index: int, step: ModelStep) -> Member | None:
        """Return the model of a step; None: it cannot be opened, which is noted."""
        given = step.inputs or {"": self._declared.inputs_of(index)[0]}
        specs = {name: self._specs[tensor] for name, tensor in given.items()}
        what = ", ".join(
            f"{name or 'its input'}: {spec.name!r}, {spec.dtype} {spec.shape}" for name, spec in specs.items()
        )
        try:
            model = self._open_step(step, self._source, {name: spec.shape for name, spec in specs.items()})
        except InvalidModelError as error:
            # Here nobody types options: what is said of --shape is said of what the pipeline hands over.
            for problem in error.problems or (error.message,):
                self._defects.add(f"step {step.name!r} ({what}): {problem.replace('--shape ', 'shape ')}")
            return None
        return self._linked(step, model, specs)

    def _linked(self, step: ModelStep, model: Model, specs: Mapping[str, TensorSpec]) -> Member | None:
        """Return the model with the names of the pipeline; None: something does not fit, which is noted."""
        before = len(self._defects.found)
        inputs = {spec.name: spec for spec in model.inputs}
        given = {name or next(iter(inputs), ""): spec for name, spec in specs.items()}
        for name in inputs.keys() - given.keys():
            self._defects.add(f"step {step.name!r}: its input {name!r} is given nothing")
        for name, spec in given.items():
            if name not in inputs:
                self._defects.add(
                    f"step {step.name!r}: no output of the model depends on {name!r}: do not give it "
                    f"{spec.name!r}"
                )
            elif (spec.dtype, spec.shape) != (inputs[name].dtype, inputs[name].shape):
                own = inputs[name]
                self._defects.add(
                    f"step {step.name!r}: its input {name!r} is {own.dtype} {own.shape}, "
                    f"but {spec.name!r} is {spec.dtype} {spec.shape}"
                )
        made = [spec.name for spec in model.outputs]
        called = step.outputs or ({made[0]: step.name} if len(made) == 1 else {})
        if set(called) != set(made):
            self._defects.add(
                f"step {step.name!r}: the outputs of the model are {', '.join(map(repr, made))}: say in "
                f"outputs what each of them is called, not {', '.join(map(repr, called)) or 'nothing'}"
            )
        if len(self._defects.found) > before:
            return None
        names = {**{name: spec.name for name, spec in given.items()}, **called}
        return Member(model=model, prefix=f"{step.name}/", names=names)
