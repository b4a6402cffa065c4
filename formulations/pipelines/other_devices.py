"""Problems with other sets of devices: fewer of them, or one more of each kind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from typing import TypeVar

from ..cluster import Pipelines
from ..costs import CostTable
from ..expr_json import from_data, to_data
from ..problem import Problem
from ..rules import Rule
from .tables import cluster_of

_Time = TypeVar("_Time")


def other_devices(problem: Problem) -> Iterator[tuple[str, Problem]]:
    """Yield the problem with at most 1, 2, ... devices in use, then with one more of each kind, and in words.

    The units of one board have no twins: only where links join devices, one more can be there.
    """
    cluster, used = cluster_of(problem), problem.limits.max_units
    most = len(problem.platform.units) if used is None else min(used, len(problem.platform.units))
    noun = "device" if cluster.data.links else "unit"
    for number in range(max(1, problem.limits.min_units or 1), most):
        words = f"at most {number} {noun}{'' if number == 1 else 's'}"
        yield words, problem.with_limits(max_units=number)
    if not cluster.data.links or problem.co_run_costs is not None:
        return
    kinds = list(zip(cluster.data.types_of(problem.platform), cluster.kinds, strict=True))
    for device in map(kinds.index, dict.fromkeys(kinds)):
        yield f"one more like {cluster.devices[device]}", one_more(problem, device)


def one_more(problem: Problem, device: int) -> Problem:
    """Return the problem with a further device, the last one, that is like a given one.

    It has the same costs, memory and power, and the links of its type; without types, those of the given
    device, to which it has none itself.
    """
    data, units = problem.data, problem.platform.units
    assert isinstance(data, Pipelines)
    name = _new_name(problem.platform.unit_names, units[device].name)
    types = data.types_of(problem.platform)
    table = _widened(problem.costs, device, name)
    larger = replace(
        problem,
        platform=replace(problem.platform, units=(*units, replace(units[device], name=name))),
        costs=table,
        interference=None,
        rules=(),
        data=replace(
            data,
            types=(*types, types[device]),
            power_mw=(*data.power_mw, data.power_mw[device]) if data.power_mw else (),
        ),
    )
    # Devices keep their numbers, so rules stay what they are; only the bounds of quantities change.
    variables = larger.formulation.variables(larger)
    rules = tuple(
        replace(rule, expr=from_data(to_data(rule.expr), variables.find)) if isinstance(rule, Rule) else rule
        for rule in problem.rules
    )
    return replace(larger, rules=rules)


def _new_name(known: tuple[str, ...], like: str) -> str:
    base = like.rstrip("0123456789")
    return next(name for name in (f"{base or like}{number}" for number in count(2)) if name not in known)


def _widened(costs: CostTable, device: int, name: str) -> CostTable:
    """Return a cost table with one more column, that of a device again."""
    networks = tuple(
        replace(
            entry,
            layer_us=_again(entry.layer_us, device),
            transfer_in_us=_again(entry.transfer_in_us, device),
            transfer_out_us=_again(entry.transfer_out_us, device),
        )
        for entry in costs.networks
    )
    return replace(costs, units=(*costs.units, name), networks=networks)


def _again(rows: tuple[tuple[_Time, ...], ...], column: int) -> tuple[tuple[_Time, ...], ...]:
    return tuple((*row, row[column]) for row in rows)
