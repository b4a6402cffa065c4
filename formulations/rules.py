"""Rules: constraints that a user adds in Python.

A rule function takes a `PlanView` and returns an expression; it runs once, when it is added to a
problem, and never sees a plan. An `OpaqueRule` is any Python predicate on a finished plan.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from .chain import Chain
from .chunking.quantities import Quantity, QuantityVariables
from .errors import ExpressionError, InvalidProblemError
from .expr import BoolExpr, BoolVar, Expr, IntVar, Variable, all_of, any_of, as_bool, count, linear
from .flow_shop.view import WorkloadView
from .nearness import meant, python_hint
from .network import Network
from .plan import Plan
from .validation import Defects

LayerRef = str | int
"""A layer by name or by index."""


class PlanView:
    """What a rule can say about any plan of a problem; every method returns an expression.

    Layers are given by name or index, units by name.
    """

    def __init__(self, network: Network, chain: Chain) -> None:
        self._units = chain.units
        self._layers = network.layer_names
        self._variables = QuantityVariables(chain)

    @property
    def units(self) -> tuple[str, ...]:
        """Names of the units."""
        return self._units

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of the layers, in order."""
        return self._layers

    def on(self, layer: LayerRef, unit: str) -> BoolVar:
        """Return "the unit runs the layer"."""
        return self._variables.on(self._layer(layer), self._unit(unit))

    def uses(self, unit: str) -> BoolVar:
        """Return "the unit runs at least one layer"."""
        return self._variables.uses(self._unit(unit))

    def cut_after(self, layer: LayerRef) -> BoolVar:
        """Return "a chunk ends right after this layer" (not defined for the last layer)."""
        index = self._layer(layer)
        if index == len(self._layers) - 1:
            raise InvalidProblemError(
                f"cut_after({layer!r}): no chunk follows the last layer; name an earlier one"
            )
        return self._variables.cut(index + 1)

    def chunks(self) -> Expr:
        """Return the number of chunks."""
        return count(self._variables.uses(unit) for unit in range(len(self._units)))

    def position(self, layer: LayerRef) -> Expr:
        """Return the place in the pipeline of the chunk that holds the layer; 0 is the first."""
        index = self._layer(layer)
        return linear((1, self._variables.cut(boundary)) for boundary in range(1, index + 1))

    def busy_us(self, unit: str) -> IntVar:
        """Return the busy time of a unit per period, microseconds; 0 when it is not used."""
        return self._variables.busy_us(self._unit(unit))

    def memory_bytes(self, unit: str) -> IntVar:
        """Return the bytes of weights and live tensors on a unit; 0 when it is not used."""
        return self._variables.memory_bytes(self._unit(unit))

    def period_us(self) -> IntVar:
        """Return the period, microseconds."""
        return self._variables.total(Quantity.PERIOD)

    def latency_us(self) -> IntVar:
        """Return the latency of one request, microseconds."""
        return self._variables.total(Quantity.LATENCY)

    def gapness_us(self) -> IntVar:
        """Return the gapness, microseconds."""
        return self._variables.total(Quantity.GAPNESS)

    def bubbles_us(self) -> IntVar:
        """Return the idle time of the used units per period, microseconds."""
        return self._variables.total(Quantity.BUBBLES)

    def peak_bytes(self) -> IntVar:
        """Return the bytes needed while every chunk runs at once."""
        return self._variables.total(Quantity.PEAK)

    def _unit(self, name: str) -> int:
        if name in self._units:
            return self._units.index(name)
        hint = meant(name, self._units, choice="the platform has")
        raise InvalidProblemError(f"no unit {name!r}; {hint}")

    def _layer(self, layer: LayerRef) -> int:
        if isinstance(layer, str) and layer in self._layers:
            return self._layers.index(layer)
        if isinstance(layer, int) and not isinstance(layer, bool) and 0 <= layer < len(self._layers):
            return layer
        raise InvalidProblemError(
            f"no layer {layer!r}; layers are 0 to {len(self._layers) - 1}, "
            f"or by name: {', '.join(self._layers[:12])}{', ...' if len(self._layers) > 12 else ''}"
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rule:
    """A constraint written as an expression: exact backends lower it, everybody evaluates it.

    Attributes
    ----------
    name
        Name for messages and results.
    expr
        Must be true.
    text
        The rule in words.
    """

    name: str
    expr: BoolExpr
    text: str = ""

    def __post_init__(self) -> None:
        _check_name(self.name)
        if not isinstance(self.expr, BoolExpr):
            raise InvalidProblemError(f"rule {self.name!r}: its expression must be true or false")

    def holds(self, values: Callable[[Variable], int]) -> bool:
        """Return whether a plan satisfies the rule."""
        return bool(self.expr.evaluate(values))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rule) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class OpaqueRule:
    """Any Python predicate on a finished plan; backends can only check it, plan by plan.

    Attributes
    ----------
    name
        Name for messages and results.
    predicate
        Takes a `Plan`, returns True or False.
    text
        The rule in words.
    """

    name: str
    predicate: Callable[[Plan], bool]
    text: str = ""

    def __post_init__(self) -> None:
        _check_name(self.name)

    def __repr__(self) -> str:
        # Without the address of the predicate: the fingerprint of a problem is made of this.
        where = getattr(self.predicate, "__qualname__", type(self.predicate).__qualname__)
        return f"OpaqueRule(name={self.name!r}, predicate={where}, text={self.text!r})"

    def holds(self, plan: Plan) -> bool:
        """Return whether a plan satisfies the rule.

        Raises
        ------
        InvalidProblemError
            The predicate failed, or did not return True or False.
        """
        try:
            verdict = self.predicate(plan)
        except Exception as error:
            raise InvalidProblemError(
                f"rule {self.name!r} failed on the plan [{plan}]: {type(error).__name__}: {error}"
            ) from error
        if not isinstance(verdict, bool):
            raise InvalidProblemError(
                f"rule {self.name!r} returned {verdict!r} for the plan [{plan}]; "
                "an opaque rule returns True or False"
            )
        return verdict


