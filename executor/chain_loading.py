"""Pipelines of models and Python functions from a file: opened in order, each model with what it is given."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ..formulations.errors import ExecutionError, InvalidModelError
from ..formulations.network import ModelRef
from ..formulations.validation import Defects
from .callable_file import CallableSource
from .callable_layers import CallableModel, ModelStep
from .callables import CallablePipeline, find_pipeline, sample_of
from .chained import ChainedModel, Member, member_outputs
from .model import Model, TensorSpec

if TYPE_CHECKING:
    from .chained import Values

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
