"""Pipelines of Python functions as models: loaded from a file, tried on a sample, cut into pieces.

Those that hold models, too, are made of such pipelines: see `chained`.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sys
from collections.abc import Collection, Mapping, Sequence
from copy import copy
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from ..formulations.errors import ExecutionError, InvalidInputError, InvalidModelError
from ..formulations.network import Layer, ModelRef, Network, Tensor
from .callable_file import CallableSource, source_of
from .callable_layers import CallableLayer, CallableModel, Function
from .comparing import Allowed, Reference
from .model import ITEM_BYTES, Piece, TensorSpec, check_range, tolerance
from .samples import Samples

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .model import Arrays


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerCall:
    """A layer with one of its functions, ready to be called.

    `inputs`, `outputs`: names of what it takes; what it has to give.
    """

    layer: str
    function: Function
    inputs: tuple[str, ...]
    outputs: tuple[TensorSpec, ...]

    def run(self, tensors: dict[str, NDArray[Any]]) -> None:
        """Call the function on some of the tensors, and add its results to them, write-protected."""
        arrays = call(self.layer, self.function, [tensors[name] for name in self.inputs])
        if len(arrays) != len(self.outputs):
            raise ExecutionError(
                f"layer {self.layer!r} returned {len(arrays)} arrays, its outputs are {len(self.outputs)}"
            )
        for spec, array in zip(self.outputs, arrays, strict=True):
            require(spec, array, f"output {spec.name!r} of layer {self.layer!r}")
            tensors[spec.name] = protected(array)


def call(layer: str, function: Function, arrays: Sequence[NDArray[Any]]) -> tuple[NDArray[Any], ...]:
    """Call the function of a layer, and return what it gave: at least one array."""
    import numpy as np

    result = guarded(f"layer {layer!r}", function, *arrays)
    results = result if isinstance(result, tuple | list) else (result,)
    for value in results:
        if not isinstance(value, np.ndarray | np.generic):
            raise ExecutionError(
                f"layer {layer!r} returned {type(value).__name__}, must return a numpy array, "
                "or a tuple of several"
            )
    return tuple(np.asarray(value) for value in results)


def guarded(what: str, function: Function, *arguments: Any) -> Any:
    """Call a function that a user wrote; `what` stands for it in messages.

    What it prints goes to standard error, because standard output may be a JSON document.
    """
    try:
        with contextlib.redirect_stdout(sys.stderr):
            return function(*arguments)
    except (Exception, SystemExit) as error:
        trace = error.__traceback__
        inner = trace.tb_next if trace is not None else None  # the user's own function
        where = f" ({inner.tb_frame.f_code.co_filename}, line {inner.tb_lineno})" if inner else ""
        hint = "; layers must not write into their inputs" if "read-only" in str(error) else ""
        raise ExecutionError(f"{what} raised {type(error).__name__}: {error}{where}{hint}") from error


def require(spec: TensorSpec, array: object, what: str) -> None:
    """Refuse what is no array of the specified shape and type."""
    import numpy as np

    if not isinstance(array, np.ndarray):
        raise ExecutionError(f"{what} is {type(array).__name__}, must be a numpy array")
    if array.shape != spec.shape or array.dtype.name != spec.dtype:
        raise ExecutionError(f"{what} is {array.dtype.name} {array.shape}, must be {spec.dtype} {spec.shape}")


def protected(array: NDArray[Any]) -> NDArray[Any]:
    """Return a view that cannot be written to: other layers may need the same tensor."""
    view = array.view()
    view.flags.writeable = False
    return view


_TRY_OUT_SEED = 0


def load_callable(locator: str, *, name: str | None = None) -> CallablePipeline:
    """Load a pipeline of Python functions, and run each of its layers twice on a sample.

    `locator`: "path.py:NAME" of a `CallableModel`, or "package.module:NAME" where a package holds it. `name`:
    name of the network; None: as the pipeline says.
    Raises InvalidModelError: there is no such source or name, it cannot be executed, the pipeline does not
    fit together, or one of its layers fails on the sample.
    """
    declared, source, attribute = find_pipeline(locator)
    return CallablePipeline(declared, source, attribute, name=declared.name if name is None else name)


def find_pipeline(locator: str) -> tuple[CallableModel, CallableSource, str]:
    """Return a pipeline as it is written, where it stands, its name there; errors as for `load_callable`."""
    where, colon, attribute = locator.rpartition(":")
    if not colon or not where or not attribute.isidentifier():
        raise InvalidModelError(f"{locator!r} names no pipeline; write path.py:NAME")
    source = source_of(where)
    return declared_in(source, attribute), source, attribute


def declared_in(source: CallableSource, attribute: str) -> CallableModel:
    """Execute a file or module, and return the pipeline of a name in it."""
    module = vars(source.execute())
    found = module.get(attribute)
    if isinstance(found, CallableModel):
        return found
    known = [key for key, value in module.items() if isinstance(value, CallableModel)]
    what = f"is {type(found).__name__}, not a CallableModel" if attribute in module else "is not in it"
    hint = f"it has {', '.join(known)}" if known else "it has none; assign a CallableModel to a name"
    raise InvalidModelError(f"{source.where}: {attribute!r} {what}; {hint}")


@dataclass(frozen=True, slots=True, kw_only=True)
class CallableContent:
    """Content of a piece: a JSON document that says which layers of which pipeline to call.

    Its keys are "source" (a file or module), "name", "digest" (of the source), "start", "stop", "layers"
    (their names), and "outputs": specifications of what each layer gives.
    """

    document: str
    kind: str = "callable"

    def read(self) -> bytes:
        """Return the document."""
        return self.document.encode()


class CallablePipeline:
    """A pipeline of Python functions that can be cut and run; see `Model`.

    `first`: index of its first layer among those of the pipeline in the source, if it is a part of that.
    Raises InvalidModelError: a layer failed on the sample, gave something else than declared, or something
    else each time; or one is no function.
    """

    def __init__(
        self, declared: CallableModel, source: CallableSource, attribute: str, name: str, first: int = 0
    ) -> None:
        self._declared = declared
        self._layers = declared.functions()
        self._first = first
        self._source = source
        self._attribute = attribute
        self._name = name
        self._specs = {spec.name: spec for spec in declared.inputs}
        self._samples = Samples()
        try:
            self._try_out()
        except ExecutionError as error:
            raise InvalidModelError(f"{self._locator}: {error}") from error

    @property
    def declared(self) -> CallableModel:
        """What the user wrote."""
        return self._declared

    @property
    def sizes(self) -> tuple[int, ...]:
        """Layers of the network that each layer of the declaration is: one."""
        return (1,) * len(self._layers)

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        """Inputs of the whole."""
        return self._declared.inputs

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        """Outputs of the whole."""
        return tuple(self._specs[name] for name in self._declared.output_names)

    @cached_property
    def network(self) -> Network:
        """Its layers, tensors and legal cuts: all of them."""
        digest = hashlib.sha256(f"{self._source.digest}:{self._attribute}".encode()).hexdigest()
        return Network(
            name=self._name,
            layers=tuple(
                Layer(name=layer.name, op_types=(function_name(layer.variants[layer.reference_variant]),))
                for layer in self._layers
            ),
            tensors=tuple(
                Tensor(name=name, bytes=self._specs[name].bytes, source=source, targets=tuple(targets))
                for name, (source, targets) in self._uses.items()
            ),
            source=self._locator,
            models=(ModelRef(locator=self._locator, digest=digest),),
        )

    def pieces(self, start: int, stop: int) -> tuple[Piece, ...]:
        """Return the one piece for the layers [start, stop)."""
        check_range(self.network, start, stop)
        inputs, outputs = [], []
        for name, (source, targets) in self._uses.items():
            if source < start and any(start <= target < stop for target in targets):
                inputs.append(self._specs[name])
            if start <= source < stop and max(targets) >= stop:
                outputs.append(self._specs[name])
        document = json.dumps(self._document(start, stop))
        return (
            Piece(
                name=f"{self._name}[{start}:{stop})",
                digest=hashlib.sha256(document.encode()).hexdigest(),
                inputs=tuple(inputs),
                outputs=tuple(outputs),
                content=CallableContent(document=document),
            ),
        )

    def spec(self, tensor: str) -> TensorSpec:
        """Return what is known of a tensor; KeyError: there is none of this name."""
        return self._specs[tensor]

    def layer_of(self, tensor: str) -> int | None:
        """Return the layer that makes a tensor; None: no layer does."""
        source, _ = self._uses.get(tensor, (-1, ()))
        return None if source < 0 else source

    def sample_inputs(self, seed: int) -> dict[str, NDArray[Any]]:
        """Return the inputs that were given, those of the user's own `sample`, or random ones.

        Raises ExecutionError: the user's own function failed, or gave something else than the inputs.
        """
        return self._samples.over(partial(sample_of, self._declared), self.inputs, seed)

    def with_samples(self, samples: Samples) -> CallablePipeline:
        """Return the pipeline, tried with other inputs; errors as for `Samples.fitted`."""
        changed = copy(self)
        changed._samples = samples.fitted(self.inputs)
        return changed

    def reference(self, inputs: Arrays, *, also: Collection[str] = ()) -> dict[str, NDArray[Any]]:
        """Return the right outputs: all layers in this process, by their functions for CPUs.

        Raises ExecutionError: a layer failed.
        """
        wanted = (*self._declared.output_names, *also)
        lost = [name for name in self._declared.input_names if name not in inputs]
        unknown = [name for name in wanted if name not in self._specs]
        if lost or unknown:
            raise InvalidInputError(
                f"{self._name!r} cannot be run:",
                [
                    *(f"input {n!r} is missing" for n in lost),
                    *(f"no tensor is called {n!r}" for n in unknown),
                ],
            )
        tensors = {name: protected(inputs[name]) for name in self._declared.input_names}
        for index in range(len(self._layers)):
            self._step(index).run(tensors)
        return {name: tensors[name].copy() for name in wanted}

    @property
    def _locator(self) -> str:
        return f"{self._source.where}:{self._attribute}"

    @cached_property
    def _uses(self) -> dict[str, tuple[int, list[int]]]:
        """Return which layer makes each tensor (-1: an input), and which use it (their number: an output)."""
        declared = self._declared
        uses: dict[str, tuple[int, list[int]]] = {name: (-1, []) for name in declared.input_names}
        for index, layer in enumerate(declared.layers):
            for name in dict.fromkeys(declared.inputs_of(index)):
                uses[name][1].append(index)
            uses |= {name: (index, []) for name in layer.output_names}
        for name in declared.output_names:
            uses[name][1].append(len(declared.layers))
        return uses

    def _step(self, index: int) -> LayerCall:
        layer = self._layers[index]
        return LayerCall(
            layer=layer.name,
            function=layer.variants[layer.reference_variant],
            inputs=self._declared.inputs_of(index),
            outputs=tuple(self._specs[name] for name in layer.output_names),
        )

    def _try_out(self) -> None:
        """Run each layer twice on a sample: find the shapes, and what depends on more than the inputs."""
        tensors = {name: protected(array) for name, array in self.sample_inputs(_TRY_OUT_SEED).items()}
        for index, layer in enumerate(self._layers):
            function = layer.variants[layer.reference_variant]
            arrays = [tensors[name] for name in self._declared.inputs_of(index)]
            first = [array.copy() for array in call(layer.name, function, arrays)]
            self._specs |= {spec.name: spec for spec in _specs_of(layer, first)}
            self._step(index).run(tensors)
            for name, array in zip(layer.output_names, first, strict=True):
                if not Reference.of([array]).compare(tensors[name], 0, Allowed(tolerance("high"))).agrees:
                    raise ExecutionError(
                        f"layer {layer.name!r} gives another {name!r} for the same inputs when it is called "
                        "again; layers must keep nothing between calls, and seed random numbers in the call"
                    )

    def _document(self, start: int, stop: int) -> dict[str, Any]:
        layers = self._layers[start:stop]
        return {
            "source": self._source.where,
            "name": self._attribute,
            "digest": self._source.digest,
            "start": self._first + start,
            "stop": self._first + stop,
            "layers": [layer.name for layer in layers],
            "outputs": [[asdict(self._specs[name]) for name in layer.output_names] for layer in layers],
        }


def _specs_of(layer: CallableLayer, arrays: Sequence[NDArray[Any]]) -> tuple[TensorSpec, ...]:
    """Return the specifications of what a layer gives, from its declaration or from what it gave."""
    if len(arrays) != len(layer.output_names):
        raise ExecutionError(
            f"layer {layer.name!r} returned {len(arrays)} arrays, its outputs are "
            f"{', '.join(map(repr, layer.output_names))}"
        )
    declared = {output.name: output for output in layer.outputs if isinstance(output, TensorSpec)}
    found = []
    for name, array in zip(layer.output_names, arrays, strict=True):
        if name not in declared and (array.dtype.name not in ITEM_BYTES or not array.size):
            raise ExecutionError(
                f"layer {layer.name!r} gives {name!r} as {array.dtype.name} {array.shape}; tensors between "
                f"layers are not empty and hold one of {', '.join(ITEM_BYTES)}"
            )
        found.append(declared.get(name) or TensorSpec(name=name, shape=array.shape, dtype=array.dtype.name))
    return tuple(found)


def sample_of(declared: CallableModel, seed: int) -> dict[str, NDArray[Any]]:
    """Return what the sample of a pipeline gives, or random inputs; errors as for `sample_inputs`."""
    if declared.sample is None:
        return _random_arrays(declared.inputs, seed)
    what = f"sample({seed})"
    given = guarded(what, declared.sample, seed)
    names = declared.input_names
    if not isinstance(given, Mapping) or set(given) != set(names):
        raise ExecutionError(f"{what} must return a dictionary of arrays with the keys {list(names)}")
    for spec in declared.inputs:
        require(spec, given[spec.name], f"{spec.name!r} of {what}")
    return {name: given[name] for name in names}


def _random_arrays(specs: Sequence[TensorSpec], seed: int) -> dict[str, NDArray[Any]]:
    import numpy as np

    random = np.random.default_rng(seed)
    arrays = {}
    for spec in specs:
        kind = np.dtype(spec.dtype).kind
        if kind == "f":
            arrays[spec.name] = random.random(spec.shape).astype(spec.dtype)
        else:
            most = 1 if kind == "b" else min(255, np.iinfo(spec.dtype).max)
            arrays[spec.name] = random.integers(0, most, spec.shape, endpoint=True).astype(spec.dtype)
    return arrays


def function_name(function: Function) -> str:
    """Return what a function of a layer is called, for reports."""
    return str(getattr(function, "__name__", type(function).__name__))