class RuleFunction(Protocol):
    """A function that builds a rule from a view."""

    def __call__(self, view: Any, /) -> BoolExpr:
        """Return an expression that must be true; `view` is a `PlanView` or a `WorkloadView`."""
        ...


AnyRule = Rule | OpaqueRule


def build_rule(source: RuleFunction | AnyRule, view: PlanView | WorkloadView) -> AnyRule:
    """Return a rule from a rule function; rules pass through.

    Raises
    ------
    ExpressionError
        The function used Python where an expression is needed, or returned something else.
    InvalidProblemError
        The function names something that is not there, or failed.
    """
    if isinstance(source, Rule | OpaqueRule):
        return source
    if not callable(source):
        raise InvalidProblemError(f"{source!r} is not a rule: give a function of a PlanView, or a Rule")
    name = getattr(source, "__name__", type(source).__name__)
    try:
        result = as_bool(_expression(source(view)))
    except ExpressionError as error:
        raise ExpressionError(f"rule {name!r}: {error}") from error
    except InvalidProblemError as error:
        raise InvalidProblemError(f"rule {name!r}: {error}") from error
    except Exception as error:
        hint = python_hint(error)
        raise InvalidProblemError(f"rule {name!r} failed: {type(error).__name__}: {error}{hint}") from error
    text = (getattr(source, "__doc__", None) or "").strip().split("\n")[0]
    return Rule(name=name, expr=result, text=text)


def _expression(result: object) -> Expr:
    if isinstance(result, bool) or not isinstance(result, Expr):
        raise ExpressionError(
            f"it returned {result!r}, not an expression. Return e.g. view.busy_us('gpu') <= 9000; "
            "for a Python predicate on finished plans use OpaqueRule; "
            "for a constant use Const(0) or Const(1)"
        )
    return result


def _check_name(name: str) -> None:
    defects = Defects(f"rule {name!r}")
    defects.check_name("name", name)
    defects.raise_as(InvalidProblemError)


def named(name: str, text: str, build: RuleFunction) -> RuleFunction:
    """Return a rule function with the name and the words that its rule shall have."""
    build.__name__, build.__doc__ = name, text  # type: ignore[attr-defined]
    return build


def pin(layer: LayerRef, *, unit: str) -> RuleFunction:
    """Return the rule "this layer runs on this unit"."""
    text = f"layer {layer!r} runs on {unit!r}"
    return named(f"pin({layer}, {unit})", text, lambda view: view.on(layer, unit))


def forbid(layer: LayerRef, *, unit: str) -> RuleFunction:
    """Return the rule "this layer does not run on this unit"."""
    text = f"layer {layer!r} does not run on {unit!r}"
    return named(f"forbid({layer}, {unit})", text, lambda view: ~view.on(layer, unit))


