"""Powers of the units of drawn platforms."""

from __future__ import annotations

from dataclasses import replace

from gapless.formulations.hardware import Platform

_DRAWN = ((900, 0), (400, 70), (1500, 310), (400, 70), (2, 2))
"""Units alike, cheap, dear, that take as much idle as at work, and nothing idle."""


def with_powers(platform: Platform) -> Platform:
    """Return a platform whose units have powers by their places."""
    units = []
    for index, unit in enumerate(platform.units):
        power_mw, idle_mw = _DRAWN[index % len(_DRAWN)]
        units.append(replace(unit, power_mw=power_mw, idle_mw=idle_mw))
    return replace(platform, units=tuple(units))
