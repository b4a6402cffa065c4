"""What a problem demands, one by one, and the problem without each: rules, limits, facts of the device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ..formulations.flow_shop.workload import RequestOrder
from ..formulations.objective import LIMIT_NAMES
from ..formulations.problem import Problem
from .result import ConflictItem

SHARED_CORES = "shared cores"
"""The demand that units which share cores are not used together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """Something that can be left out of a problem.

    Attributes
    ----------
    item
        Its name, and what it demands in words.
    without
        Makes from a problem the same problem without it.
    """

    item: ConflictItem
    without: Callable[[Problem], Problem]


_LIMIT_TEXT = {
    "max_period_us": "the period is at most {} us",
    "min_units": "at least {} units are used",
    "max_units": "at most {} units are used",
    "min_balance_permille": "the least loaded unit in use has at least {} permille of the largest load",
    "max_gapness_us": "the gapness is at most {} us",
    "min_utilisation_permille": "at least {} permille of the platform are busy",
}


def demands_of(problem: Problem) -> list[Demand]:
    """Return the demands of a problem: rules, limits, deadlines and order, memory, cuts, shared cores."""
    return [
        *_rule_demands(problem),
        *_limit_demands(problem),
        *_workload_demands(problem),
        *_hardware_demands(problem),
    ]


def _rule_demands(problem: Problem) -> list[Demand]:
    def drop(name: str) -> Callable[[Problem], Problem]:
        return lambda p: replace(p, rules=tuple(rule for rule in p.rules if rule.name != name))

    return [
        Demand(
            item=ConflictItem(name=rule.name, text=rule.text or f"the rule {rule.name!r} holds"),
            without=drop(rule.name),
        )
        for rule in problem.rules
    ]


def _limit_demands(problem: Problem) -> list[Demand]:
    def drop(name: str) -> Callable[[Problem], Problem]:
        return lambda p: p.with_limits(**{name: None})

    return [
        Demand(
            item=ConflictItem(name=name, text=_LIMIT_TEXT[name].format(getattr(problem.limits, name))),
            without=drop(name),
        )
        for name in LIMIT_NAMES
        if getattr(problem.limits, name) is not None
    ]


def _workload_demands(problem: Problem) -> list[Demand]:
    workload = problem.workload
    if workload is None:
        return []
    found = [
        Demand(
            item=ConflictItem(
                name=f"deadline of {request.name}",
                text=f"request {request.name!r} takes at most {request.deadline_us} us",
            ),
            without=_without_deadline(request.name),
        )
        for request in workload.requests
        if request.deadline_us is not None
    ]
    if workload.order is RequestOrder.FIXED:
        text = f"the requests are served in the order {', '.join(workload.names)}"
        found.append(Demand(item=ConflictItem(name="order", text=text), without=_without_order))
    return found


def _without_deadline(name: str) -> Callable[[Problem], Problem]:
    def drop(problem: Problem) -> Problem:
        assert problem.workload is not None
        requests = tuple(
            replace(request, deadline_us=None) if request.name == name else request
            for request in problem.workload.requests
        )
        return replace(problem, workload=replace(problem.workload, requests=requests))

    return drop


def _without_order(problem: Problem) -> Problem:
    assert problem.workload is not None
    return replace(problem, workload=replace(problem.workload, order=RequestOrder.FREE))


def _hardware_demands(problem: Problem) -> list[Demand]:
    platform = problem.platform
    found = [
        Demand(
            item=ConflictItem(
                name=f"memory of {unit.name}",
                text=f"unit {unit.name!r} holds at most {unit.memory_bytes:,} bytes",
            ),
            without=_unit_without_memory(unit.name),
        )
        for unit in platform.units
        if unit.memory_bytes is not None
    ]
    if platform.memory_bytes is not None:
        text = f"the device holds at most {platform.memory_bytes:,} bytes"
        item = ConflictItem(name="memory of the device", text=text)
        found.append(Demand(item=item, without=_without_device_memory))
    if any(network.forbidden_cuts for network in problem.networks):
        item = ConflictItem(name="forbidden cuts", text=_forbidden_cuts(problem))
        found.append(Demand(item=item, without=_without_cut_restrictions))
    if platform.conflicts:
        pairs = [(platform.unit_names[u], platform.unit_names[v]) for u, v in platform.conflicts]
        text = f"units that share cores exclude each other: {', '.join(f'{a}/{b}' for a, b in pairs)}"
        item = ConflictItem(name=SHARED_CORES, text=text)
        found.append(Demand(item=item, without=_without_shared_cores))
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
    networks = tuple(replace(network, forbidden_cuts=()) for network in problem.networks)
    return replace(problem, networks=networks)


def _forbidden_cuts(problem: Problem) -> str:
    parts = []
    for network in problem.networks:
        if network.forbidden_cuts:
            cuts = ", ".join(map(str, network.forbidden_cuts))
            parts.append(cuts if problem.workload is None else f"{cuts} of {network.name!r}")
    return f"no chunk ends at the cuts {'; '.join(parts)}"


def _without_shared_cores(problem: Problem) -> Problem:
    units = tuple(replace(unit, cores=()) for unit in problem.platform.units)
    return replace(problem, platform=replace(problem.platform, units=units))