def together(*layers: LayerRef) -> RuleFunction:
    """Return the rule "these layers run on one unit"."""
    text = f"layers {', '.join(map(repr, layers))} run on one unit"

    def build(view: PlanView) -> BoolExpr:
        return any_of(all_of(view.on(layer, unit) for layer in layers) for unit in view.units)

    return named(f"together({', '.join(map(str, layers))})", text, build)


def apart(first: LayerRef, second: LayerRef) -> RuleFunction:
    """Return the rule "these two layers run on different units"."""
    text = f"layers {first!r} and {second!r} run on different units"

    def build(view: PlanView) -> BoolExpr:
        return all_of(~(view.on(first, unit) & view.on(second, unit)) for unit in view.units)

    return named(f"apart({first}, {second})", text, build)


def at_most(units: int) -> RuleFunction:
    """Return the rule "at most so many units are used"."""
    return named(f"at_most({units})", f"at most {units} units are used", lambda v: v.chunks() <= units)


def at_least(units: int) -> RuleFunction:
    """Return the rule "at least so many units are used"."""
    return named(f"at_least({units})", f"at least {units} units are used", lambda v: v.chunks() >= units)


def needs(unit: str, other: str) -> RuleFunction:
    """Return the rule "whoever uses the first unit also uses the second"."""
    text = f"a plan that uses {unit!r} also uses {other!r}"
    return named(f"needs({unit}, {other})", text, lambda v: v.uses(unit).implies(v.uses(other)))


def avoid(unit: str) -> RuleFunction:
    """Return the rule "this unit is not used"."""
    return named(f"avoid({unit})", f"unit {unit!r} is not used", lambda view: ~view.uses(unit))


def busy_cap(unit: str, *, most_us: int) -> RuleFunction:
    """Return the rule "this unit is busy at most so many microseconds per period"."""
    text = f"unit {unit!r} is busy at most {most_us} us per period"
    return named(f"busy_cap({unit}, {most_us})", text, lambda view: view.busy_us(unit) <= most_us)


def memory_cap(most_bytes: int, *, unit: str | None = None) -> RuleFunction:
    """Return the rule "the plan (or one unit of it) needs at most so many bytes"."""
    where = "the plan" if unit is None else f"unit {unit!r}"

    def build(view: PlanView) -> BoolExpr:
        return (view.peak_bytes() if unit is None else view.memory_bytes(unit)) <= most_bytes

    name = f"memory_cap({most_bytes}{'' if unit is None else f', {unit}'})"
    return named(name, f"{where} needs at most {most_bytes} bytes", build)


def latency_cap(*, most_us: int) -> RuleFunction:
    """Return the rule "one request takes at most so many microseconds from entry to exit"."""
    text = f"the latency is at most {most_us} us"
    return named(f"latency_cap({most_us})", text, lambda view: view.latency_us() <= most_us)


def differs(plan: Plan, *, at_least: int = 1) -> RuleFunction:
    """Return the rule "at least so many layers run on other units than in this plan".

    With 1 it is the blocking constraint C5 of BetterTogether (III-D): any plan but this one. See
    `plan_distance`.
    """
    text = f"at least {at_least} layers run on other units than in [{plan}]"

    def build(view: PlanView) -> BoolExpr:
        layers = len(view.layers)
        if plan.order or plan.chunks[-1].stop != layers:
            raise InvalidProblemError(f"[{plan}] is no plan of a network with {layers} layers")
        placed = (view.on(layer, c.unit) for c in plan.chunks for layer in range(c.start, c.stop))
        return count(placed) <= layers - at_least

    return named(f"differs({plan.plan_id}, {at_least})", text, build)


def cuts_only_after(*layers: LayerRef) -> RuleFunction:
    """Return the rule "chunks end only after these layers" (and at the end of the network)."""
    text = f"chunks end only after {', '.join(map(repr, layers)) or 'the last layer'}"

    def build(view: PlanView) -> BoolExpr:
        allowed = {view.cut_after(layer).key for layer in layers}
        every = (view.cut_after(layer) for layer in range(len(view.layers) - 1))
        return all_of(~cut for cut in every if cut.key not in allowed)

    return named(f"cuts_only_after({', '.join(map(str, layers))})", text, build)
