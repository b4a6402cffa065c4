"""Problems with other sets of devices: fewer of them, or one more of each kind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from typing import Any

from .expr_json import from_data, to_data
from .operation import operation_of
from .problem import Problem
from .remaining import DevicesOperation, with_columns
from .rules import Rule


def other_devices(problem: Problem) -> Iterator[tuple[str, Problem]]:
    """Yield the problem with at most 1, 2, ... devices in use, then with one more of each kind, and in words.

    The units of one board have no twins: only where links join devices, one more can be there.
    """
    devices, used = _operation(problem).devices(problem), problem.limits.max_units
    names = problem.platform.unit_names
    most = len(names) if used is None else min(used, len(names))
    noun = "device" if devices.links else "unit"
    for number in range(max(1, problem.limits.min_units or 1), most):
        words = f"at most {number} {noun}{'' if number == 1 else 's'}"
        yield words, problem.with_limits(max_units=number)
    if not devices.links or problem.co_run_costs is not None:
        return
    kinds = [_kind(problem, device) for device in range(len(names))]
    for device in map(kinds.index, dict.fromkeys(kinds)):
        yield f"one more like {names[device]}", one_more(problem, device)


def one_more(problem: Problem, device: int) -> Problem:
    """Return the problem with a further device, the last one, that is like a given one.

    It has the same costs, memory and power, and the links of its type; without types, those of the given
    device, to which it has none itself.
    """

    def again(row: tuple[Any, ...]) -> tuple[Any, ...]:
        return (*row, row[device])

    operation, units = _operation(problem), problem.platform.units
    data = operation.devices(problem)
    name = _new_name(problem.platform.unit_names, units[device].name)
    larger_data = replace(
        data,
        types=again(data.types_of(problem.platform)),
        power_mw=again(data.power_mw) if data.power_mw else (),
    )
    larger = replace(
        problem,
        platform=replace(problem.platform, units=(*units, replace(units[device], name=name))),
        costs=with_columns(problem.costs, again, (*problem.costs.units, name)),
        interference=None,
        rules=(),
        data=operation.data(problem, larger_data, again),
    )
    # Devices keep their numbers, so rules stay what they are; only the bounds of quantities change.
    variables = larger.formulation.variables(larger)
    rules = tuple(
        replace(rule, expr=from_data(to_data(rule.expr), variables.find)) if isinstance(rule, Rule) else rule
        for rule in problem.rules
    )
    return replace(larger, rules=rules)


def _operation(problem: Problem) -> DevicesOperation:
    operation = operation_of(problem)
    assert isinstance(operation, DevicesOperation)
    return operation


def _kind(problem: Problem, device: int) -> tuple[object, ...]:
    """Return what distinguishes the kind of a device."""
    data = _operation(problem).devices(problem)
    return (
        data.types_of(problem.platform)[device],
        problem.platform.units[device].memory_bytes,
        data.power_mw[device] if data.power_mw else None,
        *(row[device] for entry in problem.costs.networks for row in entry.layer_us),
    )


def _new_name(known: tuple[str, ...], like: str) -> str:
    base = like.rstrip("0123456789")
    return next(name for name in (f"{base or like}{number}" for number in count(2)) if name not in known)
