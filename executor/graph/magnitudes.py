"""Up to which numbers engines that compute in 32 bits are right about whole numbers.

MNN and OpenVINO compute whole numbers of 64 bits in 32, and many operators on them in float32, which is exact
up to 2**24 only. Inputs of a piece that fit may give what does not: identifiers that are hashed, say.
Verification tries small numbers, so that nothing told of it. Here ranges are followed through the operators
of a piece, and the largest numbers of its inputs are looked for with which all results are exact. Neither of
them refuses an index beyond a table, as ONNX Runtime does: that is a limit, too.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence, Set
from math import prod
from typing import NamedTuple

import numpy as np
from onnx import NodeProto, TensorProto, numpy_helper

from ..model import TensorSpec
from .op_types import MOVING
from .operators import Operator, OperatorGraph

LIMIT = 2**31 - 1
"""Largest number of 32 bits."""

LIMIT_OF_FLOATS = 2**24
"""Up to there float32 has all whole numbers."""

_EXACT = frozenset(("Add", "Sub", "Sum", "Neg", "ReduceSum", "CumSum"))
"""Types that both engines compute in integers; of the others they compute one or another in floats."""

_INDEXING = frozenset(("Gather", "GatherElements"))
"""Types that look entries up: beyond the last one, MNN reads other memory, and OpenVINO gives zeros."""

_INTEGERS = (
    *(TensorProto.INT64, TensorProto.INT32, TensorProto.INT16, TensorProto.INT8),
    *(TensorProto.UINT64, TensorProto.UINT32, TensorProto.UINT16, TensorProto.UINT8),
)
_WIDE = ("int64", "uint64", "uint32")
_MOST = 2**200
"""Beyond it, ranges are not told apart any more."""


class _Range(NamedTuple):
    low: int
    high: int


def largest_inputs(graph: OperatorGraph, operators: Sequence[Operator]) -> dict[str, int]:
    """Return, by input of a piece, the largest magnitude with which all whole numbers inside are right.

    Only inputs are named on which a result depends that could be wrong. Where constants alone are too large,
    a verification sees it: nothing is named.
    """
    if not any(_matters(graph, operator) for operator in operators):
        return {}
    made = {name for operator in operators for name in operator.outputs}
    taken = {name for operator in operators for name in operator.inputs if name not in made}
    inputs = {name for name in taken if name in graph.specs and "int" in graph.specs[name].dtype}
    constants = {name: found for o in operators for name in o.weights if (found := _constant(graph, name))}

    def ranges_of(most: int) -> dict[str, _Range]:
        return constants | {name: _taken(graph, name, most) for name in inputs}

    followed = ranges_of(LIMIT)
    reasons = _too_large(graph, operators, followed)
    always = _too_large(graph, operators, ranges_of(1))
    wrong: dict[frozenset[str], set[str]] = {}
    for name in reasons.keys() - always:
        origins = frozenset(inputs & _behind(operators, reasons[name] & followed.keys(), followed))
        wrong.setdefault(origins, set()).add(name)
    limits: dict[str, int] = {}
    for behind, names in wrong.items():
        good, bad = 1, LIMIT
        while bad - good > 1:
            middle = (good + bad) // 2
            right = names.isdisjoint(_too_large(graph, operators, ranges_of(middle)))
            good, bad = (middle, bad) if right else (good, middle)
        limits |= {each: min(good, limits.get(each, good)) for each in behind}
    return limits


def _matters(graph: OperatorGraph, operator: Operator) -> bool:
    """Return whether an operator computes whole numbers, or looks up what is not known yet."""
    if operator.op_type in _INDEXING:
        return operator.node.input[1] not in graph.weights
    whole = (name in graph.specs and "int" in graph.specs[name].dtype for name in operator.outputs)
    return operator.op_type in _COMPUTING and any(whole)


def _rows(graph: OperatorGraph, node: NodeProto) -> int | None:
    """Return how many entries an operator has to choose from; None: it is not known."""
    name = node.input[0]
    found = graph.weights.get(name)
    shape = tuple(found.dims) if found is not None else getattr(graph.specs.get(name), "shape", ())
    axis = next((each.i for each in node.attribute if each.name == "axis"), 0)
    return shape[axis] if shape else None


def _taken(graph: OperatorGraph, name: str, most: int) -> _Range:
    ends = np.iinfo(graph.specs[name].dtype)
    return _Range(max(int(ends.min), -most), min(int(ends.max), most))


def _numbers(node: NodeProto) -> Sequence[str]:
    """Return the inputs of an operator that its results are made of; the others say which, or where."""
    names = tuple(node.input)
    if node.op_type == "Where":
        return names[1:]
    if node.op_type in _FILLING:
        return names[:3:2]
    return names[:1] if node.op_type in _FIRST or node.op_type in _REDUCING else names


def _places(node: NodeProto) -> Sequence[str]:
    """Return the outputs of an operator that say where its numbers stood."""
    return tuple(node.output[1:]) if node.op_type == "TopK" else ()


def _behind(operators: Sequence[Operator], names: Set[str], followed: Container[str]) -> set[str]:
    """Return all tensors followed of which the numbers of some are made, and themselves."""
    found = set(names)
    for operator in reversed(operators):
        if not found.isdisjoint(operator.outputs):
            found.update(name for name in _numbers(operator.node) if name in followed)
    return found


def _too_large(
    graph: OperatorGraph, operators: Sequence[Operator], ranges: dict[str, _Range]
) -> dict[str, set[str]]:
    """Return the tensors that may be wrong if inputs and constants are in some ranges, and because of which.

    The ranges of results are added to those given.
    """
    wrong: dict[str, set[str]] = {}
    for operator in operators:
        if operator.op_type in _INDEXING and (index := ranges.get(operator.node.input[1])) is not None:
            rows = _rows(graph, operator.node)
            if rows is not None and max(-index.low - 1, index.high) >= rows:
                wrong |= {name: {operator.node.input[1]} for name in operator.outputs}
        for name in operator.outputs:
            spec = graph.specs.get(name)
            if spec is None or "int" not in spec.dtype:
                continue
            found = _result(graph, operator, spec, ranges) if name not in _places(operator.node) else None
            if found is None:
                continue
            seen = [found, *(ranges[each] for each in operator.inputs if each in ranges)]
            limit = LIMIT if operator.op_type in _EXACT else LIMIT_OF_FLOATS
            computes = operator.op_type in _COMPUTING and (spec.dtype in _WIDE or limit < LIMIT)
            if computes and max(max(-each.low, each.high) for each in seen) > limit:
                wrong[name] = set(_numbers(operator.node))
            most = _MOST if spec.dtype in _WIDE else LIMIT
            ranges[name] = _Range(max(found.low, -most), min(found.high, most))
    return wrong


def _result(
    graph: OperatorGraph, operator: Operator, spec: TensorSpec, ranges: Mapping[str, _Range]
) -> _Range | None:
    """Return the range of what an operator makes; None: it does not come from whole numbers of the inputs."""
    node, kind = operator.node, operator.op_type
    given = [ranges.get(name) for name in node.input]
    if operator.domain or not given:
        return None
    if kind == "Clip":
        return _clipped(given)
    if kind == "Where" or kind in _FILLING:
        return _union([ranges.get(name) for name in _numbers(node)])
    if kind in _FIRST:
        return given[0]
    terms = _terms(graph, node, spec)
    if kind in _REDUCING and given[0] is not None:
        return _REDUCING[kind](given[0], terms)
    known = [each for each in given if each is not None]
    if kind == "BitShift" and any(each.s == b"RIGHT" for each in node.attribute):
        kind = "Div"
        known[1:] = [_Range(2 ** min(64, max(0, each.low)), 2**64) for each in known[1:]]
    return _RULES[kind](known, terms) if kind in _RULES and len(known) == len(given) else None


def _constant(graph: OperatorGraph, name: str) -> _Range | None:
    weight = graph.weights[name]
    if weight.data_type not in _INTEGERS or not prod(weight.dims):
        return None
    numbers = numpy_helper.to_array(weight)
    return _Range(int(numbers.min()), int(numbers.max()))


def _terms(graph: OperatorGraph, node: NodeProto, spec: TensorSpec) -> int:
    """Return how many numbers may come together in one of a result."""
    first = graph.specs.get(node.input[0])
    if node.op_type in ("MatMul", "CumSum"):
        lengths = first.shape if first is not None else ()
        return max(lengths[-1:] if node.op_type == "MatMul" else lengths, default=1)
    return prod(first.shape) // max(1, prod(spec.shape)) if first is not None else 1


def _union(ranges: Sequence[_Range | None]) -> _Range | None:
    known = [each for each in ranges if each is not None]
    return _Range(min(each.low for each in known), max(each.high for each in known)) if known else None


def _clipped(given: Sequence[_Range | None]) -> _Range | None:
    number, *ends = given
    least, most = (*ends, None, None)[:2]
    if number is None:
        return None
    low = number.low if least is None else max(number.low, least.low)
    high = number.high if most is None else min(number.high, most.high)
    return _Range(min(low, high), max(low, high))


def _product(one: _Range, other: _Range) -> _Range:
    ends = [a * b for a in one for b in other]
    return _Range(min(ends), max(ends))


def _power(one: _Range, count: int) -> _Range:
    most = max(abs(one.low), abs(one.high)) ** min(count, 64)
    return _Range(-most if one.low < 0 else 0, most)


def _remainder(divisor: _Range) -> _Range:
    most = max(-divisor.low, divisor.high, 1) - 1
    return _Range(-most if divisor.low < 0 else 0, most)


def _quotient(number: _Range, divisor: _Range) -> _Range:
    if divisor.low <= 0 <= divisor.high:
        divisor = _Range(-1, 1)  # the smallest of them
    ends = [abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) for a in number for b in divisor]
    return _Range(min(ends), max(ends))


def _added(given: Sequence[_Range], _: int) -> _Range:
    return _Range(sum(each.low for each in given), sum(each.high for each in given))


def _times(one: _Range, count: int) -> _Range:
    return _Range(min(one.low, one.low * count), max(one.high, one.high * count))


_RULES: Mapping[str, Callable[[Sequence[_Range], int], _Range | None]] = {
    "Add": _added,
    "Sum": _added,
    "Sub": lambda given, _: _Range(given[0].low - given[1].high, given[0].high - given[1].low),
    "Mul": lambda given, _: _product(given[0], given[1]),
    "Pow": lambda given, _: _power(given[0], max(0, given[1].high)),
    "Neg": lambda given, _: _Range(-given[0].high, -given[0].low),
    "Abs": lambda given, _: _power(given[0], 1)._replace(low=0),
    "Div": lambda given, _: _quotient(given[0], given[1]),
    "Mod": lambda given, _: _remainder(given[1]),
    "Max": lambda given, _: _Range(max(e.low for e in given), max(e.high for e in given)),
    "Min": lambda given, _: _Range(min(e.low for e in given), min(e.high for e in given)),
    "Concat": lambda given, _: _union(given),
    "BitShift": lambda given, _: _product(given[0], _Range(1, 2 ** min(64, max(0, given[1].high)))),
    "MatMul": lambda given, terms: _times(_product(given[0], given[1]), terms),
}
"""By type, the range of a result from those of what is taken, and from how many numbers come together."""

_REDUCING: Mapping[str, Callable[[_Range, int], _Range]] = {
    "ReduceSum": _times,
    "ReduceSumSquare": lambda taken, terms: _times(_power(taken, 2), terms),
    "ReduceProd": _power,
    "CumSum": _times,
}
"""The same, of those of which the further inputs are no numbers of the result."""

_FILLING = frozenset(("Pad", "Scatter", "ScatterElements", "ScatterND"))
"""Types of which the third input stands in the result, too."""

_FIRST = (
    MOVING
    - _FILLING
    - {"Concat", "Shape", "Size", "OneHot", "NonZero", "ConstantOfShape", "Range", "EyeLike"}
) | {
    *("ReduceMax", "ReduceMin", "Relu", "TopK"),
}
"""Types of which the result has no other numbers than the first input, or smaller ones."""

_COMPUTING = {*_RULES, *_REDUCING, "Clip", "ReduceMax", "ReduceMin"} - {"Concat"}
