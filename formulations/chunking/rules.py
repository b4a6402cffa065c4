"""Ready-made rules about plans of one network."""

from __future__ import annotations

from ..errors import InvalidProblemError
from ..expr import BoolExpr, Expr, all_of, any_of, count
from ..plan import Plan
from ..rules import RuleFunction, named
from ..views import LayerRef
from .view import PlanView


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
    """Return the rule "at most a given number of units are used"."""
    return named(f"at_most({units})", f"at most {units} units are used", lambda v: _used(v) <= units)


def at_least(units: int) -> RuleFunction:
    """Return the rule "at least a given number of units are used"."""
    return named(f"at_least({units})", f"at least {units} units are used", lambda v: _used(v) >= units)


def _used(view: PlanView) -> Expr:
    return count(view.uses(unit) for unit in view.units)


def needs(unit: str, other: str) -> RuleFunction:
    """Return the rule "whoever uses the first unit also uses the second"."""
    text = f"a plan that uses {unit!r} also uses {other!r}"
    return named(f"needs({unit}, {other})", text, lambda v: v.uses(unit).implies(v.uses(other)))


def avoid(unit: str) -> RuleFunction:
    """Return the rule "this unit is not used"."""
    return named(f"avoid({unit})", f"unit {unit!r} is not used", lambda view: ~view.uses(unit))


def busy_cap(unit: str, *, most_us: int) -> RuleFunction:
    """Return the rule "this unit is busy at most a given number of microseconds per period"."""
    text = f"unit {unit!r} is busy at most {most_us} us per period"
    return named(f"busy_cap({unit}, {most_us})", text, lambda view: view.busy_us(unit) <= most_us)


def memory_cap(most_bytes: int, *, unit: str | None = None) -> RuleFunction:
    """Return the rule "the plan (or one unit of it) needs at most a given number of bytes"."""
    where = "the plan" if unit is None else f"unit {unit!r}"

    def build(view: PlanView) -> BoolExpr:
        return (view.peak_bytes() if unit is None else view.memory_bytes(unit)) <= most_bytes

    name = f"memory_cap({most_bytes}{'' if unit is None else f', {unit}'})"
    return named(name, f"{where} needs at most {most_bytes} bytes", build)


def latency_cap(*, most_us: int) -> RuleFunction:
    """Return the rule "one request takes at most a given number of microseconds from entry to exit"."""
    text = f"the latency is at most {most_us} us"
    return named(f"latency_cap({most_us})", text, lambda view: view.latency_us() <= most_us)


def differs(plan: Plan, *, at_least: int = 1) -> RuleFunction:
    """Return the rule "at least a given number of layers run on other units than in this plan".

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
        allowed = {repr(view.cut_after(layer)) for layer in layers}
        every = (view.cut_after(layer) for layer in range(len(view.layers) - 1))
        return all_of(~cut for cut in every if repr(cut) not in allowed)

    return named(f"cuts_only_after({', '.join(map(str, layers))})", text, build)
