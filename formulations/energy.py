"""Energy of the units of one device, from the powers of its platform, in exact integers.

A unit takes its power at work while it is busy and its idle power for the rest of the time; milliwatts times
microseconds are nanojoules. With busy power w, idle power i, busy times B and a time C (a period, or the
makespan of a batch)

    energy = sum over all units of w B + i (C - B) = sum of (w - i) B + C * sum of i,

so that energy never falls when units are busy for longer. Units that a plan does not use are idle.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .hardware import Platform

if TYPE_CHECKING:
    from .problem import Problem

ENERGY = "energy"
"""The term."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Powers:
    """Powers of the units of a device, in platform order."""

    extra_mw: tuple[int, ...]  # power at work above the idle power, by unit, milliwatts
    idle_mw: int  # idle power of all units together, milliwatts

    def energy_nj(self, busy_us: Mapping[int, int], whole_us: int) -> int:
        """Return the energy of some busy times (by unit, none for those not used) within a time."""
        return whole_us * self.idle_mw + sum(self.extra_mw[unit] * time for unit, time in busy_us.items())


def powers_of(platform: Platform) -> Powers | None:
    """Return the powers of a platform; None where one is not known."""
    extra: list[int] = []
    for unit in platform.units:
        if unit.power_mw is None or unit.idle_mw is None:
            return None
        extra.append(unit.power_mw - unit.idle_mw)
    return Powers(extra_mw=tuple(extra), idle_mw=sum(unit.idle_mw or 0 for unit in platform.units))


def lacking(platform: Platform) -> str:
    """Return which powers a platform does not say, in words; empty: it says all."""
    missing = {
        field: [unit.name for unit in platform.units if getattr(unit, field) is None]
        for field in ("power_mw", "idle_mw")
    }
    told = [f"{field} of {', '.join(map(repr, names))}" for field, names in missing.items() if names]
    if not told:
        return ""
    return (
        f"energy needs the powers of all units: platform {platform.name!r} does not say {' and '.join(told)} "
        "(milliwatts; write them into the platform of the problem file)"
    )


def unknown_energy(problem: Problem) -> dict[str, str]:
    """Return the term of energy, with the reason, where a platform does not say the powers."""
    reason = lacking(problem.platform)
    return {ENERGY: reason} if reason else {}
