"""Which units make load beside which."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from ....formulations.errors import InvalidInputError
from ....formulations.hardware import Platform
from ..corun import companions
from .ratios import ALL_OTHERS

UnitSet = tuple[str, ...]
"""Units that make load together."""


def default_loads(platform: Platform, unit: str, *, able: Sequence[str]) -> dict[str, UnitSet]:
    """Return each other unit that can run beside a unit, and all of them that can run at once."""
    found: dict[str, UnitSet] = {other: (other,) for other in able if _apart(platform, (unit, other))}
    together = companions(platform, unit, able=able)
    return {**found, ALL_OTHERS: together} if len(together) > 1 else found


def chosen_loads(
    platform: Platform, unit: str, wanted: Sequence[UnitSet], *, able: Sequence[str]
) -> dict[str, UnitSet]:
    """Return those of the wanted sets of units that can make load beside a unit; as `default_loads`."""
    return {
        ", ".join(names): names
        for names in wanted
        if set(names) <= set(able) and _apart(platform, (unit, *names))
    }


def check_loads(platform: Platform, wanted: Sequence[UnitSet]) -> None:
    """Require that there is some load, and that each set of units can make load beside some other unit."""
    names = platform.unit_names
    if not any(_apart(platform, pair) for pair in combinations(names, 2)):
        raise InvalidInputError(
            f"no two of the units {', '.join(names)} can run at once (they share cores), so there is no "
            "interference to measure; `gapless platforms --detect` shows the units of this device"
        )
    problems = [
        f"beside {','.join(chosen) or '(nothing)'}: {text}"
        for chosen in wanted
        for text in [_defect(platform, chosen)]
        if text
    ]
    if problems:
        raise InvalidInputError("units that are to make load cannot do so:", problems)


def _defect(platform: Platform, chosen: UnitSet) -> str:
    """Return why units cannot make load together; empty if they can."""
    names = platform.unit_names
    unknown = [name for name in chosen if name not in names]
    if unknown or not chosen:
        return f"there is no unit {unknown[0]!r}; choose from {', '.join(names)}" if unknown else "no unit"
    if len(set(chosen)) < len(chosen):
        return "a unit is named twice"
    for pair in combinations(chosen, 2):
        if not _apart(platform, pair):
            return f"{pair[0]} and {pair[1]} share cores, so they never run at once; name one of them"
    if not any(_apart(platform, (unit, *chosen)) for unit in names):
        return "no further unit is left that shares no core with them, and could be measured"
    return ""


def _apart(platform: Platform, names: Sequence[str]) -> bool:
    """Return whether units are different ones that do not exclude each other."""
    exclusive = platform.exclusive
    pairs = combinations(map(platform.unit_names.index, names), 2)
    return all(u != v and v not in exclusive[u] for u, v in pairs)
