"""Ready-made rules about workloads."""

from __future__ import annotations

from ..expr import BoolExpr, all_of
from ..rules import RuleFunction, named
from .view import WorkloadView


def before(first: str, second: str) -> RuleFunction:
    """Return the rule "every unit serves the first request before the second".

    Where units have orders of their own (--passage any, once): the first starts no later than the second.
    """
    text = f"{first!r} is served before {second!r}"
    return named(f"before({first}, {second})", text, lambda view: view.before(first, second))


def never_beside(first: str, second: str) -> RuleFunction:
    """Return the rule "chunks of these two requests never run at the same time"."""
    text = f"{first!r} and {second!r} never run at the same time"
    return named(f"never_beside({first}, {second})", text, lambda view: ~view.beside(first, second))


def deadline(request: str, *, most_us: int) -> RuleFunction:
    """Return the rule "this request takes at most a given number of microseconds from arrival to exit"."""
    text = f"{request!r} takes at most {most_us} us"
    return named(f"deadline({request}, {most_us})", text, lambda view: view.latency_us(request) <= most_us)


def memory_cap_while(request: str, *, most_bytes: int) -> RuleFunction:
    """Return the rule "while this request runs the device uses at most a given number of bytes"."""
    text = f"at most {most_bytes} bytes are in use while {request!r} runs"

    def build(view: WorkloadView) -> BoolExpr:
        return view.memory_while_bytes(request) <= most_bytes

    return named(f"memory_cap_while({request}, {most_bytes})", text, build)


def keep_on(request: str, *, units: tuple[str, ...]) -> RuleFunction:
    """Return the rule "this request runs on these units only"."""
    text = f"{request!r} runs on {', '.join(map(repr, units))} only"

    def build(view: WorkloadView) -> BoolExpr:
        return all_of(~view.uses(request, unit) for unit in view.units if unit not in units)

    return named(f"keep_on({request}, {', '.join(units)})", text, build)


def keep_off(request: str, *, unit: str) -> RuleFunction:
    """Return the rule "this request does not use this unit"."""
    text = f"{request!r} does not use {unit!r}"
    return named(f"keep_off({request}, {unit})", text, lambda view: ~view.uses(request, unit))
