"""What a problem demands, one by one, and the problem without each: rules, limits, facts of the device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .limits import LIMITS

if TYPE_CHECKING:
    from .hardware import Platform, ProcessingUnit
    from .network import Network
    from .problem import Problem


SHARED_CORES = "shared cores"
"""The demand that units which share cores are not used together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """Something that can be left out of a problem."""

    name: str  # name of the rule, limit or fact
    text: str  # what it demands, in words
    without: Callable[[Problem], Problem]  # makes from a problem the same problem without it


def demands_of(problem: Problem) -> list[Demand]:
    """Return the demands of a problem: rules, limits, those of its formulation, facts of the device."""
    return [
        *_rule_demands(problem),
        *_limit_demands(problem),
        *problem.formulation.demands(problem),
        *_hardware_demands(problem),
    ]


def _rule_demands(problem: Problem) -> list[Demand]:
    def drop(name: str) -> Callable[[Problem], Problem]:
        return lambda p: replace(p, rules=tuple(rule for rule in p.rules if rule.name != name))

    return [
        Demand(
            name=rule.name,
            text=rule.text or f"the rule {rule.name!r} holds",
            without=drop(rule.name),
        )
        for rule in problem.rules
    ]


def _limit_demands(problem: Problem) -> list[Demand]:
    def drop(name: str) -> Callable[[Problem], Problem]:
        return lambda p: p.with_limits(**{name: None})

    return [
        Demand(name=name, text=LIMITS[name].text.format(limit), without=drop(name))
        for name, limit in problem.limits.in_use().items()
    ]


def _hardware_demands(problem: Problem) -> list[Demand]:
    platform = problem.platform
    found = [
        Demand(
            name=f"memory of {unit.name}",
            text=f"unit {unit.name!r} holds at most {unit.memory_bytes:,} bytes",
            without=_unit_without_memory(unit.name),
        )
        for unit in platform.units
        if unit.memory_bytes is not None
    ]
    if platform.memory_bytes is not None:
        text = f"the device holds at most {platform.memory_bytes:,} bytes"
        found.append(Demand(name="memory of the device", text=text, without=_without_device_memory))
    if any(_open_to_cuts(network) != network for network in problem.networks):
        found.append(
            Demand(name="forbidden cuts", text=_forbidden_cuts(problem), without=_without_cut_restrictions)
        )
    if pairs := _sharing(platform):
        text = f"units that share cores exclude each other: {', '.join(f'{a}/{b}' for a, b in pairs)}"
        found.append(Demand(name=SHARED_CORES, text=text, without=_without_shared_cores))
    return found


def _unit_without_memory(name: str) -> Callable[[Problem], Problem]:
    def drop(problem: Problem) -> Problem:
        units = tuple(
            replace(unit, memory_bytes=None) if unit.name == name else unit for unit in problem.platform.units
        )
        return replace(problem, platform=replace(problem.platform, units=units))

    return drop


def _without_device_memory(problem: Problem) -> Problem:
    return replace(problem, platform=replace(problem.platform, memory_bytes=None))


def _without_cut_restrictions(problem: Problem) -> Problem:
    return replace(problem, networks=tuple(map(_open_to_cuts, problem.networks)))


def _open_to_cuts(network: Network) -> Network:
    """Return a network that may be cut wherever no recurrence is."""
    return replace(network, forbidden_cuts=network.state_cuts)


def _forbidden_cuts(problem: Problem) -> str:
    parts = []
    for network in problem.networks:
        if network.forbidden_cuts:
            cuts = ", ".join(map(str, network.forbidden_cuts))
            parts.append(cuts if problem.formulation.one_network else f"{cuts} of {network.name!r}")
    return f"no chunk ends at the cuts {'; '.join(parts)}"


def _sharing(platform: Platform) -> list[tuple[str, str]]:
    """Return pairs of units that share cores, each pair of sets of cores once where units have variants.

    Variants of one unit, which are the same cores with another engine, or units of one resource, are no such
    pair: it is the same unit.
    """
    found: dict[tuple[object, object], tuple[str, str]] = {}
    for pair in platform.conflicts:
        one, other = (platform.units[index] for index in pair)
        if not (one.cores and other.cores) or _variants(one, other):
            continue
        sets = (one.cores, other.cores) if one.engine.name or other.engine.name else (one.name, other.name)
        found.setdefault(sets, (one.name, other.name))
        found.setdefault(sets[::-1], found[sets])
    return list(dict.fromkeys(found.values()))


def _variants(one: ProcessingUnit, other: ProcessingUnit) -> bool:
    same = bool(one.resource) and one.resource == other.resource
    return bool(one.cores) and one.cores == other.cores and (same or one.engine.name != other.engine.name)


def _without_shared_cores(problem: Problem) -> Problem:
    """Return a problem in which all units can be used at once, of the variants of a unit still one."""
    platform = problem.platform
    own = {unit.cores: (index,) for index, unit in enumerate(platform.units)}
    units = tuple(
        replace(unit, cores=own[unit.cores] if any(_variants(unit, one) for one in platform.units) else ())
        for unit in platform.units
    )
    return replace(problem, platform=replace(platform, units=units))
