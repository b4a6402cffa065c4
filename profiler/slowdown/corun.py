"""Which units run beside which, and how much longer layers take then: interference-heavy costs.

As in BetterTogether (III-C), while a layer is measured on one unit, the same layer runs in a loop on the
others. Single layers may take a few microseconds, and ratios of such times are noise; so the ratio is taken
of groups of layers, each long enough, alone and beside the others in the same session right after each other,
and given to all layers of the group: `heavy = isolated x ratio`. Copies get one ratio a unit, of all groups
together. So both tables rest on the same isolated times.

Simplification: the others run the *same* group, and all the time. In a pipeline they run different chunks
and wait now and then, so the table tells the dear end of what can happen.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import combinations
from statistics import median

from ...formulations.errors import InvalidInputError
from ...formulations.hardware import Platform
from ..isolated import ProbeTiming, UnitCosts
from ..summary import Summary

RATIO_RANGE = (0.2, 10.0)
"""Ratios beyond are taken for mistakes: phones were seen between 0.36 (clocks rise) and 4."""


def apart(platform: Platform, names: Sequence[str]) -> bool:
    """Return whether units are different ones that do not exclude each other."""
    exclusive = platform.exclusive
    pairs = combinations(map(platform.unit_names.index, names), 2)
    return all(u != v and v not in exclusive[u] for u, v in pairs)


def unit_pairs(platform: Platform) -> list[tuple[str, str]]:
    """Return the pairs of units that can run at once: the one that suffers, and the other one."""
    names, exclusive = platform.unit_names, platform.exclusive
    return [
        (name, other)
        for u, name in enumerate(names)
        for v, other in enumerate(names)
        if u != v and v not in exclusive[u]
    ]


def require_pairs(platform: Platform, what: str) -> None:
    """Require that some two units can run at once (InvalidInputError); `what`: what is to be measured."""
    if not unit_pairs(platform):
        raise InvalidInputError(
            f"no two of the units {', '.join(platform.unit_names)} can run at once (they share cores), so "
            f"there is no {what} to measure; `gapless device detect` shows the units of this device"
        )


def companions(platform: Platform, unit: str, *, able: Iterable[str]) -> tuple[str, ...]:
    """Return who makes load beside a unit: a maximal set of units that conflict neither with it nor mutually.

    Units with most cores come first, so that as many as possible are busy, then those of the same engine,
    then the order of the platform.
    """
    able = set(able)
    units, exclusive = platform.units, platform.exclusive
    own = units[platform.index_of(unit)]
    order = sorted(
        range(len(units)),
        key=lambda u: (-len(units[u].cores), units[u].engine.name != own.engine.name),
    )
    chosen = {platform.index_of(unit)}
    for candidate in order:
        if units[candidate].name in able and candidate not in chosen and not exclusive[candidate] & chosen:
            chosen.add(candidate)
    return tuple(units[u].name for u in sorted(chosen) if units[u] is not own)


def heavy_costs(
    isolated: UnitCosts, alone: Sequence[ProbeTiming], beside: Sequence[ProbeTiming]
) -> tuple[UnitCosts, tuple[str, ...]]:
    """Return the costs of a unit while the others are busy, and notes on ratios that were cut off.

    `alone`, `beside`: groups of layers in the same order, alone and beside load. Layers of groups that were
    not measured beside load get the median ratio; with no groups at all, costs stay as they are alone.
    """
    if not beside:
        return isolated, (f"unit {isolated.unit!r} has no other unit beside it: heavy is isolated there",)
    ratios, notes = [], []
    for one, other in zip(alone, beside, strict=True):
        ratio, note = _ratio([one.timing.run], [other.timing.run])
        ratios.append(ratio)
        if note:
            notes.append(f"unit {isolated.unit!r}, layers {one.span[0]} to {one.span[1] - 1}: {note}")
    usual = median(ratios)
    by_layer = [usual] * len(isolated.layer_us)
    for ratio, one in zip(ratios, alone, strict=True):
        by_layer[slice(*one.span)] = [ratio] * (one.span[1] - one.span[0])
    copy_in, _ = _ratio([one.timing.copy_in for one in alone], [one.timing.copy_in for one in beside])
    copy_out, _ = _ratio([one.timing.copy_out for one in alone], [one.timing.copy_out for one in beside])
    return replace(
        isolated,
        layer_us=tuple(
            None if time is None else time * ratio
            for time, ratio in zip(isolated.layer_us, by_layer, strict=True)
        ),
        overhead_us=isolated.overhead_us * usual,
        copy_in=isolated.copy_in.scaled(copy_in),
        copy_out=isolated.copy_out.scaled(copy_out),
    ), tuple(notes)


def _ratio(alone: Sequence[Summary], beside: Sequence[Summary]) -> tuple[float, str]:
    """Return how much longer things take beside load, within `RATIO_RANGE`, and a note if they were not."""
    alone_us = sum(one.typical_us for one in alone)
    measured = sum(one.typical_us for one in beside) / alone_us if alone_us > 0 else 1.0
    ratio = min(max(measured, RATIO_RANGE[0]), RATIO_RANGE[1])
    return ratio, "" if ratio == measured else f"the ratio {measured:.2f} was taken as {ratio:g}"
