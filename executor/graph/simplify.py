"""Simplification and shape inference: every tensor that can have a fixed shape gets it.

What inference does not know is observed (`observing`).
"""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from math import prod

import onnx
from onnx import ModelProto, TensorProto, ValueInfoProto
from onnx.helper import make_tensor_value_info

from ...formulations.errors import InvalidModelError
from .model_file import checker_complaint
from .observing import is_static, observe_shapes, unknown_tensors
from .tensor_data import is_known_type, subgraphs, weight_bytes
from .watching import Watch

MAX_TENSOR_BYTES = 2**31 - 1
"""Largest single tensor: engines count its bytes with 32 bits."""

MAX_FOLDED_BYTES = 2**24
"""Largest tensor that is computed beforehand and becomes a weight."""

REWRITINGS = ("graph_fusion", "subexpression_elimination", "dead_node_elimination", "weight_tying")
"""What the simplifier does to operators; each can be left out."""

ALL = (*REWRITINGS, "constant_folding")
"""Everything that it does."""

_MAX_SMALL_WEIGHT = 1024
_STEPS_OF_WEIGHTS = 20
"""What it takes to compare two small weights, in such steps."""

_MAX_COMPARISONS = 2_000_000
"""Most steps of comparing everything with everything, which some optimisations do: a second or two."""
_MAX_CONSTANT = 2**26
_MAX_USERS = 5000
_EXPLODING = frozenset(("ConstantOfShape", "Range"))
"""Data propagation writes out every element of what these make: a few bytes become gigabytes."""

