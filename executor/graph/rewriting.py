"""A model file simplified as far as its numbers stay: what is made of it is compared with the file.

The rewritings of a third party, and our own (`quantised`), are right for nearly all models. So the file and
what was made of it run on the same random inputs, once, when the file is opened. Where an output differs, or
ONNX Runtime refuses what was made, fewer rewritings are tried, and in the end none. What cannot be compared
is said.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, count
from typing import TYPE_CHECKING, Any

from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, numpy_helper
from onnx.helper import make_node, make_tensor_value_info

from ...formulations.errors import ExecutionError
from ..comparing import Allowed, Reference
from ..model import QUANTISED_ERROR, TensorSpec, rounds_to_few_bits, tolerance
from ..names import safe_name
from ..samples import random_inputs
from .choices import COMPARING, Simplification
from .observing import LIMIT_S, SEEDS, arrays_of, with_outputs
from .op_types import RANDOM
from .operators import Operator, alive, operators_of, tensor_spec
from .quantised import ready_for_cuts
from .renaming import rename
from .simplify import ALL, REWRITINGS, Simplified, simplify
from .tensor_data import all_graphs, subgraphs
from .watching import Watch

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
    for operator in operators:
        if _is_random(operator.node) or not varying.isdisjoint(operator.inputs):
            varying.update(operator.outputs)
    constant = [value for value in graph.output if value.name not in varying]
    if not constant or len(constant) == len(graph.output):
        return
    for tensor in _values(model, operators, constant):
        _hand_over(model, tensor)


def _is_random(node: NodeProto) -> bool:
    inner = (each for graph in subgraphs(node.attribute) for each in graph.node)
    return node.op_type in RANDOM or any(map(_is_random, inner))


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


MAX_TENSOR_BYTES = 2**31
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
    otherwise = ""
    notes: tuple[str, ...] = ()
    for left_out in _LADDER if how == Simplification.AUTO else [ALL]:
        if otherwise and left_out != ALL and time.monotonic() - started > MAX_SECONDS:
            continue
        given = ModelProto.FromString(file.content) if otherwise else model
        made = simplify(given, watch=watch, left_out=left_out)
        ready_for_cuts(made.model)
        watch.step(COMPARING)
        try:
            found = made.failure or _difference(file, made.model, compared=compared)
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
    random = sorted(set(_kinds(file.model)) & RANDOM)
    if random:
        raise _IncomparableError(f"random operators give other numbers in every run ({', '.join(random)})")
    size = _tensor_bytes(made)
    if size > MAX_TENSOR_BYTES:
        raise _IncomparableError(f"its tensors have {size / 1e9:.1f} GB at these shapes")
    right = file.right
    try:
        found = file.run(made)
    except ExecutionError as error:
        return _refusal(file.model, made, str(error))
    worst, words, blind = _worst(file, right, found)
    if worst:
        if _worst(file, right, file.run(file.model))[0]:
            raise _IncomparableError("the file itself gives other numbers in every run")
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
