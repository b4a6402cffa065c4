"""Simplification and shape inference, as far as the numbers of a model stay.

What inference does not know is observed (`shapes`).

A model file simplified as far as its numbers stay: what is made of it is compared with the file. The
rewritings of a third party, and our own (`grouping`), are right for nearly all models. So the file and what
was made of it run on the same random inputs, once, when the file is opened. Where an output differs, or ONNX
Runtime refuses what was made, fewer rewritings are tried, and in the end none. What cannot be compared is
said.
"""

from __future__ import annotations

import contextlib
import io
import logging
import time
import warnings
from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, count
from math import prod
from typing import TYPE_CHECKING, Any

import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, numpy_helper
from onnx.helper import make_node, make_tensor_value_info

from ...formulations.errors import ExecutionError, InvalidModelError
from ..comparing import Allowed, Reference
from ..model import QUANTISED_ERROR, TensorSpec, rounds_to_few_bits, tolerance
from ..names import safe_name
from ..samples import random_inputs
from .choices import COMPARING, Simplification
from .grouping import ready_for_cuts
from .model_file import Watch, all_graphs, checker_complaint, is_known_type, rename, subgraphs, weight_bytes
from .operators import Operator, alive, is_random, operators_of, switched_off, tensor_spec
from .shapes import LIMIT_S, SEEDS, arrays_of, is_static, observe_shapes, unknown_tensors, with_outputs

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


if TYPE_CHECKING:
    from numpy.typing import NDArray

    Found = Mapping[str, NDArray[Any]]


HANDS_OVER = "/constant"
"""End of the name of the weight behind an output."""


def answer_constants(model: ModelProto) -> None:
    """Make, in place, a weight of each output that depends on no input, and an operator that hands it over.

    A model of which no output depends on an input is left alone, and so is what cannot be computed here.
    """
    graph = model.graph
    operators = operators_of(graph)
    varying = {value.name for value in graph.input}
    off = switched_off(graph.node, graph.initializer)
    for operator in operators:
        if is_random(operator.node, off) or not varying.isdisjoint(operator.inputs):
            varying.update(operator.outputs)
    constant = [value for value in graph.output if value.name not in varying]
    if not constant or len(constant) == len(graph.output):
        return
    for tensor in _values(model, operators, constant):
        _hand_over(model, tensor)


def _values(
    model: ModelProto, operators: Sequence[Operator], wanted: Sequence[ValueInfoProto]
) -> list[TensorProto]:
    """Return outputs that depend on no input, as far as they can be computed."""
    names = {value.name for value in wanted}
    found = [tensor for tensor in model.graph.initializer if tensor.name in names]
    computed = sorted(names - {tensor.name for tensor in found})
    if not computed:
        return found
    own = ModelProto()
    own.CopyFrom(with_outputs(model, computed))
    del own.graph.input[:], own.graph.node[:], own.graph.value_info[:]
    own.graph.node.extend(operator.node for operator in alive(operators, wanted))
    try:
        from ..engines.ort_session import observed_outputs

        (values,) = observed_outputs(own.SerializeToString(), [{}], seconds=LIMIT_S)
    except (ImportError, ExecutionError):
        return found
    return found + [numpy_helper.from_array(array, name) for name, array in arrays_of(values).items()]


def _hand_over(model: ModelProto, tensor: TensorProto) -> None:
    graph, name = model.graph, tensor.name
    taken = {each.name for group in (graph.input, graph.initializer) for each in group}
    taken |= {made for inner in all_graphs(model) for node in inner.node for made in node.output}
    weight = _free(name + HANDS_OVER, taken)
    value = make_tensor_value_info(name, tensor.data_type, tensor.dims)
    own = TensorProto()
    own.CopyFrom(tensor)
    own.name = weight
    _drop(graph, name, _free(name + "/computed", taken))
    for inner in all_graphs(model):
        rename(inner, {name: weight})
    graph.initializer.append(own)
    graph.node.append(make_node("Identity", [weight], [name], name=name))
    next(each for each in graph.output if each.name == weight).CopyFrom(value)