_INFERRED_DOMAINS = ("", "ai.onnx", "ai.onnx.ml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Simplified:
    """A model with inferred shapes, after what can be computed beforehand has been."""

    model: ModelProto  # the model; same outputs, and those of its inputs that still matter
    warnings: tuple[str, ...] = ()
    """What could not be done, in words: why it was not simplified, what shape inference complains about."""
    failure: str = ""
    """In what the simplifier failed, in words; "": in nothing, or in what leaving out more cannot mend."""


class _RefusedError(ValueError):
    """What would take the simplifier too long, whatever of it is left out."""


def simplify(model: ModelProto, *, watch: Watch | None = None, left_out: Collection[str] = ()) -> Simplified:
    """Fold constants, infer and observe shapes of a model whose inputs have fixed ones; `model` is used up.

    Where simplification fails, the model stays as it is, and a warning says why.

    Raises InvalidModelError: a tensor would be larger than any engine can hold; MemoryError: there is too
    little memory.
    """
    watch = watch or Watch()
    watch.step("inferring shapes")
    complaint = _infer_shapes(model)
    warning, failure = None, ""
    watch.step("folding constants and simplifying")
    try:
        if not set(left_out).issuperset(ALL):
            slim, slim_complaint = _slimmed(model, left_out)
            _check_interface(model, slim)
            model, complaint = slim, slim_complaint
    except (InvalidModelError, MemoryError):
        raise
    except ImportError:
        warning = "not simplified, because onnxslim is not installed: pip install 'gapless[ort]'"
    except _RefusedError as error:
        warning = f"not simplified: {error}"
    except Exception as error:  # whatever a third party raises must not stop the user
        text = " ".join(str(error).split())[:300]
        failure = f"onnxslim failed: {type(error).__name__}: {text}"
        warning = f"not simplified, because {failure}"
    watch.step("observing shapes")
    unobserved = observe_shapes(model)
    if complaint and _unknown_shapes(model) and not unknown_tensors(model):
        complaint = None
    _refuse_giants(model)
    warnings = tuple(filter(None, (warning, complaint, unobserved)))
    return Simplified(model=model, warnings=warnings, failure=failure)


def _slimmed(model: ModelProto, left_out: Collection[str]) -> tuple[ModelProto, str | None]:
    """Return a simplified model with inferred shapes, and what shape inference complains about.

    Constants that are computed from known shapes make further shapes known: both take turns until all are
    known, or nothing more comes of it.
    """
    unknown = _unknown_shapes(model)
    while unknown:
        model, _ = _passed(model, skipped={*REWRITINGS, *left_out})
        before, unknown = unknown, _unknown_shapes(model)
        if unknown >= before:
            break
    return _passed(model, skipped=left_out)


def _passed(model: ModelProto, *, skipped: Collection[str] = ()) -> tuple[ModelProto, str | None]:
    """Return a model after one pass of the simplifier and of shape inference, and the latter's complaint."""
    import onnxslim

    _check_constants(model)
    _check_users(model)
    skipped = {*skipped, *_endless(model)}
    with _silence():
        slim: ModelProto = onnxslim.slim(
            model,
            no_shape_infer=True,  # its own can run forever, and guesses
            size_threshold=MAX_FOLDED_BYTES,  # keeps what a few bytes expand to out of the weights
            skip_optimizations=sorted(skipped),
        )
    # It forgets what the file says of operators that it does not know.
    values = {value.name: value for value in model.graph.value_info}
    values |= {value.name: value for value in slim.graph.value_info if is_static(value)}
    del slim.graph.value_info[:]
    slim.graph.value_info.extend(values.values())
    return slim, _infer_shapes(slim)


def _endless(model: ModelProto) -> Iterator[str]:
    """Yield the optimisations that would compare too many things with each other.

    What they leave out stays as it is: the model computes the same.
    """
    weights = Counter(tuple(tensor.dims) for tensor in model.graph.initializer)
    weights += Counter(
        tuple(attribute.t.dims)
        for node in model.graph.node
        for attribute in node.attribute
        if node.op_type == "Constant"
    )
    if _STEPS_OF_WEIGHTS * sum(count**2 for count in weights.values()) > _MAX_COMPARISONS:
        yield "weight_tying"
    users = Counter(name for node in model.graph.node for name in set(node.input))
    alike = Counter((node.op_type, *node.input[:1]) for node in model.graph.node)
    if sum(count**2 * users[key[1]] for key, count in alike.items() if len(key) > 1) > _MAX_COMPARISONS:
        yield "subexpression_elimination"


def _check_constants(model: ModelProto) -> None:
    """Refuse to compute what is too large beforehand, even if little of it remains in the end."""
    varying = {value.name for value in model.graph.input}
    for node in model.graph.node:
        if any(subgraphs(node.attribute)) or not varying.isdisjoint(node.input):
            varying.update(node.output)
    for value in model.graph.value_info:
        elements = prod(size.dim_value for size in value.type.tensor_type.shape.dim)
        if value.name not in varying and elements > _MAX_CONSTANT:
            raise _RefusedError(
                f"the constant {value.name!r} of {elements} elements is too large to be computed"
            )


def _check_users(model: ModelProto) -> None:
    """Refuse what takes the simplifier for ever: it compares all users of a tensor for each of them."""
    users = Counter(name for node in model.graph.node for name in node.input)
    name, most = max(users.items(), key=lambda entry: entry[1], default=("", 0))
    if most > _MAX_USERS:
        raise _RefusedError(f"the tensor {name!r} has {most} users, more than {_MAX_USERS}")


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    logger = logging.getLogger("onnxslim")
    before = list(logger.handlers)
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        try:
            yield
        finally:
            logger.handlers[:] = before


def _check_interface(old: ModelProto, new: ModelProto) -> None:
    """Require a sound model with the same outputs, and without new inputs."""
    complaint = checker_complaint(_without_weights(new))
    if complaint:
        raise ValueError(complaint)
    before, after = _types(old.graph.output), _types(new.graph.output)
    if before != after:
        raise ValueError(f"the outputs changed from {before} to {after}")
    added = [entry for entry in _types(new.graph.input) if entry not in _types(old.graph.input)]
    if added:
        raise ValueError(f"inputs appeared: {added}")


def _types(values: Iterable[ValueInfoProto]) -> list[tuple[str, int]]:
    return [(value.name, value.type.tensor_type.elem_type) for value in values]


def _infer_shapes(model: ModelProto) -> str | None:
    """Write inferred shapes into a model, and return what shape inference complains about.

    What the file says of the shapes of its outputs counts where nothing can be inferred.

    Raises InvalidModelError: a tensor is too large.
    """
    light = _without_weights(model)
    _forget_shapes(light)
    propagate = _EXPLODING.isdisjoint(node.op_type for node in light.graph.node)
    found, complaint = light, None
    for strict in (True, False):
        try:
            found = onnx.shape_inference.infer_shapes(light, strict_mode=strict, data_prop=propagate)
            break
        except MemoryError:
            raise
        except Exception as error:  # InferenceError is not public in all versions
            complaint = complaint or f"shape inference says: {' '.join(str(error).split())[:600]}"
    del model.graph.value_info[:]
    model.graph.value_info.extend(found.graph.value_info)
    for declared, inferred in zip(model.graph.output, found.graph.output, strict=True):
        if is_static(inferred) or not is_static(declared):
            declared.CopyFrom(inferred)
    _refuse_giants(model)
    return complaint


def _unknown_shapes(model: ModelProto) -> int:
    return sum(not is_static(value) for value in (*model.graph.value_info, *model.graph.output))


def _without_weights(model: ModelProto) -> ModelProto:
    """Return a model in which large weights are inputs: their shapes matter, their data does not."""
    light = ModelProto(ir_version=model.ir_version)
    light.opset_import.extend(model.opset_import)
    graph = light.graph
    graph.name = model.graph.name
    for new, old in (
        (graph.node, model.graph.node),
        (graph.input, model.graph.input),
        (graph.output, model.graph.output),
        (graph.value_info, model.graph.value_info),
    ):
        new.extend(old)
    for tensor in model.graph.initializer:
        if prod(tensor.dims) <= _MAX_SMALL_WEIGHT:
            graph.initializer.append(tensor)
        else:
            graph.input.append(make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    return light


def _forget_shapes(model: ModelProto) -> None:
    """Drop, in place, the shapes that can be inferred: they may speak of other input shapes."""
    kept = {name for node in model.graph.node if node.domain not in _INFERRED_DOMAINS for name in node.output}
    values = [value for value in model.graph.value_info if value.name in kept]
    del model.graph.value_info[:]
    model.graph.value_info.extend(values)
    inputs = {value.name for value in model.graph.input}
    for value in model.graph.output:
        if value.name not in kept | inputs and value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")


def _refuse_giants(model: ModelProto) -> None:
    giants = []
    for value in (*model.graph.input, *model.graph.value_info, *model.graph.output):
        tensor = value.type.tensor_type
        size = prod(max(dimension.dim_value, 0) for dimension in tensor.shape.dim) * _item_bytes(value)
        if size > MAX_TENSOR_BYTES:
            giants.append(f"tensor {value.name!r} needs {size / 1e9:.2f} GB, at most 2 GiB can be passed on")
    if giants:
        raise InvalidModelError("the model is too large at these input shapes:", giants[:10])


def _item_bytes(value: ValueInfoProto) -> int:
    kind = value.type.tensor_type.elem_type
    return weight_bytes(TensorProto(data_type=kind, dims=[1])) if is_known_type(kind) else 0
