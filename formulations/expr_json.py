"""Expressions as JSON: nested lists that begin with the name of their node.

An integer stands for itself; `["var", "on", 3, 1]`, `["sum", 5, [2, x], [-1, y]]`, `["<=", x, y]`,
`["not", a]`, `["and", a, b]`, `["or", a, b]`, `["max", x, y]` for the other nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .chain import Chain
from .chunking.quantities import Quantity, QuantityVariables
from .errors import InvalidProblemError
from .expr import And, BoolExpr, BoolVar, Const, Expr, IntVar, LessEq, Linear, Max, Not, Or, as_bool
from .flow_shop.quantities import FLOW_TOTALS, FlowQuantity, FlowVariables
from .flow_shop.tables import FlowShop

Data = int | list[Any]
Variables = Callable[[str, Sequence[Any]], Expr]
"""From the name and the indices of a variable to the variable; KeyError if there is none."""


def to_data(expr: Expr) -> Data:
    """Return an expression as nested lists."""
    match expr:
        case Const():
            return expr.value
        case BoolVar() | IntVar():
            return ["var", str(expr.name), *expr.args]
        case Linear():
            return ["sum", expr.constant, *([factor, to_data(term)] for factor, term in expr.terms)]
        case LessEq():
            return ["<=", to_data(expr.left), to_data(expr.right)]
        case Not():
            return ["not", to_data(expr.arg)]
        case And() | Or() | Max():
            return [type(expr).__name__.lower(), *map(to_data, expr.args)]
    raise TypeError(f"{type(expr).__name__} is not one of the nine nodes")


def from_data(data: object, variables: Variables) -> BoolExpr:
    """Return the truth expression that nested lists describe.

    Parameters
    ----------
    data
        What `to_data` returned.
    variables
        `chain_variables` or `workload_variables`.

    Raises
    ------
    InvalidProblemError
        The lists do not describe an expression, or name a variable that is not there.
    ExpressionError
        A number stands where a truth value is needed.
    """
    return as_bool(_Reader(variables).read(data))


class _Reader:
    def __init__(self, variables: Variables) -> None:
        self._variables = variables

    def read(self, data: object) -> Expr:
        if type(data) is int:
            return Const(data)
        match _without_truths(data):
            case ["var", str(name), *args]:
                return self._variable(name, args)
            case ["sum", int(constant), *terms]:
                return Linear(tuple(map(self._term, terms)), constant)
            case ["<=", left, right]:
                return LessEq(self.read(left), self.read(right))
            case ["not", arg]:
                return Not(as_bool(self.read(arg)))
            case ["and", *args]:
                return And(tuple(as_bool(self.read(arg)) for arg in args))
            case ["or", *args]:
                return Or(tuple(as_bool(self.read(arg)) for arg in args))
            case ["max", first, *args]:
                return Max(tuple(map(self.read, (first, *args))))
        raise InvalidProblemError(f"{_short(data)} is not an expression")

    def _term(self, data: object) -> tuple[int, Expr]:
        match _without_truths(data):
            case [int(factor), term]:
                return factor, self.read(term)
        raise InvalidProblemError(f"{_short(data)} is not a [factor, expression] of a sum")

    def _variable(self, name: str, args: list[object]) -> Expr:
        try:
            return self._variables(name, args)
        except KeyError as error:
            text = f"{_short(['var', name, *args])} names no quantity of this problem: {error.args[0]}"
            raise InvalidProblemError(text) from None


def chain_variables(chain: Chain) -> Variables:
    """Return the variables of a problem with one network."""
    make = QuantityVariables(chain)
    layers, units = range(chain.layer_count), range(chain.unit_count)

    def variable(name: str, args: Sequence[Any]) -> Expr:
        match name, args:
            case Quantity.ON, [int(layer), int(unit)] if layer in layers and unit in units:
                return make.on(layer, unit)
            case Quantity.USES, [int(unit)] if unit in units:
                return make.uses(unit)
            case Quantity.CUT, [int(boundary)] if boundary in range(1, chain.layer_count):
                return make.cut(boundary)
            case Quantity.BUSY, [int(unit)] if unit in units:
                return make.busy_us(unit)
            case Quantity.MEMORY, [int(unit)] if unit in units:
                return make.memory_bytes(unit)
            case _, [] if name in _TOTALS:
                return make.total(Quantity(name))
        raise KeyError(f"{len(layers)} layers, {len(units)} units; quantities are {', '.join(Quantity)}")

    return variable


def workload_variables(shop: FlowShop) -> Variables:
    """Return the variables of a problem with a workload."""
    make = FlowVariables(shop)
    requests, units = range(shop.request_count), range(shop.unit_count)
    one = {
        FlowQuantity.POSITION: make.position,
        FlowQuantity.START: make.start_us,
        FlowQuantity.FINISH: make.finish_us,
        FlowQuantity.MEMORY_WHILE: make.memory_while_bytes,
    }
    pairs = {FlowQuantity.BEFORE: make.before, FlowQuantity.BESIDE: make.beside}
    mixed = {FlowQuantity.USES: make.uses, FlowQuantity.CHUNK_US: make.chunk_us}

    def layer_count(request: int) -> int:
        return shop.chain(request).layer_count

    def variable(name: str, args: Sequence[Any]) -> Expr:
        quantity = FlowQuantity(name) if name in set(FlowQuantity) else None
        match args:
            case [] if quantity in FLOW_TOTALS:
                return make.total(quantity)
            case [int(unit)] if quantity is FlowQuantity.LOAD and unit in units:
                return make.load_us(unit)
            case [int(request)] if quantity in one and request in requests:
                return one[quantity](request)
            case [int(i), int(j)] if quantity in pairs and i in requests and j in requests and i != j:
                return pairs[quantity](i, j)
            case [int(request), int(unit)] if quantity in mixed and request in requests and unit in units:
                return mixed[quantity](request, unit)
            case [int(request), int(cut)] if quantity is FlowQuantity.CUT and request in requests:
                if 0 < cut < layer_count(request):
                    return make.cut(request, cut)
            case [int(request), int(layer), int(unit)] if quantity is FlowQuantity.ON:
                if request in requests and 0 <= layer < layer_count(request) and unit in units:
                    return make.on(request, layer, unit)
        raise KeyError(
            f"{len(requests)} requests, {len(units)} units; quantities are {', '.join(FlowQuantity)}"
        )

    return variable


_TOTALS = frozenset(Quantity) - {
    Quantity.ON,
    Quantity.USES,
    Quantity.CUT,
    Quantity.BUSY,
    Quantity.MEMORY,
}


def _without_truths(data: object) -> object:
    """Return a list as it is; true and false are numbers to Python, but not in files."""
    if isinstance(data, list | tuple) and any(isinstance(item, bool) for item in data):
        raise InvalidProblemError(f"{_short(data)} has a truth value where a number is needed")
    return data


def _short(data: object) -> str:
    text = repr(data)
    return text if len(text) <= 80 else text[:77] + "..."
