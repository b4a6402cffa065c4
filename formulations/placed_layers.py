"""Plans that give each layer of a network to a unit: which units, and what is wrong with the plan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .plan import Plan
from .scores import Violation


def units_of_layers(
    plan: Plan, *, network: str, layers: Sequence[str], units: Sequence[str]
) -> tuple[list[int], list[Violation]]:
    """Return the index of the unit of each layer, and why that is none: it is -1 or the last of several then.

    `layers`, `units`: their names.
    """
    unit_of = [-1] * len(layers)
    wrong = [*_unknown(plan, network, len(layers), units)]
    if not wrong:
        covered = [0] * len(layers)
        for chunk in plan.chunks:
            for layer in range(chunk.start, chunk.stop):
                covered[layer] += 1
                unit_of[layer] = units.index(chunk.unit)
        wrong += _gaps(layers, covered)
    return unit_of, wrong


def _unknown(plan: Plan, network: str, layers: int, units: Sequence[str]) -> Iterator[Violation]:
    for chunk in plan.chunks:
        where = f"layers [{chunk.start}, {chunk.stop}) on {chunk.unit!r}"
        if chunk.network != network:
            text = f"network {chunk.network!r}; the problem has {network!r}"
            yield Violation(rule="names", message=f"{where}: {text}")
        if chunk.unit not in units:
            text = f"no such unit; the platform has {', '.join(units)}"
            yield Violation(rule="names", message=f"{where}: {text}")
        if chunk.stop > layers:
            yield Violation(rule="names", message=f"{where}: the network has only {layers} layers")


def _gaps(layers: Sequence[str], covered: Sequence[int]) -> Iterator[Violation]:
    for what, wrong in (
        ("no unit", [layer for layer, times in enumerate(covered) if not times]),
        ("several units", [layer for layer, times in enumerate(covered) if times > 1]),
    ):
        if wrong:
            named = ", ".join(repr(layers[layer]) for layer in wrong[:5])
            more = f" and {len(wrong) - 5} more" if len(wrong) > 5 else ""
            yield Violation(rule="coverage", message=f"{what} for layer {named}{more}")