def _drop(graph: GraphProto, name: str, unused: str) -> None:
    """Take what makes or holds a tensor out of a graph; its node makes another one, for nobody."""
    for node in graph.node:
        for place, made in enumerate(node.output):
            if made == name:
                node.output[place] = unused
    kept = [tensor for tensor in graph.initializer if tensor.name != name]
    if len(kept) < len(graph.initializer):
        copies = GraphProto(initializer=kept)
        del graph.initializer[:]
        graph.initializer.extend(copies.initializer)


def _free(name: str, taken: set[str]) -> str:
    numbered = (f"{name}#{number}" for number in count(2))
    found = next(each for each in chain([name], numbered) if each not in taken)
    taken.add(found)
    return found


MAX_COMPARED_BYTES = 2**31
"""Most bytes that all tensors between operators have together in a model that is run for a comparison."""

MAX_SECONDS = 40.0
"""When so much time has gone into comparisons and fewer rewritings, the model is taken as it stands."""

_RUN_SECONDS = 10.0
_MAX_NAMED = 4
_GROUP_BYTES = 2**28
_MAX_GROUPS = 8
"""Tensors that are compared at once in search of the operator, and how many such runs there may be."""

_LADDER = ((), *((each,) for each in REWRITINGS), REWRITINGS, ALL)
"""What is left out, in turn."""

_WORDS = {
    "graph_fusion": "fusing operators",
    "subexpression_elimination": "merging equal operators",
    "dead_node_elimination": "removing operators that do nothing",
    "weight_tying": "sharing equal weights",
}


_NOTHING = "nothing could be compared: "


class _IncomparableError(Exception):
    """Why a model cannot be compared with its file."""


def rewritten(
    model: ModelProto,
    *,
    how: Simplification = Simplification.AUTO,
    compared: bool = True,
    watch: Watch | None = None,
) -> Simplified:
    """Return what is cut and run instead of a file whose inputs have fixed shapes; `model` is used up.

    Without `compared` nothing is run; a warning says so. Errors are those of `simplify`.
    """
    watch = watch or Watch()
    file = _File(model.SerializeToString())
    started = time.monotonic()
    otherwise = file.randomness if how == Simplification.AUTO else ""
    notes: tuple[str, ...] = ()
    for left_out in _LADDER if how == Simplification.AUTO and not otherwise else [ALL]:
        if otherwise and left_out != ALL and time.monotonic() - started > MAX_SECONDS:
            continue
        given = ModelProto.FromString(file.content) if otherwise else model
        made = simplify(given, watch=watch, left_out=left_out)
        ready_for_cuts(made.model)
        watch.step(COMPARING)
        try:
            found = made.failure or file.randomness or _difference(file, made.model, compared=compared)
        except _IncomparableError as error:
            found = str(error) if otherwise else ""
            notes = (f"the simplified model was not compared with the file: {error}",)
        else:
            notes = file.notes
        if not found:
            break
        otherwise = otherwise or found
    else:  # our own rewritings remain: they are for speed only
        left_out, notes = ALL, ()
        made = simplify(ModelProto.FromString(file.content), watch=watch, left_out=ALL)
    complaint = [_complaint(left_out, otherwise)] if otherwise else []
    answer_constants(made.model)
    return Simplified(model=made.model, warnings=(*made.warnings, *complaint, *notes))


def _complaint(left_out: Sequence[str], otherwise: str) -> str:
    if set(left_out) == set(ALL):
        return f"not simplified, because otherwise {otherwise}"
    words = " and without ".join(_WORDS[each] for each in left_out)
    return f"simplified without {words}, because otherwise {otherwise}"


