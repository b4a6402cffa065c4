"""Ready-made rules about groups of devices."""

from __future__ import annotations

from ..expr import BoolExpr, all_of, any_of
from ..rules import RuleFunction, named
from ..views import LayerRef
from .view import GroupView


def serves(layer: LayerRef, device: str) -> RuleFunction:
    """Return the rule "this device is in the group that serves this layer"."""
    text = f"{device!r} serves layer {layer!r}"
    return named(f"serves({layer}, {device})", text, lambda view: view.on(layer, device))


def largest_group(count: int) -> RuleFunction:
    """Return the rule "no group has more than a given number of devices"."""
    text = f"at most {count} devices in a group"

    def build(view: GroupView) -> BoolExpr:
        return all_of(view.group_size(layer) <= count for layer in range(len(view.layers)))

    return named(f"largest_group({count})", text, build)


def some_group(count: int) -> RuleFunction:
    """Return the rule "some group has at least a given number of devices"."""
    text = f"at least {count} devices in some group"

    def build(view: GroupView) -> BoolExpr:
        return any_of(view.group_size(layer) >= count for layer in range(len(view.layers)))

    return named(f"some_group({count})", text, build)


def never_together(one: str, other: str) -> RuleFunction:
    """Return the rule "these two devices are never in one group"."""
    text = f"{one!r} and {other!r} are never in one group"
    return named(f"never_together({one}, {other})", text, lambda view: ~view.together(one, other))


def redundancy_cap(device: str, *, most_permille: int) -> RuleFunction:
    """Return the rule "at most so much of what this device computes is computed by others, too"."""
    text = f"at most {most_permille} permille of what {device!r} computes is done twice"
    return named(
        f"redundancy_cap({device}, {most_permille})",
        text,
        lambda view: view.extra_permille(device) <= most_permille,
    )