class _File:
    """The model of a file, and what it gives for random inputs."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.notes: tuple[str, ...] = ()

    @cached_property
    def model(self) -> ModelProto:
        """The model."""
        found: ModelProto = ModelProto.FromString(self.content)
        return found

    @cached_property
    def quantised(self) -> bool:
        """Whether it rounds what it computes to few bits."""
        return rounds_to_few_bits(_kinds(self.model))

    @cached_property
    def randomness(self) -> str:
        """Why no two runs of it can be compared, in words; "": they can."""
        nodes = [node for graph in all_graphs(self.model) for node in graph.node]
        off = switched_off(nodes, self.model.graph.initializer)
        random = sorted({node.op_type for node in nodes if is_random(node, off)})
        words = f"random operators give other numbers in every run ({', '.join(random)})"
        return f"{_NOTHING}{words}" if random else ""

    @property
    def allowed(self) -> Allowed:
        """What counts as equal."""
        return Allowed(QUANTISED_ERROR if self.quantised else tolerance("high"), quantised=self.quantised)

    @cached_property
    def requests(self) -> list[Found]:
        """Inputs for each seed."""
        specs = [tensor_spec(value.name, value) for value in self.model.graph.input]
        strange = [spec for spec in specs if not isinstance(spec, TensorSpec)]
        if strange:
            raise _IncomparableError(f"of an input, {strange[0]}")
        known = [spec for spec in specs if isinstance(spec, TensorSpec)]
        return [random_inputs(known, seed) for seed in SEEDS]

    @cached_property
    def right(self) -> list[Found]:
        """Its outputs for each seed; errors as for `run`."""
        try:
            return self.run(self.model)
        except ExecutionError as error:
            text = " ".join(str(error).split())[:300]
            raise _IncomparableError(f"the file itself does not run: {text}") from None

    def run(self, model: ModelProto, wanted: Sequence[str] = ()) -> list[Found]:
        """Return some tensors of a model, or its outputs, for each seed.

        `wanted`: names of tensors; empty: the outputs.
        Raises ExecutionError: ONNX Runtime cannot run it.
        """
        try:
            from ..engines.ort_session import StoppedError, observed_outputs
        except ImportError:
            raise _IncomparableError("ONNX Runtime is not installed") from None
        content = (with_outputs(model, wanted) if wanted else model).SerializeToString()
        requests = [{value.name: each[value.name] for value in model.graph.input} for each in self.requests]
        try:
            found = observed_outputs(content, requests, seconds=_RUN_SECONDS, quantised=self.quantised)
        except StoppedError as error:
            raise _IncomparableError(str(error)) from None
        except ExecutionError as error:
            if "alloc" in str(error):
                raise _IncomparableError("ONNX Runtime has too little memory for it") from None
            raise
        return [arrays_of(each) for each in found]


def _difference(file: _File, made: ModelProto, *, compared: bool) -> str:
    """Return in what a model differs from its file, and since which operator, in words; "" if in nothing."""
    if _is_same(file.model, made):
        return ""
    if not compared:
        raise _IncomparableError("the attempt ended its process, or met a limit of time or memory")
    size = _tensor_bytes(made)
    if size > MAX_COMPARED_BYTES:
        raise _IncomparableError(f"its tensors have {size / 1e9:.1f} GB at these shapes")
    right = file.right
    try:
        found = file.run(made)
    except ExecutionError as error:
        return _refusal(file.model, made, str(error))
    worst, words, blind = _worst(file, right, found)
    if worst:
        if _worst(file, right, file.run(file.model))[0]:
            return f"{_NOTHING}the file itself gives other numbers in every run"
        return f"output {words}, as against the file{_culprit(file, made)}"
    if blind:
        file.notes = (
            "the simplified model was compared with the file, except for "
            f"{', '.join(map(repr, blind))}: mostly not finite on random inputs",
        )
    return ""


def _worst(file: _File, right: Sequence[Found], found: Sequence[Found]) -> tuple[str, str, list[str]]:
    """Return the first tensor that differs and how, in words ("" for none); and those that say nothing."""
    blind: list[str] = []
    for name in right[0]:
        reference = Reference.of([each[name] for each in right])
        differences = [reference.compare(each[name], n, file.allowed) for n, each in enumerate(found)]
        for difference in differences:
            if not difference.agrees:
                return name, difference.said_of(f"{name!r}"), blind
        if not all(difference.compared for difference in differences):
            blind.append(name)
    return "", "", blind


def _culprit(file: _File, made: ModelProto) -> str:
    """Say which operators of the file make the first tensor that differs, as the end of a sentence."""
    makers = {name: node for node in file.model.graph.node for name in node.output if name}
    kept = {name for node in made.graph.node for name in node.output}
    sizes = {value.name: _bytes(value) for value in (*made.graph.value_info, *made.graph.output)}
    for names in _groups([name for name in makers if name in kept], sizes):
        try:
            right, found = file.run(file.model, names), file.run(made, names)
        except (ExecutionError, _IncomparableError):
            return ""
        worst, _, _ = _worst(file, right, found)
        if worst:
            changed = _changed_before(makers, kept, worst)
            via = f", which takes what {', '.join(map(_node_words, changed))} gave" if changed else ""
            return f"; the first tensor that differs is {worst!r} of {_node_words(makers[worst])}{via}"
    return ""


def _groups(names: Sequence[str], sizes: Mapping[str, int]) -> Iterator[list[str]]:
    """Yield the names in groups whose tensors have a limited size together; not for ever."""
    group: list[str] = []
    groups = size = 0
    for name in names:
        size += sizes.get(name, 0)
        if group and size > _GROUP_BYTES:
            yield group
            group, size, groups = [], sizes.get(name, 0), groups + 1
            if groups == _MAX_GROUPS:
                return
        group.append(name)
    if group:
        yield group


def _changed_before(makers: Mapping[str, NodeProto], kept: Container[str], name: str) -> list[NodeProto]:
    """Return the operators before a tensor whose results are not there any more, the nearest first."""
    found: dict[str, NodeProto] = {}
    waiting = [makers[name]]
    while waiting and len(found) < _MAX_NAMED:
        for taken in waiting.pop(0).input:
            if taken in makers and taken not in kept and taken not in found:
                found[taken] = makers[taken]
                waiting.append(makers[taken])
    return list(found.values())


def _refusal(file: ModelProto, made: ModelProto, reason: str) -> str:
    """Say that a model is refused, and because of which operator of the file, as far as that is known."""
    makers = {name: node for node in file.graph.node for name in node.output if name}
    named = (node for node in made.graph.node if node.name and f"({node.name})" in reason)
    names = (name for node in named for name in node.output if name in makers)
    where = next((f" since {_node_words(makers[name])} was changed" for name in names), "")
    return f"ONNX Runtime does not take the model{where}, though it takes the file"


def _node_words(node: NodeProto) -> str:
    return f"{safe_name(node.op_type)} {safe_name(node.name or next(iter(node.output), ''))!r}"


def _is_same(file: ModelProto, made: ModelProto) -> bool:
    """Return whether two models have the same operators with the same weights."""
    if len(file.graph.node) != len(made.graph.node):
        return False
    weights = {tensor.name: tensor for tensor in file.graph.initializer}
    return Counter(map(_essence, file.graph.node)) == Counter(map(_essence, made.graph.node)) and all(
        weights.get(tensor.name) == tensor for tensor in made.graph.initializer
    )


def _essence(node: NodeProto) -> bytes:
    """Return what a node computes, without its name."""
    bare = NodeProto()
    bare.CopyFrom(node)
    bare.name = bare.doc_string = ""
    essence: bytes = bare.SerializeToString(deterministic=True)
    return essence


def _kinds(model: ModelProto) -> Iterator[str]:
    return (node.op_type for graph in all_graphs(model) for node in graph.node)


def _tensor_bytes(model: ModelProto) -> int:
    return sum(map(_bytes, (*model.graph.value_info, *model.graph.output)))


def _bytes(value: ValueInfoProto) -> int:
    spec = tensor_spec(value.name, value)
    return spec.bytes if isinstance(spec, TensorSpec) else 0
